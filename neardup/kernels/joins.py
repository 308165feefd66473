# mypy: ignore-errors
"""All-pairs joins. A first pass counts the pairs, a second one writes them, so memory is allocated once.

A *piece* is a supershingle, or a block of a simhash; its *column* is its index in the sketch. Pages that share the
piece of a column are compared in full. A pair that shares several pieces is counted at the first such column only, so
no pair comes twice and no set of pairs is needed.
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
    """Hash of the pair of pages a < b, which decides whether a sample has it. Depends on pages and seed only."""
    return mix((U64(a) << U64(32) | U64(b)) ^ U64(seed))


@kernel
def _take(a, b, supershingles, simhash, site, b_min, c_min, degrees, joint, limit, seed, out_a, out_b, at):
    """Count the pair if it is similar enough, and write it if it is sampled -> int64, the next `at`.

    A sampled pair is written to out_a[at], out_b[at].
    Beyond the end of out_a nothing is written, but `at` still advances: so a first pass counts the sampled pairs.
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
    """Join the pages that share the piece in column `place` and no earlier one -> int64, the number of sampled pairs.

    pieces uint64[n, columns]; order int64[n]: pages sorted by pieces[:, place]; supershingles, simhash uint64[n, 6];
    site int32[n].
    b_min, c_min: least B- and C-similarity of a counted pair.
    degrees int64[n], joint int64[2, 7, 385]: counters that the function adds to; degrees of length 0: none is counted.
    limit, seed: pairs whose hash (`chosen`) is at most `limit` are sampled, and written to out_a < out_b.
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
    """`join_place` over all pairs a < b with first <= a < last. It needs no pieces, and compares n * n / 2 pairs."""
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
