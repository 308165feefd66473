"""Whether two URLs are one address, written in two ways: percent-encodings and the order of parameters differ."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.mix import mix
from neardup.kernels.urls import hex_digit, is_hex

U64 = np.uint64
U8 = np.uint8
_PERCENT, _QUESTION, _HASH, _PLUS = U8(0x25), U8(0x3F), U8(0x23), U8(0x2B)
_AMPERSAND, _SEMICOLON = U8(0x26), U8(0x3B)
_PRIME = U64(0x100000001B3)


def _delimiters():
    """Table of the bytes that mean something else if they are encoded."""
    out = np.zeros(256, np.uint8)
    for byte in b"/?#&;=+%":
        out[byte] = 1
    return out


_DELIMITERS = _delimiters()


@lean_kernel
def character(text, at, end, in_query):
    """(decoded byte at text[at], position behind it). An encoded delimiter is not the delimiter, but 256 more.

    in_query: a plus sign is a space.
    """
    c = text[at]
    if c == _PERCENT and at + 2 < end and is_hex(text[at + 1]) and is_hex(text[at + 2]):
        decoded = np.int64(hex_digit(text[at + 1])) << np.int64(4) | np.int64(hex_digit(text[at + 2]))
        return decoded + 256 * np.int64(_DELIMITERS[decoded]), at + 3
    if in_query and c == _PLUS:
        return np.int64(0x20), at + 1
    return np.int64(c), at + 1


@lean_kernel
def _parameters(text, at, end):
    """(hash of the parameters of the query that begins at text[at], whatever their order; its end)."""
    total, one, size = U64(0), U64(0), np.int64(0)
    while at < end and text[at] != _HASH:
        if text[at] in (_QUESTION, _AMPERSAND, _SEMICOLON):
            total += mix(one) if size > 0 else U64(0)
            one, size = U64(0), np.int64(0)
            at += 1
            continue
        code, at = character(text, at, end, True)
        one = (one ^ U64(code + 1)) * _PRIME
        size += 1
    return total + (mix(one) if size > 0 else U64(0)), at


@lean_kernel
def same_url(text, a, a_end, b, b_end):
    """Whether text[a:a_end], text[b:b_end] are two ways to write one URL; False for two empty ones."""
    if a == a_end or b == b_end:
        return False
    while a < a_end and b < b_end and text[a] != _QUESTION and text[b] != _QUESTION:
        one, a = character(text, a, a_end, False)
        other, b = character(text, b, b_end, False)
        if one != other:
            return False
    for at, end in ((a, a_end), (b, b_end)):
        if at < end and text[at] != _QUESTION:
            return False
    one, a = _parameters(text, a, a_end)
    other, b = _parameters(text, b, b_end)
    if one != other or a_end - a != b_end - b:
        return False
    for i in range(a_end - a):  # noqa: SIM110  (numba has no generator expressions)
        if text[a + i] != text[b + i]:
            return False
    return True
