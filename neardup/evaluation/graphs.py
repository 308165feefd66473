"""Computes the B graph and the C graph of a corpus: pages as nodes, similar pairs as edges.

Henzinger 2006, sections 3.1 to 3.4.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from neardup.errors import BadInput
from neardup.evaluation.corpus import Corpus
from neardup.kernels import joins

#: Most pairs kept per graph, 11 bytes each. A larger graph keeps a seeded sample; counts and degrees stay exact.
PAIRS_MAX = 20_000_000
#: Most comparisons of a join. At some nanoseconds each, they take about three minutes on two cores.
COMPARISONS_MAX = 30_000_000_000
#: Most pages of a corpus whose pairs are all compared.
ALL_PAIRS_PAGES_MAX = 120_000

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Graph:
    """Similar pairs of a corpus. name: B or C. edges: number of all pairs. Kept pairs are a, b (a < b), sorted.

    degrees: int64[pages]; joint: int64[2, 7, 385], edges by same site (1) or not, B- and C-similarity: both exact.
    a, b: uint32[kept]; b_similarity uint8[kept], c_similarity uint16[kept].
    """

    name: Literal["B", "C"]
    least: int
    edges: int
    degrees: npt.NDArray[np.int64]
    joint: npt.NDArray[np.int64]
    a: npt.NDArray[np.uint32]
    b: npt.NDArray[np.uint32]
    b_similarity: npt.NDArray[np.uint8]
    c_similarity: npt.NDArray[np.uint16]

    @property
    def whole(self) -> bool:
        """Whether every edge is kept."""
        return len(self.a) == self.edges


def b_graph(corpus: Corpus, *, b_min: int = 2, **options: int) -> Graph:
    """Finds all pairs of B-similarity >= b_min (1 to 6), by sorting (position, supershingle). Complete.

    options: seed, threads, pairs_max and comparisons_max. Keeps a sample by `seed` of more than pairs_max edges. Raises
    BadInput if pages that share a supershingle would need more than comparisons_max comparisons.
    """
    if not 1 <= b_min <= 6:
        raise BadInput(f"B-similarity {b_min}: there are 6 supershingles, and pages that share none are not joined")
    join = _Join(corpus, b_min, 0, **options)
    return join.graph("B", b_min, join.by_pieces(corpus.supershingles))


def c_graph(corpus: Corpus, *, c_min: int = 372, **options: int) -> Graph:
    """Finds all pairs of C-similarity >= c_min with an equal block of 32 bits at the same position, as in the paper.

    Complete for up to 11 differing bits (C-similarity 373). At 12 differing bits, it misses only pairs with exactly one
    differing bit per block. Below 372 the blocks miss more pairs: use `c_graph_of_all`.
    Options and BadInput as in `b_graph`.
    """
    join = _Join(corpus, 0, _checked(c_min), **options)
    return join.graph("C", c_min, join.by_pieces(blocks(corpus.simhash)))


def c_graph_of_all(corpus: Corpus, *, c_min: int, **options: int) -> Graph:
    """Finds all pairs of C-similarity >= c_min by comparing every two pages: complete at any threshold.

    Options as in `b_graph`. Raises BadInput for a corpus with more than comparisons_max pairs.
    """
    join = _Join(corpus, 0, _checked(c_min), **options)
    return join.graph("C", c_min, join.by_all_pairs())


#: Share of the pairs at 12 differing bits that no block finds if bits differ at random positions: 32**12 / C(384, 12).
MISSED_AT_12 = 6.4e-5


def blocks(simhash: Words) -> Words:
    """Splits simhashes uint64[n, 6] into blocks of 32 bits: uint64[n, 12], low half of a word first."""
    return np.ascontiguousarray(simhash).astype("<u8").view("<u4").astype(np.uint64)


def _checked(c_min: int) -> int:
    if not 1 <= c_min <= 384:
        raise BadInput(f"C-similarity {c_min}: a number of agreeing bits from 1 to 384 is required")
    return c_min


#: One piece of a join: (degrees, joint, limit, seed, out_a, out_b) -> number of chosen pairs.
_Part = Callable[..., int]
_Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any]]
_EVERY = (1 << 64) - 1


class _Join:
    """Joins the pages of one corpus. The parts of a join share no results, so threads run them."""

    def __init__(
        self,
        corpus: Corpus,
        b_min: int,
        c_min: int,
        seed: int = 0,
        threads: int = 1,
        pairs_max: int = PAIRS_MAX,
        comparisons_max: int = COMPARISONS_MAX,
    ) -> None:
        self._corpus, self._pairs_max, self._comparisons_max = corpus, pairs_max, comparisons_max
        self._tests = (corpus.supershingles, corpus.simhash, corpus.site, np.int64(b_min), np.int64(c_min))
        self._seed = np.uint64(seed & _EVERY)
        self._threads = max(1, threads)

    def by_pieces(self, pieces: Words) -> list[_Part]:
        """Returns one part for each column of `pieces` uint64[n, columns]. Raises BadInput for too many comparisons."""
        orders, comparisons, largest = [], 0, 0
        for place in range(pieces.shape[1]):
            order = np.argsort(pieces[:, place], kind="stable")
            orders.append(order)
            sizes = np.unique(pieces[:, place], return_counts=True)[1].astype(np.int64)
            comparisons += int((sizes * (sizes - 1) // 2).sum())
            largest = max(largest, int(sizes.max(initial=0)))
        if comparisons > self._comparisons_max:
            raise BadInput(
                f"{comparisons:.2g} comparisons would be needed, and {self._comparisons_max:.2g} are allowed: "
                f"{largest:,} pages share one key, a template or spam; evaluate a part of the crawl, or allow more"
            )

        return [partial(joins.join_place, pieces, np.int64(n), order, *self._tests) for n, order in enumerate(orders)]

    def by_all_pairs(self) -> list[_Part]:
        """Returns parts with about equal numbers of pairs. Raises BadInput for too many comparisons."""
        n = len(self._corpus)
        if n * (n - 1) // 2 > self._comparisons_max:
            raise BadInput(
                f"{n:,} pages have {n * (n - 1) // 2:.2g} pairs, and {self._comparisons_max:.2g} comparisons are "
                "allowed: evaluate a part of the crawl, or allow more"
            )
        pairs_from = np.cumsum(np.arange(n, 0, -1, dtype=np.int64) - 1) if n else np.zeros(1, np.int64)
        count = 8 * self._threads
        cuts = np.searchsorted(pairs_from, pairs_from[-1] * np.arange(1, count) // count)
        edges = sorted({0, n, *cuts.tolist()})

        return [
            partial(joins.join_all, np.int64(first), np.int64(last), *self._tests) for first, last in pairwise(edges)
        ]

    def graph(self, name: Literal["B", "C"], least: int, parts: Sequence[_Part]) -> Graph:
        """Counts all edges, then collects them, or a sample of about pairs_max."""
        n, many = len(self._corpus), len(parts) if len(self._corpus) else 0
        degrees, joint = np.zeros((many, n), np.int64), np.zeros((many, 2, joins.B_SIZE, joins.C_SIZE), np.int64)
        no_tally = [(np.empty(0, np.int64), np.empty((0, 0, 0), np.int64))] * many
        room = [(np.empty(0, np.uint32),) * 2] * many
        counts = self._run(parts, list(zip(degrees, joint, strict=True)), _EVERY, room)
        edges, limit = sum(counts), _EVERY
        if edges > self._pairs_max:
            limit = int(_EVERY * (self._pairs_max / edges))
            counts = self._run(parts, no_tally, limit, room)
        out = [(np.empty(count, np.uint32), np.empty(count, np.uint32)) for count in counts]
        if sum(counts):
            self._run(parts, no_tally, limit, out)
        a, b = (np.concatenate([np.empty(0, np.uint32), *(one[side] for one in out)]) for side in (0, 1))
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
        alike = similarities(self._corpus, a, b)
        return Graph(name, least, edges, degrees.sum(axis=0), joint.sum(axis=0), a, b, *alike)

    def _run(self, parts: Sequence[_Part], tallies: Sequence[_Arrays], limit: int, out: Sequence[_Arrays]) -> list[int]:
        def run(part: _Part, tally: _Arrays, into: _Arrays) -> int:
            return int(part(*tally, np.uint64(limit), self._seed, *into))

        if self._threads == 1:
            return list(map(run, parts, tallies, out))
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(run, parts, tallies, out))


def similarities(
    corpus: Corpus, a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16]]:
    """Computes B-similarity (0-6) and C-similarity (0-384) of the pairs of pages (a[i], b[i])."""
    b_out, c_out = np.zeros(len(a), np.uint8), np.zeros(len(a), np.uint16)
    if len(a):
        joins.similarities(a, b, corpus.supershingles, corpus.simhash, b_out, c_out)
    return b_out, c_out
