"""What some messages of the log lead to, in their order: pages are folded together, up to where pages are taken out.

Nothing is written: what comes later in the batch sees what came before through `neardup.index.layered`. Where it is
cut is a function of the log alone, so that slicing it otherwise changes nothing.
"""

from collections.abc import Callable

from neardup.clusters.removal import Removed, expire, take_down
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.fold import Outcome, fold
from neardup.index.base import Reader, Writes
from neardup.index.layered import Layered
from neardup.limits import DAY_MS, PLACE_BITS
from neardup.sketch.takedown import Takedown
from neardup.verdict import Verdict
from streams.formats.message import page_id
from streams.pipeline import expiry
from streams.pipeline.expiry import Sweep

Batch = list[tuple[int, bytes]]


class Judging:
    """One batch. outcome: of all that was folded so far; its writes are those of the last part: see `writes`."""

    def __init__(
        self, store: Reader, decider: Decider, *, tell: bool, weigh: bool, threads: int, beat: Callable[[], None]
    ) -> None:
        self._store, self._decider = store, decider
        self._tell, self._weigh, self._threads, self._beat = tell, weigh, threads, beat
        self._index: Layered | None = None
        self._waiting: Batch = []
        self._outcome: Outcome | None = None

    def take(self, pages: Batch) -> None:
        """Pages of a message."""
        self._waiting += pages

    def forget(self, takedown: Takedown, offset: int) -> Removed:
        """Takes pages out on the word at an offset of the log."""
        index, cause = self._layered(), page_id(offset, 0)
        removed = take_down(takedown, index, self._decider, cause=cause, tell=self._tell, beat=self._beat)
        self._tell_of(removed)
        return removed

    def sweep(self, sweep: Sweep, offset: int, log_time: int) -> tuple[Sweep, Removed]:
        """Drops some of what was not seen for long, behind the message at an offset. log_time: ms, there."""
        decider = self._decider
        removed, after = expire(
            self._layered(),
            decider,
            after=sweep.after,
            rows=sweep.pages * expiry.URLS_A_PAGE,
            before=log_time - decider.expiry_days * DAY_MS,
            cause=page_id(offset, (1 << PLACE_BITS) - 1),
            first=expiry.FIRST_VERDICT,
            tell=self._tell,
        )
        self._tell_of(removed)
        return Sweep(0, after), removed

    def end(self) -> tuple[Outcome, Writes]:
        """All of it, and what is to be written."""
        outcome = self._fold()
        return outcome, outcome.writes if self._index is None else self._index.changes

    def _layered(self) -> Layered:
        """The index as it is behind all pages so far."""
        outcome = self._fold()
        if self._index is None:
            self._index = Layered(self._store)
            self._index.add(outcome.writes)
        return self._index

    def _fold(self) -> Outcome:
        batch, self._waiting = self._waiting, []
        if self._outcome is not None and not batch:
            return self._outcome
        made = fold(
            batch,
            self._store if self._index is None else self._index,
            self._decider,
            weigh=self._weigh,
            tell=self._tell,
            threads=self._threads,
        )
        if self._tell:
            _check_complete(batch, made.verdicts)
        if self._index is not None:
            self._index.add(made.writes)
        self._outcome = made if self._outcome is None else _joined(self._outcome, made)
        return self._outcome

    def _tell_of(self, removed: Removed) -> None:
        assert self._outcome is not None
        self._outcome.verdicts += removed.verdicts


def _joined(one: Outcome, other: Outcome) -> Outcome:
    passes, read = one.effort
    return Outcome(
        one.verdicts + other.verdicts,
        other.writes,
        one.scored + other.scored,
        one.cut + other.cut,
        one.hot_turned + other.hot_turned,
        one.scored_by_page + other.scored_by_page,
        one.weighed + other.weighed,
        (passes + other.effort[0], read + other.effort[1]),
    )


def _check_complete(batch: Batch, verdicts: list[Verdict]) -> None:
    """Pages in = verdicts out: each page of the batch has its own verdict, in their order."""
    told = [verdict.page_id for verdict in verdicts if verdict.n == 0]
    if told != [number for number, _ in batch]:
        raise InvariantBroken(f"{len(batch)} pages went in, {len(told)} page verdicts came out, or in another order")
