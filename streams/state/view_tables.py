"""The tables of the views of a scan, in the folder `views` of its state directory, which may be deleted.

One process at a time builds them; then it and others read them, as RocksDB's secondary instances. One row of META is
written together with the rows of a batch: it names what the tables were built of, and the first frame of verdicts that
they lack. So a build that was interrupted goes on where it was, and a scan that has grown adds only what is new.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from neardup.errors import CorruptRecord, StateError
from neardup.index.column_families import Family
from streams.process.disk import state_errors
from streams.state.directory import VIEWS, snapshot

if TYPE_CHECKING:
    from neardup.index.rocks import RocksStore

#: The family of the index whose tuning fits: small rows from anywhere, or rows nearly in the order of their keys.
FAMILIES: Mapping[str, Family] = {
    "urls": Family.URLS,
    "clusters": Family.CLUSTERS,
    "counts": Family.KEYS,
    "lists": Family.SKETCHES,
    "entries": Family.MEMBERS,
}
_OF = b"of"
#: Memory for changes, and for blocks that were read.
_WRITE_BYTES, _CACHE_BYTES = 64 << 20, 64 << 20
_READ_ROWS = 64


class BuiltOf(msgspec.Struct, frozen=True, kw_only=True):
    """What tables were built of: others are of no use if any of it differs.

    rows_version: version of the rows. takedown: offset of the latest takedown, -1 without one: rows that were made of
    verdicts before it may name the page.
    """

    rows_version: int
    scheme: str
    decider: str
    takedown: int


class BuiltTo(msgspec.Struct, frozen=True):
    """How far tables are built.

    end: first frame of verdicts that they lack. log_time: log time of the last verdict, ms.
    """

    of: BuiltOf
    end: int = 0
    log_time: int = 0


class ViewTables:
    """Tables for reading. Keys and rows are bytes."""

    def __init__(self, store: "RocksStore") -> None:
        self._store = store

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._store.get_many(FAMILIES[table], keys)

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._store.get_many(FAMILIES[table], [key])[0]

    def rows(self, table: str, start: bytes, back: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows from the key `start` on, in the order of keys or backwards."""
        family = FAMILIES[table]
        if start and (value := self.get(table, start)) is not None:
            yield start, value
        while pairs := (self._store.before if back else self._after)(family, start, _READ_ROWS):
            yield from pairs
            start = pairs[-1][0]

    def _after(self, family: Family, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return self._store.first(family, b"", limit, start)

    def built(self) -> BuiltTo | None:
        value = self._store.get_many(Family.META, [_OF])[0]
        if value is None:
            return None
        try:
            return msgspec.json.decode(value, type=BuiltTo)
        except msgspec.DecodeError as error:
            raise CorruptRecord(f"{self._store.path}: {error}; delete this folder, it is built again") from error


class TablesBuild(ViewTables):
    """Tables that this process builds."""

    def write(self, rows: Mapping[str, Mapping[bytes, bytes]], built: BuiltTo) -> None:
        """Write the rows of a batch, whole or not at all. Raises StateError."""
        families = {FAMILIES[table]: held for table, held in rows.items()}
        self._store.write({**families, Family.META: {_OF: msgspec.json.encode(built)}})

    def close(self) -> None:
        """Make everything durable. Raises StateError."""
        self._store.close()


def built_tables(folder: Path, of: BuiltOf, end: int, held: ExitStack) -> ViewTables | None:
    """Open tables for reading until `held` is closed; None if they are missing, of other verdicts, or lack some."""
    if not (folder / "CURRENT").exists():
        return None
    own = ExitStack()
    tables = ViewTables(snapshot(folder, own, cache_bytes=_CACHE_BYTES))
    built = tables.built()
    if built is None or (built.of, built.end) != (of, end):
        own.close()
        return None
    held.push(own)
    return tables


def folder_for(directory: Path, held: ExitStack) -> Path:
    """Return the folder of a scan's tables; a temporary one, until `held` is closed, if the scan cannot be written."""
    if os.access(directory, os.W_OK):
        return directory / VIEWS
    return Path(held.enter_context(tempfile.TemporaryDirectory(prefix="neardup-views-"))) / VIEWS


def open_build(folder: Path, of: BuiltOf, end: int) -> tuple[TablesBuild, BuiltTo]:
    """Open tables to build them further: empty ones if they are of others, or have verdicts from `end` on.

    Raises StateError.
    """
    build = _opened(folder)
    built = build.built()
    if built is None or built.of != of or built.end > end:
        build.close()
        with state_errors("delete", folder):
            shutil.rmtree(folder)
        build, built = _opened(folder), BuiltTo(of)
    return build, built


def _opened(folder: Path) -> TablesBuild:
    from neardup.index.rocks import RocksStore  # RocksDB is loaded only when it is used

    try:
        return TablesBuild(RocksStore(folder, cache_bytes=_CACHE_BYTES, write_bytes=_WRITE_BYTES))
    except StateError as error:
        raise StateError(f"{error} (tables of the views, which are built again if the folder is deleted)") from error


def delete_tables(directory: Path) -> None:
    """Delete the tables of a scan, whose rows may name a page that was taken down. Raises StateError."""
    folder = directory / VIEWS
    if folder.exists():
        with state_errors("delete", folder):
            shutil.rmtree(folder)
