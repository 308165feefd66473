"""The article of a page: the run of text blocks that holds the most text and the least navigation.

Maximum subsequence segmentation (Pasternack, Roth 2009) on the blocks of `neardup.kernels.content`. A block is worth
its tokens, less LINK_PRICE for each of them that lies in a link, less BLOCK_PRICE: menus are links, and what stands
around a text is in short pieces, while a paragraph is worth much. The article is the run of blocks that is worth most,
without those of which more than a third lies in links. Comments that follow a text stand between names, dates and
buttons, whose prices cut them off if the comments are short. All are integers, so every CPU decides alike; of equal
runs the one that ends first, and of these the shortest, counts.
"""

import numpy as np

from neardup.kernels import lean_kernel

U8 = np.uint8
#: In tokens; chosen on half of the pages whose main contents people marked: `tests/measure/bench/README.md`.
LINK_PRICE, BLOCK_PRICE = 2, 6


@lean_kernel
def _run(many, starts, ends, linked):
    """(first, end) of the run of blocks that is worth most, int64; (0, 0) if none is worth anything (Kadane)."""
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

    starts, ends, linked: as `neardup.kernels.content.blocks` gives them. A page of a single block has nothing to
    compare it with: the block is the article unless it consists of links.
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
