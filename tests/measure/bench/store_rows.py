"""Rows of what a page takes: bytes of its record, memory of an index. And what benches of large indexes need."""

import gc
import os
import shutil
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.layout import HEADER, SECTION_LENGTHS, RecordSection, section_starts
from neardup.sketch.make_sketches import sketch_pages
from streams.pipeline.matcher import Matcher
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.documents import documentation_page, plain_pages, texts
from tests.measure.bench.table import Row

#: Of the matcher.
THREADS = min(4, len(os.sched_getaffinity(0)))


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
        fields = ("supershingles", "simhash", "wide", "content_start", "logtf", "head", "place")
        keys = sum(HEADER[field].itemsize for field in fields)
        notes = {"identity and counts": HEADER.itemsize - keys, "B, C and index keys": keys, **notes}
        size = sum(map(len, records)) / len(records)
        rows.append(Row(f"record of a {name}, by field", "bytes", size, notes={k: v for k, v in notes.items() if v}))
    return rows


def memory(scheme: Scheme) -> list[Row]:
    """Bytes of memory that a page of an index in memory takes, as Python counts them."""
    store, crawl = MemoryStore(), Crawl(3_000)
    matcher, messages = Matcher(store, Decider(scheme=scheme.digest)), list(crawl.messages(scheme))
    tracemalloc.start()
    for message in messages:
        matcher.apply(matcher.prepare([message], emit=False))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(len(message) for _, message in messages) / crawl.count
    return [Row("memory a page, index in memory", "bytes", held / crawl.count, notes={"record": size})]
