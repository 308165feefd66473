"""Algorithm C: random projections of a page's tokens (Charikar 2002), counted in bit-sliced vertical counters.

The plain equation: bit i = 1 if sum over distinct tokens t of weight(t) * (+1 if projection(t)[i] else -1) > 0. In
other
words: if the tokens whose projection has the bit have more than half of all weight. Word w of a token's projection is
mix(t + offsets[w]).

Tokens with equal numbers of occurrences have equal weights. Their projections are summed first, and the sum is added to
the counters of the page once for each binary digit of the weight (see `neardup.kernels.planes`).
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import leading_zeros, trailing_zeros
from neardup.kernels.lanes import LANES
from neardup.kernels.planes import STEP, STEP_PLANES, add_planes, add_token, add_tokens

U64 = np.uint64
U32 = np.uint32
#: Binary digits of a counter.
_DIGITS = 40
#: Words of the counters: those of a group, of the raw sums, and of the log-tf sums.
_RAW_AT = _DIGITS * LANES
_LOG_AT = 2 * _RAW_AT
COUNTERS = 3 * _RAW_AT
_ZERO, _ONE = U64(0), U64(1)


@lean_kernel
def _digits(number):
    return 64 - np.int64(leading_zeros(U64(number)))


@lean_kernel
def _add(counters, digits, weight, at, top):
    """Add the group's counters `weight` times to the `top` planes at `at`."""
    while weight != _ZERO:
        digit = np.int64(trailing_zeros(weight))
        add_planes(counters, 0, digits, at + digit * LANES, top - digit)
        weight &= weight - _ONE


@lean_kernel
def _sum(tokens, order, start, end, offsets, counters):
    """Sum the projections of tokens[order[start:end]] in the group's counters -> digits used."""
    digits = _digits(end - start)
    counters[: max(digits, STEP_PLANES) * LANES] = _ZERO
    at = start
    while at + STEP <= end:
        add_tokens(tokens, order, at, offsets, counters, digits)
        at += STEP
    while at < end:
        add_token(tokens, order, at, offsets, counters, digits)
        at += 1
    return digits


@lean_kernel
def _finish(counters, planes, used, total, out):
    """Set in out[w] the bits whose counters exceed total / 2."""
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
def _by_count(counts, many, last, place, order, others):
    """Sort token numbers 0 to many - 1 by min(counts, last) -> (greatest count, sum of counts).

    order uint32 out: the sorted numbers. place int64 out: end of each count's numbers in order.
    others uint32[>= many] scratch. Most tokens occur once. They are separated from the others without a branch, and
    without a histogram counter, on which each of them would have to wait.
    """
    ones = rest = _ZERO
    total = most = _ZERO
    for i in range(U64(many)):
        count = U64(counts[i])
        total += count
        most = max(most, count)
        order[ones] = U32(i)
        others[rest] = U32(i)
        ones += U64(count == _ONE)
        rest += U64(count != _ONE)
    most = min(most, last)
    place[: most + U64(2)] = 0
    for i in range(rest):
        place[min(U64(counts[others[i]]), last) + _ONE] += 1
    place[2] = np.int64(ones)
    for c in range(U64(2), most + _ONE):
        place[c + _ONE] += place[c]
    for i in range(rest):
        c = min(U64(counts[others[i]]), last)
        order[place[c]] = others[i]
        place[c] += 1
    place[1] = np.int64(ones)
    return most, total


@lean_kernel
def simhashes(tokens, counts, many, weights, offsets, place, order, others, counters, raw_out, log_out):
    """Two simhashes of a page -> raw_out, log_out uint64[words <= 8]. Bit 0 is the lowest bit of word 0.

    A token that occurs c times has weight c in raw_out (algorithm C) and weights[min(c, last)] in log_out. A page
    without tokens gives zero.
    tokens uint64[>= many]: distinct tokens. counts uint32[>= many]: their occurrences, whose sum is below 2**32.
    weights uint64, below 2**7. offsets uint64[8].
    place int64[len(weights) + 1], order, others uint32[>= many], counters uint64[COUNTERS]: scratch.
    """
    last = U64(len(weights) - 1)
    most, raw_total = _by_count(counts, many, last, place, order, others)
    log_total = _ZERO
    start = np.int64(0)
    for c in range(_ONE, most + _ONE):
        log_total += weights[c] * U64(place[c] - start)
        start = place[c]
    raw_top, log_top = _digits(raw_total), _digits(log_total)
    counters[_RAW_AT : _RAW_AT + raw_top * LANES] = _ZERO
    counters[_LOG_AT : _LOG_AT + log_top * LANES] = _ZERO
    start = np.int64(0)
    for c in range(_ONE, most + _ONE):
        while start < place[c]:
            # beyond the table of weights, equal weights have different counts
            end = place[c] if c < last else start + 1
            digits = _sum(tokens, order, start, end, offsets, counters)
            _add(counters, digits, U64(counts[order[start]]), _RAW_AT, raw_top)
            _add(counters, digits, weights[c], _LOG_AT, log_top)
            start = end
    _finish(counters, _RAW_AT, raw_top, raw_total, raw_out)
    _finish(counters, _LOG_AT, log_top, log_total, log_out)
