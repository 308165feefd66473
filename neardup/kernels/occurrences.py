"""Distinct tokens of a page and how often each occurs: one pass that tape, names, filter and simhash share."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import trailing_zeros

U64 = np.uint64
U32 = np.uint32
_ZERO, _ONE = U64(0), U64(1)
#: Least size of the hash table's scratch; sizes of the table before it grows, for short and for long pages. It stays
#: in the nearest caches for most.
FIRST_SLOTS = 4096
_SLOTS_MIN, _SLOTS_MAX = U64(1024), U64(16384)
#: Tokens that are looked up before new ones among them are put in.
_STEP = U64(32)


@lean_kernel
def _fill(distinct, many, slots, mask):
    """Put the numbered tokens into an empty table."""
    slots[: mask + _ONE] = U32(0)
    for j in range(many):
        place = distinct[j] & mask
        while slots[place] != U32(0):
            place = (place + _ONE) & mask
        slots[place] = U32(j + _ONE)


@lean_kernel
def _look_up(fp, at, count, slots, mask, distinct, ids):
    """Numbers of the tokens fp[at : at + count] that stand at their first places -> ids; a mask of the others.

    Without a branch, for which tokens are new is not to be foreseen. An empty place is taken for that of token 0, which
    it cannot be: the first token of all stands at its first place.
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

    ids uint32[>= n] out: the number of each token. distinct uint64, counts uint32, kinds uint8 [>= n] out: token,
    occurrences, and the flags of its first one, by number. slots uint32[>= max(4096, 8 n)] scratch, any content: an
    open-addressing table that holds number + 1 and is doubled when a quarter full.
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
    # counted in a loop of its own: stores to places just looked up would hold up the look-ups that follow
    for j in range(many):
        counts[j] = U32(0)
    for i in range(end):
        counts[ids[i]] += U32(1)
    return np.int64(many)
