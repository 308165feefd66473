"""Which representative a page repeats, if any: candidates by shared keys, their pairs' numbers, the rule's rulings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

from neardup.decider import Decider
from neardup.index import keys, namings
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.index.rows import id_key
from neardup.overlay import Missing, Overlay, Wanted
from neardup.pairs import compare_pairs
from neardup.record import Head
from neardup.rules import RULES, Pair, Ruling
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
    """A page with its candidates. heads: of the candidates, in their order."""

    page_id: int
    head: Head
    choice: Choice
    heads: list[Head]


def gather(overlay: Overlay, page_id: int, head: Head) -> tuple[list[tuple[int, int]], bool]:
    """(founding page id, shared keys) of the candidates, most shared keys first, then oldest; and whether any was cut.

    Raises Missing with every list that was not read.
    """
    rows = overlay.postings.get_all(overlay.posted_keys(page_id))
    known = overlay.reads.gathered.get(page_id)
    if known is not None and known[0] == rows:
        return cast(_Gathered, known[1])
    found = _gather(overlay.decider, head, rows)
    overlay.reads.gathered[page_id] = rows, found
    return found


_Gathered = tuple[list[tuple[int, int]], bool]


def _gather(decider: Decider, head: Head, rows: Sequence[bytes | None]) -> _Gathered:
    counts: dict[int, int] = {}
    for row in rows:
        if row is not None:
            for word in keys.postings(row):
                counts[word] = counts.get(word, 0) + 1
    if not counts:
        return [], False
    if decider.rule in keys.TAPE_RULES:
        tape, content = head.tape_logs
        gap = decider.length_gap_max
        counts = {
            word: count
            for word, count in counts.items()
            if -gap <= (word >> 8 & 255) - tape <= gap or -gap <= (word & 255) - content <= gap
        }
    # A word starts with the page id, so words order like page ids; the sort by count is stable.
    ordered = sorted(sorted(counts), key=counts.__getitem__, reverse=True)
    cut = len(ordered) > decider.candidates_max
    return [(word >> 16, counts[word]) for word in ordered[: decider.candidates_max]], cut


def families(overlay: Overlay, page_id: int, candidate: int) -> dict[str, int]:
    """Names of the key families that two pages share, with the number of shared keys that are not hot."""
    out: dict[str, int] = {}
    for key, row in overlay.posted_rows(page_id):
        if any(word >> 16 == candidate for word in keys.postings(row)):
            name = keys.family_of(key).name.lower()
            out[name] = out.get(name, 0) + 1
    return out


def pairs(overlay: Overlay, page_id: int, head: Head, others: Sequence[int]) -> list[Pair]:
    """The numbers of a page against each of `others`; remembered. Raises Missing with all that was not read."""
    known = overlay.reads.pairs
    fresh = [other for other in others if (page_id, other) not in known]
    if fresh:
        score(overlay, [(page_id, fresh)])
    return [known[page_id, other] for other in others]


def score(overlay: Overlay, wanted_pairs: Iterable[tuple[int, Iterable[int]]]) -> None:
    """Works out and remembers the numbers of pages with others, all together. Raises Missing with all not read."""
    wanted = Wanted()
    heads = overlay.reads.heads
    places, records = [], []
    for page_id, others in wanted_pairs:
        record = overlay.head(page_id).record
        for other in others:
            try:
                head = heads.get(other) or overlay.head(other)
            except Missing as missing:
                wanted.add(missing.wanted)
            else:
                places.append((page_id, other))
                records.append((record, head.record))
    if wanted:
        raise Missing(wanted)
    overlay.reads.pairs.update(zip(places, compare_pairs(records), strict=True))


def rule_on(
    decider: Decider, head: Head, other: Head, pair: Pair, crowd: int = 0, siblings: Siblings = NO_SIBLINGS
) -> Ruling:
    """The live rule's ruling, with what the sites of either page want otherwise."""
    if decider.sites:
        sites = (head.site_name, other.site_name)
        wishes = [decider.sites[site] for site in sites if site in decider.sites]
        if any(wish.never_merge for wish in wishes):
            return Ruling(None, "never_merge")
        raised = max((wish.tape_min or 0.0 for wish in wishes), default=0.0)
        if raised > decider.tape_min:
            ruling = RULES[decider.rule](pair, _raised(decider.to_json(), raised), crowd, siblings)
            # As with the rule's own higher demands: what fails only them does not lead on to the main content.
            refused = ruling.kind is Kind.SAME_CONTENT and pair.tape_score >= decider.tape_min
            return Ruling(None, "site") if refused else ruling
    return RULES[decider.rule](pair, decider, crowd, siblings)


@lru_cache(maxsize=256)
def _raised(decider: str, tape_min: float) -> Decider:
    plain = Decider.from_json(decider)
    short, strict = max(plain.short_tape_min, tape_min), max(plain.strict_tape_min, tape_min)
    noise = max(plain.noise_tape_min, tape_min)
    return replace(plain, tape_min=tape_min, short_tape_min=short, strict_tape_min=strict, noise_tape_min=noise)


def choose(overlay: Overlay, page_id: int, head: Head) -> Choice:
    """Scores the candidates of a page whose URL is not in the index, so none is the page itself. Raises Missing."""
    gathered, cut = gather(overlay, page_id, head)
    if not gathered:
        return Choice([], None, 0, cut, NO_SIBLINGS)
    decider = overlay.decider
    siblings = siblings_of(overlay, head)
    rows, _ = overlay.reads.gathered[page_id]
    known = overlay.reads.chosen.get(page_id)
    if known is not None and known[0] is rows and known[1] == siblings and not decider.crowd_min:
        return cast(Choice, known[2])
    numbers = pairs(overlay, page_id, head, [candidate for candidate, _ in gathered])
    crowd = 0
    if decider.crowd_min:
        crowd = sum(_crowd(overlay, head, at[0], pair) for at, pair in zip(gathered, numbers, strict=True))
    scored = []
    best: Scored | None = None
    heads = overlay.reads.heads
    for (candidate, shared), pair in zip(gathered, numbers, strict=True):
        other = heads[candidate]  # its numbers were worked out
        one = Scored(candidate, shared, pair, rule_on(decider, head, other, pair, crowd, siblings))
        scored.append(one)
        if one.ruling.kind and (best is None or _better(one, best)):
            best = one
    chosen = Choice(scored, best, crowd, cut, siblings)
    # Without crowds it follows from lists, siblings and records alone.
    overlay.reads.chosen[page_id] = rows, siblings, chosen
    return chosen


def siblings_of(overlay: Overlay, head: Head) -> Siblings:
    """How many pages go by the names of this one on its site, before it. Raises Missing."""
    if not counts_names(overlay.decider):
        return NO_SIBLINGS
    return overlay.namings.get(namings.key_of(head)) or NO_SIBLINGS


def counts_names(decider: Decider) -> bool:
    """Whether the index has rows of names: of no use to the other rules."""
    return decider.rule == "verified" and decider.siblings_min > 0


def sight(overlay: Overlay, page_id: int, head: Head) -> None:
    """Counts a page among those of its names, if it can be found again. Raises Missing."""
    if counts_names(overlay.decider) and overlay.posted_keys(page_id):
        row = siblings_of(overlay, head).with_one(head.tail)
        overlay.namings.put(namings.key_of(head), row)


def _better(one: Scored, best: Scored) -> bool:
    return (one.ruling.rank, -one.page_id) > (best.ruling.rank, -best.page_id)


def _crowd(overlay: Overlay, head: Head, candidate: int, pair: Pair) -> int:
    """What one candidate adds to the crowd: itself and its same-site members of other digests."""
    if not pair.same_site or pair.tape_score < overlay.decider.crowd_tape_min:
        return 0
    other = overlay.head(candidate)
    if head.same_content(other):
        return 0
    row = overlay.urls.need(other.url_hash)
    return 1 + overlay.clusters.need(id_key(row.cluster)).crowd


def verify(overlay: Overlay, page_id: int, other: int) -> tuple[bool, Pair, Ruling]:
    """Whether a page still says the same as another: equal digests, or near_duplicate by the rule (no crowd)."""
    head, held = overlay.head(page_id), overlay.head(other)
    (pair,) = pairs(overlay, page_id, head, (other,))
    if head.digest and head.same_content(held):
        return True, pair, Ruling(Kind.EXACT_DUPLICATE, "digest")
    ruling = rule_on(overlay.decider, head, held, pair)
    return ruling.kind is Kind.NEAR_DUPLICATE, pair, ruling
