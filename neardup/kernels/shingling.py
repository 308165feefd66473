"""Algorithm B: shingles, minvalues and supershingles of a page's tokens (Broder 1997; Fetterly 2003)."""

import numpy as np

from neardup.kernels import kernel
from neardup.kernels.mix import mix

U64 = np.uint64
#: Minvalues are computed in vectors of this many lanes; arrays of functions are padded to a multiple of it.
LANES = 8
_ONES = U64(0xFFFFFFFFFFFFFFFF)


@kernel
def chain(values, start, count, seed):
    """Fingerprint of the sequence values[start : start + count], uint64: h = mix(h ^ v) from h = seed."""
    h = U64(seed)
    for i in range(U64(start), U64(start + count)):
        h = mix(h ^ values[i])
    return h


@kernel
def shingles(fp, n, factors, out):
    """Shingle i = mix(sum over j < k of fp[i + j] * factors[j]), k = len(factors), wrap-around -> int64, how many.

    n < k tokens make one shingle of all of them, no tokens none. fp uint64[n]; out uint64[>= max(1, n)].
    """
    k = U64(len(factors))
    if n == 0:
        return np.int64(0)
    if U64(n) < k:
        total = U64(0)
        for j in range(U64(n)):
            total += fp[j] * factors[j]
        out[0] = mix(total)
        return np.int64(1)
    many = U64(n) - k + U64(1)
    if k == U64(8):
        # the same sum written out: the loop over i becomes vector code
        c0, c1, c2, c3 = factors[0], factors[1], factors[2], factors[3]
        c4, c5, c6, c7 = factors[4], factors[5], factors[6], factors[7]
        for i in range(many):
            left = fp[i] * c0 + fp[i + U64(1)] * c1 + fp[i + U64(2)] * c2 + fp[i + U64(3)] * c3
            right = fp[i + U64(4)] * c4 + fp[i + U64(5)] * c5 + fp[i + U64(6)] * c6 + fp[i + U64(7)] * c7
            out[i] = mix(left + right)
        return np.int64(many)
    for i in range(many):
        total = U64(0)
        for j in range(k):
            total += fp[i + j] * factors[j]
        out[i] = mix(total)
    return np.int64(many)


@kernel
def minvalues(shingle, many, multiplier, addend, low):
    """low[f] = min over s of shingle[s] * multiplier[f] + addend[f], wrap-around; all ones if there are no shingles.

    shingle uint64[>= many]; multiplier (odd), addend, low uint64[functions], functions a multiple of 8.
    """
    functions = U64(len(low))
    for f in range(functions):
        low[f] = _ONES
    blocks = U64(many) & ~U64(7)
    for s in range(U64(0), blocks, U64(8)):
        s0, s1, s2, s3 = shingle[s], shingle[s + U64(1)], shingle[s + U64(2)], shingle[s + U64(3)]
        s4, s5, s6, s7 = shingle[s + U64(4)], shingle[s + U64(5)], shingle[s + U64(6)], shingle[s + U64(7)]
        for f in range(functions):
            a = multiplier[f]
            b = addend[f]
            left = min(min(s0 * a + b, s1 * a + b), min(s2 * a + b, s3 * a + b))
            right = min(min(s4 * a + b, s5 * a + b), min(s6 * a + b, s7 * a + b))
            low[f] = min(low[f], min(left, right))
    for s in range(blocks, U64(many)):
        x = shingle[s]
        for f in range(functions):
            low[f] = min(low[f], x * multiplier[f] + addend[f])


@kernel
def supershingles(low, per, seed, out):
    """out[i] = fingerprint of minvalues i * per to (i + 1) * per - 1, for each place of out; uint64."""
    for i in range(len(out)):
        out[i] = chain(low, i * per, per, mix(seed + U64(i)))
