"""HTML bytes to text with marks: a state machine like the tokenizer of the HTML standard, which builds no tree.

* A tag separates words if a browser begins a new block, line or box there. Formatting and unknown tags leave no trace,
  nor do comments, and script, style and template with their contents. A template that is a shadow root is shown.
* URLs of images and frames are terms.
* A small stack tracks foreign content (svg, math), because raw text, CDATA and the title depend on it.
* Text keeps the order of the bytes, also where a tree would move or drop it.
* Attributes and style sheets that hide an element are ignored.
"""

import numpy as np

from neardup.kernels import facts as page_facts
from neardup.kernels import lean_kernel
from neardup.kernels import markup as mk
from neardup.kernels.bits import put_quad
from neardup.kernels.entities import byte_at
from neardup.kernels.foreign import is_foreign, pop_foreign, pop_to_html, push_foreign
from neardup.kernels.stretches import INDEX_BYTES, NO_MORE, stretch
from neardup.kernels.terms import BASE_BYTES_MAX, put_term, set_base
from neardup.kernels.windows import name_length
from neardup.kernels.writing import ANCHOR_END, ANCHOR_START, BLOCK, SPACE, copy, copy_references, put_byte

U64 = np.uint64
_ZERO = U64(0)

PADDING_BYTES = 256
_SLACK_BYTES = 512  # one step of the state machine writes less


def text_bytes_needed(page_bytes: int) -> int:
    """Capacity of `text` that `extract` and `tokenise` need for a page of this length."""
    return 2 * page_bytes + 65536


@lean_kernel
def _declaration(buf, at, end, foreign, text, o, limit):
    """Skip the comment, doctype or CDATA section at buf[at] -> (position in text, position in buf) after it.

    The content of CDATA is copied. A `<` that begins no markup is text.
    """
    c = byte_at(buf, at + 1, end)
    if c == 33:
        if byte_at(buf, at + 2, end) == 45 and byte_at(buf, at + 3, end) == 45:
            return o, mk.comment_end(buf, at + 4, end)
        if foreign and at + 9 <= end and _is_cdata(buf, at + 2):
            stop = mk.cdata_end(buf, at + 9, end)
            return copy(buf, at + 9, stop, text, o, limit), min(stop + 3, end)
        return o, min(mk.find(buf, at + 2, end, 62) + 1, end)
    if c == 63:
        return o, min(mk.find(buf, at + 2, end, 62) + 1, end)
    if c == 47 and at + 2 < end:
        return o, min(mk.find(buf, at + 2, end, 62) + 1, end)
    return put_byte(text, o, 60), at + 1


@lean_kernel
def _is_cdata(buf, at):
    for i in range(7):  # noqa: SIM110  (numba has no generator expressions)
        if buf[at + i] != _CDATA[i]:
            return False
    return True


_CDATA = np.frombuffer(b"[CDATA[", np.uint8)


@lean_kernel
def _name_length(buf, name, end):
    """Bytes of the tag name at buf[name]."""
    at = min(name + name_length(buf, name), end)
    while at < end and not (mk.is_space(buf[at]) or buf[at] == 47 or buf[at] == 62):
        at += 1
    return at - name


@lean_kernel
def extract(buf, start, end, mode, host, host_start, host_end, tables, text, facts):
    """Write the text of one page, with marks -> its bytes, at most 1.2 * (end - start) + 33000.

    Bytes that are not UTF-8 are copied, and separate tokens. Raises ValueError if padding or capacity are missing.
    buf uint8: buf[start:end] is the page in UTF-8. At least PADDING_BYTES of any content follow.
    mode: 0 HTML, 1 plain text.
    host[host_start:host_end] uint8: the page's own host in lower case.
    tables: see `neardup.text.tables`.
    text uint8[>= text_bytes_needed(end - start)]: out.
    facts int64[FACTS]: out, see `neardup.kernels.facts`.
    """
    begin, end = np.int64(start), np.int64(end)
    host_start, host_end = np.int64(host_start), np.int64(host_end)
    tags, entities = tables[0], tables[1]
    if end + PADDING_BYTES > buf.size or text.size < 2 * (end - begin) + 65536 or facts.size < page_facts.FACTS:
        raise ValueError("extract: padding or capacity missing")
    index = np.int64(text.size - BASE_BYTES_MAX - INDEX_BYTES)
    limit = index - _SLACK_BYTES
    page_facts.clear(facts)
    o = np.int64(0)
    if mode != 0:
        return copy(buf, begin, end, text, o, limit)
    stack = np.int64(0)  # of foreign content
    point_fresh = False  # an integration point opened, and no tag followed yet: still in its own namespace
    in_link = np.int64(0)
    heading_from = np.int64(-1)  # start of the text of an open heading
    templates = np.int64(0)
    hidden = np.int64(-1)  # the kind of the open element that hides text: TEMPLATE, or SCRIPT and STYLE in svg
    hidden_from = np.int64(0)  # start of the hidden text, which is removed at the end of the element
    hidden_in = np.int64(0)  # the stack at the start of a hiding SCRIPT or STYLE; the element ends with the stack's
    at = begin
    place, indexed = index, begin  # next position, and indexed bytes, of the index of markup (`stretch`)
    put_quad(text, index, NO_MORE)
    while True:
        kinds_max = np.int64(mk.BLOCK if stack == 0 else -1)  # in foreign content every tag needs care
        at, o, in_link, place, indexed = stretch(
            buf, begin, at, end, text, o, limit, tags, entities, kinds_max, in_link, index, place, indexed
        )
        if at >= end or o >= limit:
            break
        closing = byte_at(buf, at + 1, end) == 47
        name = at + 1 + closing
        foreign = is_foreign(stack)
        inside = stack != 0
        if name >= end or not mk.is_letter(buf[U64(name)]):
            o, at = _declaration(buf, at, end, foreign or point_fresh, text, o, limit)
            continue
        length = _name_length(buf, name, end)
        first, second = _ZERO, _ZERO
        kind = np.int64(mk.OTHER)
        if length <= mk.NAME_BYTES_MAX:
            first, second = mk.name_words(buf, name, length)
            kind = mk.tag_kind(first, second, tags)
        breakout = kind >= mk.BREAKOUT
        kind &= mk.BREAKOUT - 1
        if name + length < end and buf[name + length] == 62:  # no attributes at all
            at = name + length + 1
            facts[mk.FIRST_START], facts[mk.SECOND_START], facts[mk.SELF_CLOSING] = -1, -1, 0
        else:
            names = page_facts.attributes_of(kind)
            at = mk.attributes(buf, min(name + length, end), end, *names, facts)
        if at < 0:
            break  # the page ends inside a tag: the tag is dropped
        point_fresh = False
        boundary = foreign or (kind >= mk.TITLE and kind < mk.HTML_POINT) or kind == mk.BLOCK
        boundary = boundary or (kind >= mk.HTML_POINT and inside)
        value, value_end = facts[mk.FIRST_START], facts[mk.FIRST_END]
        if stack != 0 and breakout and foreign and (not closing or kind != mk.FORMAT):
            stack = pop_to_html(stack)
            foreign = False
            if stack < hidden_in:
                o, hidden, hidden_in = hidden_from, np.int64(-1), np.int64(0)

        # The mark that the tag leaves in the text.
        if kind == mk.FORMAT:
            continue
        if kind == mk.ANCHOR:
            text[o] = ANCHOR_END
            o += in_link
            in_link = np.int64(not closing and value >= 0)
            text[o] = ANCHOR_START
            o += in_link
            continue
        if boundary:
            o = put_byte(text, o, BLOCK)
        elif kind == mk.BREAK or kind == mk.IFRAME:
            o = put_byte(text, o, SPACE)
        if kind == mk.HEADING or kind == mk.SUBHEADING:
            if closing and heading_from >= 0 and hidden < 0:
                page_facts.heading_fact(text, heading_from, o, kind, facts)
            heading_from = np.int64(-1) if closing or hidden >= 0 else o
        if closing:
            if hidden == kind:
                templates -= 1
                if templates <= 0:
                    o, hidden, hidden_in = hidden_from, np.int64(-1), np.int64(0)
            stack = pop_foreign(kind, stack)
            if stack < hidden_in:
                o, hidden, hidden_in = hidden_from, np.int64(-1), np.int64(0)
            continue
        shown = hidden < 0

        if foreign or kind == mk.SVG or kind == mk.MATH:
            before = stack
            stack = push_foreign(buf, kind, stack, facts)
            point_fresh = stack != before and not is_foreign(stack)
            if foreign and shown and (kind == mk.SCRIPT or kind == mk.STYLE) and facts[mk.SELF_CLOSING] == 0:
                hidden, hidden_from, hidden_in, templates = kind, o, stack, np.int64(1)
            continue

        # Start tags of HTML that carry facts or content.
        is_refresh = kind == mk.META and value >= 0 and page_facts.is_refresh(buf, value, value_end)
        if is_refresh:
            value, value_end = facts[mk.SECOND_START], facts[mk.SECOND_END]
        if kind == mk.IMAGE or kind == mk.FRAME or kind == mk.IFRAME or is_refresh:
            if value >= 0:
                o = put_term(
                    buf, value, value_end, is_refresh, entities, host, host_start, host_end, text, o, limit, facts
                )
        elif kind == mk.LINK:
            if shown:
                page_facts.link_fact(buf, facts)
        elif kind == mk.BASE:
            if shown and value >= 0 and facts[page_facts.BASE_START] < 0:
                facts[page_facts.BASE_START] = value
                facts[page_facts.BASE_END] = value_end
                set_base(buf, value, value_end, entities, host, host_start, host_end, text, facts)
        elif kind == mk.HTML:
            if shown and value >= 0 and facts[page_facts.LANG_START] < 0:
                facts[page_facts.LANG_START] = value
                facts[page_facts.LANG_END] = value_end
        elif kind == mk.TEMPLATE:
            if shown and not page_facts.is_shadow(buf, facts):
                hidden, hidden_from, templates = kind, o, np.int64(0)
            if hidden == kind:
                templates += 1
        if kind == mk.SCRIPT:
            at = mk.script_end(buf, at, end, first)
        elif kind == mk.STYLE or kind == mk.UNSHOWN:
            at = mk.raw_end(buf, at, end, first, second, length)
        elif kind == mk.TITLE or kind == mk.TEXTAREA:
            stop = mk.raw_end(buf, at, end, first, second, length)
            title = o
            o = copy_references(buf, at, stop, entities, text, o, limit)
            if kind == mk.TITLE and shown and facts[page_facts.TITLE_START] < 0:
                facts[page_facts.TITLE_START] = title
                facts[page_facts.TITLE_END] = o
            at = stop
        elif kind == mk.RAW or kind == mk.IFRAME:
            stop = mk.raw_end(buf, at, end, first, second, length)
            o = copy(buf, at, stop, text, o, limit)
            at = stop
        elif kind == mk.PLAINTEXT:
            o = copy(buf, at, end, text, o, limit)
            break
    if hidden >= 0:
        o = hidden_from
    o = min(o, limit)
    facts[page_facts.TITLE_END] = min(facts[page_facts.TITLE_END], o)
    facts[page_facts.HEADING_END] = min(facts[page_facts.HEADING_END], o)
    return o
