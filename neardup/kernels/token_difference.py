# mypy: ignore-errors
"""The longest common subsequence of two long token sequences, exact, in linear memory."""

import numpy as np

from neardup.kernels import kernel
from neardup.kernels.bits import ones

U64 = np.uint64
_ONE, _ALL = U64(1), U64(0xFFFFFFFFFFFFFFFF)


@kernel
def common(first, following, b, places):
    """Length of the longest common subsequence of a and b -> int64; bit-parallel, n * m / 64 steps (Hyyro 2004).

    Sequence a has `places` tokens and is given by its positions: first[t] is the first position of token t,
    following[p] the next position of the token at p; -1 ends. b int64[m]: tokens, -1 for a token that a lacks.
    """
    words = (places + 63) // 64
    open_bits, match = np.full(words, _ALL, np.uint64), np.zeros(words, np.uint64)
    for j in range(len(b)):
        token = b[j]
        if token < 0:
            continue
        p = first[token]
        while p >= 0:
            match[p >> 6] |= _ONE << U64(p & 63)
            p = following[p]
        carry = U64(0)
        for w in range(words):
            v = open_bits[w]
            u = v & match[w]
            total = v + u
            over = U64(total < v)
            total += carry
            over |= U64(total < carry)
            carry = over
            open_bits[w] = total | (v & ~match[w])
        p = first[token]
        while p >= 0:
            match[p >> 6] = U64(0)
            p = following[p]
    length = np.int64(0)
    for w in range(words):
        bits = ~open_bits[w]
        if w == words - 1 and places & 63:
            bits &= (_ONE << U64(places & 63)) - _ONE
        length += np.int64(ones(bits))
    return length
