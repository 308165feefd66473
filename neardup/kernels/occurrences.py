"""Distinct tokens of a page and how often each occurs: one pass that tape, names, filter and simhash share."""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
U32 = np.uint32
_ZERO, _ONE = U64(0), U64(1)
#: First size of the hash table: it stays in the first-level cache for most pages.
FIRST_SLOTS = 4096


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
def occurrences(fp, n, ids, slots, distinct, counts):
    """Number the distinct tokens of fp[:n] in order of first appearance -> int64, how many there are.

    ids uint32[>= n] out: the number of each token. distinct uint64, counts uint32 [>= n] out: token and occurrences by
    number. slots uint32[>= max(4096, 8 n)] scratch, any content: an open-addressing table that holds number + 1 and is
    doubled when a quarter full.
    """
    size = U64(FIRST_SLOTS)
    mask = size - _ONE
    slots[:size] = U32(0)
    many = _ZERO
    for i in range(U64(n)):
        token = fp[i]
        place = token & mask
        entry = U64(slots[place])
        while entry != _ZERO and distinct[entry - _ONE] != token:
            place = (place + _ONE) & mask
            entry = U64(slots[place])
        if entry == _ZERO:
            distinct[many] = token
            counts[many] = U32(0)
            many += _ONE
            entry = many
            slots[place] = U32(many)
            if many << U64(2) > size:
                size <<= _ONE
                mask = size - _ONE
                _fill(distinct, many, slots, mask)
        ids[i] = U32(entry - _ONE)
    # counted in a loop of its own: stores to places just looked up would hold up the look-ups that follow
    for i in range(U64(n)):
        counts[ids[i]] += U32(1)
    return np.int64(many)
