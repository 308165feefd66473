"""Measures the difference of two token sequences: Henzinger's term difference, and the ratio used by natural truth."""

import numpy as np
import numpy.typing as npt

from neardup.kernels import alignment, token_difference

_Words = npt.NDArray[np.uint64]
#: Up to this many edits Myers' algorithm is faster; beyond it, bit vectors.
_EDITS = 400
#: Most steps for one pair: some two seconds. A step updates a word of 64 positions; two sequences of 350,000 tokens
#: reach the bound.
STEPS_MAX = 2_000_000_000


def common_tokens(a: _Words, b: _Words, steps_max: int = STEPS_MAX) -> int | None:
    """Computes the exact length of the longest common subsequence of uint64[n] and uint64[m].

    None if it needs more than steps_max steps.
    """
    before = _equal_run(a, b)
    a, b = a[before:], b[before:]
    after = _equal_run(a[::-1], b[::-1])
    a, b = np.ascontiguousarray(a[: len(a) - after]), np.ascontiguousarray(b[: len(b) - after])
    equal = before + after
    if not len(a) or not len(b):
        return equal
    names, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    one, other = (part.astype(np.uint32) for part in (places[: len(a)], places[len(a) :]))
    edits = int(alignment.align(one, other, _EDITS, np.empty(len(b), np.int32)))
    if edits >= 0:
        return equal + (len(a) + len(b) - edits) // 2
    if len(a) * (len(b) / 64) > steps_max:
        return None
    order = np.argsort(one, kind="stable")  # positions in `one`, grouped by token
    following = np.full(len(a), -1, np.int64)
    same = one[order[1:]] == one[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    first = np.full(len(names), -1, np.int64)
    held, at = np.unique(one, return_index=True)
    first[held] = at
    return equal + int(token_difference.common(first, following, other.astype(np.int64), np.int64(len(a))))


def ratio_at_most(a: _Words, b: _Words) -> float:
    """Returns an upper bound of `common_ratio` from token frequencies alone."""
    names, counts = np.unique(np.concatenate([a, b]), return_counts=True)
    in_a = np.zeros(len(names), np.int64)
    mine, times = np.unique(a, return_counts=True)
    in_a[np.searchsorted(names, mine)] = times
    common = int(np.minimum(in_a, counts - in_a).sum())
    return common / (len(a) + len(b) - common) if common else 0.0


def common_ratio(a: _Words, b: _Words, steps_max: int = STEPS_MAX) -> float | None:
    """Computes |LCS| / (|A| + |B| - |LCS|), 0 to 1, of the full token sequences; 0 for an empty one."""
    common = common_tokens(a, b, steps_max)
    if common is None:
        return None
    return common / (len(a) + len(b) - common) if common else 0.0


def _equal_run(a: _Words, b: _Words) -> int:
    """Returns the length of the common prefix."""
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if len(different) else n
