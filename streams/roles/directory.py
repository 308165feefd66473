"""The matcher's state directory.

lock            held by the one process that has it open; holds its pid
scheme.json     for the owner's eyes: the seed in it is a secret
decider.json    what decides
index/          the store; what it was folded from is in its META family
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.base import Store
from neardup.scheme import Scheme
from streams.folder import lock_directory, state_error, write_whole

_NAMES = {"lock", "scheme.json", "decider.json", "index"}


class Directory:
    """One open directory; `store` is in it."""

    store: Store

    def __init__(self, path: Path, scheme: Scheme, decider: Decider) -> None:
        """Makes the directory if it is missing. Raises StateError: in use, of another scheme or decider, no state."""
        self.path = path.absolute()
        self._held = ExitStack()
        try:
            lock_directory(self.path, _NAMES, self._held)
            if (self.path / "log").exists():
                raise StateError(f"{self.path} belongs to `neardup scan`; name another directory for the stream")
            self._same("scheme.json", scheme.digest, scheme.to_json(), lambda text: Scheme.from_json(text).digest)
            self._same("decider.json", decider.digest, decider.to_json(), lambda text: Decider.from_json(text).digest)
            from neardup.index.rocks import RocksStore  # loads RocksDB only for those who use it

            self.store = RocksStore(self.path / "index")
            self._held.callback(self.store.close)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Flushes the store and lets go of the directory; closing twice is harmless."""
        self._held.close()

    def _same(self, name: str, digest: str, text: str, digest_of: Callable[[str], str]) -> None:
        """Writes the file if it is missing; raises StateError if it holds another one."""
        file = self.path / name
        try:
            if not file.exists():
                write_whole(file, text, mode=0o600)
                return
            held = digest_of(file.read_text())
        except OSError as error:
            raise state_error("read or write", file, error) from error
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"{file} cannot be read ({error}); restore it, or delete it if the settings are what they were"
            ) from error
        if held != digest:
            what = name.partition(".")[0]
            raise StateError(
                f"{self.path} was made with {what} {held}, and {digest} is set; set what it was begun with, or begin "
                "another generation, with a directory of its own"
            )
