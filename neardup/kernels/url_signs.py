"""Signs at the end of a URL that may be part of a name: `operator*` and `operator+` are two pages.

The end is the last segment of the URL's route or path, percent-decoded as UTF-8. Its signs are all characters that are
neither letters nor digits, except those that separate words: space, `-`, `_`, `.`, `,`, `;` and `~`.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.urls import hex_digit, is_hex

_PERCENT, _SLASH, _QUESTION, _HASH = 0x25, 0x2F, 0x3F, 0x23
_DIVIDING = np.frombuffer(b" -_.,;~", np.uint8).copy()
#: What replaces malformed UTF-8, and the end of the signs.
_REPLACEMENT, _NONE = 0xFFFD, -1


@lean_kernel
def _decoded(text, at, end):
    """(byte, bytes of the URL that it takes): the percent-decoded byte at text[at]."""
    c = np.int64(text[at])
    if c == _PERCENT and at + 2 < end and is_hex(text[at + 1]) and is_hex(text[at + 2]):
        return 16 * np.int64(hex_digit(text[at + 1])) + np.int64(hex_digit(text[at + 2])), 3
    return c, 1


@lean_kernel
def _next_point(text, at, end):
    """(code point, position behind it) of the character at text[at]; U+FFFD for each malformed part.

    A malformed part is as long as it could begin a character, as in the Unicode standard (section 3.9) and in Python.
    """
    lead, size = _decoded(text, at, end)
    at += size
    if lead < 0x80:
        return lead, at
    if lead < 0xC2 or lead > 0xF4:
        return _REPLACEMENT, at
    more = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
    point = lead & (0x3F >> more)
    least, most = 0x80, 0xBF
    if lead == 0xE0:
        least = 0xA0
    elif lead == 0xED:
        most = 0x9F
    elif lead == 0xF0:
        least = 0x90
    elif lead == 0xF4:
        most = 0x8F
    for _ in range(more):
        if at >= end:
            return _REPLACEMENT, at
        byte, size = _decoded(text, at, end)
        if byte < least or byte > most:
            return _REPLACEMENT, at
        point = point << 6 | (byte & 63)
        at += size
        least, most = 0x80, 0xBF
    return point, at


@lean_kernel
def _is_sign(point, alnum):
    """Whether a character is neither letter nor digit, and separates no words."""
    if point >> 3 < len(alnum) and alnum[point >> 3] >> (7 - (point & 7)) & 1:
        return False
    for i in range(len(_DIVIDING)):  # noqa: SIM110  (numba has no generator expressions)
        if point == _DIVIDING[i]:
            return False
    return True


@lean_kernel
def _next_sign(text, at, end, alnum):
    """(sign, position behind it) of the first sign from text[at] on; (_NONE, end) if there is none."""
    while at < end:
        point, at = _next_point(text, at, end)
        if _is_sign(point, alnum):
            return point, at
    return _NONE, end


@lean_kernel
def _last_segment(text, start, end):
    """(start, end) of the last segment of the URL's route, else of its path. An encoded slash ends a segment, too."""
    hash_at = start
    while hash_at < end and text[hash_at] != _HASH:
        hash_at += 1
    first = hash_at + 1
    last = first
    while last < end and text[last] != _QUESTION:
        last += 1
    if last <= first:  # no route
        slashes = 0
        first = start
        while first < hash_at and slashes < 3:
            slashes += text[first] == _SLASH
            first += 1
        last = first
        while last < hash_at and text[last] != _QUESTION:
            last += 1
    at = first
    while at < last:
        byte, size = _decoded(text, at, last)
        at += size
        if byte == _SLASH:
            first = at
    return first, last


@lean_kernel
def same_signs(text, start, end, other_start, other_end, alnum):
    """Whether the URLs text[start:end] and text[other_start:other_end], in normal form, have the same signs.

    alnum uint8: a bit for each code point, the highest of a byte first: whether it is a letter or a digit, as
    `str.isalnum` has it. Code points behind the last one are neither.
    """
    at, end = _last_segment(text, start, end)
    other_at, other_end = _last_segment(text, other_start, other_end)
    while True:
        sign, at = _next_sign(text, at, end, alnum)
        other, other_at = _next_sign(text, other_at, other_end, alnum)
        if sign != other:
            return False
        if sign == _NONE:
            return True
