"""Main content: the run of text blocks that holds the most text and the least navigation (Pasternack, Roth 2009).

Their maximum subsequence segmentation, on blocks: a block is a run of tokens with one block number; title tokens belong
to none. It is worth its tokens, less LINK_PRICE for each of them that lies in a link, less BLOCK_PRICE: menus are
links, and what stands around a text is in short pieces, while a paragraph is worth much. The main content is the run
of blocks that is worth most, without those of which more than a third lies in links. Comments that follow a text stand
between names, dates and buttons, whose prices cut them off if the comments are short. All are integers, so every CPU
decides alike; of equal runs the one that ends first, and of these the shortest, counts.
"""

import numpy as np

from neardup.kernels import lean_kernel, points

U64 = np.uint64
U32 = np.uint32
U8 = np.uint8
_IN_TITLE, _IN_LINK = U8(points.IN_TITLE), U8(points.IN_LINK)
_ZERO, _ONE = U64(0), U64(1)
#: In tokens; chosen on half of the pages whose main contents people marked: `tests/bench/README.md`.
LINK_PRICE, BLOCK_PRICE = 2, 6


@lean_kernel
def blocks(flags, block, n, starts, ends, linked):
    """Cut tokens into blocks -> how many, first title token, end of title tokens (0, 0: none), int64 each.

    n > 0. starts, ends, linked uint32[>= n] out, by block: token range, tokens in links.
    """
    # runs of one block number, titles apart; where a run ends is not to be foreseen, so there is no branch on it
    runs = _ZERO
    previous = (U64(block[0]) << _ONE) | U64(flags[0] & _IN_TITLE)
    links = _ZERO
    for i in range(U64(n)):
        flag = flags[i]
        key = (U64(block[i]) << _ONE) | U64(flag & _IN_TITLE)
        new = U64(key != previous)
        previous = key
        runs += new
        links = (links & (new - _ONE)) + U64((flag & _IN_LINK) >> U8(1))
        ends[runs] = U32(i + _ONE)
        linked[runs] = U32(links)
    title_start = title_end = _ZERO
    many = _ZERO
    start = _ZERO
    for j in range(runs + _ONE):
        end, inside = U64(ends[j]), linked[j]
        if flags[start] & _IN_TITLE:
            if title_end == _ZERO:
                title_start = start
            title_end = end
        else:
            starts[many], ends[many], linked[many] = U32(start), U32(end), inside
            many += _ONE
        start = end
    return np.int64(many), np.int64(title_start), np.int64(title_end)


@lean_kernel
def _densest(many, starts, ends, linked):
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
def choose(many, starts, ends, linked, chosen):
    """Mark the blocks of the main content -> int64, tokens in them. chosen uint8[>= many] out, 1 or 0.

    A page of a single block has nothing to compare it with: the block is the content unless it consists of links.
    """
    tokens = np.int64(0)
    first, end = _densest(many, starts, ends, linked)
    if many == 1:
        end = np.int64(1)
    for j in range(many):
        here = np.int64(ends[j]) - np.int64(starts[j])
        good = j >= first and j < end and 3 * np.int64(linked[j]) <= here
        chosen[j] = U8(good)
        if good:
            tokens += here
    return tokens


@lean_kernel
def occurrences_in(ids, n, all_counts, many_blocks, starts, ends, chosen, tokens, counts, many):
    """counts uint32[many] out: occurrences of each numbered token in the chosen blocks, which have so many tokens.

    n, all_counts: those of the page. Whatever is less is counted, what is chosen or what is not.
    """
    if 2 * tokens <= n:
        for i in range(U64(many)):
            counts[i] = U32(0)
        for j in range(U64(many_blocks)):
            if chosen[j]:
                for i in range(U64(starts[j]), U64(ends[j])):
                    counts[ids[i]] += U32(1)
        return
    for i in range(U64(many)):
        counts[i] = all_counts[i]
    at = _ZERO
    for j in range(U64(many_blocks)):
        if chosen[j]:
            for i in range(at, U64(starts[j])):
                counts[ids[i]] -= U32(1)
            at = U64(ends[j])
    for i in range(at, U64(n)):
        counts[ids[i]] -= U32(1)
