"""The durable store: RocksDB through rocksdict, which no other file imports.

Traps of rocksdict 0.3.29, each of them found by a test:

* Options of the database do not apply to its column families. A family that is opened without options loses its filters
  silently. So every family gets options here, and `open` checks that the filters are in memory.
* There is no write-ahead log (the sketch log replaces it), so families must reach the disk together. Automatic flushes
  write them together with atomic_flush; `Rdict.flush` flushes a single family, with or without that option. A manual
  compaction of a range in memory flushes all families atomically first, so `flush` compacts one tiny key.
* `WriteOptions.disable_wal` is an attribute, whatever the type stubs say.
* The LOCK is released with the last handle, not by `close`. So handles are dropped here, and no iterator outlives a
  call.
* `items` ends without an error at a block with a wrong checksum, as if no rows followed. Only `RdictIter.status` shows
  the difference. So an iteration that ends early is checked here.
* On a full disk a requested flush fails, and so does every later call until the database is opened again; it is then at
  its last flush. But if a flush fails that RocksDB started by itself, writes wait for space without end, and hold the
  interpreter's lock. So writes do not wait (`no_slowdown`). Here they are retried as long as no flush has failed.
* A flush, also that of `close`, waits until compactions have caught up. On a full disk these fail and are retried, so
  the flush waits without end. Once one has failed, options end this wait, and the index can only be closed.
"""

import contextlib
import gc
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import rocksdict

from neardup.errors import StateError
from neardup.index.column_families import Family, Writes

_BLOCK_BYTES, _SMALL_BLOCK_BYTES = 16 << 10, 4 << 10
#: Families of small rows, of which a page reads a few from anywhere.
_SCATTERED = (Family.KEYS, Family.URLS, Family.CLUSTERS)
#: Families whose keys are hashes, so that every flush overlaps all files. Rows of the others come nearly in order.
_HASHED = (Family.KEYS, Family.URLS)
_SORTED_RUNS = 8  # of a hashed family, before RocksDB merges some: each costs a read one probe of a filter
#: Threads that flush and compact: one long merge may not keep the others waiting.
_BACKGROUND_JOBS = 4
_FILTER_BITS = 10  # per key: one probe in a hundred for an absent key reads a block
_MEMORY_FILTER_SHARE = 0.02  # of a write buffer
_SCAN_ROWS = 2048
_LOG_FILES = 2
_LOG_FILE_BYTES = 4 << 20
_FLUSH_KEY = b"flush"
#: Seconds for which a write waits for flushes and compactions, and between two tries.
_STALL_S_MAX = 600.0
_STALL_STEP_S = 0.01
#: Between two looks whether compactions fail while a flush waits for them. Seconds.
_LOOK_S = 0.5
#: From so many keys on, a family without filters in memory is noticed at opening.
_FILTERED_KEYS_MIN = 100_000
_OWNER = rocksdict.AccessType.read_write()
#: Count of flushes and compactions that have failed.
_ERRORS = "rocksdb.background-errors"
#: Options with which a flush waits neither for compactions nor for other flushes.
_NO_STALLS = {"disable_auto_compactions": "true", "max_write_buffer_number": "1000"}


class FamilySize(NamedTuple):
    """keys: an estimate. file_bytes: table files on disk. memory_bytes: written and not flushed yet."""

    keys: int
    file_bytes: int
    memory_bytes: int


class RocksStore:
    """`neardup.index.column_families.Store` in a directory. One process at a time; readers in other threads are fine.

    cache_bytes: size of the cache of blocks. write_bytes: bytes of changes in memory before a flush. No result depends
    on these two numbers.
    """

    def __init__(self, path: Path, *, cache_bytes: int = 256 << 20, write_bytes: int = 128 << 20) -> None:
        """Opens or makes the directory. Raises StateError: locked, read-only, full, a file, or no index."""
        self.path = path
        self.stalled_s = 0.0  # that writes have waited for RocksDB, all in all
        self._compacts_no_more = False
        self._db: Any = None
        self._families: dict[Family, Any] = {}
        self._handles: dict[Family, Any] = {}
        _refuse_strangers(path)
        self._connect(_OWNER, cache_bytes, write_bytes)
        options: Any = rocksdict.WriteOptions()
        options.disable_wal = True
        options.no_slowdown = True
        self._write_options = options
        self._check_filters()

    def _connect(self, access: Any, cache_bytes: int, write_bytes: int) -> None:
        cache = rocksdict.Cache(cache_bytes)
        options = {family: _options(family, cache, write_bytes) for family in Family}
        families = {family.name.lower(): options[family] for family in Family}
        with _explained("open", self.path):
            own = _options(Family.META, cache, write_bytes)
            self._db = rocksdict.Rdict(str(self.path), own, column_families=families, access_type=access)
            for family in Family:
                self._families[family] = self._db.get_column_family(family.name.lower())
                self._handles[family] = self._db.get_column_family_handle(family.name.lower())

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        rows = self._open(family)
        with _explained("read", self.path):
            values: list[bytes | None] = rows.get(list(keys))
        return values

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        start = after + b"\0" if after >= prefix else prefix
        return list(takewhile(lambda pair: pair[0].startswith(prefix), self._from(family, start, limit)))

    def before(self, family: Family, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The greatest `limit` keys before `end`, with their values, the greatest first."""
        rows = self._open(family)
        with _explained("read", self.path):
            pairs = (pair for pair in rows.items(backwards=True, from_key=end) if pair[0] < end)
            found = list(islice(pairs, limit))
            if len(found) < limit:
                _check_start(rows, found[-1][0] if found else end)
        return found

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        start = b""
        while pairs := self._from(family, start, _SCAN_ROWS):
            yield from pairs
            start = pairs[-1][0] + b"\0"

    def write(self, writes: Writes) -> None:
        self._open(Family.META)
        # Sort keys only: sorting pairs costs several times as much, and adds tuples to garbage collection.
        self._apply([(self._handles[family], writes[family], sorted(writes[family])) for family in sorted(writes)])

    def flush(self) -> None:
        self._open(Family.META)
        self._apply([(None, {_FLUSH_KEY: b""}, [_FLUSH_KEY])])
        done = threading.Event()
        watch = threading.Thread(target=self._end_stalls_on_errors, args=(done,), name="flush", daemon=True)
        watch.start()
        try:
            with _explained("write", self.path):
                self._db.compact_range(_FLUSH_KEY, _FLUSH_KEY)
        finally:
            done.set()
            watch.join()
        if self._compacts_no_more:
            self._check_background()

    def close(self) -> None:
        if self._db is None:
            return
        try:
            self.flush()
        finally:
            self._let_go()

    def checkpoint(self, path: Path) -> None:
        """Writes a copy of the index as it is now to `path`, which must not exist: hard links on one file system.

        Raises StateError.
        """
        self._open(Family.META)
        with _explained("copy to", path):
            rocksdict.Checkpoint(self._db).create_checkpoint(str(path))

    def sizes(self) -> dict[Family, FamilySize]:
        """Size of each family, for metrics."""
        return {
            family: FamilySize(
                self._property(family, "rocksdb.estimate-num-keys"),
                self._property(family, "rocksdb.total-sst-files-size"),
                self._property(family, "rocksdb.cur-size-all-mem-tables"),
            )
            for family in Family
        }

    def tables_bytes(self) -> int:
        """Memory for filters and indexes of the files."""
        return sum(self._property(family, "rocksdb.estimate-table-readers-mem") for family in Family)

    def pressure(self) -> tuple[int, bool]:
        """(bytes that wait for compaction, whether writes wait because of it)."""
        pending = sum(self._property(family, "rocksdb.estimate-pending-compaction-bytes") for family in Family)
        return pending, bool(self._property(Family.META, "rocksdb.is-write-stopped"))

    def _property(self, family: Family, name: str) -> int:
        return int(self._open(family).property_int_value(name) or 0)

    def _open(self, family: Family) -> Any:
        if self._db is None:
            raise StateError(f"the index in {self.path} is closed; open it again")
        return self._families[family]

    def _from(self, family: Family, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        rows = self._open(family)
        with _explained("read", self.path):
            pairs = list(islice(rows.items(from_key=start), limit))
            if len(pairs) < limit:
                _check_end(rows, pairs[-1][0] + b"\0" if pairs else start)
        return pairs

    def _apply(self, changes: list[tuple[Any, Mapping[bytes, bytes | None], list[bytes]]]) -> None:
        """Writes rows of families in the order of their keys. Waits while RocksDB is busy, but not after an error."""
        deadline = time.monotonic() + _STALL_S_MAX
        while True:
            batch = rocksdict.WriteBatch(raw_mode=True)
            for handle, rows, names in changes:
                if handle is not None:
                    batch.set_default_column_family(handle)  # costs a third of naming the family with each row
                for key in names:
                    value = rows[key]
                    if value is None:
                        batch.delete(key)
                    else:
                        batch.put(key, value)
            with _explained("write", self.path):
                try:
                    self._db.write(batch, self._write_options)
                except Exception as error:
                    if "Write stall" not in str(error) or time.monotonic() > deadline:
                        raise
                else:
                    return
            self._check_background()
            time.sleep(_STALL_STEP_S)
            self.stalled_s += _STALL_STEP_S

    def _check_background(self) -> None:
        """Raises StateError if flushes or compactions fail: RocksDB would wait for the disk to become free.

        RocksDB counts the errors of all families in its default family, which has no rows.
        """
        if self._db.property_int_value(_ERRORS):
            free = shutil.disk_usage(self.path).free
            raise StateError(
                f"cannot write the index {self.path}: {free >> 20} MB are free on the disk, too little or none of it"
                " writable; make room and start again, nothing that the log holds is lost"
            )

    def _end_stalls_on_errors(self, done: threading.Event) -> None:
        """Lets a flush of another thread go on that waits for a compaction which fails."""
        while not done.wait(_LOOK_S):
            if self._db.property_int_value(_ERRORS):
                self._end_stalls()
                return

    def _end_stalls(self) -> None:
        """Sets options with which no flush waits. The index can only be closed then: it is compacted no more."""
        self._compacts_no_more = True
        for family in (self._db, *self._families.values()):
            with contextlib.suppress(Exception):  # set, and not kept on a full disk
                family.set_options(_NO_STALLS)

    def _check_filters(self) -> None:
        for family in Family:
            keys = self._property(family, "rocksdb.estimate-num-keys")
            held = self._property(family, "rocksdb.estimate-table-readers-mem")
            if keys >= _FILTERED_KEYS_MIN and held < keys:
                self._let_go()
                raise StateError(
                    f"the index in {self.path} was written without filters ({family.name.lower()}: {keys} keys, {held}"
                    " bytes of tables in memory); rebuild it from the log"
                )

    def _let_go(self) -> None:
        if self._db is not None and self._db.property_int_value(_ERRORS):
            self._end_stalls()
        db, self._db = self._db, None
        self._families.clear()
        self._handles.clear()
        if db is not None:
            # After a failed write closing fails, too; that write has raised already.
            with contextlib.suppress(Exception):
                db.close()
        del db
        gc.collect()


class RocksSnapshot(RocksStore):
    """An index as its process last flushed it, for reading while that process works (RocksDB's secondary instance).

    A flush writes all families together, so the rows of a snapshot belong together. `catch_up` takes the next one.
    """

    def __init__(self, path: Path, scratch: Path, *, cache_bytes: int = 256 << 20) -> None:
        """scratch: a folder of its own for RocksDB's log. Raises StateError: there is no index."""
        self.path = path
        self._db = None
        self._families, self._handles = {}, {}
        if not (path / "CURRENT").exists():
            raise StateError(f"there is no index in {path}; run a scan or a matcher there first")
        self._connect(rocksdict.AccessType.secondary(str(scratch)), cache_bytes, 0)

    def catch_up(self) -> None:
        """Advance to the last flush of the index's process. No reads may run meanwhile. Raises StateError."""
        self._open(Family.META)
        with _explained("read", self.path):
            self._db.try_catch_up_with_primary()

    def flushed_at(self) -> float:
        """Time of the last flush, in s since the epoch: RocksDB records each one in its manifest. Raises StateError."""
        with _explained("read", self.path):
            return max(file.stat().st_mtime for file in self.path.glob("MANIFEST-*"))

    def write(self, writes: Writes) -> None:
        raise StateError(f"{self.path} is open for reading only")

    def flush(self) -> None:
        """Does nothing: a snapshot has no writes."""

    def close(self) -> None:
        self._let_go()


def _check_end(rows: Any, start: bytes) -> None:
    """Raises if rows from `start` on exist although an iteration ended there: it also ends at a damaged block."""
    end = rows.iter()
    end.seek(start)
    if end.valid():
        raise OSError(f"corruption: an iteration ended before {start.hex()}, and there are rows from there on")
    end.status()


def _check_start(rows: Any, end: bytes) -> None:
    """Raises if rows before `end` exist although an iteration backwards ended there."""
    start = rows.iter()
    start.seek_for_prev(end)
    if start.valid() and start.key() == end:
        start.prev()
    if start.valid():
        raise OSError(f"corruption: an iteration ended behind {end.hex()}, and there are rows before it")
    start.status()


def _options(family: Family, cache: Any, write_bytes: int) -> Any:
    """Options that the store needs to be correct; `_tune` adds those for speed."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)
    options.set_db_write_buffer_size(write_bytes)
    options.set_max_background_jobs(_BACKGROUND_JOBS)
    options.set_keep_log_file_num(_LOG_FILES)
    options.set_max_log_file_size(_LOG_FILE_BYTES)
    tables = rocksdict.BlockBasedOptions()
    tables.set_format_version(5)
    tables.set_block_cache(cache)
    _tune(family, options, tables)
    options.set_block_based_table_factory(tables)
    return options


def _tune(family: Family, options: Any, tables: Any) -> None:
    """Sets options for speed and size. They may change: files that were written with others stay readable.

    The figures are ratios of processor time over all calls of a log of 200,000 pages and RocksDB's own threads, as
    `make bench-options` measures them; tests/measure/bench/keys-and-options.md has the table, and what else was tried.
    """
    # .94, and .87 where the cache is small, for .02 (real pages: .04) of the disk: keys are what is read most. A page
    # that was fetched before reads a URL and a cluster from anywhere: .92 with a small cache, for .01 of the disk.
    scattered = family in _SCATTERED
    compression = rocksdict.DBCompressionType.lz4 if scattered else rocksdict.DBCompressionType.zstd
    options.set_compression_type(compression())
    # .81: most keys are new, and to find that out in memory costs more than in files, which have filters anyway.
    options.set_memtable_prefix_bloom_ratio(_MEMORY_FILTER_SHARE)
    options.set_memtable_whole_key_filtering(True)
    # .84 where the cache is small against the index: a row is a few bytes of its block. Sketches compress better in
    # large ones.
    tables.set_block_size(_SMALL_BLOCK_BYTES if scattered else _BLOCK_BYTES)
    tables.set_bloom_filter(_FILTER_BITS, False)
    # Merging files of one size writes a row fewer times than levels do, which overlap with every flush.
    # In order, files move from level to level as they are.
    if family in _HASHED:
        options.set_compaction_style(rocksdict.DBCompactionStyle.universal())
        options.set_level_zero_file_num_compaction_trigger(_SORTED_RUNS)


#: Files of a database whose creation was interrupted by a kill, before CURRENT names its first manifest.
_UNFINISHED = re.compile(
    r"IDENTITY|LOCK|LOG(\.old\.\d+)?|MANIFEST-\d+|OPTIONS-\d+|\d+\.(dbtmp|log)|rocksdict-config\.json"
)


def _refuse_strangers(path: Path) -> None:
    """Refuses a directory with foreign files, where RocksDB would create a database; removes an unfinished database."""
    if not path.exists():
        return
    with _explained("open", path):
        names = os.listdir(path)
    strangers = sorted(name for name in names if not _UNFINISHED.fullmatch(name))
    if strangers and "CURRENT" not in names:
        raise StateError(
            f"{path} holds {strangers[0]!r} and no index; name another directory; or, if it is an index that lacks its "
            f"file CURRENT, {_DAMAGED}"
        )


#: Advice for a damaged index. RocksDB's checksums find damage when it is read; a checkpoint may contain it, too.
_DAMAGED = (
    "it is damaged, or not of this version; set it aside: it comes from a checkpoint (neardup checkpoint restore takes "
    "an older one if the newest has the same damage), or is rebuilt from the log"
)

#: Advice for an index whose directory vanished while it was open.
_VANISHED = (
    "its directory is gone; mount its file system again if it was unmounted, and start again: an index that was "
    "deleted comes from a checkpoint, or is rebuilt from the log"
)

#: Parts of error texts of RocksDB or the operating system, and the advice for each.
_ADVICE = (
    (
        ("lock hold", "no locks available", "while lock file"),
        "another process uses it; wait for it to end, or name another directory",
    ),
    (
        ("no space left", "quota exceeded", "os error 28"),
        "the disk is full; make room and start again, nothing that the log holds is lost",
    ),
    (
        ("too many open files", "os error 24"),
        "the process may not open more files; raise its limit (ulimit -n, LimitNOFILE) and start again",
    ),
    (
        ("read-only file system", "permission denied", "os error 13", "os error 30"),
        "it cannot be written; mend its permissions or name another directory",
    ),
    (
        ("not a directory", "file exists", "os error 17", "os error 20"),
        "it is not a directory; name another one",
    ),
    (
        ("corruption", "does not exist", "no such file", "not opened"),
        _DAMAGED,
    ),
)


@contextlib.contextmanager
def _explained(doing: str, path: Path) -> Iterator[None]:
    """Turns any exception into a StateError with advice: rocksdict raises plain Exceptions."""
    try:
        yield
    except Exception as error:
        cause = str(error)
        fitting = [advice for signs, advice in _ADVICE if any(sign in cause.lower() for sign in signs)]
        advice = fitting[0] if fitting else f"start again; if it fails again, {_DAMAGED}"
        if doing in ("read", "write") and not path.exists():
            advice = _VANISHED
        raise StateError(f"cannot {doing} the index {path}: {advice} ({cause})") from error
