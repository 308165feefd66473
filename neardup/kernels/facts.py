"""Facts of a page: byte ranges of its title, heading, canonical URL, base URL and language, with their tags.

The array of facts is int64[FACTS]. A range is a start and an end; -1 means missing. Elements 8 to 12 belong to
`markup.attributes`, the last three to the base URL (`neardup.kernels.terms`).
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels import markup as mk

U64 = np.uint64

#: Indices in the array of facts.
TITLE_START, TITLE_END = 0, 1
CANONICAL_START, CANONICAL_END = 2, 3
BASE_START, BASE_END = 4, 5
LANG_START, LANG_END = 6, 7
HEADING_START, HEADING_END = 13, 14
_HEADING_KIND = 15  # HEADING or SUBHEADING: the kind of the heading whose range is stored
FACTS = 19

_CANONICA = U64(int.from_bytes(b"canonica", "little"))
_L = U64(ord("l"))
_REFRESH = U64(int.from_bytes(b"refresh", "little"))
_OPEN, _CLOSED = U64(int.from_bytes(b"open", "little")), U64(int.from_bytes(b"closed", "little"))


@lean_kernel
def clear(facts):
    """Set all facts to missing."""
    facts[:] = -1
    facts[mk.FIRST_START : mk.SELF_CLOSING + 1] = 0
    facts[_HEADING_KIND + 1 :] = 0


@lean_kernel
def attributes_of(kind):
    """The two attributes that matter for a tag of this kind: (name word, length, name word, length)."""
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
    if kind == mk.TEMPLATE:
        return mk.SHADOW, 14, mk.SHADOW, 10
    if kind == mk.ANNOTATION:
        return mk.ENCODING, 8, mk.NO_NAME, -1
    return mk.NO_NAME, -1, mk.NO_NAME, -1


@lean_kernel
def link_fact(buf, facts):
    """Store the range of the href of the first <link rel=canonical>. The value of rel is a set of words."""
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


@lean_kernel
def heading_fact(text, start, end, kind, facts):
    """Store the range of the first h1 with text; of the first h2 with text as long as there is no h1."""
    if facts[_HEADING_KIND] >= 0 and (facts[_HEADING_KIND] == mk.HEADING or kind == mk.SUBHEADING):
        return
    for i in range(start, end):
        if text[i] > 32:
            facts[HEADING_START], facts[HEADING_END], facts[_HEADING_KIND] = start, end, kind
            return


@lean_kernel
def is_refresh(buf, start, end):
    """Whether the value of an http-equiv is `refresh`."""
    while start < end and mk.is_space(buf[start]):
        start += 1
    while end > start and mk.is_space(buf[end - 1]):
        end -= 1
    return end - start == 7 and mk.name_words(buf, start, 7)[0] == _REFRESH


@lean_kernel
def is_shadow(buf, facts):
    """Whether the template whose attributes were read is a shadow root, whose content a browser shows.

    Its `shadowrootmode` (or `shadowroot`, as older browsers call it) is `open` or `closed`.
    """
    for at in (mk.FIRST_START, mk.SECOND_START):
        length = facts[at + 1] - facts[at]
        if facts[at] >= 0 and (length == 4 or length == 6):
            word = mk.name_words(buf, facts[at], length)[0]
            if word in (_OPEN, _CLOSED):
                return True
    return False
