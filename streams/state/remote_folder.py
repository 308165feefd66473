"""A folder on a disk or in an object store, behind one fsspec URL: list, store whole files, remove."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import fsspec

from neardup.errors import BadInput, CorruptRecord, StateError
from streams.state.locked_folder import sync
from streams.state.manifest import PIECE_BYTES

#: Attempts to store a file whose temporary file another process removes.
_TRIES = 3
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class RemoteFolder:
    """The files below one URL. Errors of any file system become StateError with advice."""

    def __init__(self, url: str) -> None:
        """Raises BadInput for a URL that fsspec cannot open."""
        self.url = url
        try:
            self._fs, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise BadInput(f"checkpoints at {url}: {error}") from error
        self._root = root.rstrip("/")
        self._local = "file" in ((self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol)

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
            full = isinstance(error, OSError) and error.errno in FULL
            advice = "make room, beside the newest checkpoint there is none" if full else "mend that and try again"
            raise StateError(
                f"cannot {doing} checkpoints at {self.url}: {getattr(error, 'strerror', None) or error}; {advice}, "
                "nothing is lost",
            ) from error


def sync_tree(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            sync(Path(place, name))
        sync(Path(place))
