"""The matcher's core: sketch records of a batch in, verdicts and one atomic change of the store out.

`candidates` reads what the batch will most likely need, in few large rounds. `judge` is a pure function of the batch
and what was read: it folds page after page through an overlay, so that pages of one batch see each other exactly as if
they came one by one, and slicing the log in other batches changes no verdict and no stored byte. What `judge` finds
absent from the read set it reports as Missing; `fold` reads that too and judges again.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import compress

from neardup.clusters import choice, membership
from neardup.clusters.choice import Weighed
from neardup.clusters.lifecycle import Check, Judged, Life
from neardup.clusters.overlay import Overlay, Reads
from neardup.clusters.verdicts import Teller
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.base import Family, Reader
from neardup.index.reads import Missing, Needs, for_each
from neardup.rules import Pair, Ruling
from neardup.rules.families import key_name
from neardup.search import candidates
from neardup.search.pages import Pages, Records
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind
from neardup.verdict import Verdict

#: Pages whose pairs among themselves are scored together. Of more pages more would be guessed wrong.
_AHEAD = 32


@dataclass(slots=True)
class Candidate:
    """One scored candidate of a page: what it shares with it, the pair's numbers, and the rule's ruling.

    shared: keys in common that are not hot; families: their names and numbers; crowd: of the page, for the ruling.
    """

    page_id: int
    url: str
    cluster: int
    pair: Pair
    ruling: Ruling
    shared: int
    families: dict[str, int]
    crowd: int


@dataclass(slots=True)
class Trace:
    """Everything that was weighed for one page.

    holder: the live page of the same digest, which settles it before any candidate is scored. checks: a known URL's
    new content against its previous fetch and its cluster's founding sketch.
    """

    page_id: int
    url: str
    candidates: list[Candidate]
    checks: list[Check]
    holder: int | None
    candidates_cut: bool


@dataclass(slots=True)
class Outcome:
    """What folding a batch led to; nothing is written yet.

    verdicts: in the order of the batch, promotions after the page that caused them. writes: one atomic change. scored:
    candidates whose numbers a ruling was made on, all together, and by page. cut: pages with more candidates than are
    scored. hot_turned: keys that turned hot.
    """

    verdicts: list[Verdict]
    writes: dict[Family, dict[bytes, bytes | None]]
    scored: int = 0
    cut: int = 0
    hot_turned: int = 0
    scored_by_page: list[int] = field(default_factory=list)
    #: Of pages with candidates, if asked for.
    weighed: list[Weighed] = field(default_factory=list, compare=False)
    #: (passes of judge, rows read): what slicing may change, unlike everything above.
    effort: tuple[int, int] = field(default=(1, 0), compare=False)


def fold(
    batch: Records,
    store: Reader,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    weigh: bool = False,
    tell: bool = True,
    threads: int = 1,
) -> Outcome:
    """Judges a batch against a store. Does not write: the caller writes `outcome.writes` with its own marks, at once.

    batch: (page id, sketch record) with ascending page ids, all greater than any the store holds. trace: called for
    each page in order, once it is settled. weigh: tell in the outcome what was weighed; changes nothing else.
    tell: without, the outcome has no verdicts: for who folds again what was told. threads: how many read and score.
    Raises CorruptRecord, InvariantBroken, StateError.
    """
    with _unswept():
        reads = read_ahead(batch, store, decider, threads)
        passes = 0
        while True:
            passes += 1
            try:
                outcome = judge(batch, reads, decider, trace=trace, weigh=weigh, tell=tell)
            except Missing as missing:
                if not reads.read(store, missing.needs):
                    raise InvariantBroken("judging asks again for what was read") from missing
                continue
            outcome.effort = (passes, sum(map(len, reads.rows.values())))
            return outcome


@contextmanager
def _unswept() -> Iterator[None]:
    """No search for unreachable cycles meanwhile: a batch makes some 100,000 objects, and all of them go without it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def read_ahead(batch: Records, store: Reader, decider: Decider, threads: int = 1) -> Reads:
    """Reads what judging the batch will most likely need, in a few rounds. A row that is not foreseen costs a pass."""
    reads = Reads(Pages(batch), decider, threads)
    pages, overlay = reads.pages, Overlay(reads, decider)  # nothing is put into this overlay
    life, needs = Life(overlay, None), Needs()
    needs.rows[Family.URLS] = set(compress(pages.url_hashes, pages.named))
    needs.rows[Family.KEYS] = set(filter(None, compress(pages.digest_keys, pages.named)))
    reads.read(store, needs)
    urls = zip(range(len(pages)), pages.named, pages.url_hashes, strict=True)
    known = {at: row for at, named, hashed in urls if named and (row := overlay.urls.get(hashed)) is not None}
    reads.leaving.update(row.cluster for row in known.values() if row.live)
    held = reads.in_rounds(store, pages.of_kind(RecordKind.PAGE), lambda: life.held_as)
    searching = sorted(pages.page_ids[at] for at, page_id in held.items() if page_id is None)
    found = candidates.read_many(overlay, store, searching)
    reads.read(store, choice.sibling_needs(overlay, searching))
    chosen = reads.in_rounds(store, found, lambda: lambda page_id: choice.choose(overlay, page_id, found[page_id]))
    best = {page_id: search.best.page_id for page_id, search in chosen.items() if search.best is not None}
    reads.likely_posted = pages.first_of_digest(searching) - best.keys()
    joined = {page_id for at, page_id in held.items() if page_id is not None and at not in known}
    joined |= {row.page_id for row in known.values() if row.live} | set(best.values())
    targets = reads.in_rounds(store, joined, lambda: partial(membership.target, overlay))
    compared = [
        (pages.page_ids[at], [other for _, other in life.references(row, targets[row.page_id].row)])
        for at, row in known.items()
        if row.page_id in targets and at in held and held[at] != row.page_id
    ]
    reads.read_sketches(store, [other for _, others in compared for other in others])
    candidates.score(overlay, compared)
    # The URLs that the index has are judged as if they were alone: what that misses is what they need.
    reads.in_rounds(store, known, lambda: Life(Overlay(reads, decider), None).rehearse)
    return reads


def judge(
    batch: Records,
    reads: Reads,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    weigh: bool = False,
    tell: bool = True,
) -> Outcome:
    """Folds the batch over what was read. Pure. Raises Missing with all that it came upon, InvariantBroken."""
    overlay, pages, outcome = Overlay(reads, decider), reads.pages, Outcome([], {})
    life = Life(overlay, Teller(overlay) if tell else None)
    traces = []

    def judge_one(at: int) -> None:
        page_id = pages.page_ids[at]
        if at % _AHEAD == 0:
            candidates.score_among(overlay, pages.page_ids[at : at + _AHEAD])
        judged = life.live(at)
        if trace is not None:
            traces.append(_trace(overlay, page_id, pages[page_id], judged))
        if weigh and judged.search is not None and judged.search.candidates:
            headers = [overlay.header(candidate) for candidate in judged.search.candidates]
            outcome.weighed.append(Weighed(page_id, pages[page_id], judged.search.choice(overlay), headers))
        if decider.facts_told and (turned := overlay.turned_keys()) and judged.verdicts:
            own = judged.verdicts[0]
            own.evidence = {**own.evidence, "turned_hot": [key_name(key) for key in turned]}
        outcome.verdicts += judged.verdicts
        outcome.scored_by_page.append(len(judged.search.candidates) if judged.search else 0)
        if judged.search is not None:
            outcome.scored += len(judged.search.candidates)
            outcome.cut += judged.search.cut

    for_each(range(len(pages)), judge_one)
    outcome.writes = overlay.writes()
    outcome.hot_turned = overlay.hot_turned
    if trace is not None:
        for one in traces:
            trace(one)
    return outcome


def _trace(overlay: Overlay, page_id: int, header: Header, judged: Judged) -> Trace:
    weighed = []
    found = judged.search.choice(overlay) if judged.search else None
    for one in found.scored if found else ():
        other = overlay.header(one.page_id)
        weighed.append(
            Candidate(
                one.page_id,
                other.url,
                overlay.urls.need(other.url_hash).cluster,
                one.pair,
                one.ruling,
                one.shared,
                choice.families(overlay, page_id, one.page_id),
                found.crowd if found else 0,
            )
        )
    cut = bool(found and found.cut)
    return Trace(page_id, header.url, weighed, list(judged.checks), judged.holder, cut)
