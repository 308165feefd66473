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
#: Words of a set of counters: planes, bins, a row of scratch.
_BINS_AT = _PLANES * LANES
_ROW_AT = _BINS_AT + DIGITS * _BIN
COUNTERS = _ROW_AT + LANES
_ZERO, _ONE = U64(0), U64(1)


@lean_kernel
def _drain(counters, fill, base, digit):
    """Add a bin of 16 rows to the planes, and those above that its carry fills. base: of this set of counters."""
    bins = base * COUNTERS + _BINS_AT
    while True:
        fill[base * DIGITS + digit] = 0
        above = digit + 4
        # sums stay below 2**DIGITS: what the highest digits carry is zero and may go anywhere
        carry = base * COUNTERS + _ROW_AT
        if above < DIGITS:
            carry = bins + above * _BIN + fill[base * DIGITS + above] * LANES
        add_rows(counters, bins + digit * _BIN, counters, base * COUNTERS + digit * LANES, carry)
        if above >= DIGITS:
            break
        fill[base * DIGITS + above] += 1
        if fill[base * DIGITS + above] < STEP:
            break
        digit = above


@lean_kernel
def _finish(counters, fill, base, total, out):
    """Drain what is left in the bins; out[w] = the bits whose counters exceed total / 2. total: of all weights."""
    used = 64 - np.int64(leading_zeros(U64(total)))  # no counter has more digits
    planes = base * COUNTERS
    for digit in range(used):
        rows = fill[base * DIGITS + digit]
        if rows > 0:
            at = planes + _BINS_AT + digit * _BIN
            counters[at + rows * LANES : at + _BIN] = _ZERO
            _drain(counters, fill, base, digit)
    half = U64(total) >> _ONE
    for w in range(len(out)):
        greater = _ZERO
        equal = ~_ZERO
        for back in range(used):
            p = used - 1 - back
            digits = counters[planes + p * LANES + w]
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
def simhashes(tokens, counts, many, weights, offsets, place, order, counters, fill, raw_out, log_out):
    """Two simhashes of one page -> raw_out, log_out uint64[words <= 8]; bit 0 = lowest bit of word 0.

    tokens uint64[>= many] distinct, counts uint32[>= many] their occurrences, in all below 2**32. A token that occurs c
    times counts c in raw_out (algorithm C) and weights[min(c, last)] in log_out (uint64, below 2**7). offsets
    uint64[8]. Scratch: place int64[len(weights) + 1], order uint32[>= many], counters uint64[2 * COUNTERS], fill
    int64[2 * DIGITS]. No tokens give zero.
    """
    counters[:_BINS_AT] = _ZERO
    counters[COUNTERS : COUNTERS + _BINS_AT] = _ZERO
    fill[:] = 0
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
        project(tokens[token], offsets, counters, _ROW_AT)
        for base in range(2):
            rest = weight if base else count
            while rest != _ZERO:
                digit = np.int64(trailing_zeros(rest))
                rows = fill[base * DIGITS + digit]
                to = base * COUNTERS + _BINS_AT + digit * _BIN + rows * LANES
                copy_row(counters, _ROW_AT, counters, to)
                fill[base * DIGITS + digit] = rows + 1
                if rows + 1 == STEP:
                    _drain(counters, fill, base, digit)
                rest &= rest - _ONE
    _finish(counters, fill, 0, raw_total, raw_out)
    _finish(counters, fill, 1, log_total, log_out)
