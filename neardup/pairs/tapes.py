"""Compares two tapes."""

from typing import NamedTuple

import numpy as np

from neardup.kernels import likeness
from neardup.sketch.tape import Tape

Arrays = tuple[np.ndarray, ...]


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


def tape_room(tape: int) -> tuple[Arrays, Arrays]:
    """Scratch to compare tapes of up to `tape` bytes: (state of the first tape of a pair, other arrays)."""
    table = 1 << (4 * tape).bit_length()
    words = tape // 64 + 1
    known = np.full(5, -1, np.int64)
    first = (
        np.empty(tape, np.uint8),
        np.empty(tape, np.uint32),
        np.empty(table, np.uint32),
        np.zeros(table, np.uint32),
        known,
    )
    known[-1] = 0
    return first, (
        *(np.empty(tape, np.uint8) for _ in range(5)),
        np.empty(256 * words, np.uint64),
        np.empty(words, np.uint64),
    )
