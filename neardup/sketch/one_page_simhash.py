"""Algorithm C (Charikar 2002; Henzinger 2006, section 2): 384 random projections of a page's tokens.

One page at a time, for signals, evaluations and tests; batches use the kernels themselves.
"""

import math

import numpy as np
import numpy.typing as npt

from neardup.kernels import simhash as kernels
from neardup.kernels.occurrences import occurrences

#: Log-tf weights: a token that occurs c times counts round(8 * (1 + ln c)); c over 255 counts as 255. No product is
#: within 0.0007 of a half, so all mathematical libraries round alike. Persisted in sketches: the values never change.
LOG_WEIGHTS = (0, *(round(8 * (1 + math.log(c))) for c in range(1, 256)))


def simhash(
    tokens: npt.NDArray[np.uint64], offsets: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Computes the simhashes of a token sequence: uint64[6] by raw term frequencies, uint64[3] by LOG_WEIGHTS.

    Bit i (bit 0 is the lowest bit of word 0) is 1 if more than half of the total weight has it set in its projection.
    So an even split gives 0, as does an empty sequence. tokens: uint64[n] fingerprints; offsets: uint64[8].
    """
    n = max(1, len(tokens))
    distinct, counts = np.empty(n, np.uint64), np.empty(n, np.uint32)
    ids, slots = np.empty(n, np.uint32), np.empty(max(4096, 8 * n), np.uint32)
    flags = np.zeros(n, np.uint8)
    many = occurrences(tokens, flags, len(tokens), ids, slots, distinct, counts, np.empty(n, np.uint8))
    raw, log = np.empty(6, np.uint64), np.empty(3, np.uint64)
    counters = np.empty(kernels.COUNTERS, np.uint64)
    weights = np.array(LOG_WEIGHTS, dtype=np.uint64)
    place = np.empty(len(weights) + 1, np.int64)
    order, others = np.empty(n, np.uint32), np.empty(n, np.uint32)
    kernels.simhashes(distinct, counts, many, weights, offsets, place, order, others, counters, raw, log)
    return raw, log


def agreeing_bits(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> int:
    """C-similarity: the number of bits in which two simhashes agree, 0 to 64 * words."""
    return 64 * len(a) - int(np.bitwise_count(a ^ b).sum())
