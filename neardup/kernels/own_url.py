"""Finds a page's own URL in its text. Error pages and printer versions print it; records of a database do not."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, trailing_zeros
from neardup.kernels.points import OF_OWN_URL
from neardup.kernels.tape import write
from neardup.kernels.windows import find_byte

U64 = np.uint64
U8 = np.uint8
_SLASH, _QUESTION, _DOT, _COLON = U8(0x2F), U8(0x3F), U8(0x2E), U8(0x3A)
#: Least bytes of a path, slash included. A shorter one is too likely to be ordinary text.
PATH_BYTES_MIN = 4
#: Matches of the start of the URL that are examined: a bound for hostile texts that repeat the start of a long URL.
_PLACES_MAX = 256


def _joins():
    """Table of the bytes that continue a URL. If one follows the page's URL, the text contains a longer, other URL."""
    out = np.zeros(256, np.uint8)
    for byte in b"./?&=-_%+~#@:":
        out[byte] = 1
    return out


_JOINS = _joins()


@lean_kernel
def path_of(urls, start, end):
    """(first, end) of the path of the URL at urls[start:end] without slashes at its end; (0, 0) if it is too short."""
    none = (np.int64(0), np.int64(0))
    at = start
    while at + 2 < end and not (urls[at] == U8(0x3A) and urls[at + 1] == _SLASH and urls[at + 2] == _SLASH):
        at += 1
    at += 3
    while at < end and urls[at] != _SLASH:
        at += 1
    stop = at
    while stop < end and urls[stop] != _QUESTION:
        stop += 1
    while stop > at and urls[stop - 1] == _SLASH:
        stop -= 1
    if stop - at < PATH_BYTES_MIN:
        return none
    return np.int64(at), np.int64(stop)


@lean_kernel
def _is_word(c):
    return (c >= U8(0x30) and c <= U8(0x39)) or (c >= U8(0x61) and c <= U8(0x7A)) or c >= U8(0x80)


@lean_kernel
def _lower(c):
    return c | U8(32) if c >= U8(0x41) and c <= U8(0x5A) else c


@lean_kernel
def _prints(text, at, limit, urls, first, last):
    """Whether text[at:limit], lower case, starts with urls[first:last]."""
    if last - first > limit - at:
        return False
    for k in range(last - first):  # noqa: SIM110  (numba has no generator expressions)
        if text[at + k] != _lower(urls[first + k]):
            return False
    return True


@lean_kernel
def _byte(text, at, limit):
    return text[at] if at < limit else U8(0)


@lean_kernel
def _end(text, at, limit, urls, first, last, url_end):
    """End of the URL whose path begins at text[at]; -1 if the text continues to another URL."""
    if not _prints(text, at, limit, urls, first, last):
        return np.int64(-1)
    at += last - first
    while last < url_end and urls[last] == _SLASH and _byte(text, at, limit) == _SLASH:
        last += 1
        at += 1
    if url_end - last > 1 and urls[last] == _QUESTION and _prints(text, at, limit, urls, last, url_end):
        at += url_end - last
    here, then = _byte(text, at, limit), _is_word(_byte(text, at + 1, limit))
    ended = here in (_SLASH, _DOT, _COLON) and not then  # punctuation, or one slash more
    if _is_word(here) or (_JOINS[here] and not ended):
        return np.int64(-1)
    return np.int64(at)


@lean_kernel
def _next_place(text, at, limit, before, begin):
    """The first index >= at where text[:limit] has the byte `begin` after the byte `before`; limit if none."""
    while at < limit:
        found = find_byte(text, at - 1, before) & find_byte(text, at, begin) & below(limit - at)
        if found != U64(0):
            return at + trailing_zeros(found)
        at += 64
    return limit


@lean_kernel
def write_others(ids, n, text, flags, span_start, span_end, urls, path, url_end, words_max, left, byte, out, at, stop):
    """Append the bytes of tokens to out[at:stop], as `neardup.kernels.tape.write` does, but for those of the own URL.

    At most words_max tokens of the URL are left out per page. Without this bound, the author of a page could exclude
    any amount of text by his choice of the URL.

    text uint8, lower case; span_start, span_end uint32[n]: where tokens begin and end in it. flags uint8[n]: tokens of
    the own URL get OF_OWN_URL. urls[path[0]:path[1]]: the
    path of the page's URL, empty for none; url_end: where the URL ends. Returns the new end, and whether the URL is
    printed.
    """
    first, last = path
    done = words = np.int64(0)
    printed = False
    if words_max > 0 and first < last and n > 0:
        limit = np.int64(span_end[n - 1])
        # the first byte of the path's first token, and the byte before it
        lead = np.int64(0)
        while first + lead < last and not _is_word(_lower(urls[first + lead])):
            lead += 1
        if first + lead < last:
            before, begin = urls[first + lead - 1], _lower(urls[first + lead])
            i = places = np.int64(0)
            start = _next_place(text, max(lead, 1), limit, before, begin)
            while start < limit and places < _PLACES_MAX and words < words_max:
                while i < n and np.int64(span_start[i]) < start:
                    i += 1
                if i < n and np.int64(span_start[i]) == start:
                    places += 1
                    end = _end(text, start - lead, limit, urls, first, last, url_end)
                    if end >= 0:
                        at = write(ids, done, i, left, byte, out, at, stop)
                        while i < n and np.int64(span_start[i]) < end and words < words_max:
                            flags[i] |= U8(OF_OWN_URL)
                            i += 1
                            words += 1
                        done = i
                        printed = True
                        start = max(start, end - 1)
                start = _next_place(text, start + 1, limit, before, begin)
    return write(ids, done, n, left, byte, out, at, stop), printed
