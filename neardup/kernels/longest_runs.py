"""The longest common subsequence in the fewest runs (Huang 2008; neardup/partition/README.md, step 6).

Two texts have many longest common subsequences. The choice decides how many matched characters lie in trustable
regions, so it is part of the method. A *run* is a maximal stretch of matched characters that are neighbours in both
texts. The subsequence with the fewest runs has the longest ones: its matches are not scattered over the edits.
"""

import numpy as np

from neardup.kernels import kernel

#: score = _LENGTH * matched characters - runs, which orders by length, then by runs: texts are shorter than _LENGTH.
_LENGTH = 1 << 15
_NONE = -(1 << 30)
#: Bits of a cell of the table: (1) its best path ends with a match; (2) the run of that match began before the cell;
#: (3) the best path without a match at the cell skips a character of a.
_MATCH, _CONTINUED, _OVER_A = 1, 2, 4


@kernel
def align(a, b, common, partner):
    """Fill int32[len(b)] with the position in a of each character of b in their LCS, or -1.

    a, b: uint32, each shorter than 32,768. common: the length of their LCS. The result is an LCS with the fewest runs.
    Ties are broken from the ends: match a character if possible, else skip one of a if possible, else skip one of b.
    Time and memory: len(b) * (len(a) + len(b) - 2 * common + 1) cells of four bits, at most (len(a) + 1) * len(b).
    """
    n, m = len(a), len(b)
    over_a, over_b = n - common, m - common  # characters of each text outside the LCS: they bound the diagonals
    width = min(n, over_a + over_b) + 1
    table = np.zeros((m * width + 1) // 2 + 1, np.uint8)
    best, run = np.full(n + 1, _NONE, np.int32), np.full(n + 1, _NONE, np.int32)
    best[: min(n, over_a) + 1] = 0
    for j in range(1, m + 1):
        first = max(0, j - over_b)
        _row(a, b[j - 1], first, min(n, j + over_a), (j - 1) * width, table, best, run)
    _trace(n, m, over_b, width, table, partner)


@kernel
def _row(a, character, first, last, cells, table, best, run):
    """Replace the cells first..last of a row by those of the next row.

    best[i]: score of the best path to the cell after i characters of a. run[i]: score of the best path that ends there
    with a match.
    """
    before_best, before_run = np.int32(_NONE), np.int32(_NONE)
    if first > 0:
        before_best, before_run = best[first - 1], run[first - 1]
        best[first - 1] = run[first - 1] = _NONE  # outside the band of this row
    left = np.int32(_NONE)
    for i in range(first, last + 1):
        up_best, up_run = best[i], run[i]
        bits = 0
        here = up_best
        if left >= up_best:
            here, bits = left, _OVER_A
        matched = np.int32(_NONE)
        if i > 0 and a[i - 1] == character:
            matched = before_best + np.int32(_LENGTH - 1)
            if before_run + 1 >= before_best:
                matched = before_run + np.int32(_LENGTH)
                bits |= _CONTINUED
            if matched >= here:
                here = matched
                bits |= _MATCH
        best[i], run[i] = here, matched
        before_best, before_run, left = up_best, up_run, here
        at = cells + i - first
        table[at >> 1] |= np.uint8(bits << (4 * (at & 1)))


@kernel
def _trace(n, m, over_b, width, table, partner):
    """Follow the choices of the table from the ends of both texts to a start."""
    partner[:] = -1
    i, j = n, m
    in_run = False
    while i > 0 and j > 0:
        at = (j - 1) * width + i - max(0, j - over_b)
        bits = table[at >> 1] >> (4 * (at & 1))
        if in_run or bits & _MATCH:
            j -= 1
            i -= 1
            partner[j] = i
            in_run = bits & _CONTINUED != 0
        elif bits & _OVER_A:
            i -= 1
        else:
            j -= 1
