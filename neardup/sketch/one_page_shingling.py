"""Algorithm B (Broder 1997; Fetterly 2003; Henzinger 2006, section 2): shingles, minvalues, supershingles.

One page at a time, for evaluations and tests; batches use the kernels themselves.
"""

import numpy as np
import numpy.typing as npt

from neardup.kernels import shingling as kernels
from neardup.kernels.lanes import BLOCK, LANES, PIECES

_Words = npt.NDArray[np.uint64]


def shingles(tokens: _Words, factors: _Words) -> _Words:
    """Fingerprints the n - k + 1 overlapping runs of k = len(factors) tokens, in order, without wrapping.

    Shingle i = mix(sum over j < k of tokens[i + j] * factors[j]) modulo 2**64; factors are odd. Fewer than k tokens
    form one shingle (ours); no tokens form none. tokens: uint64[n] fingerprints.
    """
    out = np.empty(max(1, len(tokens)), np.uint64)
    return out[: kernels.shingles(tokens, len(tokens), factors, out)]


def minvalues(shingled: _Words, multipliers: _Words, functions: int = 84) -> _Words:
    """uint64[functions]: the least value of each fingerprint function over the shingles; all ones without shingles.

    multipliers: uint64[n] odd words, n a multiple of 8 and at least functions / 4; see the kernel for the functions.
    """
    if len(multipliers) % LANES or 4 * len(multipliers) < functions:
        raise ValueError(f"{len(multipliers)} multipliers for {functions} functions")
    padded = 4 * len(multipliers)
    fronts, leading = np.empty(padded, np.uint64), np.empty(padded, np.uint16)
    low, pieces = np.empty(functions, np.uint64), np.empty(len(shingled) // 2 + PIECES, np.uint16)
    padded_shingles = np.concatenate([shingled, np.empty(BLOCK, np.uint64)])
    seen = np.empty(kernels.SEEN, np.uint64)
    kernels.minvalues(padded_shingles, len(shingled), multipliers, fronts, leading, pieces, seen, low)
    return low


def supershingles(low: _Words, count: int, per: int, seed: int) -> _Words:
    """uint64[count]: fingerprints of `per` consecutive minvalues each, from the first on."""
    if count * per > len(low):
        raise ValueError(f"{count} supershingles of {per} from {len(low)} minvalues")
    out = np.empty(count, np.uint64)
    kernels.supershingles(low, per, np.uint64(seed), out)
    return out
