"""Code points in UTF-8, and their entries in the table of Unicode (`neardup.text.unicode`)."""

import numpy as np

from neardup.kernels import inlined_kernel, lean_kernel

U64 = np.uint64

# Bits of a table entry and classes: see neardup/text/unicode.
POINT_MASK = 0x1FFFFF
DIGIT_SHIFT, CLASS_SHIFT, CLASS_MASK, RANK_SHIFT = 21, 22, 15, 26
NONE, WORD, FOLD, IGNORED = 0, 1, 8, 9
#: Rank of a code point that is no mark, and may compose with the one before it.
SECOND = 31
#: The tables of pairs.
PAIR_SLOTS, PAIRS = 2048, 8704
WHOLES = PAIRS + 3 * PAIR_SLOTS


@inlined_kernel
def decode_point(text, at, end):
    """(code point, length) of the UTF-8 sequence at text[at]; (-1, 1) where it is malformed."""
    i = U64(at)  # an index without a sign needs no test for one
    a = np.int64(text[i])
    bad = np.int64(-1)
    if a < 0x80:
        return a, 1
    if a < 0xC2 or a > 0xF4:
        return bad, 1
    if at + 1 >= end:
        return bad, 1
    b = np.int64(text[i + U64(1)])
    if b & 0xC0 != 0x80:
        return bad, 1
    if a < 0xE0:
        return (a & 31) << 6 | (b & 63), 2
    if at + 2 >= end:
        return bad, 1
    c = np.int64(text[i + U64(2)])
    if c & 0xC0 != 0x80:
        return bad, 1
    if a < 0xF0:
        point = (a & 15) << 12 | (b & 63) << 6 | (c & 63)
        if point < 0x800 or (point >= 0xD800 and point <= 0xDFFF):
            return bad, 1
        return point, 3
    if at + 3 >= end:
        return bad, 1
    d = np.int64(text[i + U64(3)])
    if d & 0xC0 != 0x80:
        return bad, 1
    point = (a & 7) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63)
    if point < 0x10000 or point > 0x10FFFF:
        return bad, 1
    return point, 4


@lean_kernel
def utf8_length(point):
    """Bytes of a code point in UTF-8."""
    if point < 0x80:
        return 1
    if point < 0x800:
        return 2
    return 3 if point < 0x10000 else 4


@lean_kernel
def put_utf8(text, at, point, length):
    """Write a code point as UTF-8."""
    if length == 1:
        text[at] = point
        return
    for i in range(length - 1, 0, -1):
        text[at + i] = 0x80 | (point & 63)
        point >>= 6
    lead = 0xC0 if length == 2 else (0xE0 if length == 3 else 0xF0)
    text[at] = lead | point


@lean_kernel
def entry_of(point, points):
    """Table entry of a code point, 0 for -1."""
    if point < 0:
        return np.int64(0)
    if point < 128:
        return np.int64(points[U64(points[0]) + U64(point)])
    block = U64(points[U64(point) >> U64(7)])
    return np.int64(points[block + U64(point & 127)])
