"""Rows of the matcher: into growing stores, rebuilding, bytes and memory a page."""

import gc
import os
import shutil
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.layout import HEADER, SECTION_LENGTHS, RecordSection, section_starts
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.bench.documents import documentation_page, plain_pages, texts
from tests.measure.bench.generated import Log, fill, mixed
from tests.measure.bench.table import Row, seconds

_BATCH = 512
#: Of the matcher.
THREADS = min(4, len(os.sched_getaffinity(0)))
_BATCHES = 6


def same_as_folding(decider: Decider) -> bool:
    """Whether `fill` writes what `fold` does."""
    log, folded, filled = Log(), MemoryStore(), MemoryStore()
    folded.write(fold(list(enumerate(log.records(0, 300), 1)), folded, decider).writes)
    fill(filled, log, 0, 300, decider)
    return all(list(folded.scan(family)) == list(filled.scan(family)) for family in Family)


class Folding:
    """Batches into a store, one after another."""

    def __init__(self, store: RocksStore | MemoryStore, decider: Decider, first: int) -> None:
        self.store, self.decider, self.next = store, decider, first
        self.scored = self.pages = self.cut = 0
        self.kinds: dict[str, int] = {}

    def run(
        self, records: Iterable[bytes], *, emit: bool = True, clock: Callable[[], float] = time.perf_counter
    ) -> float:
        """Seconds per page, by the clock: decided, serialised as JSON, written."""
        batch = list(enumerate(records, self.next))
        self.next += len(batch)

        def work() -> None:
            outcome = fold(batch, self.store, self.decider, emit=emit, threads=THREADS)
            if emit:
                for verdict in outcome.verdicts:
                    verdict.to_json()
            self.store.write(outcome.writes)
            self.scored += outcome.scored
            self.cut += outcome.cut
            self.pages += len(batch)
            for verdict in outcome.verdicts:
                self.kinds[verdict.verdict] = self.kinds.get(verdict.verdict, 0) + 1

        started = clock()
        work()
        return (clock() - started) / len(batch)


def growth(scheme: Scheme, sizes: Sequence[int], scratch: Path | None = None) -> Iterator[Row]:
    """Sketches a second into stores of these sizes; each grows out of the one before.

    scratch: folder for the index, which takes some 2 kB a page and goes afterwards. Raises BadInput if the disk has no
    room for it.
    """
    decider, log = Decider(scheme=scheme.digest), Log()
    filled = 0
    good = same_as_folding(decider)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        enough_room(Path(folder), max(sizes))
        store = RocksStore(Path(folder) / "index")
        for size in sizes:
            taken = seconds(lambda size=size, filled=filled: fill(store, log, filled, size - filled, decider))
            many, filled = size - filled, size
            store.flush()
            # Filling owes more compaction than folding ever does.
            settle(store, _SETTLE_S_MAX)
            # Numbers far beyond what is filled later, so that both can go on.
            folding = Folding(store, decider, 10**9 + 10 * size)
            records = list(mixed(log, size, _BATCH * (_BATCHES + 1)))
            parts = [records[at : at + _BATCH] for at in range(0, len(records), _BATCH)]
            # The first batch opens files.
            spent = time.process_time()
            each = statistics.median([folding.run(part) for part in parts][1:])
            spent = (time.process_time() - spent) / len(records)
            duplicates = folding.kinds.get("near_duplicate", 0) + folding.kinds.get("exact_duplicate", 0)
            on_disk = {family: part.file_bytes / size for family, part in store.sizes().items() if part.file_bytes}
            notes: dict[str, float | str] = {
                "processor's us a page": 1e6 * spent,
                "candidates a page": folding.scored / folding.pages,
                "written before, pages/s": many / taken,
                "disk bytes a page": round(sum(on_disk.values())),
                **{family.name.lower(): round(part) for family, part in on_disk.items() if part > 1},
                "filters and indexes in memory, bytes a page": store.tables_bytes() / size,
                "memory of the process, MB": memory_mb(),
            }
            row = Row(f"matcher into a store of {size:,} pages", "sketches/s", 1 / each, 20_000, "target")
            row.ratio, row.reach, row.notes = 1 / each / 20_000, "1 x", notes
            row.check = f"{duplicates} of {round(0.3 * folding.pages)} planted found"
            if not good or duplicates < 0.29 * folding.pages:
                row.void = "wrong verdicts, or fill differs from fold"
            yield row
        store.close()


#: Compaction that has not ended by then goes on beside what is measured.
_SETTLE_S_MAX = 300.0


def settle(store: RocksStore, seconds_max: float) -> None:
    """Waits until nothing is flushed or compacted any more, but no longer than that."""
    names = ("rocksdb.num-running-compactions", "rocksdb.num-running-flushes", "rocksdb.compaction-pending")
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline and any(store._property(family, name) for family in Family for name in names):
        time.sleep(0.05)


#: Of the finished index, and what compaction needs beside it, a page; and what is left to the others on the machine.
_DISK_BYTES, _SPARE_BYTES = 2_300, 2 << 30


def enough_room(folder: Path, pages: int) -> None:
    """Raises BadInput if an index of so many pages does not fit the folder's disk."""
    need, free = pages * _DISK_BYTES + _SPARE_BYTES, shutil.disk_usage(folder).free
    if free < need:
        raise BadInput(
            f"an index of {pages:,} pages needs {need / 1e9:.0f} GB of disk, {folder} has {free / 1e9:.0f} GB free;"
            " name a folder on another disk (--scratch), or a smaller size (--sizes)"
        )


def memory_mb() -> float:
    """Resident memory of this process; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    held = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmRSS")]
    return round(int(held[0]) / 1024)


def by_field(scheme: Scheme) -> list[Row]:
    """Bytes of a sketch record, by field, before compression: of texts of 350 words and of documentation pages."""
    rows = []
    documentation = [
        Page(f"https://s{i}.example/{i}", documentation_page(i), "text/html; charset=utf-8", i) for i in range(20)
    ]
    for name, pages in (("text of 350 words", plain_pages(texts(100))), ("documentation page", documentation)):
        records = sketch_pages(pages, scheme)
        header = np.frombuffer(b"".join(record[: HEADER.itemsize] for record in records), HEADER)
        starts = section_starts([header[length].astype(np.int64) for length in SECTION_LENGTHS])
        sizes = [round(float(np.mean(end - start))) for start, end in pairwise(starts)]
        notes: dict[str, float | str] = dict(
            zip([section.name.lower() for section in RecordSection], sizes, strict=True)
        )
        keys = sum(HEADER[field].itemsize for field in ("supershingles", "simhash", "wide", "logtf", "head", "place"))
        notes = {"identity and counts": HEADER.itemsize - keys, "B, C and index keys": keys, **notes}
        size = sum(map(len, records)) / len(records)
        rows.append(Row(f"record of a {name}, by field", "bytes", size, notes={k: v for k, v in notes.items() if v}))
    return rows


def rebuild(scheme: Scheme) -> list[Row]:
    """Folding a log that was folded before, without telling verdicts, against live matching of one message a time."""
    decider, log = Decider(scheme=scheme.digest), Log()
    records = [*log.records(0, 5000), *mixed(log, 5000, 5000)]
    times = {}
    for name, size, emit in (("live", _BATCH, True), ("rebuild", 8 * _BATCH, False)):
        with tempfile.TemporaryDirectory() as folder:
            store = RocksStore(Path(folder) / "index")
            folding = Folding(store, decider, 1)
            parts = [records[i : i + size] for i in range(0, len(records), size)]
            times[name] = sum(folding.run(part, emit=emit) * len(part) for part in parts) / len(records)
            store.close()
    ratio = times["live"] / times["rebuild"]
    return [
        Row("rebuild by folding the log", "pages/s", 1 / times["rebuild"], 1 / times["live"], "live", ratio, "1.3 x")
    ]


def memory(scheme: Scheme) -> list[Row]:
    """Bytes of memory that a page of an index in memory takes, as Python counts them."""
    decider, log, store, count = Decider(scheme=scheme.digest), Log(), MemoryStore(), 3_000
    tracemalloc.start()
    fill(store, log, 0, count, decider)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(len(record) for record in log.records(0, 1000)) / 1000
    return [Row("memory a page, index in memory", "bytes", held / count, notes={"record": size})]
