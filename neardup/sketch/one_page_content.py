"""Separates the main content of a page from navigation, advertisements and footers, in two ways.

`main_content` judges single text blocks by their densities. It leaves out much, but changes little between views of a
page. `article` finds the most valuable run of blocks. It is nearer to what people mark, but may contain text of the
footer; it serves to find one text on two sites.
"""

import numpy as np
import numpy.typing as npt

from neardup.kernels import content as kernels
from neardup.kernels.article import choose_article
from neardup.text.one_page_tokens import Tokens


def main_content(tokens: Tokens) -> npt.NDArray[np.bool_]:
    """Marks the tokens of the main content, bool[n] (Kohlschuetter, Fankhauser, Nejdl 2010, densitometric tree).

    Title tokens are never marked. All tokens of a page of one block are marked, unless it consists of links (ours).
    """
    return _chosen(tokens, False)


def article(tokens: Tokens) -> npt.NDArray[np.bool_]:
    """Marks the tokens of the article, bool[n] (Pasternack, Roth 2009, maximum subsequence segmentation).

    Titles and pages of one block are as for `main_content`.
    """
    return _chosen(tokens, True)


def _chosen(tokens: Tokens, runs: bool) -> npt.NDArray[np.bool_]:
    n = len(tokens.fp)
    chosen_tokens = np.zeros(n, np.bool_)
    if n == 0:
        return chosen_tokens
    starts, ends, linked, widths = (np.empty(n, np.uint32) for _ in range(4))
    chosen = np.empty(n, np.uint8)
    padded, spans = np.concatenate([tokens.text, np.zeros(64, np.uint8)]), (tokens.start, tokens.end)
    many, _, _ = kernels.blocks(tokens.flags, tokens.block, n, padded, *spans, starts, ends, linked, widths)
    if runs:
        choose_article(many, starts, ends, linked, chosen)
    else:
        kernels.choose(many, starts, ends, linked, widths, chosen)
    for j in np.flatnonzero(chosen[:many]):
        chosen_tokens[starts[j] : ends[j]] = True
    return chosen_tokens
