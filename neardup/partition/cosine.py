"""Two texts by the cosine of their term frequencies: Huang 2008's baseline; README.md, step 9."""

from math import sqrt

import numpy as np
import numpy.typing as npt

from neardup.text.one_page_html import extract_page
from neardup.text.one_page_tokens import tokens_of

_PLAIN = 1
Frequencies = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]


def frequencies(text: str) -> Frequencies:
    """Counts the distinct terms of a compared text: (fingerprints, ascending; how often each occurs)."""
    # Texts are compared within one archive only, so no secret seed is needed, and every machine computes the same sets.
    tokens = tokens_of(extract_page(text.encode("utf-8", "replace"), _PLAIN))
    terms, counts = np.unique(tokens.fp, return_counts=True)
    return terms, counts.astype(np.int64)


def cosine(a: Frequencies, b: Frequencies) -> float:
    """Computes sum f g / sqrt(sum f**2 * sum g**2) over the frequencies of both texts; 0 if either has no term."""
    _, at_a, at_b = np.intersect1d(a[0], b[0], assume_unique=True, return_indices=True)
    product = int((a[1][at_a] * b[1][at_b]).sum())
    norms = int((a[1] ** 2).sum()) * int((b[1] ** 2).sum())
    return product / sqrt(norms) if product else 0.0
