"""Writes the text of a page: copied bytes, resolved character references, marks."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at
from neardup.kernels.entities import put_point, reference
from neardup.kernels.markup import find
from neardup.kernels.windows import copy_text

U64 = np.uint64

#: Marks in the text. They cannot come from the page: its white space below 0x20 becomes spaces, and its other control
#: characters, which browsers do not show, become U+007F, which tokens leave out.
TERM_START, TERM_END, BLOCK, ANCHOR_START, ANCHOR_END = 1, 2, 3, 4, 5
SPACE, DELETE = 0x20, 0x7F

_BYTES3, _BYTES4, _BYTES5 = U64(0xFFFFFF), U64(0xFFFFFFFF), U64(0xFFFFFFFFFF)
_LT, _GT, _AMP, _NBSP = (U64(int.from_bytes(name, "little")) for name in (b"lt;", b"gt;", b"amp;", b"nbsp;"))


@lean_kernel
def put_byte(text, o, value):
    """Write one byte -> the position after it."""
    text[U64(o)] = value
    return o + 1


@lean_kernel
def copy(buf, at, end, text, o, limit):
    """Copy buf[at:end] to text[o:] -> the end in text. White space becomes spaces, other controls become DELETE."""
    while at < end and o < limit:
        copy_text(buf, at, text, o)
        step = min(end - at, 64)
        at += step
        o += step
    return o


@lean_kernel
def put_reference(buf, at, end, entities, text, o):
    """Resolve the reference at buf[at] == `&` -> (position in text, position in buf) after it."""
    if at + 6 <= end:  # the four most frequent references
        word = word_at(buf, at + 1)
        if word & _BYTES5 == _NBSP:
            return put_byte(text, o, SPACE), at + 6
        if word & _BYTES3 == _LT or word & _BYTES3 == _GT:
            return put_byte(text, o, 60 if word & _BYTES3 == _LT else 62), at + 4
        if word & _BYTES4 == _AMP:
            return put_byte(text, o, 38), at + 5
    length, point, second = reference(buf, at, end, False, entities)
    if length == 0:
        return put_byte(text, o, 38), at + 1
    if point == 0xA0:
        # &nbsp;, the most frequent reference, becomes a space: it separates tokens, too, and ASCII is the fast path.
        return put_byte(text, o, SPACE), at + length
    if point < SPACE and (point < 9 or point > 13):
        point = np.int64(DELETE)
    o = put_point(text, o, point)
    if second > 0:
        o = put_point(text, o, second)
    return o, at + length


@lean_kernel
def copy_references(buf, at, end, entities, text, o, limit):
    """`copy` with character references resolved, for the content of title and textarea."""
    while at < end and o < limit:
        stop = find(buf, at, end, 38)
        while stop + 1 < end and buf[stop + 1] == 38:
            stop += 1  # only the last of `&&&` can begin a reference
        o = copy(buf, at, stop, text, o, limit)
        at = stop
        if at < end and o < limit:
            o, at = put_reference(buf, at, end, entities, text, o)
            if at < end and buf[at] & 0xC0 == 0x80:
                o = put_byte(text, o, SPACE)
    return o
