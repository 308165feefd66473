"""Stretches of a page that need no care: text, references, and tags that leave a mark or nothing.

They make up nearly all of a page, so this loop knows little, and has hardly a branch to mispredict.
"""

import numpy as np

from neardup.kernels import inlined_kernel, lean_kernel
from neardup.kernels import markup as mk
from neardup.kernels.bits import below, ones, prefetch, put_quad, quad_at, trailing_zeros
from neardup.kernels.windows import copy_text, markup_mask, name_length
from neardup.kernels.writing import ANCHOR_END, ANCHOR_START, BLOCK, SPACE, copy, put_byte, put_reference

U64 = np.uint64
_ZERO = U64(0)
_ONE = U64(1)

#: Positions of `<` and `&` are found for so many bytes at a time, ahead of the state machine: where the next tag begins
#: is known then before the last one is understood, and the CPU works on both. 4 bytes each, behind the text.
CHUNK_BYTES = 4096
INDEX_BYTES = 4 * CHUNK_BYTES + 32
#: After the last position: more than any distance in a page.
NO_MORE = 0xFFFFFFFF


@lean_kernel
def _index_markup(buf, begin, at, stop, text, place):
    """Write the positions of `<` and `&` in buf[at:stop], as distances from begin, at text[place].

    Of `<<<` and `&&&` only the last can begin anything; the others are text.
    """
    while at < stop:
        prefetch(buf, at + CHUNK_BYTES)  # for the next call
        mask = markup_mask(buf, at) & below(stop - at)
        mask &= ~(mask >> _ONE)
        to = place
        place += 4 * ones(mask)
        base = at - begin
        # Four at once, needed or not: how many a window has cannot be predicted.
        for _ in range(4):
            put_quad(text, to, base + trailing_zeros(mask))
            mask &= mask - _ONE
            to += 4
        while mask != _ZERO:
            put_quad(text, to, base + trailing_zeros(mask))
            mask &= mask - _ONE
            to += 4
        at += 64
    put_quad(text, place, NO_MORE)


@inlined_kernel
def stretch(buf, begin, at, end, text, o, limit, tags, entities, kinds_max, in_link, index, place, indexed):
    """Write text from buf[at] on, up to a tag that needs care, the end, or the limit of the text.

    begin: where the page begins. kinds_max: greater kinds of tags need care. in_link: int64, 1 in a link. Positions of
    markup lie at text[index:]; place: the next of them; indexed: up to where in buf they are known. Returns (at, o,
    in_link, place, indexed); buf[at] is a `<`, unless at >= end or o >= limit.
    """
    while o < limit:
        if buf[U64(at)] & 0xC0 == 0x80 and at < end:
            # A character cut in two by markup must not be joined.
            o = put_byte(text, o, SPACE)
        # Text up to the next `<` or `&`.
        stop = begin + quad_at(text, place)
        while stop < at:
            place += 4
            stop = begin + quad_at(text, place)
        if stop >= indexed:
            while stop >= indexed and indexed < end:
                start = max(at, indexed)
                indexed = min(end, start + CHUNK_BYTES)
                _index_markup(buf, begin, start, indexed, text, index)
                place = index
                stop = begin + quad_at(text, place)
            if stop >= end:
                return end, copy(buf, at, end, text, o, limit), in_link, place, indexed
        copy_text(buf, at, text, o)
        if stop - at > 64:
            o = copy(buf, at + 64, stop, text, o + 64, limit)
        else:
            o += stop - at
        at = stop
        if buf[U64(at)] == 38:
            o, at = put_reference(buf, at, end, entities, text, o)
            continue
        # A tag. What lies beyond the page is no part of it, but can be read.
        closing = np.int64(buf[U64(at + 1)] == 47)
        name = at + 1 + closing
        length = name_length(buf, name)
        if length > 8 or not mk.is_letter(buf[U64(name)]):
            break
        kind = mk.short_tag_kind(buf, name, length, tags)
        if kind > kinds_max:
            break
        last = buf[U64(name + length)]
        after = name + length + 1
        href = np.int64(0)
        if last != 62:
            link = kind == mk.ANCHOR and closing == 0
            after, href = mk.simple_tag_end(buf, name + length, end, link)
            if link and href == 0:
                break
        if after > end:
            break
        at = after
        if kind == mk.ANCHOR:
            text[U64(o)] = ANCHOR_END
            o += in_link
            in_link = href
            text[U64(o)] = ANCHOR_START
            o += in_link
        else:
            text[U64(o)] = U64(_MARKS) >> (U64(8) * U64(kind))
            o += np.int64(U64(_LENGTHS) >> U64(kind) & _ONE)
    return at, o, in_link, place, indexed


#: What a tag of each kind leaves, and how many bytes that is, from the lowest bits up; kinds are small numbers.
_MARKS = BLOCK << 8 * mk.BLOCK | SPACE << 8 * mk.BREAK
_LENGTHS = 1 << mk.BLOCK | 1 << mk.BREAK
