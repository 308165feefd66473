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
#: Up to this many shingles all values are computed in full. A measured optimum; it changes no bit.
_FULL = 512
#: A page with more shingles than this is searched for repeated shingles first, with a table of so many slots (a power
#: of two). The search costs a fifth of a shingle's cost. A page of this length usually repeats itself.
_LONG, SEEN = 8192, 4096
#: If the minima of a group of functions may be in more places than this, and in every block, the text repeats itself,
#: and looking at single places costs more than computing all values. Changes no bit; bounds the time.
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
    """out[i] = mix(sum over j < k of fp[i + j] * factors[j]), k = len(factors), mod 2**64 -> int64, number of shingles.

    1 to k - 1 tokens make one shingle; no tokens make none. fp uint64[n]; out uint64[>= max(1, n)].
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
    """Compute low[f] of functions 4 at to 4 at + 31 from all of shingled[:many], a multiple of the group size."""
    products = len(multiplier)
    for j in range(4):
        fronts[j * products + at : j * products + at + LANES] = _ONES
    for s in range(0, many, GROUP):
        lower(shingled, s, multiplier, at, fronts, at, products)
    for f in range(4 * at, min(4 * (at + LANES), len(low))):
        low[f] = fronts[(f & 3) * products + (f >> 2)]


@lean_kernel
def _look_up(shingled, blocks, multiplier, at, pieces, leading, low):
    """Compute low[f] of functions 4 at to 4 at + 31 from the blocks that have a least leading piece.

    -> False if it gave up because there are too many such places.
    """
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
    """Remove repeated shingles from shingled[:many] -> int64, the number left.

    seen uint64[SEEN] scratch: the last shingle of each slot. A repeat stays if another shingle used its slot in
    between.
    """
    mask = U64(SEEN - 1)
    seen[:] = U64(0)
    seen[U64(0)] = U64(1)  # a value that never belongs in slot 0
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

    Function 4 w + j of a shingle s: let z = s * multiplier[w] and y = z ^ (z >> 32); the value is rotate_left(y, 48 -
    16 j), so that bits 16 j to 16 j + 15 of y come first. It is a bijection of 64-bit words, because multipliers are
    odd. The four functions of one product order it by different bits, so one product serves four functions.

    Many shingles take two passes (Broder 1997 computes leading bits first, too): the first one compares only the
    leading pieces, 32 at a time, in blocks of 64 shingles; the second one computes whole values of the few blocks that
    have a least piece.

    shingled uint64[>= many, rounded up to 64]: overwritten beyond many.
    multiplier uint64[words], words a multiple of 8.
    fronts uint64[4 * words], leading uint16[4 * words], pieces uint16[>= many / 2 + 32], seen uint64[SEEN]: scratch.
    low uint64[functions <= 4 * words]: out.
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
    """out[i] = chain(low, i * per, per, mix(seed + i)), uint64: the fingerprint of the i-th group of `per` minvalues.

    All chains advance together, because each step of a chain waits for the one before.
    """
    many, each = U64(len(out)), U64(per)
    for i in range(many):
        out[i] = mix(seed + i)
    for j in range(each):
        for i in range(many):
            out[i] = mix(out[i] ^ low[i * each + j])
