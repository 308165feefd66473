# mypy: ignore-errors
"""Kernels of the all-pairs joins: count first, then collect, so that memory is known before it is taken.

Pages that share a piece (a supershingle, a block of a simhash) at one place are compared in full; a pair that shares
several is taken at the first place, so that no pair comes twice and none must be remembered.
"""

import numpy as np

from neardup.kernels import kernel
from neardup.kernels.bits import ones
from neardup.kernels.mix import mix

U64 = np.uint64
#: Sizes of the joint histogram: same site or not, B-similarity, C-similarity.
B_SIZE, C_SIZE = 7, 385


@kernel
def chosen(a, b, seed):
    """A word that decides whether the pair of pages a < b is in a sample: a function of pages and seed alone."""
    return mix((U64(a) << U64(32) | U64(b)) ^ U64(seed))


@kernel
def _take(a, b, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b, at):
    """Counts the pair if it is similar enough; writes it if it is chosen and there is room -> int64, the next place.

    With room for nothing it still counts those that would be written.
    """
    b_similarity = 0
    for i in range(6):
        b_similarity += supershingles[a, i] == supershingles[b, i]
    if b_similarity < b_min:
        return at
    differing = 0
    for i in range(6):
        differing += np.int64(ones(simhash[a, i] ^ simhash[b, i]))
        if 384 - differing < c_min:
            return at
    low, high = min(a, b), max(a, b)
    if len(degrees):
        degrees[a] += 1
        degrees[b] += 1
        joint[np.int64(site[a] == site[b]), b_similarity, 384 - differing] += 1
    if chosen(low, high, seed) <= limit:
        if at < len(out_a):
            out_a[at], out_b[at] = low, high
        at += 1
    return at


@kernel
def join_place(
    pieces, place, order, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b
):
    """Joins the pages that share piece `place` and none before it -> int64, the number of chosen pairs.

    pieces uint64[n, places]; order int64[n]: pages sorted by pieces[:, place]; supershingles, simhash uint64[n, 6];
    site int32[n]. Taken are pairs of B-similarity >= b_min and C-similarity >= c_min. degrees int64[n or 0] and joint
    int64[2, 7, 385] are added to (not with degrees of length 0); chosen pairs (hash <= limit) go to out_a < out_b.
    """
    n, at, start = len(order), 0, 0
    while start < n:
        value = pieces[order[start], place]
        stop = start + 1
        while stop < n and pieces[order[stop], place] == value:
            stop += 1
        for i in range(start, stop):
            a = order[i]
            for j in range(i + 1, stop):
                b = order[j]
                before = False
                for p in range(place):
                    before |= pieces[a, p] == pieces[b, p]
                if not before:
                    at = _take(
                        a, b, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b, at
                    )
        start = stop
    return at


@kernel
def join_all(first, last, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b):
    """The same for all pairs a < b with first <= a < last: no pieces, nothing missed, n * n / 2 comparisons."""
    at = 0
    for a in range(first, last):
        for b in range(a + 1, len(site)):
            near = np.int64(ones(simhash[a, 0] ^ simhash[b, 0]) + ones(simhash[a, 1] ^ simhash[b, 1]))
            if 384 - near >= c_min:  # most pairs end here
                at = _take(
                    a, b, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b, at
                )
    return at


@kernel
def similarities(a, b, supershingles, simhash, b_out, c_out):
    """B- and C-similarity of the pairs (a[i], b[i]) -> uint8[pairs], uint16[pairs]."""
    for i in range(len(a)):
        equal = differing = 0
        for w in range(6):
            equal += supershingles[a[i], w] == supershingles[b[i], w]
            differing += np.int64(ones(simhash[a[i], w] ^ simhash[b[i], w]))
        b_out[i], c_out[i] = equal, 384 - differing


@kernel
def ranks(a, b, seed):
    """uint64[pairs]: `chosen` of each pair, uint32[pairs] each."""
    out = np.empty(len(a), np.uint64)
    for i in range(len(a)):
        out[i] = chosen(a[i], b[i], seed)
    return out
