"""The edit script of two texts by Myers' O(ND) algorithm in linear space (Myers 1986, section 4b).

The algorithm follows the furthest reaching paths of d edits from both ends of a piece, for d = 0, 1, 2, ... Where two
paths meet lies the middle snake of a shortest script. The pieces before and after the snake are aligned in the same
way.
"""

import numpy as np

from neardup.kernels import kernel


@kernel
def align(a, b, limit, partner):
    """Align two texts -> int64, the number of edits; -1 if there are more than `limit` (partner is undefined then).

    a, b: uint32 code points. partner: int32[len(b)] out, the index in a of the character that matches b[i], or -1.
    Time grows with (len(a) + len(b)) * edits. Of several shortest scripts the result is always the same one.
    """
    n, m = len(a), len(b)
    partner[:] = -1
    middle = n + m + 2
    forward, backward = np.zeros(2 * middle + 1, np.int32), np.zeros(2 * middle + 1, np.int32)
    pieces = np.empty((n + m + 4, 4), np.int32)
    pieces[0, 0], pieces[0, 1], pieces[0, 2], pieces[0, 3] = 0, n, 0, m
    waiting = 1
    edits = np.int64(0)
    whole = True
    while waiting > 0:
        waiting -= 1
        a0, a1 = np.int64(pieces[waiting, 0]), np.int64(pieces[waiting, 1])
        b0, b1 = np.int64(pieces[waiting, 2]), np.int64(pieces[waiting, 3])
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            partner[b0] = a0
            a0 += 1
            b0 += 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1 -= 1
            b1 -= 1
            partner[b1] = a1
        if a0 == a1 or b0 == b1:
            edits += a1 - a0 + b1 - b0
            if whole and edits > limit:
                return np.int64(-1)
            whole = False
            continue
        count, x, y, u, v = _middle_snake(a, a0, a1, b, b0, b1, forward, backward, middle, limit if whole else n + m)
        if count < 0:
            return np.int64(-1)
        whole = False
        for i in range(u - x):
            partner[b0 + y + i] = a0 + x + i
        pieces[waiting, 0], pieces[waiting, 1] = a0 + u, a1
        pieces[waiting, 2], pieces[waiting, 3] = b0 + v, b1
        pieces[waiting + 1, 0], pieces[waiting + 1, 1] = a0, a0 + x
        pieces[waiting + 1, 2], pieces[waiting + 1, 3] = b0, b0 + y
        waiting += 2
    return edits


@kernel
def _middle_snake(a, a0, a1, b, b0, b1, forward, backward, middle, limit):
    """(edits, x, y, u, v) of the piece a[a0:a1], b[b0:b1]: its middle snake goes from (x, y) to (u, v).

    edits is -1 if there are more than `limit`. forward, backward: int32 scratch; element middle + k holds the index in
    a that the furthest path on diagonal k has reached.
    """
    n, m = a1 - a0, b1 - b0
    delta = n - m
    odd = delta & 1 != 0
    forward[middle + 1] = backward[middle + 1] = 0
    d = np.int64(0)
    while 2 * d - 1 <= limit:
        low, high = -(d - 2 * max(0, d - m)), d - 2 * max(0, d - n)  # other diagonals lie outside the piece
        for k in range(low, high + 1, 2):
            x = _step(forward, middle, d, k)
            y = x - k
            u, v = x, y
            while u < n and v < m and a[a0 + u] == b[b0 + v]:
                u += 1
                v += 1
            forward[middle + k] = u
            if odd and abs(delta - k) < d and u + np.int64(backward[middle + delta - k]) >= n:
                return 2 * d - 1, x, y, u, v
        for k in range(low, high + 1, 2):
            x = _step(backward, middle, d, k)
            y = x - k
            u, v = x, y
            while u < n and v < m and a[a1 - 1 - u] == b[b1 - 1 - v]:
                u += 1
                v += 1
            backward[middle + k] = u
            if not odd and abs(delta - k) <= d and u + np.int64(forward[middle + delta - k]) >= n:
                if 2 * d > limit:
                    break
                return 2 * d, n - u, m - v, n - x, m - y
        d += 1
    return np.int64(-1), np.int64(0), np.int64(0), np.int64(0), np.int64(0)


@kernel
def _step(reached, middle, d, k):
    """Start of the snake of the path with d edits on diagonal k: one edit beyond the better of its two neighbours."""
    if k == -d or (k != d and reached[middle + k - 1] < reached[middle + k + 1]):
        return np.int64(reached[middle + k + 1])
    return np.int64(reached[middle + k - 1]) + 1
