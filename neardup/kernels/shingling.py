"""Algorithm B: shingles, minvalues and supershingles of a page's tokens (Broder 1997; Fetterly 2003)."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import trailing_zeros
from neardup.kernels.lanes import BLOCK, GROUP, LANES, PIECES, equal_pieces, least_pieces, least_turned, lower, shingle
from neardup.kernels.mix import mix

U64 = np.uint64
U32 = np.uint32
U16 = np.uint16
_ONES = U64(0xFFFFFFFFFFFFFFFF)
#: Up to so many shingles are computed in full: a measured optimum, it changes no bit.
_FULL = 512
#: Of more than so many shingles repeats are dropped first, those that a table of so many places (a power of two) tells.
#: It costs a fifth of what a shingle costs, and a page that long either repeats itself or does so on purpose.
_LONG, SEEN = 8192, 4096
#: With more places than this, and one in each block, where 28 functions may have their minima, looking there one by one
#: does not pay: the text repeats itself. Changes no bit, bounds the time.
_PLACES = 96


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
def _compute_in_full(shingled, many, multiplier, at, fronts, low):
    """low[f] of functions 4 at to 4 at + 31 from shingled[:many], whole groups."""
    products = len(multiplier)
    for j in range(4):
        fronts[j * products + at : j * products + at + LANES] = _ONES
    for s in range(0, many, GROUP):
        lower(shingled, s, multiplier, at, fronts, at, products)
    for f in range(4 * at, min(4 * (at + LANES), len(low))):
        low[f] = fronts[(f & 3) * products + (f >> 2)]


@lean_kernel
def _look_up(shingled, blocks, multiplier, at, pieces, leading, low):
    """low[f] of functions 4 at to 4 at + 31 from the blocks that hold a least leading piece -> whether it was done."""
    rest = _PLACES + blocks
    for f in range(4 * at, min(4 * (at + LANES), len(low))):
        low[f] = _ONES
    for block in range(blocks):
        mask = equal_pieces(pieces, block * PIECES, leading, 4 * at)
        while mask != U32(0):
            lane = np.int64(trailing_zeros(U64(mask)))
            mask &= mask - U32(1)
            f = 4 * at + lane
            if f >= len(low):
                break
            rest -= 1
            if rest < 0:
                return False
            turn = U64(48 - 16 * (lane & 3))
            low[f] = min(low[f], least_turned(shingled, block * BLOCK, multiplier[at + (lane >> 2)], turn))
    return True


@lean_kernel
def _drop_repeats(shingled, many, seen):
    """Close the gaps that repeats of earlier shingles leave in shingled[:many] -> int64, how many are left.

    seen uint64[SEEN] scratch: the last shingle of each place. What falls on another's place in between is kept.
    """
    mask = U64(SEEN - 1)
    seen[:] = U64(0)
    seen[U64(0)] = U64(1)  # no shingle that would be looked for there
    kept = U64(0)
    for s in range(U64(many)):
        shingle = shingled[s]
        place = shingle & mask
        new = U64(seen[place] != shingle)
        seen[place] = shingle
        shingled[kept] = shingle
        kept += new
    return np.int64(kept)


@lean_kernel
def minvalues(shingled, many, multiplier, fronts, leading, pieces, seen, low):
    """low[f] = min over s of f(shingled[s]); all ones if there are no shingles.

    Function 4 w + j: with z = s * multiplier[w], y = z ^ (z >> 32), it is y with its piece of bits 16 j to 16 j + 15
    turned to the front: rotate_left(y, 48 - 16 j). Each is a bijection of 64-bit words (multipliers are odd); those of
    one product are ordered by different bits of it. So one product serves four functions. Of many shingles first only
    the leading pieces are compared, 32 of them at once, in blocks of 64 shingles (Broder 1997 computes leading bits
    first, too); then the whole values of the few blocks that hold a least one.

    shingled uint64[>= many, rounded up to 64], overwritten beyond many; multiplier uint64[words], a multiple of 8;
    fronts uint64[4 * words], leading uint16[4 * words], pieces uint16[>= many / 2 + 32], seen uint64[SEEN] scratch; low
    uint64[functions <= 4 * words].
    """
    if many == 0:
        low[:] = _ONES
        return
    if many > _LONG:
        many = _drop_repeats(shingled, np.int64(many), seen)
    blocks = (np.int64(many) + BLOCK - 1) // BLOCK
    # a repeated shingle changes no minimum
    for s in range(many, blocks * BLOCK):
        shingled[s] = shingled[many - 1]
    groups = (np.int64(many) + GROUP - 1) // GROUP * GROUP
    leading[:] = U16(0xFFFF)
    for at in range(0, len(multiplier), LANES):
        done = False
        if many > _FULL:
            for block in range(blocks):
                least_pieces(shingled, block * BLOCK, multiplier, at, pieces, block * PIECES, leading, 4 * at)
            done = _look_up(shingled, blocks, multiplier, at, pieces, leading, low)
        if not done:
            _compute_in_full(shingled, groups, multiplier, at, fronts, low)


@lean_kernel
def supershingles(low, per, seed, out):
    """out[i] = fingerprint of minvalues i * per to (i + 1) * per - 1, for each place of out; uint64.

    Each is `chain(low, i * per, per, mix(seed + i))`; all go on side by side, for a step waits for the one before.
    """
    many, each = U64(len(out)), U64(per)
    for i in range(many):
        out[i] = mix(seed + i)
    for j in range(each):
        for i in range(many):
            out[i] = mix(out[i] ^ low[i * each + j])
