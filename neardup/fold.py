"""Folds a batch: sketch records in, verdicts and one atomic change of the store out.

`fold` is a pure function of the batch and of the rows in the store. Each page sees the effects of the pages before it,
so how a log is cut into batches changes no verdict and no stored byte. `neardup.matching.kernels.walk` judges the
pages.
"""

from collections.abc import Callable

from neardup.decider import Decider
from neardup.index.column_families import Reader
from neardup.matching.batch import Walk
from neardup.matching.batch_records import Pages, Records
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.outcome import (
    Candidate,
    Check,
    ComparedPage,
    Outcome,
    Trace,
    candidates_by,
    compared_pages,
    repeats_by,
    traces,
)

__all__ = ["Candidate", "Check", "ComparedPage", "Outcome", "Trace", "fold"]


def fold(
    batch: Records,
    store: Reader,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    keep_compared: bool = False,
    emit: bool = True,
    threads: int = 1,
) -> Outcome:
    """Judges a batch against a store. Writes nothing: the caller writes `outcome.writes` and its own rows, atomically.

    Args:
        batch: (page id, sketch record) with ascending page ids, all greater than those in the store.
        store: the rows before the batch.
        decider: rule, thresholds and limits.
        trace: function that receives a trace for each page, in order, after the batch is judged.
        keep_compared: whether the outcome contains the compared pages. Changes nothing else.
        emit: whether to compute verdicts. False when messages are folded again whose verdicts are committed.
        threads: number of threads that read rows.

    Raises CorruptRecord, InvariantBroken, StateError.
    """
    pages = Pages(batch)
    walk = Walk(pages, store, decider, emit=emit, trace=trace is not None, threads=threads)
    walk.judge()
    columns = walk.columns(pages.ids)
    verdicts = BatchVerdicts(columns, decider) if emit else BatchVerdicts()
    outcome = Outcome(verdicts, walk.writes(), hot_turned=walk.turned(), effort=(walk.rounds, walk.read))
    found = walk.found()
    searches = found.searches
    outcome.candidates_by, outcome.repeats_by = candidates_by(found), repeats_by(columns, decider)
    outcome.scored, outcome.cut = int(searches["many"].sum()), int(searches["cut"].sum())
    scored = [0] * len(pages)
    for i, many in zip(searches["i"].tolist(), searches["many"].tolist(), strict=True):
        scored[i] = many
    outcome.scored_by_page = scored
    if keep_compared:
        outcome.compared = compared_pages(walk, pages)
    if trace is not None:
        traces(walk, pages, decider, trace)
    return outcome
