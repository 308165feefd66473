"""Finds the candidates of a page in the posting lists, and chooses the one that it repeats, if any, by the rule."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neardup.index import naming_rows, posting_rows
from neardup.matching.outcome import CandidateChoice, Scored
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import numbers_of, pairs_of
from neardup.rules import Ruling, rule_of
from neardup.rules.base import ruling_of
from neardup.rules.key_families import family_of, found_by
from neardup.rules.posted_keys import key_weights, length_gap
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.sketch.header import Header
from neardup.verdict import Kind
from tests.oracle.fold.naming import is_full, with_one
from tests.oracle.fold.overlay import Overlay


@dataclass
class Search:
    """The candidates of a page and the best accepted one. nearest: the nearest one, if none is accepted.

    candidates: page ids of founding sketches, in order. cut: whether there were more. scored: of each candidate.
    found_by: of each candidate, the indexes that found it.
    """

    candidates: list[int]
    cut: bool
    scored: list[Scored]
    best: Scored | None
    nearest: Scored | None
    siblings: Siblings
    found_by: list[str]

    def choice(self) -> CandidateChoice:
        return CandidateChoice(self.scored, self.best, self.cut, self.siblings)


def gather(overlay: Overlay, page_id: int) -> tuple[list[int], bool]:
    """The candidates of a page, and whether there are more than the rule compares.

    They are in the order of the weight of the common keys that are not hot, then of the number of hot ones, then of
    age. Those that share hot keys alone are left out if they are of the page's site or unlike it.
    """
    decider, header = overlay.decider, overlay.header(page_id)
    weights: Counter[int] = Counter()
    hots: Counter[int] = Counter()
    for key, weight in zip(overlay.keys(page_id), key_weights(decider).tolist(), strict=False):
        row = overlay.postings.get(key)
        for word in posting_rows.postings(row):
            weights[word] += 0 if posting_rows.is_hot(row) else weight
            hots[word] += posting_rows.is_hot(row)
    gap, (tape, content) = length_gap(decider), header.tape_logs
    apart = {word: min(abs((word >> 8 & 255) - tape), abs((word & 255) - content)) for word in weights}
    near = [word for word in weights if gap < 0 or apart[word] <= gap]
    ordered = sorted(near, key=lambda word: (-weights[word], -hots[word], word))
    kept = ordered[: decider.candidates_max]
    likely = [word >> 16 for word in kept if weights[word] or _are_likely(overlay, header, word >> 16)]
    return likely, len(ordered) > len(kept)


def _are_likely(overlay: Overlay, header: Header, candidate: int) -> bool:
    other = overlay.header(candidate)
    bits = 8 * len(header.simhash)
    differing = (int.from_bytes(header.simhash, "little") ^ int.from_bytes(other.simhash, "little")).bit_count()
    return header.site != other.site and bits - differing >= overlay.decider.hot_c_min


def choose(overlay: Overlay, page_id: int) -> Search:
    """Applies the rule to the candidates of a page."""
    candidates, cut = gather(overlay, page_id)
    if not candidates:
        return Search([], cut, [], None, None, NO_SIBLINGS, [])
    siblings = siblings_of(overlay, page_id)
    scored, nearness = rulings(overlay, page_id, candidates, siblings)
    accepted = [one for one in scored if one.ruling.kind is not None]
    best = max(accepted, key=lambda one: (one.ruling.rank, -one.page_id), default=None)
    near = max(zip(nearness, scored, strict=True), key=lambda each: (round(each[0], 4), -each[1].page_id))[1]
    indexes = [found_by(families(overlay, page_id, candidate)) for candidate in candidates]
    return Search(candidates, cut, scored, best, near, siblings, indexes)


def rulings(
    overlay: Overlay, page_id: int, others: Sequence[int], siblings: Siblings = NO_SIBLINGS
) -> tuple[list[Scored], list[float]]:
    """The rulings on a page and others, and how near the rule is to accepting each, of the texts alone."""
    decider = overlay.decider
    numbers = numbers_of(overlay.header(page_id).record, [overlay.header(other).record for other in others])
    names = None
    if decider.sites:
        names = overlay.header(page_id).site_name, [overlay.header(other).site_name for other in others]
    rule = rule_of(decider)
    found = map(ruling_of, rule.rulings(numbers, decider, siblings, names))
    scored = [Scored(*each) for each in zip(others, pairs_of(numbers), found, strict=True)]
    nearness: np.ndarray = rule.rulings(numbers, decider)["nearness"]
    return scored, nearness.tolist()


def verify(overlay: Overlay, page_id: int, other: int) -> tuple[bool, Pair, Ruling]:
    """Whether a page repeats another: equal digests, or near-duplicates by the rule without siblings."""
    ((_, pair, ruling),), _ = rulings(overlay, page_id, [other])
    header, held = overlay.header(page_id), overlay.header(other)
    if header.digest and header.same_digest(held):
        return True, pair, Ruling(Kind.EXACT_DUPLICATE, "digest")
    return ruling.kind is Kind.NEAR_DUPLICATE, pair, ruling


def families(overlay: Overlay, page_id: int, other: int) -> dict[str, int]:
    """Number of a page's keys under which another one is posted, by key family."""
    shared = Counter(
        family_of(key).name.lower()
        for key in overlay.keys(page_id)
        if any(word >> 16 == other for word in posting_rows.postings(overlay.postings.get(key)))
    )
    return dict(shared)


def siblings_of(overlay: Overlay, page_id: int) -> Siblings:
    """Counts the earlier pages on the site of a page of the batch that have its naming."""
    if not overlay.counts_siblings:
        return NO_SIBLINGS
    return overlay.namings.get(naming_rows.key_of(overlay.pages[page_id])) or NO_SIBLINGS


def count_sibling(overlay: Overlay, i: int) -> None:
    """Counts a page of the batch under its naming, if it posts keys."""
    page_id = overlay.pages.page_ids[i]
    if not overlay.counts_siblings or not overlay.keys(page_id):
        return
    header = overlay.pages[page_id]
    key = naming_rows.key_of(header)
    row = overlay.namings.get(key)
    if row is None:
        overlay.namings.put(key, with_one(NO_SIBLINGS, header))
    elif not is_full(row):
        overlay.namings.put(key, with_one(row, header))
