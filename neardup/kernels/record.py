"""Writes the header and the texts of a sketch record (layout: `neardup.sketch.layout`)."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at
from neardup.kernels.composition import compose, has_mark
from neardup.kernels.facts import BASE_START, CANONICAL_END, CANONICAL_START, LANG_END, LANG_START
from neardup.kernels.fingerprint import fingerprint
from neardup.kernels.sketch import (
    ARTICLE_BYTES,
    ARTICLE_LEVEL,
    ARTICLE_TOKENS,
    BLOOM_BYTES,
    CONTENT_BYTES,
    CONTENT_LEVEL,
    CONTENT_START,
    CONTENT_TOKENS,
    DIGEST,
    DISTINCT,
    HEAD,
    HEAD_NAMES,
    LANG_MAX,
    LOGTF,
    NAMING,
    TAPE_BYTES,
    TAPE_LEVEL,
    TITLE_NAMES,
    TOKENS,
    URL_MAX,
    WIDE,
    B,
    C,
)
from neardup.kernels.unicode_points import (
    CLASS_MASK,
    CLASS_SHIFT,
    FOLD,
    IGNORED,
    NONE,
    POINT_MASK,
    decode_point,
    entry_of,
    put_utf8,
    utf8_length,
)
from neardup.kernels.urls import is_plain, write_end
from neardup.kernels.writing import DELETE

U64 = np.uint64
U8 = np.uint8

#: Words at the start of an entry of `Batch.hosts`: two fingerprints of sites, bytes of host and of site, number of
#: tokens. Tokens, host and site follow.
HOST_WORDS = 5
#: Flags of a record, those of `neardup.sketch.layout.RecordFlag`.
OPAQUE, TRUNCATED, OWN_URL, FORMS, SHELL = 1, 2, 4, 8, 16
#: The mode of an opaque body (`neardup.kernels.batch.OPAQUE`).
OPAQUE_MODE = 2
#: Header of the article's section: tokens of the article (4 bytes), level of its tape. The tape follows.
ARTICLE_HEADER_BYTES = 5
#: Fields that are left to Python: a canonical URL that must be resolved, an unusual form of a language.
CANONICAL_LEFT, LANG_LEFT = 1, 2


@lean_kernel
def _put(out, at, value, size):
    for k in range(size):
        out[at + k] = U8((value >> U64(8 * k)) & U64(0xFF))


@lean_kernel
def _copy(source, start, end, out, at):
    for i in range(U64(end - start)):
        out[U64(at) + i] = source[U64(start) + i]
    return at + (end - start)


@lean_kernel
def _is_space(point):
    """Whether a code point is Unicode white space, as in `str.split`."""
    if point < 0x80:
        return point == 0x20 or (point >= 9 and point <= 13) or (point >= 28 and point <= 31)
    if point < 0x2000:
        return point == 0x85 or point == 0xA0 or point == 0x1680
    return (
        point <= 0x200A or point == 0x2028 or point == 0x2029 or point == 0x202F or point == 0x205F or point == 0x3000
    )


@lean_kernel
def write_title(text, start, end, title):
    """Copy text[start:end] to title (uint8), with white space collapsed -> int64, bytes written.

    Control characters and malformed bytes are left out. At most len(title) bytes are read.
    """
    end = min(end, start + len(title))
    n = np.int64(0)
    gap = False
    while start < end:
        point, size = decode_point(text, start, end)
        if point >= 0 and _is_space(point):
            gap = n > 0
        elif point >= 0 and point != DELETE:
            if gap:
                title[n] = U8(0x20)
                n += 1
                gap = False
            for k in range(size):
                title[n] = text[start + k]
                n += 1
        start += size
    return n


@lean_kernel
def _titling(title, n, points, line, cluster, key):
    """Fingerprint of a title, 0 for an empty one. Letters are folded as in tokens; separators are not.

    line uint8: scratch, twice as long as the title. cluster: scratch, see `neardup.kernels.composition`.
    """
    if n == 0:
        return U64(0)
    at = to = np.int64(0)
    while at < n:
        c = title[at]
        if c < U8(DELETE) and (at + 1 == n or title[at + 1] < U8(DELETE)):
            line[to] = c | U8(32) if c >= U8(65) and c <= U8(90) else c
            at += 1
            to += 1
            continue
        point, size = decode_point(title, at, n)
        entry = entry_of(point, points)
        kind, lower = entry >> CLASS_SHIFT & CLASS_MASK, entry & POINT_MASK
        if kind not in (NONE, IGNORED) and has_mark(title, at + size, n, points):
            at, many, size, _ = compose(title, at, n, points, cluster)
            for i in range(many):
                size = utf8_length(np.int64(cluster[i]))
                put_utf8(line, to, np.int64(cluster[i]), size)
                to += size
            continue
        at += size
        if kind == FOLD:
            size = np.int64(points[lower])
            for i in range(size):
                line[to + i] = points[lower + 1 + i]
            to += size
        elif kind != IGNORED:
            point = lower if kind != NONE else point
            size = utf8_length(point)
            put_utf8(line, to, point, size)
            to += size
    return fingerprint(line, 0, to, key) if to > 0 else U64(0)


@lean_kernel
def _write_decimal(value, out, at):
    digits = 1
    rest = value // U64(10)
    while rest > U64(0):
        digits += 1
        rest //= U64(10)
    for k in range(digits):
        out[at + digits - 1 - k] = U8(48) + U8(value % U64(10))
        value //= U64(10)
    return at + digits


@lean_kernel
def _is_tag(buffer, start, end):
    """Whether a language tag consists of letters, digits and hyphens only."""
    for i in range(start, end):
        c = buffer[i] | U8(32)
        letter = c >= U8(97) and c <= U8(122)
        digit = buffer[i] >= U8(48) and buffer[i] <= U8(57)
        if not (letter or digit or buffer[i] == U8(45)):
            return False
    return True


@lean_kernel
def _write_article(numbers, tape, out, at):
    """Write the article's section (`neardup.sketch.layout`), if the page has an article -> its end."""
    if numbers[ARTICLE_BYTES] == 0:
        return at
    _put(out, at, U64(numbers[ARTICLE_TOKENS]), 4)
    out[at + 4] = U8(numbers[ARTICLE_LEVEL])
    return _copy(tape, 0, numbers[ARTICLE_BYTES], out, at + ARTICLE_HEADER_BYTES)


@lean_kernel
def _fill_numbers(header, words, numbers):
    """Write the words and numbers of a page's tokens (see `neardup.kernels.sketch`) to its header."""
    header.head = words[HEAD]
    for i in range(6):
        header.supershingles[i] = words[B + i]
        header.simhash[i] = words[C + i]
    for i in range(7):
        header.wide[i] = words[WIDE + i]
    header.content_start = words[CONTENT_START]
    for i in range(3):
        header.logtf[i] = words[LOGTF + i]
    header.naming = words[NAMING]
    header.tokens = numbers[TOKENS]
    header.distinct = numbers[DISTINCT]
    header.content_tokens = numbers[CONTENT_TOKENS]
    header.tape_level = numbers[TAPE_LEVEL]
    header.content_level = numbers[CONTENT_LEVEL]
    header.tape_bytes = numbers[TAPE_BYTES]
    header.content_bytes = numbers[CONTENT_BYTES]
    header.title_names = numbers[TITLE_NAMES]
    header.head_names = numbers[HEAD_NAMES]
    header.bloom_bytes = numbers[BLOOM_BYTES]


@lean_kernel
def write_record(batch, page, shape, space, at, end, title_bytes, words, numbers, tape):
    """Complete the record at out[at:], whose sections end at `end` -> int64, the end of the record.

    The page's header is filled first, in batch.headers, and copied then.
    batch, page: see `neardup.kernels.batch`. title_bytes: bytes of space.title. words, numbers: see
    `neardup.kernels.sketch`. tape uint8: the article's tape.
    Fields that are left to Python are marked in batch.left.
    """
    out, limits = batch.out, shape.limits
    header = batch.headers[page]
    url_start = batch.url_ends[page - 1] if page > 0 else np.int64(0)
    url_end = batch.url_ends[page]
    host = batch.host_ends[page - 1] if page > 0 else np.int64(0)
    site = host + 8 * HOST_WORDS + 8 * np.int64(word_at(batch.hosts, host + 32))
    site += np.int64(word_at(batch.hosts, host + 16))
    site_end = batch.host_ends[page]
    facts = batch.facts[page]

    # texts
    before = end
    end = _copy(batch.urls, url_start, url_end, out, end)
    header.url_bytes = end - before
    before = end
    end = _copy(batch.hosts, site, site_end, out, end)
    header.site_bytes = end - before
    before = end
    end = _copy(space.title, 0, title_bytes, out, end)
    header.title_bytes = end - before
    before = end
    if facts[CANONICAL_START] >= 0:
        start, stop = facts[CANONICAL_START], facts[CANONICAL_END]
        if facts[BASE_START] < 0 and stop - start <= limits[URL_MAX] and is_plain(batch.buffer, start, stop):
            end = _copy(batch.buffer, start, stop, out, end)
        elif stop > start:
            batch.left[page] |= U8(CANONICAL_LEFT)
    header.canonical_bytes = end - before
    before = end
    if facts[LANG_START] >= 0:
        start, stop = facts[LANG_START], facts[LANG_END]
        if stop - start <= limits[LANG_MAX] and _is_tag(batch.buffer, start, stop):
            end = _copy(batch.buffer, start, stop, out, end)
        else:
            batch.left[page] |= U8(LANG_LEFT)
    header.lang_bytes = end - before
    before = end
    start = batch.reason_ends[page - 1] if page > 0 else np.int64(0)
    end = _copy(batch.reasons, start, batch.reason_ends[page], out, end)
    end = _write_article(numbers, tape, out, end)
    header.reason_bytes = end - before
    header.size = end - at

    # the names that the page gives itself, in title, heading and URL
    line, key = space.line, shape.names
    header.site = word_at(batch.hosts, host)
    header.hen_site = word_at(batch.hosts, host + 8)
    header.titling = _titling(space.title, title_bytes, shape.points, line, space.cluster, key)
    start = _write_decimal(words[NAMING], line, 0)
    line[start] = U8(0x20)
    start = _copy(batch.hosts, site, site_end, line, start + 1)
    line[start] = U8(0x20)
    segment, stop = write_end(batch.urls, url_start, url_end, line, start + 1)
    header.tail = fingerprint(line, start + 1, stop, key)
    header.place = fingerprint(line, 0, segment, key)

    # the sketch
    if batch.modes[page] != OPAQUE_MODE:  # the header of an opaque page has the digest of its body
        header.digest[0] = words[DIGEST]
        header.digest[1] = words[DIGEST + 1]
    _fill_numbers(header, words, numbers)
    size = len(batch.header_bytes) // len(batch.headers)
    _copy(batch.header_bytes, page * size, (page + 1) * size, out, at)
    return end
