"""Which pages meet under which keys: the posting lists of a log, followed for a sample of its pages.

The rules are those of the index: a page looks at the list of each of its keys before it is posted itself; only pages
that found a cluster are posted; a list that would exceed `most` postings turns hot, gives no candidates any more, and
is dropped. Nothing here is a guess: for the pages that are watched the candidates are exactly those of an index of
these keys, but for the filter by lengths that comes after.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.kernels import kernel
from neardup.kernels.mix import mix
from neardup.rules.posted_keys import PLACE_WEIGHT
from tests.measure.bench.mixture import Mixture

U64 = np.uint64
_Words = npt.NDArray[np.uint64]
POSTINGS_MAX = CANDIDATES_MAX = 64


@dataclass(frozen=True, order=True)
class Column:
    """One key of each page. kind: head, content, place, wide (`width` minvalues, the `number`th such group), block."""

    kind: str
    width: int = 0
    number: int = 0

    def keys(self, mixture: Mixture) -> _Words:
        """uint64[pages]."""
        if self.kind in ("head", "content", "place"):
            found: _Words = getattr(mixture, self.kind)
            return found
        if self.kind == "block":
            return mixture.blocks[:, self.number].astype(U64)
        group = mixture.minvalues[:, self.width * self.number : self.width * (self.number + 1)]
        assert group.shape[1] == self.width, f"{self} needs more minvalues"
        out = np.empty(len(mixture), U64)
        chained(group, out)
        return out


@kernel
def chained(group, out):
    for i in range(len(out)):
        h = U64(0)
        for j in range(group.shape[1]):
            h = mix(h ^ U64(group[i, j]))
        out[i] = h


@kernel
def _slot(key, table, used):
    """Place of a key in an open table: where it is, or where it may be put."""
    mask = U64(len(table) - 1)
    at = mix(key) & mask
    while used[at] and table[at] != key:
        at = (at + U64(1)) & mask
    return at


@kernel
def followed(keys, posted, watched, table, used, lists, counts, most, out):
    """(watch number << 32 | candidate) of what each watched page meets -> (how many, probes of hot keys).

    watched int64: pages, ascending. table uint64, used bool: places for their keys; lists int32[places, most], counts
    int32[places] zeros, -1 when hot; out uint64[>= most * watched].
    """
    for page in watched:
        at = _slot(keys[page], table, used)
        table[at], used[at] = keys[page], True
    met = hot = number = 0
    for page in range(len(keys)):
        at = _slot(keys[page], table, used)
        looks = number < len(watched) and watched[number] == page
        if used[at] and looks:
            if counts[at] < 0:
                hot += 1
            for i in range(counts[at]):
                out[met] = U64(number) << U64(32) | U64(lists[at, i])
                met += 1
        if looks:
            number += 1
        if used[at] and posted[page] and counts[at] >= 0:
            if counts[at] == most:
                counts[at] = -1
            else:
                lists[at, counts[at]] = page
                counts[at] += 1
    return met, hot


@dataclass(frozen=True)
class Meetings:
    """What each column alone brings together. met: of watched pages, packed as in `followed`; hot: their probes of hot
    keys. watched: pages; drawn bool[watched] by name: those drawn at random; pair int64[watched]: the page that it
    repeats, -1 for none; kind int64[watched]: what the repeat is. equal: columns whose keys the watched repeats share.
    """

    watched: npt.NDArray[np.int64]
    drawn: dict[str, npt.NDArray[np.bool_]]
    pair: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    met: dict[Column, _Words]
    hot: dict[Column, int]
    equal: dict[Column, npt.NDArray[np.bool_]]


def follow(
    mixture: Mixture, columns: Sequence[Column], sample: int, parts: Mapping[str, range], seed: int = 3
) -> Meetings:
    """Watches `sample` pages of each part of the log, and at most as many repeats of each kind from anywhere."""
    random = np.random.default_rng(seed)
    drawn = {
        name: random.choice(np.arange(part.start, part.stop), min(sample, len(part)), replace=False)
        for name, part in parts.items()
        if part
    }
    chosen = []
    for kind in range(len(mixture.names)):
        places = np.flatnonzero(mixture.kinds == kind)
        chosen.append(random.permutation(places)[:sample])
    pairs = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    watched = np.unique(np.concatenate([*drawn.values(), mixture.pairs[pairs, 1]]))
    pair, kind_of = np.full(len(watched), -1, np.int64), np.full(len(watched), -1, np.int64)
    at = np.searchsorted(watched, mixture.pairs[pairs, 1])
    pair[at], kind_of[at] = mixture.pairs[pairs, 0], mixture.kinds[pairs]
    places = 1 << (4 * len(watched)).bit_length()
    out = np.empty(POSTINGS_MAX * len(watched) + 1, U64)
    met: dict[Column, _Words] = {}
    hot: dict[Column, int] = {}
    equal: dict[Column, npt.NDArray[np.bool_]] = {}
    for column in columns:
        keys = column.keys(mixture)
        table, used = np.zeros(places, U64), np.zeros(places, np.bool_)
        lists, counts = np.empty((places, POSTINGS_MAX), np.int32), np.zeros(places, np.int32)
        many, hot[column] = followed(keys, mixture.posted, watched, table, used, lists, counts, POSTINGS_MAX, out)
        met[column] = out[:many].copy()
        equal[column] = (pair >= 0) & (keys[watched] == keys[pair])
    samples = {name: np.isin(watched, pages) for name, pages in drawn.items()}
    return Meetings(watched, samples, pair, kind_of, met, hot, equal)


@dataclass(frozen=True)
class Point:
    """One choice of keys. keys: a page, digest's included; recall: of the repeats, and by kind; uncut: recall if no key
    turned hot; candidates: of a page drawn at random, none over 64 counted, and by the part that it was drawn from;
    cut: share of pages with more; hot: share of probes of hot keys.
    """

    keys: int
    recall: float
    by_kind: dict[str, float]
    uncut: float
    candidates: float
    by_part: dict[str, float]
    cut: float
    hot: float


def evaluate(meetings: Meetings, columns: Sequence[Column], names: Sequence[str]) -> Point:
    """What these columns together find. Each kind of repeat counts the same in `recall`."""
    parts = [meetings.met[column] for column in columns]
    joined = np.concatenate(parts) if parts else np.zeros(0, U64)
    words, numbers = np.unique(joined, return_inverse=True)
    weight_of = [PLACE_WEIGHT if column.kind == "place" else 1 for column in columns]
    weights = np.bincount(numbers, np.repeat(weight_of, list(map(len, parts))), len(words))
    number, candidate = (words >> U64(32)).astype(np.int64), (words & U64(0xFFFFFFFF)).astype(np.int64)
    counts = np.bincount(number, minlength=len(meetings.watched))
    # By weight, then the oldest first; only the first 64 are looked at.
    order = np.lexsort((candidate, -weights, number))
    rank = np.empty(len(words), np.int64)
    rank[order] = np.arange(len(words)) - (np.cumsum(counts) - counts)[number[order]]
    right = (candidate == meetings.pair[number]) & (rank < CANDIDATES_MAX)
    found = np.zeros(len(meetings.watched), np.bool_)
    found[number[right]] = True
    shares = np.zeros(len(meetings.watched), np.bool_)
    for column in columns:
        shares |= meetings.equal[column]
    by_kind, uncut = {}, []
    for kind, name in enumerate(names):
        mine = meetings.kind == kind
        if mine.any():
            by_kind[name] = float(found[mine].mean())
            uncut.append(float(shares[mine].mean()))
    drawn = {name: counts[sample] for name, sample in meetings.drawn.items()}
    by_part = {name: float(np.minimum(of, CANDIDATES_MAX).mean()) for name, of in drawn.items()}
    return Point(
        keys=len(columns) + 1,
        recall=float(np.mean(list(by_kind.values()))) if by_kind else 0.0,
        by_kind=by_kind,
        uncut=float(np.mean(uncut)) if uncut else 0.0,
        candidates=float(np.mean(list(by_part.values()))),
        by_part=by_part,
        cut=float(np.mean([(of > CANDIDATES_MAX).mean() for of in drawn.values()])),
        hot=sum(meetings.hot[column] for column in columns) / max(1, len(columns) * len(meetings.watched)),
    )
