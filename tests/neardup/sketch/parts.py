"""Parts of a record, each made by its kernels alone."""

import numpy as np
import numpy.typing as npt

from neardup.kernels import names as kernels
from neardup.kernels import tape
from neardup.kernels.mix import mix
from neardup.kernels.occurrences import occurrences
from tests.neardup.pairs.tapes import Tape


def make_filter(tokens: npt.NDArray[np.uint64], bits_min: int = 512, bits_max: int = 8192) -> bytes:
    """Bloom filter with 4 probes of the distinct tokens: the smallest power of two of at least 8 bits for each.

    tokens: uint64[n], each once. bits_min, bits_max: powers of two. No tokens: no filter.
    """
    mixed = np.array([mix(token) for token in tokens], dtype=np.uint64)
    marks = np.empty(max(bits_min, bits_max), np.uint8)
    out = np.empty(len(marks) // 8, np.uint8)
    size = kernels.write_filter(mixed, len(mixed), bits_min, bits_max, marks, out, 0)
    return out[:size].tobytes()


def may_hold(data: bytes, token: int) -> bool:
    """False proves that the page of this filter lacks the token, unless the filter is saturated."""
    if not data:
        return False
    mixed = np.uint64(mix(np.uint64(token)))
    return bool(kernels.in_filter(mixed, np.frombuffer(data, np.uint8), 0, len(data)))


def is_saturated(data: bytes) -> bool:
    """More than half of the bits are set: the page is too long for its filter to prove anything."""
    return bool(kernels.is_saturated(np.frombuffer(data, np.uint8), 0, len(data)))


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
