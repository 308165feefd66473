"""Distinct tokens of a page and how often each occurs: one pass that tape, names, filter and simhash share."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import trailing_zeros

U64 = np.uint64
U32 = np.uint32
_ZERO, _ONE = U64(0), U64(1)
#: Least size of the hash table's scratch; initial sizes of the table for short and for long pages. So the table of most
#: pages fits in the first-level cache.
FIRST_SLOTS = 4096
_SLOTS_MIN, _SLOTS_MAX = U64(1024), U64(16384)
#: Tokens that are looked up together before the new ones among them are inserted.
_STEP = U64(32)


@lean_kernel
def _fill(distinct, many, slots, mask):
    """Insert the tokens distinct[:many] into an empty table."""
    slots[: mask + _ONE] = U32(0)
    for j in range(many):
        place = distinct[j] & mask
        while slots[place] != U32(0):
            place = (place + _ONE) & mask
        slots[place] = U32(j + _ONE)


@lean_kernel
def _look_up(fp, at, count, slots, mask, distinct, ids):
    """Look up fp[at : at + count] at their first slots -> ids of those found there; returns a mask of the others.

    There is no branch, because new tokens cannot be predicted. An empty slot reads as token 0. That is harmless: token
    0 is always found at its first slot, so a comparison with it fails for every other token.
    """
    others = _ZERO
    for j in range(count):
        token = fp[at + j]
        entry = U64(slots[token & mask])
        entry -= U64(entry != _ZERO)
        ids[at + j] = U32(entry)
        others |= U64(distinct[entry] != token) << j
    return others


@lean_kernel
def occurrences(fp, flags, n, ids, slots, distinct, counts, kinds):
    """Number the distinct tokens of fp[:n] in order of first appearance -> int64, how many there are.

    ids uint32[>= n] out: the number of each token.
    distinct uint64, counts uint32, kinds uint8, each [>= n] out: by number, the token, its occurrences, and the flags
    of its first occurrence.
    slots uint32[>= max(4096, 8 n)] scratch with any content: an open-addressing table of (number + 1), doubled when a
    quarter of it is used.
    """
    if n == 0:
        return np.int64(0)
    size = _SLOTS_MIN
    while size < U64(4) * U64(n) and size < _SLOTS_MAX:
        size <<= _ONE
    mask = size - _ONE
    slots[:size] = U32(0)
    distinct[0], kinds[0] = fp[0], flags[0]
    slots[fp[0] & mask] = U32(1)
    many = _ONE
    at, end = _ZERO, U64(n)
    while at < end:
        count = min(end - at, _STEP)
        others = _look_up(fp, at, count, slots, mask, distinct, ids)
        while others != _ZERO:
            i = at + U64(trailing_zeros(others))
            others &= others - _ONE
            token = fp[i]
            place = token & mask
            entry = U64(slots[place])
            while entry != _ZERO and distinct[entry - _ONE] != token:
                place = (place + _ONE) & mask
                entry = U64(slots[place])
            if entry == _ZERO:
                distinct[many], kinds[many] = token, flags[i]
                many += _ONE
                entry = many
                slots[place] = U32(many)
            ids[i] = U32(entry - _ONE)
        at += count
        if many << U64(2) > size:
            size <<= _ONE
            mask = size - _ONE
            _fill(distinct, many, slots, mask)
    # a separate loop: stores to slots that were just read would delay the look-ups that follow
    for j in range(many):
        counts[j] = U32(0)
    for i in range(end):
        counts[ids[i]] += U32(1)
    return np.int64(many)
