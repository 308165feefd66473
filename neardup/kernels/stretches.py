"""The fast path of `extract`: text, references, and tags that leave one mark or none in the text.

They make up nearly all of a page, so this loop handles only them, with few branches that can be mispredicted.
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

#: Bytes whose `<` and `&` are indexed at a time, ahead of the state machine. So the start of the next tag is known
#: before the last one is processed, and the CPU works on both. A position has 4 bytes and is stored after the text.
CHUNK_BYTES = 4096
INDEX_BYTES = 4 * CHUNK_BYTES + 32
#: The end mark of the positions, greater than any of them.
NO_MORE = 0xFFFFFFFF


@lean_kernel
def _index_markup(buf, begin, at, stop, text, place):
    """Write the positions of `<` and `&` in buf[at:stop], relative to begin, to text[place:].

    Of `<<<` and `&&&` only the last can begin a tag or a reference, so the others are left out: they are text.
    """
    while at < stop:
        prefetch(buf, at + CHUNK_BYTES)  # the bytes of the next call
        mask = markup_mask(buf, at) & below(stop - at)
        mask &= ~(mask >> _ONE)
        to = place
        place += 4 * ones(mask)
        base = at - begin
        # Always four per step, because the number of bits in a window cannot be predicted.
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
    """Copy text from buf[at] on, up to a tag that needs the state machine, the end, or the limit of the text.

    begin: start of the page in buf. kinds_max: tags of a greater kind need the state machine. in_link: int64, 1 in a
    link. index: start of the positions of markup in text; place: the next position; indexed: the end of the indexed
    bytes of buf.
    -> (at, o, in_link, place, indexed), the new values; buf[at] is `<`, unless at >= end or o >= limit.
    """
    while o < limit:
        if buf[U64(at)] & 0xC0 == 0x80 and at < end:
            # A character that markup cuts in two must not be joined.
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
        # A tag. Bytes beyond the page do not belong to it, but can be read.
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


#: The mark that a tag of each kind leaves, and its number of bytes; the entry of the lowest kind in the lowest bits.
_MARKS = BLOCK << 8 * mk.BLOCK | SPACE << 8 * mk.BREAK
_LENGTHS = 1 << mk.BLOCK | 1 << mk.BREAK
