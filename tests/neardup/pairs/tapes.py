"""How alike two tapes are: the kernel on two tapes alone."""

from typing import NamedTuple

import numpy as np

from neardup.kernels import likeness
from neardup.pairs.scoring import tape_room


class Tape(NamedTuple):
    """A tape. A token is kept if the low `level` bits of mix(token) are 0. data: one byte a token, in text order."""

    level: int
    data: bytes


class TapeScore(NamedTuple):
    """lj = |LCS| / (|A| + |B| - |LCS|); a, b: bytes at the compared level."""

    lj: float
    a: int
    b: int


def compare_tapes(a: Tape, b: Tape) -> TapeScore:
    """Compare two tapes at the higher of their levels. The score is 0 if the levels differ by two or more.

    If the levels differ by one, 7 bits per token are compared. Bytes outside all windows of 3 that both tapes have are
    dropped before the LCS (Huang 2008's filtered sketch, in tokens). |A| and |B| are the lengths before that.
    """
    buffer = np.frombuffer(a.data + b.data, dtype=np.uint8)
    out = np.zeros(3)
    size, first, room = len(a.data), *tape_room(max(len(a.data), len(b.data)))
    likeness.compare_tapes(buffer, 0, size, a.level, size, len(b.data), b.level, first, room, out, 0, 2, -1, -1)
    return TapeScore(float(out[2]), int(out[0]), int(out[1]))
