"""Bit-sliced counters, eight 64-bit words at a time. See `neardup.kernels.operations`.

There is one counter for each of 512 bits. Digit p (binary) of all counters is *plane* p, of 8 words: bit i of word w of
plane p is digit p of the counter for bit i of word w. So adding a row of 512 bits costs a few operations on planes.
Offsets in arrays are in words.
"""

from neardup.kernels.lanes import LANES, mix_lanes
from neardup.kernels.operations import I32, I64, NOTHING, NUMBER, WORDS8, extend, fold, operation

#: Tokens per call of `add_tokens`.
STEP = 16
#: Least planes that `add_tokens` needs.
STEP_PLANES = 4


def _projection(tokens, order, at, offsets):
    """The projection of the token tokens[order[at]]."""
    token = tokens.load(extend(order.load(at, I32), I64), I64)
    return mix_lanes(offsets.load(0, WORDS8) + token)


def _add_bits(planes, at, digits, row, start=0):
    """Add a row of bits to planes start to digits - 1 of the counters at planes[at]."""

    def added(digit, carry):
        value = planes.load(at + digit * LANES, WORDS8)
        planes.store(at + digit * LANES, value ^ carry)
        return value & carry

    fold(digits, row, added, start)


@operation(NOTHING, None, None, NUMBER, None, None, NUMBER)
def add_tokens(tokens, order, at, offsets, planes, digits):
    """Add the projections of the 16 tokens[order[at : at + 16]] to the counters planes[: 8 * digits].

    Word w of a projection is mix(token + offsets[w]). digits: number of planes, at least 4 and enough for the sums. A
    tree of 8 + 4 + 2 + 1 carry-save adders turns three bits of one weight into a sum and a carry; the carry out of
    digit 4 ripples on.
    """
    rows = [_projection(tokens, order, at + j, offsets) for j in range(STEP)]
    for level in range(STEP_PLANES):
        value = planes.load(LANES * level, WORDS8)
        carries = []
        for x, y in zip(rows[::2], rows[1::2], strict=True):
            part = value ^ x
            carries.append((value & x) | (part & y))
            value = part ^ y
        planes.store(LANES * level, value)
        rows = carries
    _add_bits(planes, 0, digits, rows[0], STEP_PLANES)


@operation(NOTHING, None, None, NUMBER, None, None, NUMBER)
def add_token(tokens, order, at, offsets, planes, digits):
    """`add_tokens` for one token, tokens[order[at]], and any number of digits."""
    _add_bits(planes, 0, digits, _projection(tokens, order, at, offsets))


@operation(NOTHING, None, NUMBER, NUMBER, NUMBER, NUMBER)
def add_planes(planes, source, digits, target, top):
    """Add the counters at planes[source] (`digits` digits) to those at planes[target] (`top` >= digits digits)."""

    def added(digit, carry):
        a, b = (planes.load(first + digit * LANES, WORDS8) for first in (target, source))
        part = a ^ b
        planes.store(target + digit * LANES, part ^ carry)
        return (a & b) | (part & carry)

    nothing = planes.load(target, WORDS8) & 0
    _add_bits(planes, target, top, fold(digits, nothing, added), digits)
