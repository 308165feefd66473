"""The trustable regions of an edit script (Huang 2008; neardup/partition/README.md, step 7).

The script of a text S against a text T is told by S's characters: which are matched, and how many characters of T are
passed over before each. A range of S has as many edits as it has unmatched characters, and passes over in T between its
first and its last matched character.
"""

import numpy as np

from neardup.kernels import kernel


@kernel
def regions(partner, slope_max, blocks, most, found):
    """Write the chosen regions to int32[most, 2], start and end in S -> (how many, matched characters in them).

    partner int32[n]: of each character of S the place in T that it is matched with, or -1; n > 0. slope_max: edits a
    character that a region may have. blocks: S is cut into so many, or into its characters if it has fewer.
    """
    n = len(partner)
    matched = np.zeros(n + 1, np.int64)  # before each place
    central = np.zeros(n + 1, np.int64)  # the weight of those
    passed = np.zeros(n + 1, np.int64)  # by matched character: of T, between the first one and it
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
    """Edits of a range of S that has a matched character; -1 for one that has none."""
    first, last = matched[start], matched[end] - 1
    if first > last:
        return np.int64(-1)
    return end - start - (matched[end] - matched[start]) + passed[last] - passed[first]


@kernel
def _free(start, end, taken, found):
    """Whether a range overlaps none of the regions taken."""
    for i in range(taken):  # noqa: SIM110  (numba has no generator expressions)
        if start < found[i, 1] and found[i, 0] < end:
            return False
    return True


@kernel
def _heaviest(matched, central, passed, n, slope_max, blocks, taken, found):
    """The range of blocks that weighs most of those that are trustable, reach into the middle half of S, and are free.

    Of equal ones the one of fewest blocks, then the first. (0, 0) if there is none.
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
    """The range with its ends moved out by single places, first the end, then the start, while it is trustable."""
    while end < n and _free(end, end + 1, taken, found):
        if _edits(matched, passed, start, end + 1) > slope_max * (end + 1 - start):
            break
        end += 1
    while start > 0 and _free(start - 1, start, taken, found):
        if _edits(matched, passed, start - 1, end) > slope_max * (end - start + 1):
            break
        start -= 1
    return start, end
