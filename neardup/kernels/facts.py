"""What a page says of itself: places in the array of facts, and the tags that fill them."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels import markup as mk

U64 = np.uint64

#: Places in the array of facts, int64[FACTS]: ranges, -1 where missing. 8 to 12 are those of `attributes`, and the last
#: three those of a <base>.
TITLE_START, TITLE_END = 0, 1
CANONICAL_START, CANONICAL_END = 2, 3
BASE_START, BASE_END = 4, 5
LANG_START, LANG_END = 6, 7
HEADING_START, HEADING_END = 13, 14
_HEADING_KIND = 15  # of the heading that the range is of
FACTS = 19

_CANONICA = U64(int.from_bytes(b"canonica", "little"))
_L = U64(ord("l"))
_REFRESH = U64(int.from_bytes(b"refresh", "little"))


@lean_kernel
def clear(facts):
    """Nothing is known yet."""
    facts[:] = -1
    facts[mk.FIRST_START : mk.SELF_CLOSING + 1] = 0
    facts[_HEADING_KIND + 1 :] = 0


@lean_kernel
def wanted(kind):
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
def link_fact(buf, facts):
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


@lean_kernel
def heading_fact(text, start, end, kind, facts):
    """Take down the range of a heading that has any text: of the first h1, or of the first h2 while there is none."""
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
