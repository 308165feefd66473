"""Rows of the matcher: into growing stores, worst cases, rebuilding, bytes and memory a page."""

import gc
import statistics
import tempfile
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from neardup.decider import Decider
from neardup.index.base import Family
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from neardup.matching import fold
from neardup.scheme import Scheme
from tests.bench.generated import Log, changed, fill, mixed
from tests.bench.table import Row, seconds

_BATCH = 512
_BATCHES = 6


def same_as_folding(decider: Decider) -> bool:
    """Whether `fill` writes what `fold` does."""
    log, folded, filled = Log(), MemoryStore(), MemoryStore()
    folded.write(fold(list(enumerate(log.records(0, 300), 1)), folded, decider).writes)
    fill(filled, log, 0, 300, decider)
    return all(list(folded.scan(family)) == list(filled.scan(family)) for family in Family)


class _Folding:
    """Batches into a store, one after another."""

    def __init__(self, store: RocksStore | MemoryStore, decider: Decider, first: int) -> None:
        self.store, self.decider, self.next = store, decider, first
        self.scored = self.pages = 0
        self.kinds: dict[str, int] = {}

    def run(self, records: Iterable[bytes], *, told: bool = True) -> float:
        """Seconds a page: decided, told as JSON, written."""
        batch = list(enumerate(records, self.next))
        self.next += len(batch)

        def work() -> None:
            outcome = fold(batch, self.store, self.decider)
            if told:
                for verdict in outcome.verdicts:
                    verdict.to_json()
            self.store.write(outcome.writes)
            self.scored += outcome.scored
            self.pages += len(batch)
            for verdict in outcome.verdicts:
                self.kinds[verdict.verdict] = self.kinds.get(verdict.verdict, 0) + 1

        return seconds(work) / len(batch)


def growth(scheme: Scheme, sizes: Iterable[int]) -> list[Row]:
    """Sketches a second into stores of these sizes; each grows out of the one before."""
    decider, log = Decider(scheme=scheme.digest), Log()
    rows, filled = [], 0
    good = same_as_folding(decider)
    with tempfile.TemporaryDirectory() as folder:
        store = RocksStore(Path(folder) / "index")
        for size in sizes:
            taken = seconds(lambda size=size, filled=filled: fill(store, log, filled, size - filled, decider))
            filled = size
            store.flush()
            # Numbers far beyond what is filled later, so that both can go on.
            folding = _Folding(store, decider, 10**9 + 10 * size)
            batches = [list(mixed(log, size, _BATCH * (_BATCHES + 1)))[i * _BATCH : (i + 1) * _BATCH] for i in range(7)]
            times = [folding.run(batch) for batch in batches][1:]
            each = statistics.median(times)
            duplicates = folding.kinds.get("near_duplicate", 0) + folding.kinds.get("exact_duplicate", 0)
            on_disk = {family: part.file_bytes / size for family, part in store.sizes().items() if part.file_bytes}
            notes: dict[str, float | str] = {
                "candidates a page": folding.scored / folding.pages,
                "filled in s": taken,
                "disk bytes a page": round(sum(on_disk.values())),
                **{family.name.lower(): round(part) for family, part in on_disk.items() if part > 1},
            }
            rows.append(
                Row(
                    f"matcher into a store of {size:,} pages",
                    "sketches/s",
                    1 / each,
                    20_000,
                    "target",
                    1 / each / 20_000,
                    "1 x",
                    f"{duplicates} of {round(0.3 * folding.pages)} planted found",
                    "" if good and duplicates >= 0.29 * folding.pages else "wrong verdicts, or fill differs from fold",
                    notes,
                )
            )
        store.close()
    return rows


def worst(scheme: Scheme) -> list[Row]:
    """us a page where every probe is hot, where each page has many candidates, against pages like any others."""
    decider, log = Decider(scheme=scheme.digest), Log()
    count = _BATCH * (_BATCHES + 1)
    plain = log.records(0, count)
    random = np.random.default_rng(3)

    def digest() -> np.void:
        return np.frombuffer(random.bytes(16), "V16")[0]

    same = {"head": 7, "wide": np.arange(8), "logtf": np.arange(6)}
    cases = {
        "pages like any others": plain,
        "every probe is hot: one template": [changed(r, i, **same) for i, r in enumerate(plain)],
        "64 candidates a page": [
            changed(r, i, head=i // 64, wide=[(i + 32) // 64 + 10**6, *range(i * 8, i * 8 + 7)])
            for i, r in enumerate(plain)
        ],
        "one text for ever": [changed(plain[0], i) for i in range(count)],
        "one near-duplicate for ever": [changed(plain[0], i, digest=digest()) for i in range(count)],
    }
    rows, normal = [], 0.0
    for name, records in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            store = RocksStore(Path(folder) / "index")
            folding = _Folding(store, decider, 1)
            times = [folding.run(records[i : i + _BATCH]) for i in range(0, count, _BATCH)][1:]
            store.close()
        each = 1e6 * statistics.median(times)
        normal = normal or each
        notes: dict[str, float | str] = {"candidates a page": folding.scored / folding.pages, **folding.kinds}
        rows.append(Row(f"matcher: {name}", "us a page", each, normal, "any others", normal / each, notes=notes))
    return rows


def rebuild(scheme: Scheme) -> list[Row]:
    """Folding a log that was folded before, without telling verdicts, against live matching of one message a time."""
    decider, log = Decider(scheme=scheme.digest), Log()
    records = [*log.records(0, 5000), *mixed(log, 5000, 5000)]
    times = {}
    for name, size, told in (("live", _BATCH, True), ("rebuild", 8 * _BATCH, False)):
        with tempfile.TemporaryDirectory() as folder:
            store = RocksStore(Path(folder) / "index")
            folding = _Folding(store, decider, 1)
            parts = [records[i : i + size] for i in range(0, len(records), size)]
            times[name] = sum(folding.run(part, told=told) * len(part) for part in parts) / len(records)
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
