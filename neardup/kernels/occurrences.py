"""Distinct tokens of a page and how often each occurs: one pass that tape, names, filter and simhash share."""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
U32 = np.uint32
_ZERO, _ONE, _TWO = U64(0), U64(1), U64(2)
#: First size of the hash table: it stays in the first-level cache for most pages and grows by four.
_FIRST = U64(4096)
_GROWTH = U64(4)


@lean_kernel
def occurrences(fp, n, ids, slots, distinct, counts):
    """Number the distinct tokens of fp[:n] in order of first appearance -> int64, how many there are.

    ids uint32[>= n] out: the number of each token. distinct uint64, counts uint32 [>= n] out: token and occurrences by
    number. slots uint32[>= max(4096, 8 n)] scratch, any content: an open-addressing table that holds number + 1.
    """
    size = _FIRST
    mask = size - _ONE
    slots[:size] = 0
    many = _ZERO
    for i in range(U64(n)):
        token = fp[i]
        place = token & mask
        while True:
            entry = U64(slots[place])
            if entry == _ZERO:
                if _TWO * (many + _ONE) > size:
                    size *= _GROWTH
                    mask = size - _ONE
                    slots[:size] = 0
                    for j in range(many):
                        place = distinct[j] & mask
                        while slots[place] != 0:
                            place = (place + _ONE) & mask
                        slots[place] = U32(j + _ONE)
                    place = token & mask
                    continue
                distinct[many] = token
                counts[many] = 1
                ids[i] = U32(many)
                many += _ONE
                slots[place] = U32(many)
                break
            entry -= _ONE
            if distinct[entry] == token:
                counts[entry] += U32(1)
                ids[i] = U32(entry)
                break
            place = (place + _ONE) & mask
    return np.int64(many)
