"""Character references: `&amp;`, `&#8364;`, and the longest-match rule of the HTML standard (section 13.2.5.72 on)."""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
_FNV_START = U64(0xCBF29CE484222325)
_FNV_PRIME = U64(0x100000001B3)
_S32 = U64(32)
NAME_BYTES_MAX = 32  # CounterClockwiseContourIntegral has 31
LEGACY_BYTES_MAX = 6  # the longest name that needs no semicolon
REPLACEMENT = 0xFFFD

#: The table of names, uint32: a header with the starts of offsets, points, legacy flags and names (one byte per
#: element), then the slots of an open-addressing table (number + 1; 0: empty).
ENTITY_HEADER = 4
ENTITY_SLOTS = 8192
_OFFSETS, _POINTS, _LEGACY, _NAMES = range(4)

#: The code points of the numbers 0x80 to 0x9F: windows-1252 (table of the HTML standard).
_WINDOWS_1252 = np.array(
    [
        *(0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021),
        *(0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F),
        *(0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014),
        *(0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178),
    ],
    dtype=np.int64,
)


@lean_kernel
def byte_at(buf, at, end):
    """buf[at] as int64; 0 if at >= end, so that bytes beyond a page are never read."""
    if at < end:
        return np.int64(buf[at])
    return np.int64(0)


@lean_kernel
def is_alnum(c):
    """Whether byte c is an ASCII letter or digit."""
    folded = c | 32
    return (folded >= 97 and folded <= 122) or (c >= 48 and c <= 57)


@lean_kernel
def fnv_step(h, c):
    """Add one byte to a 64-bit FNV-1a hash."""
    return (h ^ U64(c)) * _FNV_PRIME


@lean_kernel
def _lookup(buf, start, length, h, entities):
    """Number of the entity named by buf[start:start + length], -1 if there is none."""
    offsets, names = np.int64(entities[_OFFSETS]), np.int64(entities[_NAMES])
    at = np.int64(h >> _S32) & (ENTITY_SLOTS - 1)
    while entities[ENTITY_HEADER + at] > 0:
        number = np.int64(entities[ENTITY_HEADER + at]) - 1
        begin = np.int64(entities[offsets + number])
        if np.int64(entities[offsets + number + 1]) - begin == length:
            same = True
            for i in range(length):
                if entities[names + begin + i] != buf[start + i]:
                    same = False
                    break
            if same:
                return number
        at = (at + 1) & (ENTITY_SLOTS - 1)
    return np.int64(-1)


@lean_kernel
def _points(entities, number):
    """The one or two code points of an entity; 0 for no second."""
    at = np.int64(entities[_POINTS]) + 2 * number
    return np.int64(entities[at]), np.int64(entities[at + 1])


@lean_kernel
def _numeric(buf, at, end):
    """(length, code point) of a numeric reference whose `#` lies at `at`; length 0 if it has no digits."""
    start = at - 1
    at += 1
    base = 10
    if byte_at(buf, at, end) | 32 == 120:
        base = 16
        at += 1
    first = at
    value = np.int64(0)
    while at < end:
        c = np.int64(buf[at])
        digit = c - 48
        if digit < 0 or digit > 9:
            digit = (c | 32) - 87
            if base == 10 or digit < 10 or digit > 15:
                break
        value = min(value * base + digit, 0x110000)
        at += 1
    if at == first:
        return np.int64(0), np.int64(0)
    if byte_at(buf, at, end) == 59:
        at += 1
    if value == 0 or value > 0x10FFFF or (value >= 0xD800 and value <= 0xDFFF):
        value = np.int64(REPLACEMENT)
    elif value >= 0x80 and value <= 0x9F:
        value = _WINDOWS_1252[value - 0x80]
    return at - start, value


@lean_kernel
def reference(buf, at, end, in_attribute, entities):
    """(length, code point, second code point or 0) of the reference at buf[at] == `&`; length 0: plain text.

    Reads at most NAME_BYTES_MAX bytes of a name, but all digits of a number.
    """
    zero = np.int64(0)
    if byte_at(buf, at + 1, end) == 35:
        length, point = _numeric(buf, at + 1, end)
        return length, point, zero
    start = at + 1
    if not is_alnum(byte_at(buf, start, end)):
        return zero, zero, zero
    length = zero
    while length < NAME_BYTES_MAX and is_alnum(byte_at(buf, start + length, end)):
        length += 1
    if byte_at(buf, start + length, end) == 59:
        # A name with its semicolon: the longest possible match, and nearly all references of real pages.
        h = _FNV_START
        for i in range(length):
            h = fnv_step(h, buf[start + i])
        found = _lookup(buf, start, length, h, entities)
        if found >= 0:
            point, second = _points(entities, found)
            return length + 2, point, second
    h = _FNV_START
    entity, matched = np.int64(-1), zero
    for i in range(min(length, LEGACY_BYTES_MAX)):
        h = fnv_step(h, buf[start + i])
        if i > 0:
            found = _lookup(buf, start, i + 1, h, entities)
            if found >= 0 and entities[np.int64(entities[_LEGACY]) + found] != 0:
                entity, matched = found, i + 1
    if entity < 0:
        return zero, zero, zero
    if in_attribute:
        after = byte_at(buf, start + matched, end)
        if after == 61 or is_alnum(after):
            return zero, zero, zero
    point, second = _points(entities, entity)
    return matched + 1, point, second


@lean_kernel
def put_point(text, o, point):
    """Write a code point at text[o] as UTF-8, white space and controls as a space; the position after it."""
    if point < 0x80:
        text[o] = 32 if point < 32 else point
        return o + 1
    if point < 0x800:
        text[o] = 0xC0 | (point >> 6)
        text[o + 1] = 0x80 | (point & 63)
        return o + 2
    if point < 0x10000:
        text[o] = 0xE0 | (point >> 12)
        text[o + 1] = 0x80 | ((point >> 6) & 63)
        text[o + 2] = 0x80 | (point & 63)
        return o + 3
    text[o] = 0xF0 | (point >> 18)
    text[o + 1] = 0x80 | ((point >> 12) & 63)
    text[o + 2] = 0x80 | ((point >> 6) & 63)
    text[o + 3] = 0x80 | (point & 63)
    return o + 4
