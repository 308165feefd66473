"""The matcher's state directory.

lock            held by the one process that has it open; holds its pid
scheme.json     for the owner's eyes: the seed in it is a secret
decider.json    what decides
index/          the store; what it was folded from is in its META family
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.base import Store
from neardup.scheme import Scheme
from streams.segments import state_error, sync_directory

_NAMES = {"lock", "scheme.json", "decider.json", "index"}
_TO_DO = "use another directory and another generation, or set what it was begun with"


class Directory:
    """One open directory; `store` is in it. Close it, or use `ExitStack.callback`."""

    store: Store

    def __init__(self, path: Path, scheme: Scheme, decider: Decider) -> None:
        """Makes the directory if it is missing. Raises StateError: in use, of another scheme or decider, no state."""
        self.path = path.absolute()
        self._held = ExitStack()
        try:
            self._lock()
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

    def _lock(self) -> None:
        path = self.path
        try:
            if path.exists() and not path.is_dir():
                raise StateError(f"{path} is a file, and a state directory is wanted; name another one")
            path.mkdir(parents=True, exist_ok=True)
            strangers = sorted({entry.name for entry in path.iterdir()} - _NAMES)
            if "log" in strangers:
                raise StateError(f"{path} belongs to `neardup scan`; name another directory for the stream")
            if strangers and not (path / "lock").exists():
                raise StateError(f"{path} holds {strangers[0]!r} and no state; name another directory")
            handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._held.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
                raise StateError(
                    f"{path} is in use by process {pid}; wait for it to end, or name another directory"
                ) from None
            os.ftruncate(handle, 0)
            os.write(handle, b"%d\n" % os.getpid())
        except OSError as error:
            raise state_error("open the state directory", path, error) from error

    def _same(self, name: str, digest: str, text: str, digest_of: Callable[[str], str]) -> None:
        """Writes the file if it is missing; raises StateError if it holds another one."""
        file = self.path / name
        try:
            if not file.exists():
                fresh = file.with_name(name + ".new")
                fresh.unlink(missing_ok=True)
                handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w") as out:
                    out.write(text)
                    out.flush()
                    os.fsync(out.fileno())
                fresh.replace(file)
                sync_directory(self.path)
                return
            held = digest_of(file.read_text())
        except OSError as error:
            raise state_error("read or write", file, error) from error
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"{file} cannot be read ({error}); restore it, or delete it if the settings are as ever"
            ) from error
        if held != digest:
            what = name.partition(".")[0]
            raise StateError(f"{self.path} was made with {what} {held}, and {digest} is set; {_TO_DO}")
