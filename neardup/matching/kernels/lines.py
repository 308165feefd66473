"""Lines of verdicts: one line of JSON for each row of VERDICT, written from the records that the row names.

This is the encoder of verdicts: `neardup.verdict.Verdict` is decoded from its lines. Fields have the order of
`Verdict`, and a field with its default is left out. Text is UTF-8; invalid bytes become U+FFFD as Python's `replace`
does, one for each maximal valid beginning of a character. Numbers of pairs are the rules': Python writes them as JSON.
"""

from typing import NamedTuple

import numpy as np

from neardup.index.rows import NO_PAGE
from neardup.kernels import lean_kernel
from neardup.kernels.bits import quad_at, word_at
from neardup.kernels.pairs import half_at
from neardup.matching.kernels.records import site_of, tokens_of, url_text
from neardup.matching.kernels.rows import I64, U64, same_bytes
from neardup.matching.verdict_columns import KINDS, NO_FIELD, NONE, Form
from neardup.sketch.layout import RecordFlag, RecordKind, field_at, score_of

_U8 = np.uint8
_KIND, _FLAGS, _SCORE = field_at("kind"), field_at("flags"), field_at("score")
_FETCHED_AT, _SOURCE, _PARTITION = field_at("fetched_at"), field_at("source"), field_at("partition")
_OFFSET, _POSITION = field_at("offset"), field_at("position")
_SITE, _TITLE, _CANONICAL = field_at("site_bytes"), field_at("title_bytes"), field_at("canonical_bytes")
_LANG, _REASON = field_at("lang_bytes"), field_at("reason_bytes")
_SOURCE_BYTES = 16
_IS_PAGE = int(RecordKind.PAGE)
_OPAQUE, _TRUNCATED, _SHELL = int(RecordFlag.OPAQUE), int(RecordFlag.TRUNCATED), int(RecordFlag.SHELL)
_EMPTY, _ALONE, _NEAREST, _BEST, _DIGEST, _, _CLAIM = map(int, Form)
_REJECTED, _GONE = (KINDS.index(kind) for kind in ("rejected", "gone"))
_NO_PAGE = U64(NO_PAGE)

#: Columns of `Lines.spans`: where the texts of a verdict begin in `Lines.texts`, and their bytes.
NUMBERS, NUMBERS_BYTES, SHARED, SHARED_BYTES, TURNED, TURNED_BYTES, BY, BY_BYTES, SPANS = range(9)
#: Places in `Lines.common`.
DECIDED, DECIDED_BYTES, ORIGIN, ORIGIN_BYTES, THIN_TOKENS, COMMON = range(6)
#: Results of `write_lines` below 0.
FULL, NOT_UTF8 = -1, -2
#: A line takes at most so many bytes beside its texts. A byte of text becomes six at most.
_FIXED_BYTES, _ESCAPED = 2048, 6


class Lines(NamedTuple):
    """What lines are made of.

    rows: VERDICT[verdicts]. heap: uint8, the records that rows name. page_ids: int64[pages] of the batch. texts: uint8,
    parts of lines as JSON. spans: int64[verdicts, SPANS]: the numbers of the pair, the numbers of shared keys and the
    keys that turned hot, each with its braces, and the name of the step that kept the pages apart. common:
    int64[COMMON], parts that all lines have: scheme and decider, log and generation; and the decider's `thin_tokens`.
    """

    rows: np.ndarray
    heap: np.ndarray
    page_ids: np.ndarray
    texts: np.ndarray
    spans: np.ndarray
    common: np.ndarray


# ---- parts of lines ------------------------------------------------------------------------------------------------

_parts = bytearray()


def _part(text: str) -> tuple[int, int]:
    """A constant part of lines: its place in `_PARTS`, and its bytes."""
    at = len(_parts)
    _parts.extend(text.encode())
    return at, len(text)


_BEGIN, _PAGE_ID, _N = _part('{"version":1,"verdict":'), _part(',"page_id":'), _part(',"n":')
_URL, _FETCHED = _part(',"url":'), _part(',"fetched_at":')
_COORDINATES, _PARTITION_IS = _part(',"coordinates":{"source":"'), _part('","partition":')
_OFFSET_IS, _POSITION_IS = _part(',"offset":'), _part(',"position":')
_REASON_IS, _DOWN = _part(',"reason":'), _part(',"reason":"taken down"')
_STANDING, _PLACE = _part(',"standing":{"verdict":'), _part('"page_id":')
_REPRESENTATIVE, _CLUSTER, _SIZE = _part(',"representative":'), _part(',"cluster":'), _part(',"cluster_size":')
_CANONICAL_IS, _REVISION, _CONTENT_OF = _part(',"canonical":'), _part(',"revision":'), _part(',"content_of":')
_REPLACES, _EVIDENCE, _TITLE_IS = _part(',"replaces":'), _part(',"evidence":'), _part(',"title":')
_SITE_IS, _LANG_IS, _THIN = _part(',"site":'), _part(',"lang":'), _part(',"thin":true')
_IS_OPAQUE, _IS_TRUNCATED = _part(',"opaque":true'), _part(',"truncated":true')
_IS_SHELL = _part(',"shell":true')
_CUT, _REL, _SCORE_IS = _part(',"candidates_cut":true'), _part(',"rel_canonical":'), _part(',"score":')
_END = _part("}\n")
_CANDIDATES, _AND_CANDIDATES = _part('"candidates":'), _part(',"candidates":')
_SIBLINGS, _APART, _NEAREST_IS = _part(',"siblings":['), _part(',"kept_apart":'), _part(',"nearest":{')
_HOLDER, _RECLAIMED = _part('"by":"digest","holder":{'), _part('"candidates":0,"reclaimed":{')
_FALSE, _TRUE = _part(',"same_site":false'), _part(',"same_site":true')
_LANGS, _KEYS, _TURNED_HOT = _part(',"langs":['), _part(',"keys":'), _part('"turned_hot":')

#: By code of a kind, and by code of a score: a part of lines.
_KIND_PARTS = np.array([_part(f'"{kind}"' if kind else "") for kind in KINDS], np.int64)
_SCORE_PARTS = np.array([_part(str(score_of(code)) if code else "") for code in range(256)], np.int64)
_PARTS = np.frombuffer(bytes(_parts), np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@lean_kernel
def _put(out, o, part):
    """Writes a constant part -> the position after it."""
    at, size = part
    for k in range(size):
        out[o + k] = _PARTS[at + k]
    return o + size


@lean_kernel
def _put_of(out, o, parts, code):
    at = parts[code, 0]
    for k in range(parts[code, 1]):
        out[o + k] = _PARTS[at + k]
    return o + parts[code, 1]


@lean_kernel
def _put_bytes(out, o, text, at, size):
    """Writes bytes as they are."""
    for k in range(size):
        out[o + k] = text[at + k]
    return o + size


@lean_kernel
def _put_byte(out, o, byte):
    out[o] = byte
    return o + 1


# ---- numbers -------------------------------------------------------------------------------------------------------


@lean_kernel
def _put_count(out, o, number):
    """Writes a uint64."""
    end, left = o + 1, number
    while left >= U64(10):
        left //= U64(10)
        end += 1
    for k in range(end - 1, o - 1, -1):
        out[k] = _U8(U64(48) + number % U64(10))
        number //= U64(10)
    return end


@lean_kernel
def _put_number(out, o, number):
    """Writes an int64."""
    if number < 0:
        out[o] = 45
        return _put_count(out, o + 1, U64(-(number + 1)) + U64(1))
    return _put_count(out, o, U64(number))


# ---- text ----------------------------------------------------------------------------------------------------------


@lean_kernel
def _character(text, at, end):
    """Bytes of the character at text[at] >= 0x80, of whose bytes `end` is behind the last -> how many; if it is not
    valid, minus the bytes that stand for one U+FFFD.
    """
    first = text[at]
    if first < 0xC2 or first > 0xF4:
        return I64(-1)
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    for k in range(1, size):
        if at + k >= end or text[at + k] < low or text[at + k] > high:
            return -I64(k)
        low, high = 0x80, 0xBF
    return I64(size)


@lean_kernel
def _put_control(out, o, byte):
    """Writes a character below 0x20, `"` or a backslash."""
    out[o] = 92
    if byte == 34 or byte == 92:
        out[o + 1] = byte
    elif byte == 8:
        out[o + 1] = 98
    elif byte == 9:
        out[o + 1] = 116
    elif byte == 10:
        out[o + 1] = 110
    elif byte == 12:
        out[o + 1] = 102
    elif byte == 13:
        out[o + 1] = 114
    else:
        out[o + 1], out[o + 2], out[o + 3] = 117, 48, 48
        out[o + 4], out[o + 5] = _HEX[byte >> 4], _HEX[byte & 15]
        return o + 6
    return o + 2


@lean_kernel
def _put_text(out, o, text, at, size):
    """Writes text[at : at + size] as a string of JSON."""
    out[o] = 34
    o += 1
    end = at + size
    while at < end:
        byte = text[at]
        if byte >= 0x80:
            many = _character(text, at, end)
            if many > 0:
                o = _put_bytes(out, o, text, at, many)
            else:
                out[o], out[o + 1], out[o + 2] = 0xEF, 0xBF, 0xBD
                o += 3
            at += abs(many)
            continue
        if byte < 0x20 or byte == 34 or byte == 92:
            o = _put_control(out, o, byte)
        else:
            out[o] = byte
            o += 1
        at += 1
    out[o] = 34
    return o + 1


@lean_kernel
def _is_utf8(text, at, size):
    end = at + size
    while at < end:
        if text[at] < 0x80:
            at += 1
            continue
        many = _character(text, at, end)
        if many < 0:
            return False
        at += many
    return True


# ---- pages ---------------------------------------------------------------------------------------------------------


@lean_kernel
def _put_url(out, o, heap, at):
    start, size = url_text(heap, at)
    return _put_text(out, o, heap, start, size)


@lean_kernel
def _put_place(out, o, heap, at):
    """Writes URL, fetch time and coordinates of the page with the record at `at`."""
    o = _put(out, o, _URL)
    o = _put_url(out, o, heap, at)
    o = _put(out, o, _FETCHED)
    o = _put_number(out, o, I64(word_at(heap, at + _FETCHED_AT)))
    o = _put(out, o, _COORDINATES)
    for k in range(_SOURCE_BYTES):
        byte = heap[at + _SOURCE + k]
        out[o], out[o + 1] = _HEX[byte >> 4], _HEX[byte & 15]
        o += 2
    o = _put(out, o, _PARTITION_IS)
    o = _put_number(out, o, quad_at(heap, at + _PARTITION))
    o = _put(out, o, _OFFSET_IS)
    o = _put_number(out, o, I64(word_at(heap, at + _OFFSET)))
    o = _put(out, o, _POSITION_IS)
    o = _put_number(out, o, I64(word_at(heap, at + _POSITION)))
    return _put_byte(out, o, 125)


@lean_kernel
def _put_page(out, o, heap, page_id, at):
    """Writes a page as verdicts name it, without the closing brace."""
    o = _put(out, o, _PLACE)
    o = _put_number(out, o, page_id)
    return _put_place(out, o, heap, at)


@lean_kernel
def _put_named_page(out, o, heap, page_id, at):
    o = _put_page(out, _put_byte(out, o, 123), heap, page_id, at)
    return _put_byte(out, o, 125)


@lean_kernel
def _lang_text(heap, at):
    """Start and bytes of the language."""
    start, size = url_text(heap, at)
    start += size + half_at(heap, at + _SITE) + half_at(heap, at + _TITLE) + half_at(heap, at + _CANONICAL)
    return start, half_at(heap, at + _LANG)


@lean_kernel
def _text_bytes(heap, at):
    """Bytes of the texts of a record, from the URL on."""
    _, size = url_text(heap, at)
    size += half_at(heap, at + _SITE) + half_at(heap, at + _TITLE) + half_at(heap, at + _CANONICAL)
    return size + half_at(heap, at + _LANG) + half_at(heap, at + _REASON)


# ---- evidence ------------------------------------------------------------------------------------------------------


@lean_kernel
def _put_candidates(out, o, row):
    return _put_number(out, o, I64(row.candidates))


@lean_kernel
def _put_siblings(out, o, row):
    if row.alike == 0:
        return o
    o = _put(out, o, _SIBLINGS)
    o = _put_byte(out, _put_number(out, o, I64(row.others)), 44)
    return _put_byte(out, _put_number(out, o, I64(row.alike)), 93)


@lean_kernel
def _put_langs(out, o, heap, row):
    """Writes the languages of both pages, if both have one."""
    if row.a_at < 0 or row.b_at < 0:
        return o
    one, one_bytes = _lang_text(heap, row.a_at)
    other, other_bytes = _lang_text(heap, row.b_at)
    if one_bytes == 0 or other_bytes == 0:
        return o
    o = _put_text(out, _put(out, o, _LANGS), heap, one, one_bytes)
    o = _put_text(out, _put_byte(out, o, 44), heap, other, other_bytes)
    return _put_byte(out, o, 93)


@lean_kernel
def _put_pair(out, o, v, i):
    """Writes the numbers of the pair and the languages, without braces."""
    span = v.spans[i]
    o = _put_bytes(out, o, v.texts, span[NUMBERS] + 1, span[NUMBERS_BYTES] - 2)
    return _put_langs(out, o, v.heap, v.rows[i])


@lean_kernel
def _put_other(out, o, v, i):
    """Writes the page that the evidence names, and the numbers of the pair; closes the brace."""
    row = v.rows[i]
    o = _put_page(out, o, v.heap, row.other, row.other_at)
    o = _put_pair(out, _put_byte(out, o, 44), v, i)
    return _put_byte(out, o, 125)


@lean_kernel
def _put_proof(out, o, v, i):
    """Writes the fields of the evidence of a form."""
    row, span, form = v.rows[i], v.spans[i], v.rows[i].form
    if form == _EMPTY:
        return o
    if form == _ALONE:
        return _put_number(out, _put(out, o, _CANDIDATES), I64(0))
    if form == _NEAREST:
        o = _put_candidates(out, _put(out, o, _CANDIDATES), row)
        o = _put_siblings(out, o, row)
        if row.kept_apart != 0:
            o = _put_bytes(out, _put(out, o, _APART), v.texts, span[BY], span[BY_BYTES])
        return _put_other(out, _put(out, o, _NEAREST_IS), v, i)
    if form == _DIGEST:
        o = _put_page(out, _put(out, o, _HOLDER), v.heap, row.other, row.other_at)
        o = _put_byte(out, o, 125)
        o = _put(out, o, _TRUE if site_of(v.heap, row.a_at) == site_of(v.heap, row.b_at) else _FALSE)
        return _put_langs(out, o, v.heap, row)
    if form == _CLAIM:
        return _put_other(out, _put(out, o, _RECLAIMED), v, i)
    o = _put_pair(out, o, v, i)
    if form == _BEST:
        o = _put_bytes(out, _put(out, o, _KEYS), v.texts, span[SHARED], span[SHARED_BYTES])
        o = _put_candidates(out, _put(out, o, _AND_CANDIDATES), row)
        o = _put_siblings(out, o, row)
    return o


@lean_kernel
def _put_evidence(out, o, v, i):
    span = v.spans[i]
    if v.rows[i].form == _EMPTY and span[TURNED_BYTES] == 0:
        return o
    o = _put_byte(out, _put(out, o, _EVIDENCE), 123)
    begun = o
    o = _put_proof(out, o, v, i)
    if span[TURNED_BYTES] > 0:
        if o > begun:
            o = _put_byte(out, o, 44)
        o = _put_bytes(out, _put(out, o, _TURNED_HOT), v.texts, span[TURNED], span[TURNED_BYTES])
    return _put_byte(out, o, 125)


# ---- verdicts ------------------------------------------------------------------------------------------------------


@lean_kernel
def _put_standing(out, o, heap, row):
    """Writes the verdict in force of the URL."""
    o = _put_of(out, _put(out, o, _STANDING), _KIND_PARTS, row.standing)
    if row.standing != _GONE:
        o = _put_named_page(out, _put(out, o, _REPRESENTATIVE), heap, row.founding, row.founding_at)
        o = _put_number(out, _put(out, o, _CLUSTER), row.cluster)
        if row.standing_content_of != NO_FIELD:
            content_of = row.standing_content_of
            o = _put_count(out, _put(out, o, _CONTENT_OF), _NO_PAGE if content_of == NONE else U64(content_of))
    return _put_byte(out, o, 125)


@lean_kernel
def _put_cluster(out, o, heap, row):
    """Writes the cluster of the page -> the position after it, or NOT_UTF8."""
    if row.named != 0:
        o = _put_named_page(out, _put(out, o, _REPRESENTATIVE), heap, row.founding, row.founding_at)
    if row.cluster < 0:
        return o
    o = _put_number(out, _put(out, o, _CLUSTER), row.cluster)
    o = _put_number(out, _put(out, o, _SIZE), row.pages)
    o = _put(out, o, _CANONICAL_IS)
    if row.canonical_bytes == 0:
        o = _put_url(out, o, heap, row.founding_at)
    elif _is_utf8(heap, row.canonical_at, row.canonical_bytes):
        o = _put_text(out, o, heap, row.canonical_at, row.canonical_bytes)
    else:
        return I64(NOT_UTF8)
    return _put_number(out, _put(out, o, _REVISION), row.revision)


@lean_kernel
def _put_field(out, o, part, heap, at, size):
    """Writes a field with a text, if it has one."""
    return _put_text(out, _put(out, o, part), heap, at, size) if size > 0 else o


@lean_kernel
def _put_about(out, o, v, row):
    """Writes what the record says of the page: title, site, language, marks, canonical URL and score."""
    heap, at = v.heap, row.at
    url, url_bytes = url_text(heap, at)
    site, site_bytes = url + url_bytes, half_at(heap, at + _SITE)
    if row.down != 0:
        return _put_field(out, o, _SITE_IS, heap, site, site_bytes)
    title, title_bytes = site + site_bytes, half_at(heap, at + _TITLE)
    named, named_bytes = title + title_bytes, half_at(heap, at + _CANONICAL)
    o = _put_field(out, o, _TITLE_IS, heap, title, title_bytes)
    o = _put_field(out, o, _SITE_IS, heap, site, site_bytes)
    o = _put_field(out, o, _LANG_IS, heap, named + named_bytes, half_at(heap, at + _LANG))
    flags = heap[at + _FLAGS]
    if flags & _OPAQUE != 0:
        o = _put(out, o, _IS_OPAQUE)
    elif heap[at + _KIND] == _IS_PAGE and tokens_of(heap, at) < v.common[THIN_TOKENS]:
        o = _put(out, o, _THIN)
    if flags & _SHELL != 0:
        o = _put(out, o, _IS_SHELL)
    if flags & _TRUNCATED != 0:
        o = _put(out, o, _IS_TRUNCATED)
    if row.cut != 0:
        o = _put(out, o, _CUT)
    if row.n != 0:
        return o
    if named_bytes > 0 and (named_bytes != url_bytes or not same_bytes(heap, named, url, url_bytes)):
        o = _put_text(out, _put(out, o, _REL), heap, named, named_bytes)
    if heap[at + _SCORE] != 0:
        o = _put_of(out, _put(out, o, _SCORE_IS), _SCORE_PARTS, heap[at + _SCORE])
    return o


@lean_kernel
def _put_line(out, o, v, i):
    """Writes a line -> the position after it, or NOT_UTF8."""
    row, heap, common = v.rows[i], v.heap, v.common
    o = _put_of(out, _put(out, o, _BEGIN), _KIND_PARTS, row.kind)
    o = _put_number(out, _put(out, o, _PAGE_ID), v.page_ids[row.i])
    o = _put_number(out, _put(out, o, _N), I64(row.n))
    o = _put_place(out, o, heap, row.at)
    o = _put_bytes(out, o, v.texts, common[DECIDED], common[DECIDED_BYTES])
    if row.down != 0:
        o = _put(out, o, _DOWN)
    elif row.kind == _REJECTED:
        start, size = _lang_text(heap, row.at)
        o = _put_text(out, _put(out, o, _REASON_IS), heap, start + size, half_at(heap, row.at + _REASON))
    if row.standing != 0:
        o = _put_standing(out, o, heap, row)
    o = _put_cluster(out, o, heap, row)
    if o < 0:
        return o
    if row.content_of >= 0:
        o = _put_named_page(out, _put(out, o, _CONTENT_OF), heap, row.content_of, row.content_of_at)
    if row.replaces >= 0:
        o = _put_number(out, _put(out, o, _REPLACES), row.replaces)
    o = _put_evidence(out, o, v, i)
    o = _put_about(out, o, v, row)
    o = _put_bytes(out, o, v.texts, common[ORIGIN], common[ORIGIN_BYTES])
    return _put(out, o, _END)


@lean_kernel
def _most_bytes(v, i):
    """The bytes of a line, at most."""
    row, heap, span = v.rows[i], v.heap, v.spans[i]
    text = 2 * _text_bytes(heap, row.at) + row.canonical_bytes
    for at in (row.content_of_at, row.a_at, row.b_at, row.other_at):
        if at >= 0:
            text += _text_bytes(heap, at)
    if row.founding_at >= 0:
        text += 3 * _text_bytes(heap, row.founding_at)
    own = span[NUMBERS_BYTES] + span[SHARED_BYTES] + span[TURNED_BYTES] + span[BY_BYTES]
    return _FIXED_BYTES + _ESCAPED * text + own + v.common[DECIDED_BYTES] + v.common[ORIGIN_BYTES]


@lean_kernel
def write_lines(v, first, out, ends):
    """Writes the lines of the verdicts from number `first` on, each with a newline -> (the first not written, why).

    Why: 0 if all were written, FULL, or NOT_UTF8 of a canonical URL. out uint8[bytes]: lines one after another. ends
    int64[verdicts]: where each ends; those before `first` are given.
    """
    o = ends[first - 1] if first > 0 else I64(0)
    for i in range(first, len(v.rows)):
        if o + _most_bytes(v, i) > len(out):
            return i, I64(FULL)
        o = _put_line(out, o, v, i)
        if o < 0:
            return i, I64(NOT_UTF8)
        ends[i] = o
    return len(v.rows), I64(0)
