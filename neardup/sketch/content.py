"""The main content of a page, told from navigation, advertisements and footers in two ways.

By densities of single text blocks, which leaves out much and is steady: for views of a page. By what runs of blocks are
worth: the article, which is nearer to what people mark, but may have text of the footer: for one text on two sites.
"""

import numpy as np
import numpy.typing as npt

from neardup.kernels import content as kernels
from neardup.kernels.article import choose_article


def main_content(
    flags: npt.NDArray[np.uint8],
    block: npt.NDArray[np.int32],
    text: npt.NDArray[np.uint8],
    span_start: npt.NDArray[np.uint32],
    span_end: npt.NDArray[np.uint32],
) -> npt.NDArray[np.bool_]:
    """bool[n]: which tokens belong to the main content (Kohlschuetter, Fankhauser, Nejdl 2010, densitometric tree).

    flags, block, spans in text (UTF-8) of n tokens, as `neardup.kernels.tokens` gives them. Title tokens never belong
    to it. A page of one block is its own content, unless it consists of links (ours).
    """
    return _chosen(flags, block, text, span_start, span_end, False)


def article(
    flags: npt.NDArray[np.uint8],
    block: npt.NDArray[np.int32],
    text: npt.NDArray[np.uint8],
    span_start: npt.NDArray[np.uint32],
    span_end: npt.NDArray[np.uint32],
) -> npt.NDArray[np.bool_]:
    """bool[n]: which tokens belong to the article (Pasternack, Roth 2009, maximum subsequence segmentation).

    Arguments, titles and pages of one block as of `main_content`.
    """
    return _chosen(flags, block, text, span_start, span_end, True)


def _chosen(
    flags: npt.NDArray[np.uint8],
    block: npt.NDArray[np.int32],
    text: npt.NDArray[np.uint8],
    span_start: npt.NDArray[np.uint32],
    span_end: npt.NDArray[np.uint32],
    runs: bool,
) -> npt.NDArray[np.bool_]:
    n = len(flags)
    chosen_tokens = np.zeros(n, np.bool_)
    if n == 0:
        return chosen_tokens
    starts, ends, linked, widths = (np.empty(n, np.uint32) for _ in range(4))
    chosen = np.empty(n, np.uint8)
    padded = np.concatenate([text, np.zeros(64, np.uint8)])
    many, _, _ = kernels.blocks(flags, block, n, padded, span_start, span_end, starts, ends, linked, widths)
    if runs:
        choose_article(many, starts, ends, linked, chosen)
    else:
        kernels.choose(many, starts, ends, linked, widths, chosen)
    for j in np.flatnonzero(chosen[:many]):
        chosen_tokens[starts[j] : ends[j]] = True
    return chosen_tokens
