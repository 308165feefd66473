"""HTML bytes to text with marks: a state machine shaped like the tokenizer of the HTML standard, without a tree.

Formatting tags vanish, other markup separates, the contents of script, style and template vanish, URLs of images and
frames are terms. Foreign content (svg, math) is followed by a small stack, because raw text, CDATA and the title
depend on it. Where a tree would move or drop text, the order of the bytes counts.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels import markup as mk
from neardup.kernels.bits import (
    below,
    copy_text,
    half_at,
    markup_mask,
    name_length,
    ones,
    put_half,
    trailing_zeros,
    word_at,
)
from neardup.kernels.entities import byte_at, put_point, reference
from neardup.kernels.foreign import is_foreign, pop_foreign, pop_to_html, push_foreign
from neardup.kernels.terms import BASE_BYTES_MAX, put_term, set_base

U64 = np.uint64
_ZERO = U64(0)
_ONE = U64(1)

#: Places in the array of facts, int64[FACTS]: ranges, -1 where missing. 8 to 12 are those of `attributes`, and the last
#: three those of a <base>.
TITLE_START, TITLE_END = 0, 1
CANONICAL_START, CANONICAL_END = 2, 3
BASE_START, BASE_END = 4, 5
LANG_START, LANG_END = 6, 7
HEADING_START, HEADING_END = 13, 14
_HEADING_KIND = 15  # of the heading that the range is of
FACTS = 19

#: Marks in the text; all other bytes below 0x20 of the input have become spaces.
TERM_START, TERM_END, BLOCK, ANCHOR_START, ANCHOR_END = 1, 2, 3, 4, 5
SPACE = 0x20

PADDING_BYTES = 256
_SLACK_BYTES = 512  # one step of the state machine writes less
#: Positions of `<` and `&` are found for so many bytes at a time, ahead of the state machine: where the next tag begins
#: is known then before the last one is understood, and the CPU works on both. 2 bytes each, behind the text.
_CHUNK_BYTES = 8192
_INDEX_BYTES = 2 * _CHUNK_BYTES + 16
_UNKNOWN = -2


def text_bytes_needed(page_bytes: int) -> int:
    """Capacity of `text` that `extract` and `tokenise` need for a page of this length."""
    return 2 * page_bytes + 65536


_BYTES3, _BYTES4, _BYTES5 = U64(0xFFFFFF), U64(0xFFFFFFFF), U64(0xFFFFFFFFFF)
_LT, _GT, _AMP, _NBSP = (U64(int.from_bytes(name, "little")) for name in (b"lt;", b"gt;", b"amp;", b"nbsp;"))


@lean_kernel
def _copy(buf, at, end, text, o, limit):
    """Copy buf[at:end] with controls as spaces; the position after it in text."""
    while at < end and o < limit:
        copy_text(buf, at, text, o)
        step = min(end - at, 64)
        at += step
        o += step
    return o


@lean_kernel
def _copy_references(buf, at, end, entities, text, o, limit):
    """As _copy, character references resolved: the content of title and textarea."""
    while at < end and o < limit:
        stop = mk.find(buf, at, end, 38)
        o = _copy(buf, at, stop, text, o, limit)
        at = stop
        if at < end and o < limit:
            o, at = _put_reference(buf, at, end, entities, text, o)
            if at < end and buf[at] & 0xC0 == 0x80:
                text[o] = SPACE
                o += 1
    return o


@lean_kernel
def _put_reference(buf, at, end, entities, text, o):
    """Write what the `&` at buf[at] stands for; (position in text, position in buf) after it."""
    if at + 6 <= end:  # the four that make up most
        word = word_at(buf, at + 1)
        if word & _BYTES5 == _NBSP:
            return _space(text, o), at + 6
        if word & _BYTES3 == _LT or word & _BYTES3 == _GT:
            text[o] = 60 if word & _BYTES3 == _LT else 62
            return o + 1, at + 4
        if word & _BYTES4 == _AMP:
            text[o] = 38
            return o + 1, at + 5
    length, point, second = reference(buf, at, end, False, entities)
    if length == 0:
        text[o] = 38
        return o + 1, at + 1
    if point == 0xA0:
        # The commonest reference of all. It separates tokens anyway, and ASCII keeps the tokeniser on its fast path.
        return _space(text, o), at + length
    o = put_point(text, o, point)
    if second > 0:
        o = put_point(text, o, second)
    return o, at + length


@lean_kernel
def _block(text, o):
    """A block boundary, unless there is one already."""
    if o > 0 and text[o - 1] == BLOCK:
        return o
    text[o] = BLOCK
    return o + 1


@lean_kernel
def _space(text, o):
    text[o] = SPACE
    return o + 1


@lean_kernel
def _link_fact(buf, facts):
    """Take down the address of a <link rel=canonical>: rel is a set of words."""
    at, end = facts[mk.FIRST_START], facts[mk.FIRST_END]
    if at < 0 or facts[mk.SECOND_START] < 0 or facts[CANONICAL_START] >= 0:
        return
    while at < end:
        while at < end and mk.is_space(buf[at]):
            at += 1
        word = at
        while at < end and not mk.is_space(buf[at]):
            at += 1
        if at - word == 9:
            first, second = mk.name_words(buf, word, 9)
            if first == _CANONICA and second == _L:
                facts[CANONICAL_START] = facts[mk.SECOND_START]
                facts[CANONICAL_END] = facts[mk.SECOND_END]
                return


_CANONICA = U64(int.from_bytes(b"canonica", "little"))
_L = U64(ord("l"))
_REFRESH = U64(int.from_bytes(b"refresh", "little"))


@lean_kernel
def _is_refresh(buf, start, end):
    while start < end and mk.is_space(buf[start]):
        start += 1
    while end > start and mk.is_space(buf[end - 1]):
        end -= 1
    return end - start == 7 and mk.name_words(buf, start, 7)[0] == _REFRESH


@lean_kernel
def _wanted(kind):
    """The two attributes that tell something about a tag of this kind: (word, length, word, length)."""
    if kind == mk.ANCHOR:
        return mk.HREF, 4, mk.NO_NAME, -1
    if kind == mk.IMAGE or kind == mk.FRAME or kind == mk.IFRAME:
        return mk.SRC, 3, mk.NO_NAME, -1
    if kind == mk.META:
        return mk.HTTP_EQUIV, 10, mk.CONTENT, 7
    if kind == mk.LINK:
        return mk.REL, 3, mk.HREF, 4
    if kind == mk.BASE:
        return mk.HREF, 4, mk.NO_NAME, -1
    if kind == mk.HTML:
        return mk.LANG, 4, mk.NO_NAME, -1
    if kind == mk.ANNOTATION:
        return mk.ENCODING, 8, mk.NO_NAME, -1
    return mk.NO_NAME, -1, mk.NO_NAME, -1


@lean_kernel
def _declaration(buf, at, end, foreign, text, o, limit):
    """Pass the comment, doctype, CDATA section or stray `<` at buf[at]; (position in text, position in buf).

    What is no tag becomes a space; `</>` becomes nothing, and a `<` that begins nothing stays text.
    """
    c = byte_at(buf, at + 1, end)
    if c == 33:
        if byte_at(buf, at + 2, end) == 45 and byte_at(buf, at + 3, end) == 45:
            return _space(text, o), mk.comment_end(buf, at + 4, end)
        if foreign and at + 9 <= end and _is_cdata(buf, at + 2):
            stop = mk.cdata_end(buf, at + 9, end)
            return _copy(buf, at + 9, stop, text, o, limit), min(stop + 3, end)
        return _space(text, o), min(mk.find(buf, at + 2, end, 62) + 1, end)
    if c == 63:
        return _space(text, o), min(mk.find(buf, at + 2, end, 62) + 1, end)
    if c == 47 and at + 2 < end:
        if buf[at + 2] == 62:
            return o, at + 3
        return _space(text, o), min(mk.find(buf, at + 2, end, 62) + 1, end)
    text[o] = 60
    return o + 1, at + 1


@lean_kernel
def _is_cdata(buf, at):
    for i in range(7):  # noqa: SIM110  (numba has no generator expressions)
        if buf[at + i] != _CDATA[i]:
            return False
    return True


_CDATA = np.frombuffer(b"[CDATA[", np.uint8)


@lean_kernel
def _name_length(buf, name, end):
    """Bytes of the name of a tag."""
    at = name
    while at < end and not (mk.is_space(buf[at]) or buf[at] == 47 or buf[at] == 62):
        at += 1
    return at - name


@lean_kernel
def _index_markup(buf, start, stop, text, place):
    """Write the positions of `<` and `&` in buf[start:stop], as distances from start, at text[place]; how many.

    Of `<<<` and `&&&` only the last can begin anything; the others are text.
    """
    many = np.int64(0)
    at = start
    while at < stop:
        mask = markup_mask(buf, at) & below(stop - at)
        mask &= ~(mask >> _ONE)
        count = ones(mask)
        to = place + 2 * many
        base = at - start
        # Four at once, needed or not: how many a window has cannot be predicted.
        for _ in range(4):
            put_half(text, to, base + trailing_zeros(mask))
            mask &= mask - _ONE
            to += 2
        while mask != _ZERO:
            put_half(text, to, base + trailing_zeros(mask))
            mask &= mask - _ONE
            to += 2
        many += count
        at += 64
    return many


@lean_kernel
def _heading_fact(text, start, end, kind, facts):
    """Take down the range of a heading that has any text: of the first h1, or of the first h2 while there is none."""
    if facts[_HEADING_KIND] >= 0 and (facts[_HEADING_KIND] == mk.HEADING or kind == mk.SUBHEADING):
        return
    for i in range(start, end):
        if text[i] > SPACE:
            facts[HEADING_START], facts[HEADING_END], facts[_HEADING_KIND] = start, end, kind
            return


@lean_kernel
def extract(buf, start, end, mode, host, host_start, host_end, tables, text, facts):
    """Text of one page, with marks.

    buf: uint8[...], buf[start:end] is the page in UTF-8, at least PADDING_BYTES follow it, their content never counts.
    mode: 0 HTML, 1 plain text. host[host_start:host_end]: uint8, the page's own host in lower case. tables: of
    `neardup.tokens.tables()`. text: uint8[>= text_bytes_needed(end - start)], overwritten. facts: int64[FACTS],
    overwritten. Returns the length of the text, at most 1.2 * (end - start) + 33000. Raises ValueError if padding or
    capacity are missing. Bytes that are no UTF-8 stay and separate tokens.
    """
    at, end = np.int64(start), np.int64(end)
    host_start, host_end = np.int64(host_start), np.int64(host_end)
    tags, entities = tables[0], tables[1]
    if end + PADDING_BYTES > buf.size or text.size < 2 * (end - at) + 65536 or facts.size < FACTS:
        raise ValueError("extract: padding or capacity missing")
    index = np.int64(text.size - BASE_BYTES_MAX - _INDEX_BYTES)
    limit = index - _SLACK_BYTES
    facts[:] = -1
    facts[8:13] = 0
    facts[16:] = 0
    o = np.int64(0)
    if mode != 0:
        return _copy(buf, at, end, text, o, limit)
    stack = np.int64(0)  # of foreign content
    point_fresh = False  # no tag since an integration point opened: still in its own namespace
    in_link = np.int64(0)
    heading_from = np.int64(-1)  # where the text of an open heading begins
    templates = np.int64(0)
    hidden = np.int64(-1)  # the kind that hides: TEMPLATE, or SCRIPT and STYLE in svg
    hidden_from = np.int64(0)  # what is written from here on will be taken back
    block = np.int64(-1)  # where the text ends if it ends with a block boundary; _UNKNOWN: look
    many, next_one, chunk, chunk_end = np.int64(0), np.int64(0), at, at  # of the index
    while at < end and o < limit:
        if buf[U64(at)] & 0xC0 == 0x80:
            # A character cut in two by markup must not be joined.
            o = _space(text, o)
        # Text up to the next `<` or `&`.
        stop = end
        while True:
            while next_one < many and chunk + half_at(text, index + 2 * next_one) < at:
                next_one += 1
            if next_one < many:
                stop = chunk + half_at(text, index + 2 * next_one)
                break
            if chunk_end >= end:
                break
            chunk = max(at, chunk_end)
            chunk_end = min(end, chunk + _CHUNK_BYTES)
            many, next_one = _index_markup(buf, chunk, chunk_end, text, index), np.int64(0)
        copy_text(buf, at, text, o)
        if stop - at > 64:
            o = _copy(buf, at + 64, stop, text, o + 64, limit)
        else:
            o += stop - at
        at = stop
        if at >= end or o >= limit:
            break
        if buf[U64(at)] == 38:
            o, at = _put_reference(buf, at, end, entities, text, o)
            continue
        closing = byte_at(buf, at + 1, end) == 47
        name = at + 1 + closing
        foreign = is_foreign(stack)
        if name >= end or not mk.is_letter(buf[U64(name)]):
            o, at = _declaration(buf, at, end, foreign or point_fresh, text, o, limit)
            continue
        if stack == 0 and name + 16 < end:
            # Most tags: a block boundary, a link's border, a space or nothing; hardly a branch to mispredict.
            length = name_length(buf, name)
            kind = mk.short_tag_kind(buf, name, min(length, 8), tags) & (mk.BREAKOUT - 1)
            if kind <= mk.BREAK and length <= 8:
                last = buf[U64(name + length)]
                after = (name + length + 1) << 1
                if last != 62:
                    after = mk.plain_tag_end(buf, name, length, end) if mk.is_space(last) or last == 47 else 0
                if kind == mk.ANCHOR:
                    if after > 0 and (closing or last == 62 or after & 1):
                        at = after >> 1
                        text[U64(o)] = ANCHOR_END
                        o += in_link
                        in_link = after & 1 & ~closing
                        text[U64(o)] = ANCHOR_START
                        o += in_link
                        continue
                elif after > 0:
                    at = after >> 1
                    if block == _UNKNOWN:
                        block = o if o > 0 and text[o - 1] == BLOCK else -1
                    text[U64(o)] = SPACE if kind == mk.BREAK else BLOCK
                    o += (kind == mk.BREAK) | ((kind == mk.OTHER) & (o != block))
                    block = o if kind == mk.OTHER else block
                    continue
        length = _name_length(buf, name, end)
        first, second = _ZERO, _ZERO
        kind = np.int64(mk.OTHER)
        if length <= mk.NAME_BYTES_MAX:
            first, second = mk.name_words(buf, name, length)
            kind = mk.tag_kind(first, second, tags)
        breakout = kind >= mk.BREAKOUT
        kind &= mk.BREAKOUT - 1
        block = np.int64(_UNKNOWN)
        wanted, wanted_length, also, also_length = _wanted(kind)
        plain = np.int64(0)
        if name + length < end and buf[name + length] == 62:
            plain = length + 1  # no attributes at all
        if plain > 0:
            at = name + plain
            facts[mk.FIRST_START], facts[mk.SECOND_START], facts[mk.SELF_CLOSING] = -1, -1, 0
        else:
            at = mk.attributes(buf, min(name + length, end), end, wanted, wanted_length, also, also_length, facts)
        if at < 0:
            break  # the page ends inside a tag: the tag is dropped
        point_fresh = False
        value, value_end = facts[mk.FIRST_START], facts[mk.FIRST_END]
        if stack != 0 and breakout and foreign and (not closing or kind != mk.FORMAT):
            stack = pop_to_html(stack)
            foreign = False
            if hidden == mk.SCRIPT or hidden == mk.STYLE:
                o, hidden = hidden_from, np.int64(-1)

        # What the tag leaves in the text.
        if kind == mk.FORMAT:
            continue
        if kind == mk.ANCHOR:
            text[o] = ANCHOR_END
            o += in_link
            in_link = np.int64(not closing and value >= 0)
            text[o] = ANCHOR_START
            o += in_link
            continue
        if kind == mk.OTHER or (kind >= mk.TITLE and kind != mk.TEMPLATE):
            o = _block(text, o)
        else:
            o = _space(text, o)
        if kind == mk.HEADING or kind == mk.SUBHEADING:
            if closing and heading_from >= 0 and hidden < 0:
                _heading_fact(text, heading_from, o, kind, facts)
            heading_from = np.int64(-1) if closing or hidden >= 0 else o
        if closing:
            if hidden == kind:
                templates -= 1
                if templates <= 0:
                    o, hidden = _space(text, hidden_from), np.int64(-1)
            stack = pop_foreign(kind, stack)
            continue
        shown = hidden < 0

        if foreign or kind == mk.SVG or kind == mk.MATH:
            before = stack
            stack = push_foreign(buf, kind, stack, facts)
            point_fresh = stack != before and not is_foreign(stack)
            if foreign and shown and (kind == mk.SCRIPT or kind == mk.STYLE) and facts[mk.SELF_CLOSING] == 0:
                hidden, hidden_from, templates = kind, o, np.int64(1)
            continue

        # Start tags of HTML that tell or contain something.
        is_refresh = kind == mk.META and value >= 0 and _is_refresh(buf, value, value_end)
        if is_refresh:
            value, value_end = facts[mk.SECOND_START], facts[mk.SECOND_END]
        if kind == mk.IMAGE or kind == mk.FRAME or kind == mk.IFRAME or is_refresh:
            if value >= 0:
                o = put_term(
                    buf, value, value_end, is_refresh, entities, host, host_start, host_end, text, o, limit, facts
                )
        elif kind == mk.LINK:
            if shown:
                _link_fact(buf, facts)
        elif kind == mk.BASE:
            if shown and value >= 0 and facts[BASE_START] < 0:
                facts[BASE_START] = value
                facts[BASE_END] = value_end
                set_base(buf, value, value_end, entities, host, host_start, host_end, text, facts)
        elif kind == mk.HTML:
            if shown and value >= 0 and facts[LANG_START] < 0:
                facts[LANG_START] = value
                facts[LANG_END] = value_end
        elif kind == mk.TEMPLATE:
            if shown:
                hidden, hidden_from, templates = kind, o, np.int64(0)
            if hidden == kind:
                templates += 1
        if kind == mk.SCRIPT:
            at = mk.script_end(buf, at, end, first)
        elif kind == mk.STYLE:
            at = mk.raw_end(buf, at, end, first, second, length)
        elif kind == mk.TITLE or kind == mk.TEXTAREA:
            stop = mk.raw_end(buf, at, end, first, second, length)
            begin = o
            o = _copy_references(buf, at, stop, entities, text, o, limit)
            if kind == mk.TITLE and shown and facts[TITLE_START] < 0:
                facts[TITLE_START] = begin
                facts[TITLE_END] = o
            at = stop
        elif kind == mk.RAW or kind == mk.IFRAME:
            stop = mk.raw_end(buf, at, end, first, second, length)
            o = _copy(buf, at, stop, text, o, limit)
            at = stop
        elif kind == mk.PLAINTEXT:
            o = _copy(buf, at, end, text, o, limit)
            break
    if hidden >= 0:
        o = hidden_from
    o = min(o, limit)
    facts[TITLE_END] = min(facts[TITLE_END], o)
    facts[HEADING_END] = min(facts[HEADING_END], o)
    return o
