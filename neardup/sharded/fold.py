"""Folds a batch: sketch records in, verdicts and one atomic change of the store out.

`judge` is a pure function of the batch and of the rows that were read. Its overlay shows each page the effects of the
pages before it, so how a log is cut into batches changes no verdict and no stored byte. `read_ahead` reads the rows
that `judge` will most likely need; where `judge` misses one, `fold` reads it and judges again.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import compress

from neardup.clusters import best_candidate, membership
from neardup.clusters.best_candidate import Search
from neardup.clusters.lifecycle import Judged, Lifecycle
from neardup.clusters.overlay import Effect, MakeReads, Overlay, Reads
from neardup.clusters.plain_pages import Founders, Members
from neardup.clusters.verdict_builder import VerdictBuilder
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.column_families import Family, Reader
from neardup.index.reads import Missing, Needs, for_each
from neardup.index.rows import UrlRow
from neardup.matching.outcome import Candidate, ComparedPage, Outcome, Trace
from neardup.rules.key_families import key_name
from neardup.search import candidates
from neardup.search.batch_records import Pages, Records
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind

#: Number of pages whose pairs among themselves are scored together. With more pages, more guesses are wrong.
_AHEAD = 32


@dataclass(slots=True)
class JudgedOutcome(Outcome):
    """The outcome of a judge. effects: for the shards, in order; empty if the index has its own lists."""

    effects: list[Effect] = field(default_factory=list)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Suspends the search for reference cycles: a batch creates some 100,000 objects, none of them in a cycle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_no_garbage_collection()  # around the call: what it has read is freed before garbage is collected again
def fold(
    batch: Records,
    store: Reader,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    keep_compared: bool = False,
    emit: bool = True,
    threads: int = 1,
    make_reads: MakeReads = Reads,
) -> JudgedOutcome:
    """Judges a batch against a store. Writes nothing: the caller writes `outcome.writes` and its own rows, atomically.

    Args:
        batch: (page id, sketch record) with ascending page ids, all greater than those in the store.
        trace: function that receives a trace for each page, in order, after the batch is judged.
        keep_compared: whether the outcome contains the compared pages. Changes nothing else.
        emit: whether to compute verdicts. False when messages are folded again whose verdicts are committed.
        threads: number of threads that read and score.
        make_reads: replaces `Reads` if candidates come from shards.

    Raises CorruptRecord, InvariantBroken, StateError.
    """
    reads = read_ahead(batch, store, decider, threads, make_reads)
    passes = 0
    while True:
        passes += 1
        try:
            outcome = judge(batch, reads, decider, trace=trace, keep_compared=keep_compared, emit=emit)
        except Missing as missing:
            if not reads.read(store, missing.needs):
                raise InvariantBroken("judging misses rows that were read") from missing
            continue
        outcome.effort = (passes, sum(map(len, reads.rows.values())))
        return outcome


def read_ahead(
    batch: Records, store: Reader, decider: Decider, threads: int = 1, make_reads: MakeReads = Reads
) -> Reads:
    """Reads the rows that judging the batch will most likely need, in a few rounds. Other rows cost a pass each."""
    reads = make_reads(Pages(batch), decider, threads)
    pages, overlay = reads.pages, reads.overlay()  # nothing is put into this overlay
    life, needs = Lifecycle(overlay, None), Needs()
    needs.rows[Family.URLS] = set(compress(pages.url_hashes, pages.named))
    needs.rows[Family.KEYS] = set(filter(None, compress(pages.digest_keys, pages.named)))
    reads.read(store, needs)
    urls = zip(range(len(pages)), pages.named, pages.url_hashes, strict=True)
    known = {i: row for i, named, hashed in urls if named and (row := overlay.urls.get(hashed)) is not None}
    reads.leaving.update(row.cluster for row in known.values() if row.live)
    new, others = _new_pages(reads)
    held: dict[int, int | None] = dict.fromkeys(new)
    reads.read_sketches(store, _likely_held(overlay, others, known))
    held |= reads.in_rounds(store, others, lambda: life.held_as)
    searching = sorted(pages.page_ids[i] for i, page_id in held.items() if page_id is None)
    found = candidates.read_many(overlay, store, searching)
    reads.read(store, best_candidate.sibling_needs(overlay, searching))
    chosen = reads.in_rounds(
        store, found, lambda: lambda page_id: best_candidate.choose(overlay, page_id, found[page_id])
    )
    best = {page_id: search.best.page_id for page_id, search in chosen.items() if search.best is not None}
    reads.likely_posted = pages.first_of_digest(searching) - best.keys()
    reads.holders = {i: page_id for i, page_id in held.items() if page_id is not None and i not in known}
    joined = {*reads.holders.values()}
    joined |= {row.page_id for row in known.values() if row.live} | set(best.values())
    membership.read_targets(overlay, store, joined)
    required = [row.page_id for row in known.values() if row.live]
    targets = reads.in_rounds(store, required, lambda: partial(membership.target, overlay))
    compared = [
        (page_id, [other for _, other in references if overlay.can_score(page_id, other)])
        for page_id, references in (
            (pages.page_ids[i], life.references(row, targets[row.page_id].row))
            for i, row in known.items()
            if row.page_id in targets and i in held and held[i] != row.page_id
        )
    ]
    reads.read_sketches(store, [other for _, others in compared for other in others])
    candidates.score(overlay, compared)
    # Each record of a URL in the index is judged on an overlay without the effects of the other pages.
    reads.in_rounds(store, known, lambda: Lifecycle(reads.overlay(), None).rehearse)
    return reads


def _new_pages(reads: Reads) -> tuple[list[int], list[int]]:
    """Positions of the pages of which the index has neither URL nor digest, and of all other pages."""
    pages, urls, keys = reads.pages, reads.rows[Family.URLS], reads.rows[Family.KEYS]
    new: list[int] = []
    others: list[int] = []
    for i in pages.of_kind(RecordKind.PAGE):
        key = pages.digest_keys[i]
        is_new = urls[pages.url_hashes[i]] is None and (not key or keys[key] is None)
        (new if is_new else others).append(i)
    return new, others


def _likely_held(overlay: Overlay, positions: Sequence[int], known: Mapping[int, UrlRow]) -> list[int]:
    """The pages whose sketches show whether pages of the batch have the content of a live page."""
    keys = overlay.pages.digest_keys
    digests = [overlay.digests.get(keys[i]) for i in positions if keys[i]]
    return [row.pages[0] for row in digests if row is not None and row.pages] + [
        row.page_id for row in known.values() if row.live
    ]


def judge(
    batch: Records,
    reads: Reads,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    keep_compared: bool = False,
    emit: bool = True,
) -> JudgedOutcome:
    """Folds the batch over the rows that were read. Pure. Raises Missing with all needs found, InvariantBroken."""
    overlay, pages, outcome = reads.overlay(), reads.pages, JudgedOutcome()
    builder = VerdictBuilder(overlay) if emit else None
    families = best_candidate.families_ahead(overlay) if emit else {}
    life = Lifecycle(overlay, builder, families)
    traces: list[Trace] = []
    founders = Founders(overlay)
    plain = founders.plain if trace is None else [False] * len(pages)
    members = Members(overlay, builder, families) if trace is None and not keep_compared else None

    def count(search: Search | None) -> None:
        scored = len(search.candidates) if search is not None else 0
        outcome.scored_by_page.append(scored)
        outcome.scored += scored
        outcome.cut += search is not None and search.cut

    def judge_one(i: int) -> None:
        page_id = pages.page_ids[i]
        judged = life.apply(i)
        if trace is not None:
            traces.append(_trace(overlay, page_id, pages[page_id], judged))
        if keep_compared and judged.search is not None and judged.search.candidates:
            headers = [overlay.header(candidate) for candidate in judged.search.candidates]
            outcome.compared.append(ComparedPage(page_id, pages[page_id], judged.search.choice(overlay), headers))
        if (turned := overlay.turned_keys()) and judged.verdicts:
            own = judged.verdicts[0]
            own.evidence = {**own.evidence, "turned_hot": [key_name(key) for key in turned]}
        outcome.verdicts += judged.verdicts
        count(judged.search)

    def join_one(i: int) -> bool:
        put = members.put(i) if members is not None else None
        if put is None:
            return False
        search, verdict = put
        if verdict is not None:
            outcome.verdicts.append(verdict)
        count(search)
        return True

    def judge_run(run: range) -> None:
        first, last = run.start, run.stop
        if first % _AHEAD == 0:
            candidates.score_among(overlay, pages.page_ids[first : first + _AHEAD])
        if not plain[first] or not founders.put(first, last):
            for_each(run, lambda i: None if join_one(i) else judge_one(i))
            return
        if builder is not None:
            outcome.verdicts += [builder.founder(i, {"candidates": 0}) for i in run]
        outcome.scored_by_page += [0] * len(run)

    for_each(_runs(plain), judge_run)
    outcome.writes = overlay.writes()
    outcome.hot_turned = overlay.hot_turned
    outcome.effects = overlay.effects
    if trace is not None:
        for one in traces:
            trace(one)
    return outcome


def _runs(plain: Sequence[bool]) -> Iterator[range]:
    """Yields positions in order: those of plain pages that follow one another together, all others one by one."""
    first = 0
    while first < len(plain):
        last = first + 1
        while plain[first] and last < len(plain) and plain[last] and last % _AHEAD:
            last += 1
        yield range(first, last)
        first = last


def _trace(overlay: Overlay, page_id: int, header: Header, judged: Judged) -> Trace:
    compared = []
    found = judged.search.choice(overlay) if judged.search else None
    for one in found.scored if found else ():
        other = overlay.header(one.page_id)
        compared.append(
            Candidate(
                one.page_id,
                other.url,
                overlay.urls.need(other.url_hash).cluster,
                one.pair,
                one.ruling,
                overlay.families([(page_id, one.page_id)])[page_id, one.page_id],
            )
        )
    cut = bool(found and found.cut)
    return Trace(page_id, header.url, compared, list(judged.checks), judged.holder, cut)
