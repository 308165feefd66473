"""Masks of 64-byte windows. See `neardup.kernels.operations`.

A window is the 64 bytes from an index on; bit i of a mask describes byte i of the window.
"""

from numba import types

from neardup.kernels.operations import (
    BYTE,
    BYTES16,
    BYTES64,
    I16,
    I64,
    NOTHING,
    NUMBER,
    WORD,
    cast,
    conditions,
    extend,
    operation,
    where,
    within,
    zeros_below,
)


def masks(number):
    """Return a decorator: an operation that returns masks of a window, from a function that returns conditions."""

    def decorate(build):
        def found(array, index):
            made = tuple(cast(each, I64) for each in build(array.load(index, BYTES64)))
            return made if number > 1 else made[0]

        found.__name__, found.__doc__ = build.__name__, build.__doc__
        return operation(types.UniTuple(WORD, number) if number > 1 else WORD, None, NUMBER)(found)

    return decorate


def _is_one_of(window, characters):
    first, *others = (window == ord(each) for each in characters)
    for other in others:
        first = first | other
    return first


@operation(NOTHING, None, NUMBER, None, NUMBER)
def copy_text(source, at, target, to):
    """Copy a window, white space as spaces, other control characters as U+007F."""
    window = source.load(at, BYTES64)
    control = where(within(window, 9, 13), 0x20, 0x7F)
    target.store(to, where(window < 0x20, control, window))


@operation(WORD, None, NUMBER, BYTE)
def find_byte(array, index, value):
    """Mask of the bytes equal to `value` in a window."""
    return cast(array.load(index, BYTES64) == value, I64)


@masks(6)
def tag_masks(window):
    """Masks of a window: end of a tag's name (white space / >), `>`, `"`, `'`, `=`, ASCII letters."""
    end = _is_one_of(window, ">/ ") | within(window, 9, 10) | within(window, 12, 13)
    return end, *(window == ord(each) for each in ">\"'="), within(window | 0x20, ord("a"), ord("z"))


@operation(NUMBER, None, NUMBER)
def name_length(array, index):
    """Bytes from index to the first `>`, `/`, white space or control character; 16 if none of 16 is one."""
    window = array.load(index, BYTES16)
    return zeros_below(extend(cast(_is_one_of(window, ">/") | (window <= 0x20), I16), I64) | 1 << 16)


@masks(1)
def markup_mask(window):
    """Mask of the bytes `<` and `&` in a window."""
    return (_is_one_of(window, "<&"),)


@masks(4)
def url_masks(window):
    """Masks of a window: bytes that make a URL unusual (controls, white space, # & ? @ backslash), `/`, `.`, `:`."""
    return (window <= 0x20) | _is_one_of(window, "#&?@\\"), *(window == ord(each) for each in "/.:")


@operation(NOTHING, None, NUMBER)
def lower_case(array, index):
    """Lower-case the ASCII letters of a window in place."""
    window = array.load(index, BYTES64)
    array.store(index, where(within(window, ord("A"), ord("Z")), window | 0x20, window))


@masks(6)
def word_masks(window):
    """Masks of a window without ASCII capitals.

    In order: ASCII letters and digits; ASCII digits; byte 3 (block boundary); bytes 4 and 5 (start and end of a link);
    bytes 1 and 2 (start and end of a term); bytes from 0x7F on.
    """
    digit = within(window, ord("0"), ord("9"))
    marks = (window == 3, within(window, 4, 5), within(window, 1, 2))
    return digit | within(window, ord("a"), ord("z")), digit, *marks, window >= 0x7F


@operation(NOTHING, None, NUMBER, WORD, WORD, WORD)
def flag_bytes(array, index, two, four, eight):
    """Write 64 bytes: byte i has bits 2, 4 and 8 where bit i of the masks is set."""
    first, second, third = (where(conditions(mask, 64), bit, 0) for mask, bit in ((two, 2), (four, 4), (eight, 8)))
    array.store(index, first | second | third)
