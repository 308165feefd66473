"""Tapes: samples of a page's tokens that keep their order."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import tape
from neardup.kernels.mix import mix
from neardup.kernels.occurrences import occurrences


class Tape(NamedTuple):
    """level s: the low s bits of mix(token) are 0 for each token kept; data: one byte a token, in text order."""

    level: int
    data: bytes


def make_tape(tokens: npt.NDArray[np.uint64], bytes_max: int, occurrences_max: int = 8) -> Tape:
    """Of each token its first occurrences, of these the tokens of the lowest level that leaves at most bytes_max."""
    n = max(1, len(tokens))
    distinct, counts = np.empty(n, np.uint64), np.empty(n, np.uint32)
    ids, slots = np.empty(n, np.uint32), np.empty(max(4096, 8 * n), np.uint32)
    flags = np.zeros(n, np.uint8)
    many = occurrences(tokens, flags, len(tokens), ids, slots, distinct, counts, np.empty(n, np.uint8))
    mixed = np.array([mix(token) for token in distinct[:many]], dtype=np.uint64)
    left, byte, out = np.empty(n, np.uint8), np.empty(n, np.uint8), np.empty(max(1, bytes_max), np.uint8)
    level, kept = tape.prepare(mixed, counts, many, occurrences_max, bytes_max, left, byte)
    end = tape.write(ids, 0, len(tokens), left, byte, out, 0, kept)
    return Tape(int(level), out[:end].tobytes())
