"""A hash table of posting keys (uint64, never 0) with a page each, in two arrays whose length is a power of two.

A *table* is (keys uint64[size], pages int64[size]): an empty place has key 0. Keys are hashes, or hostile pages' choice
of them, so a place is a multiple of the key (Knuth, volume 3, 6.4: multiplicative hashing), and the next empty place
behind it. Tables are at most half full.
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
_SPREAD = U64(0x9E3779B97F4A7C15)


@lean_kernel
def _place(key, keys):
    """Where a key is, or the empty place where it belongs."""
    mask = len(keys) - 1
    at = np.int64((key * _SPREAD) >> U64(32)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@lean_kernel
def insert(columns, page_ids, table):
    """Give each key of columns (uint64[pages, keys]) its page, unless it has one -> the number of new keys."""
    keys, pages = table
    new = 0
    for i in range(len(page_ids)):
        for k in range(columns.shape[1]):
            at = _place(columns[i, k], keys)
            if keys[at] == 0:
                keys[at], pages[at] = columns[i, k], page_ids[i]
                new += 1
    return new


@lean_kernel
def find(numbers, table, pages_found):
    """The pages of some keys (uint64[]), into int64[]; -1 for a key that is not there."""
    keys, pages = table
    for i in range(len(numbers)):
        at = _place(numbers[i], keys)
        pages_found[i] = pages[at] if keys[at] != 0 else -1


@lean_kernel
def meet(columns, table, empty, meeting):
    """Mark the rows of columns (uint64[pages, keys]) that share a key with another row, or with the table.

    empty: a table without keys, with room for all of columns. meeting: uint8[pages], zeros.
    """
    keys, rows = empty
    for i in range(len(columns)):
        for k in range(columns.shape[1]):
            key = columns[i, k]
            if table[0][_place(key, table[0])] != 0:
                meeting[i] = 1
            at = _place(key, keys)
            if keys[at] == 0:
                keys[at], rows[at] = key, i
            elif rows[at] != i:
                meeting[i] = meeting[rows[at]] = 1
