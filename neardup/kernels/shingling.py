"""Algorithm B: shingles, minvalues and supershingles of a page's tokens (Broder 1997; Fetterly 2003)."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import trailing_zeros
from neardup.kernels.lanes import GROUP, LANES, any_contender, contenders, lower, shingle
from neardup.kernels.mix import mix

U64 = np.uint64
U32 = np.uint32
U16 = np.uint16
_ONES = U64(0xFFFFFFFFFFFFFFFF)
#: So many shingles are computed in full: a measured optimum, it changes no bit.
_FIRST = 128
#: After so many groups with a possible new minimum, and one in 128 of the groups, looking first does not pay: the text
#: repeats itself, and a repeated minimum is a possible one each time. Changes no bit, bounds the time.
_ALARMS = 256


@lean_kernel
def chain(values, start, count, seed):
    """Fingerprint of the sequence values[start : start + count], uint64: h = mix(h ^ v) from h = seed."""
    h = U64(seed)
    for i in range(U64(start), U64(start + count)):
        h = mix(h ^ values[i])
    return h


@lean_kernel
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
    done = np.int64(0)
    if k == U64(8):
        done = np.int64(many) & ~np.int64(7)
        for at in range(0, done, 8):
            shingle(fp, at, factors, out)
    for i in range(U64(done), many):
        total = U64(0)
        for j in range(k):
            total += fp[i + j] * factors[j]
        out[i] = mix(total)
    return np.int64(many)


@lean_kernel
def _contend(shingled, s, multiplier, at, leading, low):
    """Lower the minima of functions 4 at to 4 at + 31 to what shingled[s] gives."""
    mask = contenders(shingled, s, multiplier, at, leading, 4 * at)
    while mask != U32(0):
        lane = np.int64(trailing_zeros(U64(mask)))
        mask &= mask - U32(1)
        f = 4 * at + lane
        if f >= len(low):
            break
        z = shingled[s] * multiplier[at + (lane >> 2)]
        z ^= z >> U64(32)
        turn = U64(48 - 16 * (lane & 3))
        # in two steps: a shift by 64 has no defined result, and turn is 0 for the highest piece
        value = (z << turn) | ((z >> U64(1)) >> (U64(63) - turn))
        if value < low[f]:
            low[f] = value
            leading[f] = U16(value >> U64(48))


@lean_kernel
def _compute_in_full(shingled, start, end, multiplier, at, fronts, low):
    """Lower the minima of functions 4 at to 4 at + 31 to what shingled[start:end], whole groups, gives."""
    products = len(multiplier)
    for j in range(4):
        fronts[j * products + at : j * products + at + LANES] = _ONES
    for s in range(start, end, GROUP):
        lower(shingled, s, multiplier, at, fronts, at, products)
    for f in range(4 * at, min(4 * (at + LANES), len(low))):
        low[f] = min(low[f], fronts[(f & 3) * products + (f >> 2)])


@lean_kernel
def minvalues(shingled, many, multiplier, fronts, leading, low):
    """low[f] = min over s of f(shingled[s]); all ones if there are no shingles.

    Function 4 w + j: with z = s * multiplier[w], y = z ^ (z >> 32), it is y with its piece of bits 16 j to 16 j + 15
    turned to the front: rotate_left(y, 48 - 16 j). Each is a bijection of 64-bit words (multipliers are odd); those of
    one product are ordered by different bits of it. So one product serves four functions, and whether any of 32 values
    can be a new minimum is seen from the leading pieces at once; of n shingles that happens about 84 ln n times
    (Broder 1997 computes leading bits first for the same reason).

    The first shingles, each of which is a minimum of many functions, are computed in full.

    shingled uint64[>= many]; multiplier uint64[words], a multiple of 8; fronts uint64[4 * words], leading uint16[4 *
    words] scratch; low uint64[functions <= 4 * words].
    """
    functions, products = len(low), len(multiplier)
    groups = np.int64(many) // GROUP * GROUP
    first = min(groups, _FIRST)
    fronts[:] = _ONES
    for at in range(0, products, LANES):
        for s in range(0, first, GROUP):
            lower(shingled, s, multiplier, at, fronts, at, products)
    for f in range(len(leading)):
        value = fronts[(f & 3) * products + (f >> 2)]
        leading[f] = U16(value >> U64(48)) if f < functions else U16(0)
        if f < functions:
            low[f] = value
    for at in range(0, products, LANES):
        alarms = _ALARMS + ((groups - first) >> 7)
        s = first
        while s < groups and alarms > 0:
            if any_contender(shingled, s, multiplier, at, leading, 4 * at) != U32(0):
                alarms -= 1
                for j in range(s, s + GROUP):
                    _contend(shingled, j, multiplier, at, leading, low)
            s += GROUP
        if s < groups:
            _compute_in_full(shingled, s, groups, multiplier, at, fronts, low)
        for j in range(groups, many):
            _contend(shingled, j, multiplier, at, leading, low)


@lean_kernel
def supershingles(low, per, seed, out):
    """out[i] = fingerprint of minvalues i * per to (i + 1) * per - 1, for each place of out; uint64."""
    for i in range(len(out)):
        out[i] = chain(low, i * per, per, mix(seed + U64(i)))
