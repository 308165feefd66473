"""Finds pages that differ in the words of their own queries alone: two searches without results, two forms filled in.

Titles, headings and texts print what was searched for, and the query of the URL has it. All else must be equal.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.same_url import character

U8 = np.uint8
_QUESTION = U8(0x3F)
#: Bytes of a query, and of the part of a title in which it differs, that are compared: a bound for hostile pages.
_QUERY_MAX, _PART_MAX = 256, 64


@lean_kernel
def _is_digit(c):
    return c >= U8(0x30) and c <= U8(0x39)


@lean_kernel
def _lower(c):
    return c | U8(32) if c >= U8(0x41) and c <= U8(0x5A) else c


@lean_kernel
def _is_word(c):
    """Whether the byte belongs to a word: letters and digits of ASCII, and all of other scripts."""
    low = _lower(c)
    return _is_digit(c) or (low >= U8(0x61) and low <= U8(0x7A)) or c >= U8(0x80)


@lean_kernel
def _queries(text, a, a_end, b, b_end):
    """Offset of both queries, if the URLs text[a:a_end], text[b:b_end] are equal up to them; else -1."""
    for i in range(min(a_end - a, b_end - b)):
        if text[a + i] != text[b + i]:
            return np.int64(-1)
        if text[a + i] == _QUESTION:
            return np.int64(i + 1)
    return np.int64(-1)


@lean_kernel
def _parts(text, a, a_end, b, b_end):
    """(first, end, other's first, other's end) of the words in which the titles text[a:a_end], text[b:b_end] differ."""
    same = 0
    while a + same < a_end and b + same < b_end and text[a + same] == text[b + same]:
        same += 1
    while same > 0 and _is_word(text[a + same - 1]):
        same -= 1
    a += same
    b += same
    stop_a, stop_b = a_end, b_end
    while stop_a > a and stop_b > b and text[stop_a - 1] == text[stop_b - 1]:
        stop_a -= 1
        stop_b -= 1
    while stop_a < a_end and _is_word(text[stop_a]):
        stop_a += 1
        stop_b += 1
    return a, stop_a, b, stop_b


@lean_kernel
def _words(text, start, end):
    """Number of words of text[start:end]; -1 if it has a digit, as a number may be that of a record."""
    many = np.int64(0)
    for i in range(start, end):
        if _is_digit(text[i]):
            return np.int64(-1)
        many += _is_word(text[i]) and (i == start or not _is_word(text[i - 1]))
    return many


@lean_kernel
def _decoded(text, at, end):
    """(byte, bytes that it takes) of the query text[at:end]: percent-decoded, in lower case of ASCII, a space for +."""
    decoded, behind = character(text, at, end, True)
    return _lower(U8(decoded & 0xFF)), behind - at


@lean_kernel
def _begins(text, at, stop, start, end):
    """Whether the query text[at:stop], decoded, begins with text[start:end] as whole words."""
    for i in range(start, end):
        if at >= stop:
            return False
        c, size = _decoded(text, at, stop)
        if c != _lower(text[i]):
            return False
        at += size
    return at >= stop or not _is_word(_decoded(text, at, stop)[0])


@lean_kernel
def _has(text, at, stop, start, end):
    """Whether the query text[at:stop], decoded, has text[start:end] as whole words."""
    divided = True
    for _ in range(_QUERY_MAX):
        if at >= stop:
            break
        if divided and _begins(text, at, stop, start, end):
            return True
        c, size = _decoded(text, at, stop)
        divided = not _is_word(c)
        at += size
    return False


@lean_kernel
def _same_but(text, a, a_size, b, b_size, words_a, words_b):
    """Whether the tapes text[a:a+a_size], text[b:b+b_size] are equal but for words that stand for each other.

    These are the words_a and words_b bytes where the tapes first differ, wherever they stand.
    """
    first_a = first_b = np.int64(-1)
    i = j = np.int64(0)
    while i < a_size and j < b_size:
        if text[a + i] == text[b + j]:
            i += 1
            j += 1
            continue
        if first_a < 0:
            first_a, first_b = i, j
        if i + words_a > a_size or j + words_b > b_size:
            return False
        for k in range(words_a):
            if text[a + i + k] != text[a + first_a + k]:
                return False
        for k in range(words_b):
            if text[b + j + k] != text[b + first_b + k]:
                return False
        i += words_a
        j += words_b
    return i == a_size and j == b_size and first_a >= 0


@lean_kernel
def differ_in_own_query(text, tapes, urls, titles):
    """Whether two pages differ only in words of their titles that their own URLs have in the query.

    The URLs are equal up to the query. The words have no digits.
    text uint8. tapes, urls, titles: (first, end, other's first, other's end) of the two pages' tapes of level 0, URLs,
    and titles as written.
    """
    start = _queries(text, *urls)
    if start < 0:
        return False
    a, a_end, b, b_end = _parts(text, *titles)
    if a_end <= a or b_end <= b or max(a_end - a, b_end - b) > _PART_MAX:
        return False
    words_a, words_b = _words(text, a, a_end), _words(text, b, b_end)
    if words_a < 1 or words_b < 1:
        return False
    if not (_has(text, urls[0] + start, urls[1], a, a_end) and _has(text, urls[2] + start, urls[3], b, b_end)):
        return False
    return _same_but(text, tapes[0], tapes[1] - tapes[0], tapes[2], tapes[3] - tapes[2], words_a, words_b)
