"""The numbers of pairs, the rulings on a page's candidates, and the one that the page repeats."""

from typing import NamedTuple

import numpy as np

from neardup.index.naming_rows import FORMAT, NAMING_BYTES
from neardup.kernels import lean_kernel
from neardup.kernels.pairs import score_pair
from neardup.matching.kernels import lists, rows
from neardup.matching.kernels.clusters import URL_CLUSTER
from neardup.matching.kernels.records import (
    HEADER_SIZE,
    content_log,
    has_digest,
    record,
    same_digest,
    site_text,
    tape_log,
    tape_most,
    url_hash_of,
)
from neardup.matching.kernels.rows import I64, KEYS, KNOWN, SCORE, U64
from neardup.rules.key_families import KeyFamily
from neardup.rules.records import BY, EXACT_DUPLICATE, NEAR_DUPLICATE, NO_KIND
from neardup.rules.rulings import decide
from neardup.rules.siblings import COUNT_MAX
from neardup.rules.sites import find_site

_NAMING = KEYS | int(KeyFamily.NAMING)
_OTHERS, _ALIKE, _RETITLED, _MOVED, _TAIL, _TITLING, _PLACE = 1, 2, 3, 4, 5, 13, 21
_ZERO = U64(0)
DIGEST = BY.index("digest")

SEARCH = np.dtype(
    (
        np.record,
        [
            ("i", "<i8"),  # position of the page in the batch
            ("first", "<i8"),  # its candidates: places in `candidates`
            ("many", "<i8"),
            ("best", "<i8"),  # place of the one that it repeats, or -1
            ("others", "<i8"),
            ("alike", "<i8"),
            ("retitled", "<i8"),
            ("moved", "<i8"),
            ("cut", "u1"),
        ],
    ),
    align=True,
)
CANDIDATE = np.dtype(
    (
        np.record,
        # indexes: those that found it, as bits. If candidates are traced, also its cluster, and the keys that it shares
        # with the page, as bits.
        [("page", "<i8"), ("at", "<i8"), ("pair", "<i8"), ("indexes", "<i8"), ("cluster", "<i8"), ("keys", "<i8")],
    ),
    align=True,
)
CHECK = np.dtype(
    (np.record, [("i", "<i8"), ("page", "<i8"), ("at", "<i8"), ("pair", "<i8"), ("of_founding", "u1"), ("held", "u1")]),
    align=True,
)


class Pairs(NamedTuple):
    """What scoring and ruling take, and what they find.

    at, scratch: see `neardup.kernels.pairs.score_pair`. tape_room: int64[1], the longest tape that scratch has room
    for. logs: `neardup.matching.kernels.records.log_of`. numbers: float64[pairs, fields of a Pair]; pairs: the same as
    PAIR[]. tables: the tables of the rule. siblings: SIBLINGS[1], scratch. traits: int64[3], offsets of tail, titling
    and place in a record. searches: SEARCH[]. candidates: CANDIDATE[], with rulings: RULING[]. checks: CHECK[], with
    check_rulings: RULING[]. ruled: RULING[2], of the last `verify` and of a claim.
    """

    at: np.ndarray
    scratch: tuple
    tape_room: np.ndarray
    logs: np.ndarray
    numbers: np.ndarray
    pairs: np.ndarray
    tables: tuple
    siblings: np.ndarray
    traits: np.ndarray
    searches: np.ndarray
    candidates: np.ndarray
    rulings: np.ndarray
    checks: np.ndarray
    check_rulings: np.ndarray
    ruled: np.ndarray


@lean_kernel
def score(r, p, page_id, at, other_id, other):
    """The numbers of two pages with records at `at` and `other` -> their place in p.numbers, or FULL."""
    e = rows.enter(r, SCORE, U64(page_id), U64(other_id), _ZERO)
    if e < 0 or r.entries[e].state == KNOWN:
        return r.entries[e].row if e >= 0 else e
    place = r.n[rows.PAIRS]
    if place >= len(p.numbers):
        return rows.full(r, rows.OF_PAIRS, place + 1)
    most = max(tape_most(r.heap, at), tape_most(r.heap, other))
    if most > p.tape_room[0]:
        return rows.full(r, rows.OF_TAPES, most)
    r.n[rows.PAIRS] = place + 1
    out = p.numbers[place]
    for column in range(len(out)):
        out[column] = 0.0
    score_pair(r.heap, at, other, p.at, HEADER_SIZE, p.scratch, out)
    one = r.entries[e]
    one.row, one.state = place, KNOWN
    return place


@lean_kernel
def site_row(r, p, at):
    """The row of a record's site among the overrides; 0 without one."""
    start, size = site_text(r.heap, at)
    return find_site(p.tables, r.heap, start, start + size)


@lean_kernel
def verify(r, p, page_id, at, other_id, other):
    """Whether a page repeats another: equal digests, or near-duplicates by the rule without siblings.

    -> 1 or 0 and the place of the pair; the first is FULL if there is no room. p.ruled[0] out: the ruling.
    """
    place = score(r, p, page_id, at, other_id, other)
    if place < 0:
        return place, place
    ruled = p.ruled[0]
    if has_digest(r.heap, at) and same_digest(r.heap, at, other):
        ruled.kind, ruled.by, ruled.rank, ruled.whole, ruled.kept_apart = EXACT_DUPLICATE, DIGEST, 0, 0, 0
        ruled.rank_score = ruled.score = ruled.demand = ruled.plain_demand = ruled.added = 0.0
        return I64(1), place
    none = p.siblings[0]
    none.others = none.alike = none.retitled = none.moved = 0
    decide(p.pairs[place], site_row(r, p, at), site_row(r, p, other), none, p.tables, ruled)
    return I64(ruled.kind == NEAR_DUPLICATE), place


@lean_kernel
def naming_entry(r, page):
    """The entry of a page's owner and naming, or MISSING or FULL."""
    return rows.get(r, _NAMING, page.naming_a, page.naming_b, _ZERO)


@lean_kernel
def siblings_of(r, p, page, counts):
    """Sets p.siblings[0] to the counts of a page's owner and naming -> 0, MISSING or FULL."""
    out = p.siblings[0]
    out.others = out.alike = out.retitled = out.moved = 0
    if not counts:
        return I64(0)
    e = naming_entry(r, page)
    if e >= 0 and r.entries[e].length > 0:
        at = r.entries[e].row
        out.others, out.alike = r.heap[at + _OTHERS], r.heap[at + _ALIKE]
        out.retitled, out.moved = r.heap[at + _RETITLED], r.heap[at + _MOVED]
    return min(e, 0)


@lean_kernel
def count_sibling(r, p, page):
    """Counts a page of the batch under its owner and naming -> 0, MISSING or FULL."""
    e = naming_entry(r, page)
    if e < 0:
        return e
    heap, at = r.heap, r.entries[e].row
    is_first = r.entries[e].length == 0
    if not is_first and I64(heap[at + _OTHERS]) + I64(heap[at + _ALIKE]) >= COUNT_MAX:
        return I64(0)
    to = rows.room(r, NAMING_BYTES)
    if to < 0:
        return to
    if is_first or heap[at + _ALIKE] == 0:
        heap[to], heap[to + _OTHERS], heap[to + _ALIKE], heap[to + _RETITLED], heap[to + _MOVED] = FORMAT, 0, 1, 0, 0
        rows.copy(heap, to + _TAIL, page.at + p.traits[0], 8)
        rows.copy(heap, to + _TITLING, page.at + p.traits[1], 8)
        rows.copy(heap, to + _PLACE, page.at + p.traits[2], 8)
    else:
        rows.copy(heap, to, at, NAMING_BYTES)
        same = rows.same_bytes(heap, to + _TAIL, page.at + p.traits[0], 8)
        heap[to + _ALIKE if same else to + _OTHERS] += 1
        if not rows.same_bytes(heap, to + _TITLING, page.at + p.traits[1], 8):
            heap[to + _RETITLED] += 1
        if not rows.same_bytes(heap, to + _PLACE, page.at + p.traits[2], 8):
            heap[to + _MOVED] += 1
    return rows.put_at(r, e, to, NAMING_BYTES)


@lean_kernel
def choose(r, k, p, page, i, counts, traced, first_search, first_candidate):
    """Applies the rule to the candidates of page i of the batch -> the place of its search, MISSING or FULL.

    counts: whether the rule counts siblings. traced: whether the candidates are traced. first_search, first_candidate:
    places that are free since the page began.
    """
    r.n[rows.SEARCHES], r.n[rows.CANDIDATES] = first_search, first_candidate
    if first_search >= len(p.searches):
        return rows.full(r, rows.OF_SEARCHES, first_search + 1)
    search = p.searches[first_search]
    search.i, search.first, search.many, search.best, search.cut = i, first_candidate, 0, -1, 0
    search.others = search.alike = search.retitled = search.moved = 0
    if page.posts == 0:
        r.n[rows.SEARCHES] += 1
        return first_search
    many = lists.gather(r, k, i, tape_log(r.heap, p.logs, page.at), content_log(r.heap, p.logs, page.at))
    if many < 0:
        return many
    most = k.numbers[lists.CANDIDATES_MAX]
    search.cut = many > most
    many = lists.likely(r, k, page.at, min(many, most))
    if many < 0:
        return many
    r.n[rows.SEARCHES] += 1
    if many == 0:
        return first_search
    if first_candidate + many > len(p.candidates):
        return rows.full(r, rows.OF_CANDIDATES, first_candidate + many)
    out = siblings_of(r, p, page, counts)
    for j in range(many):
        out = min(out, record(r, I64(k.found[j] >> U64(16))))
    if out < 0:
        return out
    siblings = p.siblings[0]
    search.many, search.others, search.alike = many, siblings.others, siblings.alike
    search.retitled, search.moved = siblings.retitled, siblings.moved
    r.n[rows.CANDIDATES] = first_candidate + many
    own_site = site_row(r, p, page.at)
    for j in range(many):
        place = first_candidate + j
        one, ruling = p.candidates[place], p.rulings[place]
        one.page = I64(k.found[j] >> U64(16))
        one.at, one.indexes = record(r, one.page), k.found_weights[j] & lists.INDEXES
        one.pair = score(r, p, page.id, page.at, one.page, one.at)
        if one.pair < 0:
            return one.pair
        decide(p.pairs[one.pair], own_site, site_row(r, p, one.at), siblings, p.tables, ruling)
        if traced:
            out = _trace(r, k, i, one)
            if out < 0:
                return out
        if ruling.kind != NO_KIND and (search.best < 0 or _better(p, place, search.best)):
            search.best = place
    return first_search


@lean_kernel
def _trace(r, k, i, one):
    """Adds its cluster and the shared keys to a candidate of page i -> 0, MISSING, BROKEN or FULL."""
    a, b = url_hash_of(r.heap, one.at)
    e = rows.get_existing(r, rows.URLS, a, b, _ZERO)
    if e < 0:
        return e
    one.cluster = I64(rows.be64(r.heap, r.entries[e].row + URL_CLUSTER))
    one.keys = lists.shared(r, k, i, one.page)
    return min(one.keys, 0)


@lean_kernel
def _better(p, one, best):
    a, b = p.rulings[one], p.rulings[best]
    if a.rank != b.rank:
        return a.rank > b.rank
    if a.rank_score != b.rank_score:
        return a.rank_score > b.rank_score
    return p.candidates[one].page < p.candidates[best].page


@lean_kernel
def nearest(p, search):
    """Of candidates that are all refused, the place of the nearest: by nearness to four digits, then the oldest."""
    best, most, least, oldest = I64(-1), -1.0, 2.0e9, search.first
    for place in range(search.first, search.first + search.many):
        most, least = max(most, p.rulings[place].nearness), min(least, p.rulings[place].nearness)
        if p.candidates[place].page < p.candidates[oldest].page:
            oldest = place
    if most == least:
        return oldest
    best_score = -1.0
    for place in range(search.first, search.first + search.many):
        near = _rounded(p.rulings[place].nearness)
        if near > best_score or (near == best_score and p.candidates[place].page < p.candidates[best].page):
            best, best_score = place, near
    return best


@lean_kernel
def _rounded(score):
    """10^4 times Python's round(score, 4): the nearest whole number to the exact product, halves to even."""
    high, low = _product(score, 20000.0)
    number = np.floor(high * 0.5)
    above = (high - (2.0 * number + 1.0)) + low
    if above > 0.0 or (above == 0.0 and number % 2.0 == 1.0):
        return number + 1.0
    below = (high - (2.0 * number - 1.0)) + low
    if below < 0.0 or (below == 0.0 and number % 2.0 == 1.0):
        return number - 1.0
    return number


@lean_kernel
def _product(a, b):
    """The product of two numbers as an exact sum of two (Dekker 1971)."""
    product = a * b
    split_a, split_b = a * 134217729.0, b * 134217729.0
    high_a = split_a - (split_a - a)
    high_b = split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


__all__ = [
    "CANDIDATE",
    "CHECK",
    "SEARCH",
    "Pairs",
    "choose",
    "count_sibling",
    "nearest",
    "score",
    "siblings_of",
    "verify",
]
