"""The matcher's state directory.

lock            held by the one process that has it open; holds its pid
scheme.json     for the owner's eyes: the seed in it is a secret
decider.json    what decides from the log's begin on, until a word in the log names another one
index/          the store; what it was folded from is in its META family
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.base import Store
from neardup.scheme import Scheme
from streams.line.matcher import folded_to
from streams.state.folder import lock_directory, state_error, write_whole

_Kept = TypeVar("_Kept", Scheme, Decider)
_NAMES = {"lock", "scheme.json", "decider.json", "index"}


class Directory:
    """One open directory; `store` is in it."""

    store: Store

    def __init__(self, path: Path, scheme: Scheme) -> None:
        """Makes the directory if it is missing. Raises StateError: in use, of another scheme, no state."""
        self.path = path.absolute()
        self._held = ExitStack()
        try:
            lock_directory(self.path, _NAMES, self._held)
            if (self.path / "log").exists():
                raise StateError(f"{self.path} belongs to `neardup scan`; name another directory for the stream")
            held = self._kept("scheme.json", scheme, Scheme.from_json)
            if held.digest != scheme.digest:
                raise StateError(
                    f"{self.path} was made with scheme {held.digest}, and {scheme.digest} is set; set the seed and "
                    "body_bytes_max that it was begun with, or begin another generation, with a directory of its own"
                )
            from neardup.index.rocks import RocksStore  # loads RocksDB only for those who use it

            self.store = RocksStore(self.path / "index")
            self._held.callback(self.store.close)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Flushes the store and lets go of the directory; closing twice is harmless."""
        self._held.close()

    def first_decider(self, decider: Decider) -> Decider:
        """What decides from the log's begin on; `decider` if nothing is folded yet."""
        return self._kept("decider.json", decider, Decider.from_json, anew=not folded_to(self.store))

    def _kept(self, name: str, made: _Kept, read: Callable[[str, str], _Kept], *, anew: bool = False) -> _Kept:
        """What the file holds, after `made` was written to it if it is missing, or `anew`.

        Raises StateError, NewerProgram.
        """
        file = self.path / name
        try:
            if anew or not file.exists():
                write_whole(file, made.to_json(), mode=0o600)
            return read(file.read_text(), str(file))
        except OSError as error:
            raise state_error("read or write", file, error) from error
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"{file} cannot be read ({error}); restore it, or delete it if the settings are what they were"
            ) from error
