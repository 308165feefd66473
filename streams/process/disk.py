"""Files on the disk: locks, atomic writes, and advice for errors."""

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from neardup.errors import StateError
from streams.errors import InUse

try:
    import fcntl
except ImportError:  # Windows; an index in memory needs no lock
    fcntl = None  # type: ignore[assignment]


def state_error(doing: str, path: Path, error: OSError) -> StateError:
    """Makes the error for a failure of the state's file system: the file, the reason, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        advice = "make room, then run the same command again: it goes on where it stopped"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        advice = "the directory must be writable: mend that, or name another one"
    else:
        advice = "mend that, then run the same command again: it goes on where it stopped"
    return StateError(f"cannot {doing} {path}: {error.strerror or error}; {advice}")


@contextmanager
def state_errors(doing: str, path: Path) -> Iterator[None]:
    """Turns errors of the file system in the block into `state_error`."""
    try:
        yield
    except OSError as error:
        raise state_error(doing, path, error) from error


def lock(handle: int) -> None:
    """Locks an open file for this process alone. Raises BlockingIOError if another process holds it, StateError."""
    if fcntl is None:
        raise StateError(
            "this system lacks fcntl, which locks files against other processes: use Linux, macOS or WSL, or an index "
            "in memory"
        )
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def free_bytes(path: Path) -> int:
    """Returns the free bytes on the disk of a state directory. Raises StateError if the directory is gone."""
    with state_errors("find", path):
        return shutil.disk_usage(path).free


def sync(path: Path) -> None:
    """Makes a file durable; of a directory, the names that were created or renamed in it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_directory(path: Path, names: Collection[str], held: ExitStack) -> None:
    """Creates the directory `path` if it is missing, and locks it until `held` is closed.

    names: files that may lie there before it was ever locked. Raises StateError: in use, not a state directory, not
    writable.
    """
    with state_errors("open the state directory", path):
        if path.exists() and not path.is_dir():
            raise StateError(f"{path} is a file, and a state directory is required; name another one")
        path.mkdir(parents=True, exist_ok=True)
        strangers = sorted({entry.name for entry in path.iterdir()} - set(names))
        if strangers and not (path / "lock").exists():
            raise StateError(f"{path} holds {strangers[0]!r} and no state; name another directory")
        handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        held.callback(os.close, handle)
        try:
            lock(handle)
        except BlockingIOError:
            pid = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            raise InUse(
                f"{path} is open in this process already; close it, or name another directory"
                if pid == str(os.getpid())
                else f"{path} is in use by process {pid}; wait for it to end, or name another directory",
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, b"%d\n" % os.getpid())


def written_alone(file: Path) -> BinaryIO:
    """Opens and empties `file`, and locks it against other writers until it is closed, if it is a regular file.

    Raises StateError if another process writes it, or it is not writable.
    """
    with state_errors("write", file):
        # Emptied only once it is locked: another process may be writing it.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                lock(handle)
                os.ftruncate(handle, 0)
        except BlockingIOError:
            os.close(handle)
            raise StateError(
                f"{file} is being written by another process; wait for it to end, or name another file"
            ) from None
        except OSError:
            os.close(handle)
            raise
        return os.fdopen(handle, "wb")


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Yields a temporary name to write to, and renames it to `file` if no error occurs. Raises OSError."""
    fresh = file.with_name(file.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        yield fresh
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(file)
        sync(file.parent)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def write_whole(file: Path, text: str, mode: int = 0o644) -> None:
    """Replaces `file` atomically and durably. Raises OSError."""
    with (
        whole_file(file) as fresh,
        os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out,
    ):
        out.write(text)
