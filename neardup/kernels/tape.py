"""Tapes: samples of a page's tokens that keep their order, and the longest common subsequence of two of them.

With g = mix(token), a token is kept at level s if the low s bits of g are 0; its byte is bit s of g (bit 0) and the top
7 bits of g (bits 1 to 7); of a token with digits the top two are 00 (see `neardup.kernels.sketch`), of others never. So
a tape of level s becomes one of level s + 1 by dropping the bytes whose bit 0 is set.
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
U8 = np.uint8
#: Levels: a 64-bit word has at most this many low zero bits that a byte can still follow.
LEVELS = 64
_ZERO, _ONE = U64(0), U64(1)
#: Tokens that `write` reads before it looks whether anything is left.
_AT_ONCE = U64(256)


@lean_kernel
def _kept(mixed, counts, many, most, level):
    """Tokens on a tape of this level."""
    mask = (_ONE << U64(level)) - _ONE
    kept = _ZERO
    for i in range(U64(many)):
        kept += min(U64(counts[i]), most) if mixed[i] & mask == _ZERO else _ZERO
    return kept


@lean_kernel
def prepare(mixed, counts, many, occurrences_max, bytes_max, left, byte):
    """Choose the level of a tape -> int64 s, the smallest that keeps at most bytes_max tokens; and how many it keeps.

    mixed uint64[many], counts uint32[many] (0: not there): distinct tokens, of each the first occurrences_max count.
    left uint8[many] out: how many of each are on the tape; byte uint8[many] out: each one's byte.
    """
    most, limit = U64(occurrences_max), U64(bytes_max)
    level = np.int64(0)
    # each pass is a fraction of what a histogram costs, whose places would have to wait for each other
    kept = _kept(mixed, counts, many, most, level)
    if kept > limit:
        # each level keeps about half of the one below, so the search begins where the right one may be
        while level < LEVELS - 1 and kept >> U64(level) > limit:
            level += 1
        kept = _kept(mixed, counts, many, most, level)
        while level > 1 and kept <= limit:
            below = _kept(mixed, counts, many, most, level - 1)
            if below > limit:
                break
            level, kept = level - 1, below
        while level < LEVELS - 1 and kept > limit:
            level += 1
            kept = _kept(mixed, counts, many, most, level)
    mask = (_ONE << U64(level)) - _ONE
    for i in range(U64(many)):
        g = mixed[i]
        left[i] = U8(min(U64(counts[i]), most) if g & mask == _ZERO else _ZERO)
        byte[i] = U8(((g >> U64(56)) & U64(0xFE)) | ((g >> U64(level)) & _ONE))
    return level, np.int64(min(kept, limit))


@lean_kernel
def write(ids, start, end, left, byte, out, at, stop):
    """Append the bytes of tokens ids[start:end] that are left to out[at:stop] -> the new end; left is counted down.

    stop: where nothing can be left; the text is read no further than some tokens beyond the last one kept.
    """
    to, end_of_tape = U64(at), U64(stop)
    i, last = U64(start), U64(end)
    while i < last and to < end_of_tape:
        until = min(i + _AT_ONCE, last)
        while i < until:
            # without a branch: which tokens are sampled is not to be foreseen
            token = U64(ids[i])
            more = left[token]
            on = U8(more != U8(0))
            left[token] = more - on
            if to < end_of_tape:
                out[to] = byte[token]
            to += U64(on)
            i += _ONE
    return np.int64(min(to, end_of_tape))


@lean_kernel
def common_subsequence(rows, words, other, start, end, state):
    """Length of the longest common subsequence of A and other[start:end] (Hyyro 2004, bit-parallel).

    rows uint64[256 * words]: bit j of row c is set if A[j] == c. state uint64[words]
    scratch. Positions outside A are 0 in every row. One machine word per 64 positions of A:
    V = all ones; for each byte c: U = V & rows[c]; V = (V + U) | (V - U), with the carry of the sum over all words; the
    zeros of V count the subsequence.
    """
    for w in range(U64(words)):
        state[w] = ~_ZERO
    for i in range(U64(start), U64(end)):
        row = U64(other[i]) * U64(words)
        carry = _ZERO
        for w in range(U64(words)):
            v = state[w]
            u = v & rows[row + w]
            low = v + u
            total = low + carry
            carry = U64(low < v) | U64(total < low)
            state[w] = total | (v - u)
    length = 0
    for w in range(U64(words)):
        rest = ~state[w]
        while rest != _ZERO:
            rest &= rest - _ONE
            length += 1
    return length
