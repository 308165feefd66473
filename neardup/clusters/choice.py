"""Which representative a page repeats, if any: candidates by shared keys, their pairs' numbers, the rule's rulings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from neardup.decider import Decider
from neardup.index.namings import encode_first
from neardup.index.rows import id_key
from neardup.pairs.scoring import PairScorer
from neardup.rules import Pair, Ruling, rule_of, sites
from neardup.rules.siblings import NO_SIBLINGS, Siblings, Traits
from neardup.search.hot_keys import elsewhere
from neardup.search.lists import Gathered
from neardup.search.overlay import Overlay
from neardup.search.reads import Missing, Needs
from neardup.search.scores import Scores
from neardup.sketch.header import Header
from neardup.verdict import Kind


class Scored(NamedTuple):
    """One candidate: its founding sketch's page id, keys it shares with the page that are not hot, numbers, ruling."""

    page_id: int
    shared: int
    pair: Pair
    ruling: Ruling


class Choice(NamedTuple):
    """All candidates of a page in their order, and the best accepted one. cut: there were more than are scored.

    crowd, siblings: how many pages like it the page's site has, as far as the decider asks.
    """

    scored: list[Scored]
    best: Scored | None
    crowd: int
    cut: bool
    siblings: Siblings


class Weighed(NamedTuple):
    """A page with its candidates. headers: of the candidates, in their order."""

    page_id: int
    header: Header
    choice: Choice
    headers: list[Header]


class Search:
    """A `Choice` as far as it was needed: the rulings on the other candidates are made when somebody asks.

    candidates: founding page ids in their order; shared: keys that each shares with the page.
    """

    __slots__ = ("_decider", "_page_id", "_scores", "best", "candidates", "crowd", "cut", "shared", "siblings")

    def __init__(self, decider: Decider, page_id: int, candidates: list[int], shared: list[int], cut: bool) -> None:
        self._decider = decider
        self._page_id = page_id
        self._scores: Scores | None = None
        self.candidates = candidates
        self.shared = shared
        self.cut = cut
        self.best: Scored | None = None
        self.crowd = 0
        self.siblings = NO_SIBLINGS

    def decide(self, overlay: Overlay, scores: Scores, crowd: int, siblings: Siblings) -> None:
        """Asks the rule about the candidates that it may accept."""
        self._scores, self.crowd, self.siblings = scores, crowd, siblings
        for candidate in scores.possible(self.candidates):
            one = self.scored(overlay, candidate)
            if one.ruling.kind and (self.best is None or _better(one, self.best)):
                self.best = one

    def scored(self, overlay: Overlay, candidate: int) -> Scored:
        assert self._scores is not None, "undecided"
        pair = self._scores.pair(candidate)
        decider = self._decider
        if decider.sites:
            header, other = overlay.header(self._page_id), overlay.header(candidate)
            ruling = rule_on(decider, header, other, pair, self.crowd, self.siblings)
        else:
            ruling = rule_of(decider).decide(pair, decider, self.crowd, self.siblings)
        return Scored(candidate, self.shared[self.candidates.index(candidate)], pair, ruling)

    def nearest(self, overlay: Overlay) -> Scored:
        """Where no candidate was accepted: the one that came nearest."""
        assert self._scores is not None, "undecided"
        return self.scored(overlay, self._scores.nearest(self.candidates))

    def choice(self, overlay: Overlay) -> Choice:
        scored = [self.scored(overlay, candidate) for candidate in self.candidates]
        return Choice(scored, self.best, self.crowd, self.cut, self.siblings)


def families(overlay: Overlay, page_id: int, candidate: int) -> dict[str, int]:
    """Traits of the key families that two pages share, with the number of shared keys that are not hot."""
    return dict(Counter(overlay.lists.families(page_id, candidate)))


def families_ahead(overlay: Overlay) -> dict[tuple[int, int], dict[str, int]]:
    """`families` of pages and the candidates that were chosen for them ahead, as lists were read."""
    chosen = overlay.reads.chosen.items()
    return overlay.lists.families_many(
        [(page_id, found[2].best.page_id) for page_id, found in chosen if found[2].best is not None]
    )


def scores_of(overlay: Overlay, page_id: int, others: Sequence[int]) -> Scores:
    """The numbers of a page against others, these among them; remembered. Raises Missing with all that was not read."""
    known = overlay.reads.scores.get(page_id)
    if known is None or known.lacking(others):
        score(overlay, [(page_id, others)])
    return overlay.reads.scores[page_id]


def score(overlay: Overlay, wanted_pairs: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Works out and remembers the numbers of pages with others, all together. Raises Missing with all not read."""
    known, batch = overlay.reads.scores, overlay.reads.batch
    needs = Needs()
    scored, pairs = [], PairScorer(overlay.reads.threads)

    def record(page_id: int) -> bytes:
        return batch.records[batch.at(page_id)] if page_id in batch else overlay.header(page_id).record

    for page_id, others in wanted_pairs:
        scores = known.get(page_id)
        fresh = others if scores is None else scores.lacking(others)
        if not fresh:
            continue
        try:
            pairs.add(page_id, fresh, record)
        except Missing:
            for other in fresh:
                needs.add(_lacking(overlay, other))
            continue
        scored.append((page_id, fresh))
    if needs:
        raise Missing(needs)
    if not scored:
        return
    numbers = overlay.reads.numbers
    at = len(numbers)
    numbers.add(pairs.numbers())
    for page_id, others in scored:
        if page_id not in known:
            known[page_id] = Scores(numbers)
        known[page_id].add(others, at)
        at += len(others)


def _lacking(overlay: Overlay, page_id: int) -> Needs:
    """What was not read of a page."""
    try:
        overlay.header(page_id)
    except Missing as missing:
        return missing.needs
    return Needs()


def look_ahead(overlay: Overlay, page_ids: Sequence[int]) -> None:
    """Works out, all together, numbers that pages of the batch will need among themselves: it changes nothing else.

    Which of them will be posted is a guess; a wrong one costs some pairs too many, or a call of the kernel more.
    """
    reads = overlay.reads
    if (overlay.lists.is_untouched and reads.founders.isdisjoint(page_ids)) or not overlay.lists.meet(page_ids):
        return
    gathered = overlay.lists.gather_many(page_ids, [page_id in reads.founders for page_id in page_ids])
    first, last = int(reads.batch.ids[0]), int(reads.batch.ids[-1])
    among = {
        page_id: [candidate for candidate in candidates if first <= candidate <= last]
        for page_id, (candidates, _, _) in gathered.items()
    }
    score(overlay, [(page_id, candidates) for page_id, candidates in among.items() if candidates])


def rule_on(
    decider: Decider, header: Header, other: Header, pair: Pair, crowd: int = 0, siblings: Siblings = NO_SIBLINGS
) -> Ruling:
    """The live rule's ruling, with what the sites of either page want otherwise."""
    rule = rule_of(decider)
    if decider.sites:
        return sites.decide(rule, decider, (header.site_name, other.site_name), pair, crowd, siblings)
    return rule.decide(pair, decider, crowd, siblings)


def choose(overlay: Overlay, page_id: int, gathered: Gathered | None = None) -> Search:
    """Scores the candidates of a page of the batch whose URL is not in the index, so none is itself. Raises Missing.

    gathered: what the lists give now, if known.
    """
    known = overlay.reads.chosen.get(page_id)
    as_read = overlay.lists.is_as_read(page_id)
    if known is not None and as_read and known[3]:
        gathered = known[0]
    elif gathered is None:
        gathered = overlay.lists.gather(page_id)
    if gathered is None:
        raise overlay.lacking(page_id)
    gathered = elsewhere(overlay, {page_id: gathered})[page_id]
    decider = overlay.decider
    if not gathered[0]:
        return Search(decider, page_id, *gathered)
    siblings = siblings_of(overlay, page_id)
    if known is not None and known[:2] == (gathered, siblings):
        return cast(Search, known[2])
    search = Search(decider, page_id, *gathered)
    scores = scores_of(overlay, page_id, search.candidates)
    crowd = 0
    if decider.crowd_min:
        header = overlay.header(page_id)
        crowd = sum(_crowd(overlay, header, candidate, scores.pair(candidate)) for candidate in search.candidates)
    search.decide(overlay, scores, crowd, siblings)
    if not decider.crowd_min:  # it follows from lists, siblings and records alone
        overlay.reads.chosen[page_id] = gathered, siblings, search, as_read
    return search


def siblings_of(overlay: Overlay, page_id: int) -> Siblings:
    """How many pages go by the names of this one of the batch on its site, before it. Raises Missing."""
    if not overlay.counts_siblings:
        return NO_SIBLINGS
    pages = overlay.reads.batch
    return overlay.namings.get(pages.naming_keys[pages.at(page_id)]) or NO_SIBLINGS


def sight(overlay: Overlay, at: int) -> None:
    """Counts a page of the batch among those of its names, if it can be found again. Raises Missing."""
    pages = overlay.reads.batch
    if not overlay.counts_siblings or pages.page_ids[at] not in overlay.reads.posted.number_of:
        return
    key = pages.naming_keys[at]
    row = overlay.namings.get(key)
    if row is None:
        overlay.namings.put_encoded(key, encode_first(*pages.counted[at]))
    elif not row.full:
        overlay.namings.put(key, row.with_one(Traits(*pages.counted[at])))


def _better(one: Scored, best: Scored) -> bool:
    return (one.ruling.rank, -one.page_id) > (best.ruling.rank, -best.page_id)


def _crowd(overlay: Overlay, header: Header, candidate: int, pair: Pair) -> int:
    """What one candidate adds to the crowd: itself and its same-site members of other digests."""
    if not pair.same_site or pair.tape_score < overlay.decider.crowd_tape_min:
        return 0
    other = overlay.header(candidate)
    if header.same_digest(other):
        return 0
    row = overlay.urls.need(other.url_hash)
    return 1 + overlay.clusters.need(id_key(row.cluster)).crowd


def verify(overlay: Overlay, page_id: int, other: int) -> tuple[bool, Pair, Ruling]:
    """Whether a page still says the same as another: equal digests, or near_duplicate by the rule (no crowd)."""
    header, held = overlay.header(page_id), overlay.header(other)
    pair = scores_of(overlay, page_id, (other,)).pair(other)
    if header.digest and header.same_digest(held):
        return True, pair, Ruling(Kind.EXACT_DUPLICATE, "digest")
    ruling = rule_on(overlay.decider, header, held, pair)
    return ruling.kind is Kind.NEAR_DUPLICATE, pair, ruling
