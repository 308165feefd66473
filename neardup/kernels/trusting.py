"""The trustable regions of an edit script (Huang 2008; neardup/partition/README.md, step 7).

The edit script of a text S against a text T is given for each character of S: whether it is matched, and the number of
characters of T that are skipped before it. The edits of a range of S are its unmatched characters, and the characters
of T that are skipped between its first and its last matched character.
"""

import numpy as np

from neardup.kernels import kernel


@kernel
def regions(partner, slope_max, blocks, most, found):
    """Write the chosen regions to found, int32[most, 2]: start and end in S -> (their number, matched characters).

    partner int32[n], n > 0: for each character of S the index in T of its match, or -1. slope_max: edits per character
    that a region may have. blocks: number of blocks that S is divided into, at most one per character.
    """
    n = len(partner)
    matched = np.zeros(n + 1, np.int64)  # by position: matched characters before it
    central = np.zeros(n + 1, np.int64)  # by position: the weight of the matched characters before it
    passed = np.zeros(n + 1, np.int64)  # by matched character: characters of T skipped between the first one and it
    many, last = 0, np.int64(-1)
    for x in range(n):
        if partner[x] >= 0:
            if many > 0:
                passed[many] = passed[many - 1] + np.int64(partner[x]) - last - 1
            last = np.int64(partner[x])
            many += 1
            central[x + 1] = central[x] + 2 * n - abs(2 * x + 1 - n)
        else:
            central[x + 1] = central[x]
        matched[x + 1] = many
    blocks = min(blocks, n)
    taken = trusted = np.int64(0)
    while taken < most:
        start, end = _heaviest(matched, central, passed, n, slope_max, blocks, taken, found)
        if end == 0:
            break
        start, end = _extended(matched, passed, n, slope_max, start, end, taken, found)
        found[taken, 0], found[taken, 1] = start, end
        trusted += matched[end] - matched[start]
        taken += 1
    return taken, trusted


@kernel
def _edits(matched, passed, start, end):
    """Edits of a range of S; -1 if it has no matched character."""
    first, last = matched[start], matched[end] - 1
    if first > last:
        return np.int64(-1)
    return end - start - (matched[end] - matched[start]) + passed[last] - passed[first]


@kernel
def _free(start, end, taken, found):
    """Whether a range overlaps none of the regions chosen so far."""
    for i in range(taken):  # noqa: SIM110  (numba has no generator expressions)
        if start < found[i, 1] and found[i, 0] < end:
            return False
    return True


@kernel
def _heaviest(matched, central, passed, n, slope_max, blocks, taken, found):
    """(start, end) of the heaviest range of blocks; (0, 0) if there is none.

    Only ranges count that are trustable, overlap the middle half of S, and overlap no chosen region. Of equal weights
    the range with the fewest blocks counts, then the first.
    """
    best = np.int64(0)
    best_start = best_end = np.int64(0)
    for length in range(1, blocks + 1):
        for first in range(blocks - length + 1):
            start, end = first * n // blocks, (first + length) * n // blocks
            if 4 * end <= n or 4 * start >= 3 * n:
                continue
            weight = central[end] - central[start]
            if weight <= best or not _free(start, end, taken, found):
                continue
            edits = _edits(matched, passed, start, end)
            if edits >= 0 and edits <= slope_max * (end - start):
                best, best_start, best_end = weight, np.int64(start), np.int64(end)
    return best_start, best_end


@kernel
def _extended(matched, passed, n, slope_max, start, end, taken, found):
    """Extend a range by single characters, first at its end, then at its start, while it stays trustable."""
    while end < n and _free(end, end + 1, taken, found):
        if _edits(matched, passed, start, end + 1) > slope_max * (end + 1 - start):
            break
        end += 1
    while start > 0 and _free(start - 1, start, taken, found):
        if _edits(matched, passed, start - 1, end) > slope_max * (end - start + 1):
            break
        start -= 1
    return start, end
