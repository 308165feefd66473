"""Folds a batch by the compiled walk: reads rows in rounds, and returns verdicts and changes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.column_families import Family, Reader
from neardup.index.naming_rows import key_of
from neardup.matching.arrays import judge_of, longer, power, rows_of
from neardup.matching.batch_records import Pages
from neardup.matching.kernels import removal, rows, walk
from neardup.matching.store_keys import corrupt, fault, in_order, keys_of
from neardup.matching.verdict_columns import VerdictColumns
from neardup.pairs.scoring import pair_scratch
from neardup.rules.records import pairs_view
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER
from neardup.urls import url_hash

#: Least number of keys that is worth another thread. Reading a key of a large index takes some 10 us.
_PART_KEYS = 48
#: Most keys of one read: RocksDB takes a fifth longer for a key among thousands.
_PART_KEYS_MAX = 512
#: Threads that read rows, at most. More would wait for the interpreter's lock, which each of them takes now and then.
_THREADS_MAX = 8
_FAMILIES = {int(family): family for family in Family}


class Found(NamedTuple):
    """What judging has found beside verdicts and rows.

    searches: SEARCH[pages that were searched], in order. candidates: CANDIDATE[], by `SEARCH.first`, with rulings:
    RULING[]. checks: CHECK[], the verifications of known URLs in order, with check_rulings: RULING[]. numbers:
    float64[pairs, fields of a Pair].
    """

    searches: np.ndarray
    candidates: np.ndarray
    rulings: np.ndarray
    checks: np.ndarray
    check_rulings: np.ndarray
    numbers: np.ndarray


class Walk:
    """One batch over a store. `judge` or `remove` is called once; then `columns`, `writes` and the rest are final.

    rounds: number of reads from the store. read: number of rows and prefixes that were read.
    """

    def __init__(
        self,
        pages: Pages,
        store: Reader,
        decider: Decider,
        *,
        emit: bool = True,
        trace: bool = False,
        threads: int = 1,
    ) -> None:
        """Makes the arrays.

        Args:
            pages: records of the batch; empty for `remove`.
            store: the rows before the batch.
            decider: rule, thresholds and limits.
            emit: whether verdicts are computed.
            trace: whether candidates have their clusters and shared keys.
            threads: number of threads that read rows.
        """
        self._pages, self._store, self._threads = pages, store, threads
        self.rounds = self.read = 0
        self._rows, at = rows_of(pages)
        self._judge = judge_of(pages, at, decider, emit=emit, trace=trace)
        sizes = pages.headers["size"].astype(np.int64)
        self._done(lambda: walk.enter_records(self._rows, self._judge.pages, sizes))

    # ---- judging -----------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Judges the records in order. Raises CorruptRecord, InvariantBroken."""
        self._done(lambda: walk.need_named(self._rows, self._judge))
        self._in_rounds(len(self._pages), lambda first, last: walk.walk(self._rows, self._judge, first, last))

    def remove(self, hashes: Sequence[bytes], first: int) -> np.ndarray:
        """Removes URLs by their hashes, and emits `promoted` for each cluster with a new representative -> REMOVED[].

        first: number of the first verdict. Raises CorruptRecord, InvariantBroken.
        """
        words = np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2)
        removed = np.zeros(len(hashes), removal.REMOVED)
        removed["url_a"], removed["url_b"] = words[:, 0], words[:, 1]
        self._in_rounds(len(hashes), lambda begin, end: removal.remove(self._rows, self._judge, removed, begin, end))
        self._in_rounds(1, lambda _, end: self._promotions(removed, first, end))
        return removed

    def _promotions(self, removed: np.ndarray, first: int, end: int) -> tuple[int, int]:
        why = removal.promotions(self._rows, self._judge, removed, first)
        return (end, 0) if why == 0 else (0, why)

    def _in_rounds(self, last: int, go: Callable[[int, int], tuple[int, int]]) -> None:
        """Calls a walk again where it stopped, with what it lacked."""
        first = 0
        if self._rows.n[rows.NEEDED]:
            self._read_needs()
        while first < last:
            first, why = go(first, last)
            if why == rows.MISSING:
                if not self._rows.n[rows.NEEDED]:
                    raise InvariantBroken("judging misses rows that were read")
                self._read_needs()
            elif why == rows.FULL:
                self._grow()
            elif why == rows.BROKEN:
                raise fault(self._rows)

    def _done(self, call: Callable[[], int]) -> None:
        while call() == rows.FULL:
            self._grow()

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read_needs(self) -> None:
        """Reads the rows that the last walk lacked, in the order of their keys: neighbours share a block of a file."""
        n = self._rows.n
        needs = self._rows.needs[: n[rows.NEEDED]]
        needs = needs[in_order(needs["kind"], needs["a"])]
        n[rows.NEEDED] = 0
        self.rounds += 1
        self.read += len(needs)
        plain = int(np.searchsorted(needs["kind"], rows.RECORD))
        self._read_rows(needs[:plain])
        for need in needs[plain:]:
            if need["kind"] >= rows.CANONICAL:
                self._compute(need)
            else:
                self._read_prefix(need)

    def _read_rows(self, needs: np.ndarray) -> None:
        keys = keys_of(needs)
        found = [value or b"" for value in self._get((needs["kind"] >> 8).tolist(), keys)]
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        at = self._append(b"".join(found))
        bad = rows.load(self._rows, needs["entry"].astype(np.int64), sizes, at)
        if bad >= 0:
            raise corrupt(int(needs["kind"][bad]), keys[bad], found[bad])

    def _get(self, families: Sequence[int], keys: Sequence[bytes]) -> list[bytes | None]:
        """The rows of keys, which are ordered by family, by several threads."""
        out: list[bytes | None] = [None] * len(keys)
        step = min(max(_PART_KEYS, -(-len(keys) // self._threads)), _PART_KEYS_MAX)
        bounds: list[int] = (np.flatnonzero(np.diff(families)) + 1).tolist() if keys else []
        parts = []
        for first, end in zip([0, *bounds], [*bounds, len(keys)], strict=True):
            parts += [slice(begin, min(begin + step, end)) for begin in range(first, end, step)]

        def get(first: int, last: int) -> None:
            for part in parts[first:last]:
                out[part] = self._store.get_many(_FAMILIES[families[part.start]], keys[part])

        spread(get, len(parts), self._threads, 1)
        return out

    def _append(self, data: bytes) -> int:
        """Adds bytes to the heap -> their offset."""
        at = int(self._rows.n[rows.HEAP])
        end = at + len(data)
        if end > len(self._rows.heap):
            self._grow_heap(end)
        self._rows.heap[at:end] = np.frombuffer(data, np.uint8)
        self._rows.n[rows.HEAP] = end
        return at

    def _read_prefix(self, need: np.ndarray) -> None:
        kind, entry, limit = int(need["kind"]), int(need["entry"]), int(need["limit"])
        of_members = kind == rows.MEMBERS_OF
        prefix = int(need["a"]).to_bytes(8, "big")
        if not of_members:
            prefix = bytes([kind & 255]) + prefix + int(need["b"]).to_bytes(8, "big")
        after = int(self._rows.entries["since"][entry]).to_bytes(8, "big")
        found = self._store.first(Family.MEMBERS if of_members else Family.KEYS, prefix, limit, prefix + after)
        ids = np.array([int.from_bytes(key[-8:], "big") for key, _ in found], dtype=np.uint64)
        sizes = np.array([len(row) for _, row in found], dtype=np.int64)
        at = self._append(b"".join(row for _, row in found))
        below = rows.MEMBERS if of_members else rows.KEYS | (kind & 255)
        self._done(lambda: rows.load_prefix(self._rows, entry, ids, sizes, at, limit, not of_members, below))

    def _compute(self, need: np.ndarray) -> None:
        """Computes two words of a page of the store: see `rows.CANONICAL` and `rows.NAMING_OF`. limit: its record."""
        at = int(need["limit"])
        heap = self._rows.heap
        size = int(heap[at : at + HEADER.itemsize].view(HEADER)["size"][0])
        header = Header(heap[at : at + size].tobytes())
        if need["kind"] == rows.NAMING_OF:
            name = key_of(header)[1:]
        else:
            name = url_hash(header.canonical)
            name = bytes(16) if name == header.url_hash else name
        one = self._rows.entries[int(need["entry"])]
        one["since"], one["last"] = int.from_bytes(name[:8], "big"), int.from_bytes(name[8:], "big")
        one["state"], one["needed"] = rows.KNOWN, 0

    # ---- growth ------------------------------------------------------------------------------------------------------

    def _grow_heap(self, least: int) -> None:
        heap = np.empty(max(least, 2 * len(self._rows.heap)), np.uint8)
        used = int(self._rows.n[rows.HEAP])
        heap[:used] = self._rows.heap[:used]
        self._rows = self._rows._replace(heap=heap)

    def _grow(self) -> None:
        """Makes the array that was full anew, longer."""
        r, j, p = self._rows, self._judge, self._judge.pairs
        what, wanted = int(r.n[rows.FULL_OF]), int(r.n[rows.WANTED])
        if what == rows.OF_HEAP:
            self._grow_heap(wanted)
        elif what == rows.OF_ENTRIES:
            table = np.full(power(4 * max(wanted, len(r.entries))), -1, np.int64)
            self._rows = r._replace(entries=longer(r.entries, wanted), table=table)
            rows.rehash(self._rows)
        elif what == rows.OF_UNDO:
            self._rows = r._replace(undo=longer(r.undo, wanted))
        elif what == rows.OF_TAPES:
            p.tape_room[0] = wanted
            self._judge = j._replace(pairs=p._replace(scratch=pair_scratch(wanted)))
        elif what == rows.OF_PAIRS:
            numbers = longer(p.numbers, wanted)
            self._judge = j._replace(pairs=p._replace(numbers=numbers, pairs=pairs_view(numbers)))
        elif what in _OF_PAIRS:
            more: dict[str, Any] = {name: longer(getattr(p, name), wanted) for name in _OF_PAIRS[what]}
            self._judge = j._replace(pairs=p._replace(**more))
        else:
            self._judge = (
                j._replace(verdicts=longer(j.verdicts, wanted))
                if what == rows.OF_VERDICTS
                else j._replace(turned=longer(j.turned, wanted))
            )

    # ---- results -----------------------------------------------------------------------------------------------------

    def columns(self, page_ids: np.ndarray) -> VerdictColumns:
        """The verdicts. page_ids: int64[], page ids of the records that caused them."""
        r, j = self._rows, self._judge
        verdicts, turned = j.verdicts[: r.n[rows.VERDICTS]], j.turned[: r.n[rows.TURNED]]
        return VerdictColumns(verdicts, r.heap[: r.n[rows.HEAP]], page_ids, j.pairs.numbers, turned)

    def found(self) -> Found:
        """The candidates and checks of all pages."""
        n, p = self._rows.n, self._judge.pairs
        many, checks = int(n[rows.CANDIDATES]), int(n[rows.CHECKS])
        return Found(
            searches=p.searches[: n[rows.SEARCHES]],
            candidates=p.candidates[:many],
            rulings=p.rulings[:many],
            checks=p.checks[:checks],
            check_rulings=p.check_rulings[:checks],
            numbers=p.numbers,
        )

    def turned(self) -> int:
        """Number of keys that turned hot."""
        return int(self._rows.n[rows.TURNED])

    def header(self, at: int) -> Header:
        """The header of the record at an offset of the heap."""
        heap = self._rows.heap
        size = int(heap[at : at + HEADER.itemsize].view(HEADER)["size"][0])
        return Header(heap[at : at + size].tobytes())

    def writes(self) -> dict[Family, dict[bytes, bytes | None]]:
        """The rows that differ from those that were read, ready for `Store.write`; None: deleted."""
        r = self._rows
        changed = np.empty(r.n[rows.ENTRIES], np.int64)
        many, size = rows.changes(r, changed)
        changed = changed[:many]
        changed = changed[in_order(r.entries["kind"][changed], r.entries["a"][changed])]
        entries = r.entries[changed]
        data, ends = np.empty(size, np.uint8), np.empty(many, np.int64)
        rows.gather(r, changed, data, ends)
        text, bounds = data.tobytes(), [0, *ends.tolist()]
        values = [text[first:end] or None for first, end in pairwise(bounds)]
        keys = keys_of(entries)
        families = entries["kind"] >> 8
        out: dict[Family, dict[bytes, bytes | None]] = {}
        for family in np.unique(families).tolist():
            first, end = np.searchsorted(families, [family, family + 1]).tolist()
            out[_FAMILIES[family]] = dict(zip(keys[first:end], values[first:end], strict=True))
        return out


#: Arrays of `Pairs` that grow together, by what is full.
_OF_PAIRS: dict[int, tuple[str, ...]] = {
    rows.OF_SEARCHES: ("searches",),
    rows.OF_CANDIDATES: ("candidates", "rulings"),
    rows.OF_CHECKS: ("checks", "check_rulings"),
}


# ---- threads ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="neardup")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def spread(run: Callable[[int, int], None], size: int, threads: int, least: int) -> None:
    """Calls run(first, last) for ranges that cover 0 to size, concurrently in up to `threads` threads, 8 at most.

    least: size of the smallest range that is worth a thread. The caller's thread takes part. Raises what a call raised.
    """
    threads = min(threads, _THREADS_MAX)
    parts = max(1, min(threads, size // least))
    if parts == 1:
        return run(0, size)
    cuts = [size * i // parts for i in range(parts + 1)]
    others: list[Future[None]] = [_pool(threads - 1).submit(run, *part) for part in pairwise(cuts[1:])]
    try:
        run(*cuts[:2])
    finally:
        wait(others)  # the caller must not continue while a thread still writes
    for part in others:
        part.result()
