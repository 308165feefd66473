"""Algorithm C: random projections of a page's tokens (Charikar 2002), counted in bit-sliced vertical counters.

The plain equation: bit i = 1 if sum over distinct tokens t of weight(t) * (+1 if projection(t)[i] else -1) > 0, that
is, if the weights of the tokens whose projection has the bit sum to more than half of all weights. Lane w of a token's
projection is the word mix(t + offsets[w]).

Binary digits of counters lie in *planes*: bit i of planes[p, w] is digit p of the counter of bit i of word w. A token
of weight 5 = 101b goes into the bins of digits 0 and 2; a full bin of 16 words is added to the planes from its digit on by
a tree of carry-save adders, so that carries ripple only once in 16 words.
"""

import numpy as np

from neardup.kernels import kernel
from neardup.kernels.mix import mix

U64 = np.uint64
#: Words of a projection are padded to this many.
LANES = 8
#: Words that a bin gathers before they are added.
BIN = 16
#: Digits of a counter: 2**40 occurrences.
PLANES = 40
_ZERO, _ONE = U64(0), U64(1)


@kernel
def clear(planes, fill):
    """Empty the counters. planes uint64[40, 8], fill int64[40]."""
    planes[:] = _ZERO
    fill[:] = 0


@kernel
def _drain(planes, bins, digit):
    """Add the 16 words of each lane in bins[digit] to the counters, with the weight 2 ** digit."""
    carried = _ZERO
    p = digit
    top = bins[digit]
    carry = bins[digit, 0]
    for w in range(U64(8)):
        ones, twos, fours, eights = planes[p, w], planes[p + 1, w], planes[p + 2, w], planes[p + 3, w]
        # carry-save adder: (a, b, c) -> sum a ^ b ^ c, carry majority(a, b, c)
        a, b = top[0, w], top[1, w]
        u = ones ^ a
        t0 = (ones & a) | (u & b)
        ones = u ^ b
        a, b = top[2, w], top[3, w]
        u = ones ^ a
        t1 = (ones & a) | (u & b)
        ones = u ^ b
        u = twos ^ t0
        f0 = (twos & t0) | (u & t1)
        twos = u ^ t1
        a, b = top[4, w], top[5, w]
        u = ones ^ a
        t0 = (ones & a) | (u & b)
        ones = u ^ b
        a, b = top[6, w], top[7, w]
        u = ones ^ a
        t1 = (ones & a) | (u & b)
        ones = u ^ b
        u = twos ^ t0
        f1 = (twos & t0) | (u & t1)
        twos = u ^ t1
        u = fours ^ f0
        e0 = (fours & f0) | (u & f1)
        fours = u ^ f1
        a, b = top[8, w], top[9, w]
        u = ones ^ a
        t0 = (ones & a) | (u & b)
        ones = u ^ b
        a, b = top[10, w], top[11, w]
        u = ones ^ a
        t1 = (ones & a) | (u & b)
        ones = u ^ b
        u = twos ^ t0
        f0 = (twos & t0) | (u & t1)
        twos = u ^ t1
        a, b = top[12, w], top[13, w]
        u = ones ^ a
        t0 = (ones & a) | (u & b)
        ones = u ^ b
        a, b = top[14, w], top[15, w]
        u = ones ^ a
        t1 = (ones & a) | (u & b)
        ones = u ^ b
        u = twos ^ t0
        f1 = (twos & t0) | (u & t1)
        twos = u ^ t1
        u = fours ^ f0
        e1 = (fours & f0) | (u & f1)
        fours = u ^ f1
        u = eights ^ e0
        carry[w] = (eights & e0) | (u & e1)
        eights = u ^ e1
        planes[p, w], planes[p + 1, w], planes[p + 2, w], planes[p + 3, w] = ones, twos, fours, eights
        carried |= carry[w]
    p += 4
    while carried != _ZERO:
        carried = _ZERO
        for w in range(U64(8)):
            c = carry[w]
            old = planes[p, w]
            planes[p, w] = old ^ c
            carry[w] = old & c
            carried |= carry[w]
        p += 1


@kernel
def vote(token, weight, offsets, planes, bins, fill):
    """Count one token with an integer weight > 0. offsets uint64[8]; bins uint64[40, 16, 8]; fill int64[40]."""
    rest = U64(weight)
    digit = 0
    while rest != _ZERO:
        if rest & _ONE:
            at = fill[digit]
            for w in range(U64(8)):
                bins[digit, at, w] = mix(token + offsets[w])
            at += 1
            if at == BIN:
                _drain(planes, bins, digit)
                at = 0
            fill[digit] = at
        rest >>= _ONE
        digit += 1


@kernel
def finish(planes, bins, fill, total, words, out):
    """Drain what is left in the bins; out[w] = the bits whose counters exceed total / 2, for w < words."""
    for digit in range(PLANES):
        if fill[digit] > 0:
            bins[digit, fill[digit] :] = _ZERO
            _drain(planes, bins, digit)
            fill[digit] = 0
    half = U64(total) >> _ONE
    for w in range(words):
        greater = _ZERO
        equal = ~_ZERO
        for back in range(PLANES):
            p = PLANES - 1 - back
            digits = planes[p, w]
            if (half >> U64(p)) & _ONE:
                equal &= digits
            else:
                greater |= equal & digits
                equal &= ~digits
        out[w] = greater


@kernel
def simhash(tokens, counts, many, weights, offsets, planes, bins, fill, out):
    """Simhash of distinct tokens -> out uint64[words <= 8], bit 0 = lowest bit of word 0.

    tokens uint64[>= many], counts uint32[>= many] occurrences. weights uint64[w]: a token that occurs c times counts
    weights[min(c, w - 1)]; empty: it counts c (algorithm C itself). No tokens give zero.
    """
    clear(planes, fill)
    total = _ZERO
    last = len(weights) - 1
    for i in range(U64(many)):
        weight = U64(counts[i])
        if last >= 0:
            weight = weights[min(np.int64(weight), last)]
        total += weight
        vote(tokens[i], weight, offsets, planes, bins, fill)
    finish(planes, bins, fill, total, len(out), out)
