"""Finds the bodies of a batch that need no decoding, by their bytes alone."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, ones, trailing_zeros, word_at
from neardup.kernels.operations import within
from neardup.kernels.windows import find_byte, masks

U64 = np.uint64
U8 = np.uint8
_ZERO = U64(0)
_FTYP = U64(int.from_bytes(b"ftyp", "little"))
_WINDOW = 64
#: Claims of a content type: HTML or plain text in UTF-8; the same with no or another charset; no claim; another type;
#: XML.
HTML_UTF8, PLAIN_UTF8, HTML_ANY, PLAIN_ANY, UNKNOWN, OPAQUE_TYPE, XML = 0, 1, 2, 3, 4, 5, 6
HTML, PLAIN, OPAQUE = 0, 1, 2
#: Bits of what Python must still check: whether the first bytes are a magic number; whether there are tags; everything.
#: VALID: the body is UTF-8.
MAGIC, LOOK_FOR_TAGS, LOOK, VALID = 1, 2, 4, 8
#: Bytes at the start of a body that are searched for binary data (see `neardup.text.decoding`).
SAMPLE = 4096
#: First bytes of a document whose root element may be that of a feed, after white space, in lower case.
_XML, _RSS, _FEED, _RDF, _NOTE = (
    U64(int.from_bytes(name, "little")) for name in (b"?xml", b"rss", b"feed", b"rdf:", b"!--")
)
_CASE = U64(0x20202020)
_BYTES3, _BYTES4 = U64(0xFFFFFF), U64(0xFFFFFFFF)


@masks(3)
def strange(window):
    """Three masks of the 64 bytes from an index on.

    They mark control characters that no text has; bytes that are not ASCII, or shift to another character set; and
    bytes that continue a UTF-8 character.
    """
    binary = window < 0x20
    for value in (9, 10, 12, 13, 27):
        binary = binary & (window != value)
    shift = (window == 27) | (window & 0xFE == 14)
    return binary, (window >= 0x80) | shift, window & 0xC0 == 0x80


@lean_kernel
def _has_binary(buffer, start, end):
    seen = _ZERO
    for at in range(start, end, _WINDOW):
        seen |= strange(buffer, at)[0] & below(end - at)
    return seen != _ZERO


@masks(1)
def beyond_ascii(window):
    """Mask of the bytes of a window that are not ASCII."""
    return (window >= 0x80,)


@masks(6)
def utf8_masks(window):
    """Masks of a window: bytes that continue a character; bytes that begin one, of two bytes or more, of three or more,
    of four; and bytes after which the next one has a narrower range: E0 or F0, ED or F4.
    """
    three, four = within(window, 0xE0, 0xF4), within(window, 0xF0, 0xF4)
    low = (window == 0xE0) | (window == 0xF0)
    high = (window == 0xED) | (window == 0xF4)
    return window & 0xC0 == 0x80, within(window, 0xC2, 0xF4), three, four, low, high


@lean_kernel
def _in_range(buffer, at, end):
    """Whether the byte behind E0, ED, F0 or F4 makes a character that UTF-8 has (RFC 3629, section 4)."""
    if at + 1 >= end:
        return True
    lead, second = buffer[at], buffer[at + 1]
    if lead == 0xE0:
        return second >= 0xA0
    if lead == 0xED:
        return second <= 0x9F
    return second >= 0x90 if lead == 0xF0 else second <= 0x8F


@lean_kernel
def is_utf8(buffer, start, end):
    """Whether buffer[start:end] is valid UTF-8, but for a character that `end` cuts. Reads up to 63 bytes beyond `end`.

    A character's bytes continue it exactly where a byte before says so: one mask of 64 bytes against another.
    """
    due = _ZERO  # bytes at the start of the window that must continue a character
    for at in range(start, end, _WINDOW):
        here = below(end - at)
        if beyond_ascii(buffer, at) & here == _ZERO:
            if due != _ZERO:
                return False
            continue
        continuing, two, three, four, low, high = utf8_masks(buffer, at)
        begins = beyond_ascii(buffer, at) & ~continuing
        must = due | two << U64(1) | three << U64(2) | four << U64(3)
        if ((must ^ continuing) | (begins ^ two)) & here != _ZERO:
            return False
        narrow = (low | high) & here
        while narrow != _ZERO:
            if not _in_range(buffer, at + trailing_zeros(narrow), end):
                return False
            narrow &= narrow - U64(1)
        due = two >> U64(63) | three >> U64(62) | four >> U64(61)
    return True


@lean_kernel
def _may_be_feed(buffer, at, end):
    """Whether Python must look for the root element of a feed, which none of a few bytes at the start rules out."""
    last = min(end, at + _WINDOW)
    while at < last and (buffer[at] == 32 or (buffer[at] >= 9 and buffer[at] <= 13)):
        at += 1
    if at == last:
        return last < end
    if buffer[at] != 60:
        return False
    word = word_at(buffer, at + 1)
    if word & _BYTES3 == _NOTE:
        return True
    word = (word | _CASE) & _BYTES4
    # A root may have any prefix (`atom:feed`).
    prefixed = find_byte(buffer, at + 1, U8(58)) & below(8) != _ZERO
    return word & _BYTES3 == _RSS or word in (_XML, _FEED, _RDF) or prefixed


@lean_kernel
def is_plain_ascii(buffer, start, end):
    """Whether buffer[start:end] is ASCII without a shift to another character set.

    Reads up to 63 bytes beyond `end`.
    """
    seen = _ZERO
    for at in range(start, end, _WINDOW):
        seen |= strange(buffer, at)[1] & below(end - at)
    return seen == _ZERO


@lean_kernel
def characters(text, start, end):
    """Characters of the UTF-8 text[start:end], int64: bytes that continue none. Reads up to 63 bytes beyond `end`."""
    continuing = np.int64(0)
    for at in range(start, end, _WINDOW):
        continuing += np.int64(ones(strange(text, at)[2] & below(end - at)))
    return end - start - continuing


@lean_kernel
def sniff(buffer, starts, ends, claims, first_bytes, modes, doubts):
    """Guess the kind of each body.

    buffer uint8: bodies at starts to ends, each followed by at least 64 bytes. claims int64[bodies]: the charsets that
    were claimed, as above.
    first_bytes uint8[256]: 1 for the first bytes of magic numbers, 2 for those of byte order marks.
    modes int64[bodies] out: HTML, PLAIN or OPAQUE. doubts uint8[bodies] out: bits of what Python must still check.
    """
    for i in range(len(starts)):
        start, end, claim = starts[i], ends[i], claims[i]
        doubts[i] = 0
        modes[i] = OPAQUE
        if claim == OPAQUE_TYPE and start < end:
            continue
        if start == end:
            doubts[i] = LOOK
            continue
        kind = first_bytes[buffer[start]]
        valid = is_utf8(buffer, start, end)
        if valid:
            doubts[i] |= U8(VALID)
        # an MPEG-4 file has its brand after four bytes
        if kind & U8(1) or word_at(buffer, start) >> U64(32) == _FTYP:
            doubts[i] |= U8(MAGIC)
        if (
            kind & U8(2)
            or claim == XML
            or _may_be_feed(buffer, start, end)
            or _has_binary(buffer, start, min(end, start + SAMPLE))
        ):
            doubts[i] |= U8(LOOK)
        elif claim <= PLAIN_UTF8:
            modes[i] = claim
            if not valid:
                doubts[i] |= U8(LOOK)
        elif not is_plain_ascii(buffer, start, end):
            doubts[i] |= U8(LOOK)
        elif claim == UNKNOWN:
            doubts[i] |= U8(LOOK_FOR_TAGS)
        else:
            modes[i] = claim - HTML_ANY
