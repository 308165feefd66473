"""Computes variants of algorithms B and C that the paper leaves open, offline, from token sequences.

They use the scheme's constants like the sketches: `B()` and `C()` with defaults equal a sketch's supershingles and
simhash.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from neardup.evaluation.pairs.texts import PageTokens
from neardup.kernels.lanes import LANES
from neardup.scheme import Scheme
from neardup.sketch import shingling, simhash

_Words = npt.NDArray[np.uint64]
_ONE = np.uint64(1)
#: Odd constant that makes repeated occurrences of a shingle distinct.
_AGAIN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class B:
    """Algorithm B. k: tokens per shingle. weighted: each occurrence of a shingle is an element of its own.

    content: only tokens of the main content; all tokens if there is none.
    """

    k: int = 8
    weighted: bool = False
    content: bool = False

    def sketch(self, page: PageTokens, scheme: Scheme) -> _Words | None:
        """Computes uint64[supershingles]; None for a page without tokens, which is similar to no page."""
        tokens = chosen_tokens(page, self.content)
        if not len(tokens):
            return None
        shingles = shingling.shingles(tokens, scheme.constants("shingle", self.k) | _ONE)
        if self.weighted:
            shingles = as_set(shingles)
        products = -(-scheme.minvalues // (4 * LANES)) * LANES
        multipliers = scheme.constants("minvalue multiplier", products) | _ONE
        low = shingling.minvalues(shingles, multipliers, scheme.minvalues)
        seed = int(scheme.constants("chain", 3)[CHAIN_B])
        return shingling.supershingles(low, scheme.supershingles, scheme.minvalues // scheme.supershingles, seed)


#: Index of the scheme's chain constant for B's supershingles.
CHAIN_B = 0


@dataclass(frozen=True)
class C:
    """Algorithm C. bits: the first of its 384 projections. over: tokens, or shingles of k tokens, by frequency."""

    bits: int = 384
    over: Literal["tokens", "shingles"] = "tokens"
    k: int = 8
    content: bool = False

    def sketch(self, page: PageTokens, scheme: Scheme) -> _Words | None:
        """Computes uint64[6], of which `bits` bits count; None for a page without tokens."""
        tokens = chosen_tokens(page, self.content)
        if not len(tokens):
            return None
        if self.over == "shingles":
            tokens = shingling.shingles(tokens, scheme.constants("shingle", self.k) | _ONE)
        return simhash.simhash(tokens, scheme.constants("simhash", 8))[0]

    def agreeing(self, a: _Words, b: _Words) -> int:
        """Counts agreeing bits among the first `bits`."""
        whole, rest = divmod(self.bits, 64)
        differing = int(np.bitwise_count(a[:whole] ^ b[:whole]).sum())
        if rest:
            differing += int(np.bitwise_count((a[whole] ^ b[whole]) & np.uint64((1 << rest) - 1)))
        return self.bits - differing


def chosen_tokens(page: PageTokens, content: bool) -> _Words:
    """Returns the tokens that a variant reads."""
    if not content or not page.content.any():
        return page.fp
    return np.ascontiguousarray(page.fp[page.content])


def as_set(shingles: _Words) -> _Words:
    """Turns a multiset into a set: the i-th occurrence of a shingle becomes a distinct element.

    The resemblance of two such sets is sum min(f, g) / sum max(f, g) of the shingles' frequencies.
    """
    order = np.argsort(shingles, kind="stable")
    ordered = shingles[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    occurrence = np.arange(len(ordered)) - np.repeat(starts, sizes)
    out = np.empty_like(shingles)
    out[order] = ordered ^ (occurrence.astype(np.uint64) * _AGAIN)
    return out


def jaccard(a: _Words, b: _Words) -> float:
    """Computes |A & B| / |A | B| of two sets of elements; 0 for two empty ones."""
    one, other = np.unique(a), np.unique(b)
    common = len(np.intersect1d(one, other, assume_unique=True))
    union = len(one) + len(other) - common
    return common / union if union else 0.0
