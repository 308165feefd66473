"""Folds a batch of log messages in order: pages together, interrupted where a takedown or a sweep removes pages.

It writes nothing. Later entries of the batch see the effects of earlier ones through `neardup.index.layered`. Where the
pages are cut is a function of the log alone, so that any slicing into batches gives the same verdicts.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.fold import Outcome, Trace, fold
from neardup.index.column_families import Reader, Writes
from neardup.index.layered import Layered
from neardup.limits import DAY_MS, PLACE_BITS
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.takedown_and_expiry import Removed, expire, take_down
from neardup.sketch.takedown_hashes import Takedown
from streams.formats.message import page_id

#: (page id, sketch record) of pages.
Batch = list[tuple[int, bytes]]

#: Constant within a generation: every fold of a log must use the same numbers.
PAGES_BETWEEN = 4096
URLS_A_PAGE = 2
#: `n` of a sweep's first verdict: above those of the page verdicts that have the same page id.
FIRST_VERDICT = 16

_ROW = struct.Struct(">I")


class Sweep(NamedTuple):
    """State between sweeps of expiry. pages: judged since the last sweep; after: hash of the last URL checked, or b"".

    A sweep follows every message with which PAGES_BETWEEN pages were judged since the last sweep. It checks URLS_A_PAGE
    URLs for each of these pages, in the order of their hashes, and starts where the last sweep ended. So its cost is a
    bounded share of judging. Its result is a function of the log: it reads log time, no clock and no crawler's dates. A
    round over all URLs takes (number of URLs / URLS_A_PAGE) pages. Checking costs about 5% of judging; dropping a URL
    costs about as much as judging one or two pages.
    """

    pages: int = 0
    after: bytes = b""

    def encode(self) -> bytes:
        return _ROW.pack(self.pages) + self.after


def decode_sweep(row: bytes | None) -> Sweep:
    """Decode `Sweep.encode`; None: no sweep yet. Raises CorruptRecord."""
    if row is None:
        return Sweep()
    if len(row) not in (_ROW.size, _ROW.size + 16):
        raise CorruptRecord(f"not the state of a sweep: {row.hex()}")
    (pages,) = _ROW.unpack_from(row)
    return Sweep(pages, row[_ROW.size :])


class BatchFold:
    """One batch: `add` pages, `take_down` and `sweep` in the log's order, then `finish`."""

    def __init__(
        self,
        store: Reader,
        decider: Decider,
        *,
        emit: bool,
        audit: bool,
        threads: int,
        heartbeat: Callable[[], None],
        trace: Callable[[Trace], None] | None = None,
    ) -> None:
        """emit: whether to make verdicts. audit: whether to keep the scored candidates for an auditor. trace: called
        with the comparisons of each page.
        """
        self._store, self._decider = store, decider
        self._emit, self._audit, self._threads, self._heartbeat = emit, audit, threads, heartbeat
        self._trace = trace
        self._index: Layered | None = None
        self._pending: Batch = []
        self._outcome: Outcome | None = None

    def add(self, pages: Batch) -> None:
        self._pending += pages

    def take_down(self, takedown: Takedown, offset: int) -> Removed:
        """Remove the pages of a takedown. offset: offset of its control record."""
        index, cause = self._layered(), page_id(offset, 0)
        removed = take_down(takedown, index, self._decider, cause=cause, emit=self._emit, heartbeat=self._heartbeat)
        self._add(removed)
        return removed

    def sweep(self, sweep: Sweep, offset: int, log_time: int) -> tuple[Sweep, Removed]:
        """Drop expired URLs behind the message at `offset`. log_time: ms since the epoch, there."""
        decider = self._decider
        removed, after = expire(
            self._layered(),
            decider,
            after=sweep.after,
            rows=sweep.pages * URLS_A_PAGE,
            before=log_time - decider.expiry_days * DAY_MS,
            cause=page_id(offset, (1 << PLACE_BITS) - 1),
            first=FIRST_VERDICT,
            emit=self._emit,
        )
        self._add(removed)
        return Sweep(0, after), removed

    def finish(self) -> tuple[Outcome, Writes]:
        """Return the whole batch's outcome, and all its writes (the outcome's own are those of its last part)."""
        outcome = self._fold()
        return outcome, outcome.writes if self._index is None else self._index.changes

    def _layered(self) -> Layered:
        """The index behind all pages so far."""
        outcome = self._fold()
        if self._index is None:
            self._index = Layered(self._store)
            self._index.add(outcome.writes)
        return self._index

    def _fold(self) -> Outcome:
        batch, self._pending = self._pending, []
        if self._outcome is not None and not batch:
            return self._outcome
        part = fold(
            batch,
            self._store if self._index is None else self._index,
            self._decider,
            trace=self._trace,
            keep_compared=self._audit,
            emit=self._emit,
            threads=self._threads,
        )
        if self._emit:
            _check_complete(batch, part.verdicts)
        if self._index is not None:
            self._index.add(part.writes)
        self._outcome = part if self._outcome is None else _joined(self._outcome, part)
        return self._outcome

    def _add(self, removed: Removed) -> None:
        assert self._outcome is not None
        self._outcome.verdicts += removed.verdicts


def _joined(one: Outcome, other: Outcome) -> Outcome:
    passes, read = one.effort
    one.verdicts += other.verdicts
    return Outcome(
        one.verdicts,
        other.writes,
        one.scored + other.scored,
        one.cut + other.cut,
        one.hot_turned + other.hot_turned,
        one.scored_by_page + other.scored_by_page,
        [a + b for a, b in zip(one.candidates_by, other.candidates_by, strict=True)],
        [a + b for a, b in zip(one.repeats_by, other.repeats_by, strict=True)],
        one.compared + other.compared,
        (passes + other.effort[0], read + other.effort[1]),
    )


def _check_complete(batch: Batch, verdicts: BatchVerdicts) -> None:
    """Check that each page of the batch has its own verdict, in the batch's order."""
    judged = verdicts.page_ids()
    if judged != [number for number, _ in batch]:
        raise InvariantBroken(f"{len(batch)} pages went in, {len(judged)} page verdicts came out, or in another order")
