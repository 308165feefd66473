"""The filter that proves a token absent from a page; names and vetoes are read from records (`neardup.pairs`)."""

import numpy as np
import numpy.typing as npt

from neardup.kernels import names as kernels
from neardup.kernels.mix import mix


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
