"""Chooses the representative that a page repeats, if any, by the rule's rulings on the page's candidates."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neardup.clusters.overlay import Overlay
from neardup.index.column_families import Family
from neardup.index.naming_rows import encode_first
from neardup.index.reads import Needs
from neardup.matching.outcome import CandidateChoice, Scored
from neardup.rules import Pair, Ruling, rule_of
from neardup.rules.base import ruling_of
from neardup.rules.siblings import NO_SIBLINGS, Siblings, Traits
from neardup.search import candidates
from neardup.search.posting_lists import Gathered
from neardup.search.scores import Scores
from neardup.verdict import Kind


class Search:
    """The candidates of a page and the best accepted one. `choice` computes the rulings on the others on demand.

    candidates: page ids of founding sketches, in order.
    """

    __slots__ = ("_page_id", "_scores", "best", "candidates", "cut", "siblings")

    def __init__(self, page_id: int, candidates: list[int], cut: bool) -> None:
        self._page_id = page_id
        self._scores: Scores | None = None
        self.candidates = candidates
        self.cut = cut
        self.best: Scored | None = None
        self.siblings = NO_SIBLINGS

    def decide(self, overlay: Overlay, scores: Scores, siblings: Siblings) -> None:
        """Applies the rule to the candidates that it may accept."""
        self._scores, self.siblings = scores, siblings
        possible = scores.possible(self.candidates)
        if possible:
            for candidate, ruling in zip(possible, self._rulings(overlay, possible), strict=True):
                if ruling.kind and (self.best is None or _better(ruling, candidate, self.best)):
                    self.best = Scored(candidate, scores.pair(candidate), ruling)

    def _rulings(self, overlay: Overlay, candidates: Sequence[int]) -> list[Ruling]:
        assert self._scores is not None, "undecided"
        return _rulings(overlay, self._scores, self._page_id, candidates, self.siblings)

    def nearest(self, overlay: Overlay) -> Scored:
        """Returns the nearest candidate of a page for which no candidate was accepted."""
        assert self._scores is not None, "undecided"
        nearest = self._scores.nearest(self.candidates)
        return Scored(nearest, self._scores.pair(nearest), self._rulings(overlay, [nearest])[0])

    def choice(self, overlay: Overlay) -> CandidateChoice:
        scored: list[Scored] = []
        if self._scores is not None:
            pairs = map(self._scores.pair, self.candidates)
            scored = list(map(Scored, self.candidates, pairs, self._rulings(overlay, self.candidates)))
        return CandidateChoice(scored, self.best, self.cut, self.siblings)


def _rulings(
    overlay: Overlay, scores: Scores, page_id: int, others: Sequence[int], siblings: Siblings = NO_SIBLINGS
) -> list[Ruling]:
    """The rulings on a page and others, whose numbers are among `scores`."""
    decider = overlay.decider
    if not decider.sites and not siblings.alike and not siblings.others:
        return [ruling_of(scores.ruling(other)) for other in others]
    names = None
    if decider.sites:
        names = overlay.header(page_id).site_name, [overlay.header(other).site_name for other in others]
    return list(map(ruling_of, rule_of(decider).rulings(scores.numbers(others), decider, siblings, names)))


class Chosen(NamedTuple):
    """What `choose` has found for a page, and from what. as_read: the lists were as they had been read."""

    gathered: Gathered
    siblings: Siblings
    search: Search
    as_read: bool


#: By page id of a page and of a candidate: number of shared keys by key family.
Families = dict[tuple[int, int], dict[str, int]]


def families_ahead(overlay: Overlay) -> Families:
    """`Overlay.families` of pages and the candidates that `read_ahead` chose for them."""
    chosen = overlay.reads.chosen.items()
    return overlay.families(
        [(page_id, found.search.best.page_id) for page_id, found in chosen if found.search.best is not None]
    )


def choose(overlay: Overlay, page_id: int, gathered: Gathered | None = None) -> Search:
    """Applies the rule to the candidates of a page of the batch whose URL is not in the index. Raises Missing.

    gathered: the page's candidates as the lists are now, if known.
    """
    known: Chosen | None = overlay.reads.chosen.get(page_id)
    as_read = overlay.is_as_read(page_id)
    if known is not None and as_read and known.as_read:
        gathered = known.gathered
    elif gathered is None:
        gathered = candidates.find(overlay, page_id)
    if not gathered[0]:
        return Search(page_id, [], gathered[2])
    siblings = siblings_of(overlay, page_id)
    if known is not None and known[:2] == (gathered, siblings):
        return known.search
    search = Search(page_id, gathered[0], gathered[2])
    scores = candidates.scores_of(overlay, page_id, search.candidates)
    search.decide(overlay, scores, siblings)
    overlay.reads.chosen[page_id] = Chosen(gathered, siblings, search, as_read)
    return search


def sibling_needs(overlay: Overlay, page_ids: Iterable[int]) -> Needs:
    """The rows that `siblings_of` and `sight` read for pages of the batch."""
    needs, pages = Needs(), overlay.pages
    if overlay.counts_siblings:
        needs.rows[Family.KEYS] = {pages.naming_keys[pages.position(page_id)] for page_id in page_ids}
    return needs


def siblings_of(overlay: Overlay, page_id: int) -> Siblings:
    """Counts the earlier pages on the site of a page of the batch that have its naming. Raises Missing."""
    if not overlay.counts_siblings:
        return NO_SIBLINGS
    pages = overlay.pages
    return overlay.namings.get(pages.naming_keys[pages.position(page_id)]) or NO_SIBLINGS


def count_sibling(overlay: Overlay, i: int) -> None:
    """Counts a page of the batch under its naming, if it posts keys. Raises Missing."""
    pages = overlay.pages
    if not overlay.counts_siblings or pages.page_ids[i] not in overlay.reads.posted.with_keys:
        return
    key = pages.naming_keys[i]
    row = overlay.namings.get(key)
    if row is None:
        overlay.namings.put_encoded(key, encode_first(*pages.counted[i]))
    elif not row.full:
        overlay.namings.put(key, row.with_one(Traits(*pages.counted[i])))


def _better(ruling: Ruling, page_id: int, best: Scored) -> bool:
    return (ruling.rank, -page_id) > (best.ruling.rank, -best.page_id)


def verify(overlay: Overlay, page_id: int, other: int) -> tuple[bool, Pair, Ruling]:
    """Decides whether a page repeats another: equal digests, or near-duplicates by the rule without siblings. Raises
    Missing.
    """
    verified = overlay.reads.verified
    if (page_id, other) not in verified:
        header, held = overlay.header(page_id), overlay.header(other)
        scores = candidates.scores_of(overlay, page_id, (other,))
        pair = scores.pair(other)
        if header.digest and header.same_digest(held):
            verified[page_id, other] = True, pair, Ruling(Kind.EXACT_DUPLICATE, "digest")
        else:
            ruling = _rulings(overlay, scores, page_id, (other,))[0]
            verified[page_id, other] = ruling.kind is Kind.NEAR_DUPLICATE, pair, ruling
    return verified[page_id, other]
