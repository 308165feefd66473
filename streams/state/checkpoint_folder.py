"""Files below an fsspec URL, which may be away for a while."""

import contextlib
import errno
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import fsspec

from neardup.errors import BadInput, CorruptRecord, StateError
from streams.process.disk import sync
from streams.state.checkpoint_manifest import PIECE_BYTES

#: Attempts to store a file whose temporary file another process removes.
_TRIES = 3
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: A role that connects counts as alive for longer (stall_ms).
CONNECT_SECONDS_MAX = 10.0


class RemoteFolder:
    """The files below one URL. Errors of any file system become StateError with advice.

    Some file systems (ftp, sftp, smb, hdfs) connect when they are made. So one is made at the first use, and again at
    the first use after an error, because a lost connection does not come back by itself.
    """

    def __init__(self, url: str) -> None:
        """Raises BadInput for a URL whose kind of file system is unknown or not installed."""
        self.url = url
        try:
            kinds = [_kind_of(part) for part in url.split("::")]  # of a chain, as simplecache::s3://bucket/folder
            for kind in kinds:
                fsspec.get_filesystem_class(kind)
        except (ImportError, ValueError) as error:
            raise BadInput(f"checkpoints at {url}: {error}") from error
        self._local = kinds[0] in ("file", "local")
        self._connected: tuple[fsspec.AbstractFileSystem, str] | None = None

    @property
    def _fs(self) -> fsspec.AbstractFileSystem:
        """Raises whatever the file system raises, and TimeoutError after CONNECT_SECONDS_MAX."""
        return self._connection()[0]

    @property
    def _root(self) -> str:
        """The folder's path in its file system. Raises as `_fs`."""
        return self._connection()[1]

    def _connection(self) -> tuple[fsspec.AbstractFileSystem, str]:
        found = self._connected  # another thread may drop it
        if found is None:
            found = self._connected = _connected(self.url)
        return found

    def _listed(self, folder: str) -> dict[str, int]:
        """Return the names of the files in a folder, and their sizes in bytes."""
        path = f"{self._root}/{folder}"
        self._fs.invalidate_cache()
        try:
            entries = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {entry["name"].rsplit("/", 1)[-1]: entry["size"] for entry in entries}

    def _remove(self, folder: str, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._root}/{folder}/{name}")

    def _store(self, target: str, source: BinaryIO) -> None:
        """Store a file whole or not at all. Object stores do that; on a disk the file is synced, then renamed."""
        if not self._local:
            with self._fs.open(target, "wb") as out:
                shutil.copyfileobj(source, out, PIECE_BYTES)
            return
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        for tried in range(1, _TRIES + 1):
            fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # another process may copy the same file
            source.seek(0)
            try:
                with fresh.open("wb") as out:
                    shutil.copyfileobj(source, out, PIECE_BYTES)
                    out.flush()
                    os.fsync(out.fileno())
                fresh.rename(path)
                break
            except FileNotFoundError:  # another process removed it as a leftover of a crash
                if tried == _TRIES:
                    raise
            finally:
                fresh.unlink(missing_ok=True)
        sync(path.parent)

    @contextlib.contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn any error of the file system into a StateError that tells an operator what to do."""
        try:
            yield
        except (CorruptRecord, StateError):
            raise
        except Exception as error:
            if not isinstance(error, FileNotFoundError):
                self._connected = None
            full = isinstance(error, OSError) and error.errno in FULL
            advice = "make room, beside the newest checkpoint there is none" if full else "mend that and try again"
            raise StateError(
                f"cannot {doing} checkpoints at {self.url}: {getattr(error, 'strerror', None) or error}; {advice}, "
                "nothing is lost",
            ) from error


def _kind_of(url: str) -> str:
    kind: str | None = fsspec.core.split_protocol(url)[0]
    return kind or (url if url in fsspec.available_protocols() else "file")


def _connected(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """Make the file system of a URL, and return it with the path. It is not from fsspec's cache, where a lost
    connection stays.

    The time is limited, because a role that waits for long counts as dead.
    """
    made: list[tuple[fsspec.AbstractFileSystem, str]] = []
    failed: list[Exception] = []

    def connect() -> None:
        try:
            system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
            made.append((system, path.rstrip("/")))
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=connect, name="checkpoints-connect", daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS_MAX)
    for error in failed:
        raise error
    if not made:
        raise TimeoutError(errno.ETIMEDOUT, f"no connection within {CONNECT_SECONDS_MAX:g} s")
    return made[0]
