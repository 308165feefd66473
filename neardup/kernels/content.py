"""Main content, separated from boilerplate by the densities of text blocks (Kohlschuetter, Fankhauser, Nejdl 2010).

A block is a run of tokens with one block number. Title tokens belong to no block. The link density of a block is the
share of its tokens that lie in links. The text density of a block is its number of tokens per line of 80 characters; a
block that is shorter than a line counts as one line. Densities are compared as fractions of integers, so the result is
the same on every CPU.
"""

import numpy as np

from neardup.kernels import lean_kernel, points
from neardup.kernels.bits import below
from neardup.kernels.sniffing import characters
from neardup.kernels.windows import word_masks

U64 = np.uint64
U32 = np.uint32
U8 = np.uint8
_IN_TITLE, _IN_LINK = U8(points.IN_TITLE), U8(points.IN_LINK)
_ZERO, _ONE = U64(0), U64(1)
#: Characters per line.
_LINE = 80


@lean_kernel
def _denser(tokens, width, limit):
    """Whether the text density of a block exceeds `limit`."""
    if width <= _LINE:
        return tokens > limit
    return tokens * _LINE > limit * width


@lean_kernel
def _is_content(before, here, after, before_width, here_width, after_width, before_linked, here_linked):
    """Apply the paper's decision tree (figure of the densitometric classifier) to a block and its two neighbours.

    Arguments are int64: tokens, width in characters and tokens in links of a block. A missing neighbour has 0 tokens.
    """
    if 3 * here_linked > here:  # link density over .333333
        return False
    if 9 * before_linked > 5 * before:  # link density of the previous block over .555556
        return _denser(after, after_width, 11)
    if _denser(here, here_width, 9):
        return after > 0
    return _denser(after, after_width, 10) or _denser(before, before_width, 4)


@lean_kernel
def _is_ascii(text, start, end):
    """Whether text[start:end] is ASCII. Reads up to 63 bytes beyond `end`."""
    seen = _ZERO
    while start + 64 <= end:
        seen |= word_masks(text, start)[5]
        start += 64
    return seen | (word_masks(text, start)[5] & below(end - start)) == _ZERO


@lean_kernel
def blocks(flags, block, n, text, span_start, span_end, starts, ends, linked, widths):
    """Group tokens into blocks -> int64 number of blocks, first title token, end of title tokens (0, 0: no title).

    n: number of tokens, > 0. Token i is text[span_start[i] : span_end[i]]; spans ascend, and at least 64 bytes follow
    the last one.
    starts, ends, linked, widths: uint32[>= n] out, one element per block: token range, tokens in links, characters from
    the first token to the last.
    """
    # A run has one block number, and titles form runs of their own. The end of a run cannot be predicted, so the loop
    # has no branch on it.
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
    plain = _is_ascii(text, np.int64(span_start[0]), np.int64(span_end[n - 1]))
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
            first, last = span_start[start], span_end[end - _ONE]
            starts[many], ends[many], linked[many] = U32(start), U32(end), inside
            widths[many] = last - first if plain else U32(characters(text, np.int64(first), np.int64(last)))
            many += _ONE
        start = end
    return np.int64(many), np.int64(title_start), np.int64(title_end)


@lean_kernel
def choose(many, starts, ends, linked, widths, chosen):
    """Mark the blocks of the main content -> int64, the tokens in them. chosen uint8[>= many] out: 1 or 0 per block.

    A single block has no neighbours to compare with. It is the main content unless more than a third of it is links.
    """
    tokens = np.int64(0)
    before = before_width = before_linked = np.int64(0)
    for j in range(many):
        here, here_width, here_linked = (
            np.int64(ends[j]) - np.int64(starts[j]),
            np.int64(widths[j]),
            np.int64(linked[j]),
        )
        after = after_width = np.int64(0)
        if j + 1 < many:
            after, after_width = np.int64(ends[j + 1]) - np.int64(starts[j + 1]), np.int64(widths[j + 1])
        if many == 1:
            good = 3 * here_linked <= here
        else:
            good = _is_content(before, here, after, before_width, here_width, after_width, before_linked, here_linked)
        chosen[j] = U8(good)
        if good:
            tokens += here
        before, before_width, before_linked = here, here_width, here_linked
    return tokens


@lean_kernel
def longest(many, starts, ends, chosen):
    """Find the chosen block of most tokens, of equals the first -> int64, its first token, its tokens; 0, 0 if none."""
    first = tokens = np.int64(0)
    for j in range(many):
        here = np.int64(ends[j]) - np.int64(starts[j])
        if chosen[j] and here > tokens:
            first, tokens = np.int64(starts[j]), here
    return first, tokens


@lean_kernel
def occurrences_in(ids, n, all_counts, many_blocks, starts, ends, chosen, tokens, counts, many):
    """Count the occurrences of each distinct token in the chosen blocks -> counts, uint32[many] out.

    ids: number of each token's distinct token. n, all_counts: tokens of the page, and their occurrences by number.
    tokens: number of tokens in the chosen blocks. The function counts the smaller part of the page, the chosen or the
    other blocks, and derives the result from it.
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
