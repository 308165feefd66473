"""The article of a page: the run of text blocks that holds the most text and the least navigation.

Maximum subsequence segmentation (Pasternack, Roth 2009) on the blocks of `neardup.kernels.content`. The value of a
block is its number of tokens, minus LINK_PRICE per token in a link, minus BLOCK_PRICE. So menus (links) and short
blocks have negative values, and paragraphs have high ones. The article is the run of blocks with the highest sum,
without the blocks of which more than a third is links. Names, dates and buttons between the comments below a text have
negative values, too, so short comments do not join the article. All values are integers, so the result is the same on
every CPU. Of runs with equal sums the one that ends first counts, and of these the shortest.
"""

import numpy as np

from neardup.kernels import lean_kernel

U8 = np.uint8
#: In tokens. Chosen on half of the pages whose main content is labelled by hand: `tests/measure/bench/README.md`.
LINK_PRICE, BLOCK_PRICE = 2, 6


@lean_kernel
def _run(many, starts, ends, linked):
    """(first, end) of the run of blocks with the highest value (Kadane), int64; (0, 0) if no value is > 0."""
    best = worth = np.int64(0)
    first = best_first = best_end = np.int64(0)
    for j in range(many):
        if worth <= 0:
            worth, first = np.int64(0), np.int64(j)
        worth += np.int64(ends[j]) - np.int64(starts[j]) - LINK_PRICE * np.int64(linked[j]) - BLOCK_PRICE
        if worth > best:
            best, best_first, best_end = worth, first, np.int64(j) + 1
    return best_first, best_end


@lean_kernel
def choose_article(many, starts, ends, linked, chosen):
    """Mark the blocks of the article -> int64, tokens in them. chosen uint8[>= many] out, 1 or 0.

    starts, ends, linked: see `neardup.kernels.content.blocks`. The only block of a page is the article unless more than
    a third of it is links.
    """
    tokens = np.int64(0)
    first, end = _run(many, starts, ends, linked)
    if many == 1:
        end = np.int64(1)
    for j in range(many):
        here = np.int64(ends[j]) - np.int64(starts[j])
        good = j >= first and j < end and 3 * np.int64(linked[j]) <= here
        chosen[j] = U8(good)
        if good:
            tokens += here
    return tokens
