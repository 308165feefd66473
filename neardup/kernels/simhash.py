"""Algorithm C: random projections of a page's tokens (Charikar 2002), counted in bit-sliced vertical counters.

The plain equation: bit i = 1 if sum over distinct tokens t of weight(t) * (+1 if projection(t)[i] else -1) > 0, that
is, if the weights of the tokens whose projection has the bit sum to more than half of all weights. Word w of a token's
projection is mix(t + offsets[w]).

Binary digits of counters lie in *planes*: bit i of word w of plane p is digit p of the counter of bit i of word w. A
token of weight 5 = 101b goes into the bins of digits 0 and 2. A full bin of 16 rows is added to the planes from its
digit on by carry-save adders; the row that they carry goes into the bin four digits higher. Nothing ever ripples.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import leading_zeros, trailing_zeros
from neardup.kernels.lanes import LANES, STEP, add_rows, copy_row, project

U64 = np.uint64
U32 = np.uint32
#: Digits of a weight, and of a sum of weights that a counter can hold.
DIGITS = 40
_PLANES = DIGITS + 4
_BIN = STEP * LANES
#: Words of a counters array: planes, bins, a row of scratch.
_BINS_AT = _PLANES * LANES
_ROW_AT = _BINS_AT + DIGITS * _BIN
COUNTERS = _ROW_AT + LANES
_ZERO, _ONE = U64(0), U64(1)


@lean_kernel
def clear(counters, fill):
    """Empty the counters: uint64[COUNTERS], int64[DIGITS]."""
    counters[:_BINS_AT] = _ZERO
    fill[:] = 0


@lean_kernel
def _drain(counters, fill, digit):
    """Add a bin of 16 rows to the planes, and those above that its carry fills."""
    while True:
        fill[digit] = 0
        above = digit + 4
        # sums stay below 2**DIGITS: what the highest digits carry is zero and may go anywhere
        carry = _ROW_AT if above >= DIGITS else _BINS_AT + above * _BIN + fill[above] * LANES
        add_rows(counters, _BINS_AT + digit * _BIN, counters, digit * LANES, carry)
        if above >= DIGITS:
            break
        fill[above] += 1
        if fill[above] < STEP:
            break
        digit = above


@lean_kernel
def vote(row, at, weight, counters, fill):
    """Count the projection row[at : at + 8] with an integer weight from 1 to 2**DIGITS - 1."""
    rest = U64(weight)
    while rest != _ZERO:
        digit = np.int64(trailing_zeros(rest))
        copy_row(row, at, counters, _BINS_AT + digit * _BIN + fill[digit] * LANES)
        fill[digit] += 1
        if fill[digit] == STEP:
            _drain(counters, fill, digit)
        rest &= rest - _ONE


@lean_kernel
def finish(counters, fill, total, out):
    """Drain what is left in the bins; out[w] = the bits whose counters exceed total / 2. total: of all weights."""
    used = 64 - np.int64(leading_zeros(U64(total)))  # no counter has more digits
    for digit in range(used):
        if fill[digit] > 0:
            at = _BINS_AT + digit * _BIN
            counters[at + fill[digit] * LANES : at + _BIN] = _ZERO
            _drain(counters, fill, digit)
    half = U64(total) >> _ONE
    for w in range(len(out)):
        greater = _ZERO
        equal = ~_ZERO
        for back in range(used):
            p = used - 1 - back
            digits = counters[p * LANES + w]
            ones = _ZERO - ((half >> U64(p)) & _ONE)  # all ones or all zeros
            greater |= equal & digits & ~ones
            equal &= ~(digits ^ ones)
        out[w] = greater


@lean_kernel
def _by_count(counts, many, last, place, order):
    """Sort numbers 0 to many - 1 by min(counts, last) -> order uint32; place int64[last + 2] scratch."""
    place[:] = 0
    for i in range(U64(many)):
        place[min(U64(counts[i]), last) + _ONE] += 1
    for c in range(len(place) - 1):
        place[c + 1] += place[c]
    for i in range(U64(many)):
        c = min(U64(counts[i]), last)
        order[place[c]] = U32(i)
        place[c] += 1


@lean_kernel
def simhashes(tokens, counts, many, weights, offsets, place, order, raw, raw_fill, log, log_fill, raw_out, log_out):
    """Two simhashes of one page -> raw_out, log_out uint64[words <= 8]; bit 0 = lowest bit of word 0.

    tokens uint64[>= many] distinct, counts uint32[>= many] their occurrences, in all below 2**32. A token that occurs c
    times counts c in raw_out (algorithm C) and weights[min(c, last)] in log_out (uint64, below 2**7). offsets
    uint64[8]. Scratch: place int64[len(weights) + 1], order uint32[>= many], raw, log uint64[COUNTERS], raw_fill,
    log_fill int64[DIGITS]. No tokens give zero.
    """
    clear(raw, raw_fill)
    clear(log, log_fill)
    raw_total = log_total = _ZERO
    last = U64(len(weights) - 1)
    # in the order of their weights, so that the digits of the next are nearly always those of this one
    _by_count(counts, many, last, place, order)
    for i in range(U64(many)):
        token = order[i]
        count = U64(counts[token])
        weight = weights[min(count, last)]
        raw_total += count
        log_total += weight
        project(tokens[token], offsets, raw, _ROW_AT)
        vote(raw, _ROW_AT, count, raw, raw_fill)
        vote(raw, _ROW_AT, weight, log, log_fill)
    finish(raw, raw_fill, raw_total, raw_out)
    finish(log, log_fill, log_total, log_out)
