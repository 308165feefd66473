"""Text to token fingerprints: maximal runs of letters, marks and digits, lower-cased, hashed by XXH64.

Windows of 64 bytes that hold only ASCII take masks; everything else goes code point by code point. Both give the same
tokens. Lower-casing happens in `text` itself, so that a span read after the call is the token's string.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, leading_zeros, odd_up_to, ones, trailing_zeros
from neardup.kernels.spans import hash_spans
from neardup.kernels.windows import lower_case, word_masks

U64 = np.uint64
_ZERO = U64(0)
_ONE = U64(1)
_S2, _S3 = U64(2), U64(3)

#: Flags of a token.
IN_TITLE, IN_LINK, ALL_DIGITS, ANY_DIGIT, TERM = 1, 2, 4, 8, 16

# Bits of a table entry and classes: see neardup/unicode.
_POINT_MASK = 0x1FFFFF
_CLASS_SHIFT, _CLASS_MASK, _DIGIT_SHIFT = 21, 15, 25
_NONE, _WORD = 0, 1
_REPLACEMENT = 0xFFFD


#: From so many bytes of a window on that need a look at their code points, all of it goes that way. Changes no bit.
_FOREIGN = 12


@lean_kernel
def decode_point(text, at, end):
    """(code point, length) of the UTF-8 sequence at text[at]; (-1, 1) where it is malformed."""
    a = np.int64(text[at])
    bad = np.int64(-1)
    if a < 0x80:
        return a, 1
    if a < 0xC2 or a > 0xF4:
        return bad, 1
    if at + 1 >= end:
        return bad, 1
    b = np.int64(text[at + 1])
    if b & 0xC0 != 0x80:
        return bad, 1
    if a < 0xE0:
        return (a & 31) << 6 | (b & 63), 2
    if at + 2 >= end:
        return bad, 1
    c = np.int64(text[at + 2])
    if c & 0xC0 != 0x80:
        return bad, 1
    if a < 0xF0:
        point = (a & 15) << 12 | (b & 63) << 6 | (c & 63)
        if point < 0x800 or (point >= 0xD800 and point <= 0xDFFF):
            return bad, 1
        return point, 3
    if at + 3 >= end:
        return bad, 1
    d = np.int64(text[at + 3])
    if d & 0xC0 != 0x80:
        return bad, 1
    point = (a & 7) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63)
    if point < 0x10000 or point > 0x10FFFF:
        return bad, 1
    return point, 4


@lean_kernel
def _length(point):
    """Bytes of a code point in UTF-8."""
    if point < 0x80:
        return 1
    if point < 0x800:
        return 2
    return 3 if point < 0x10000 else 4


@lean_kernel
def _put(text, at, point, length):
    """Write a code point as UTF-8."""
    if length == 1:
        text[at] = point
        return
    for i in range(length - 1, 0, -1):
        text[at + i] = 0x80 | (point & 63)
        point >>= 6
    lead = 0xC0 if length == 2 else (0xE0 if length == 3 else 0xF0)
    text[at] = lead | point


@lean_kernel
def _entry(point, points):
    """Table entry of a code point, 0 for -1."""
    if point < 0:
        return np.int64(0)
    return np.int64(points[np.int64(points[point >> 7]) + (point & 127)])


@lean_kernel
def _emit(start, end, tag, ordinal, n, flags, block, span_start, span_end):
    """Append the token text[start:end]; the new number of tokens. Drops it where the arrays are full."""
    if end <= start or n >= flags.size:
        return n
    flags[n] = tag
    block[n] = ordinal
    span_start[n] = start
    span_end[n] = end
    return n + 1


@lean_kernel
def _digit_flags(count, digits):
    tag = ANY_DIGIT if digits > 0 else 0
    return tag | ALL_DIGITS if digits == count else tag


@lean_kernel
def _code_points(
    text, at, stop, n_text, title_start, title_end, points, ordinal, link, write, n, flags, block, span_start, span_end
):  # fmt: skip
    """Tokenise from a token boundary on, at least to `stop`, up to the next ASCII separator.

    Returns (at, n_text, ordinal, link, write, n). Tokens are written lower-cased where they were read. Two capital
    letters grow by it (U+023A, U+023E); where they would run over unread text, the rest of the text moves to the end
    of its array once: n_text changes then, and tokens are written one after another from `write` >= 0 on.
    """
    shift = np.int64(0)  # how far this call moved the text
    run = np.int64(_NONE)  # class of the run that is open
    run_start, run_end = at, at
    run_tag, count, digits = np.int64(0), np.int64(0), np.int64(0)
    # Of the character before, in a run of a script without word breaks:
    previous_start, previous_tag, previous_digit = at, np.int64(0), np.int64(0)
    in_term = False
    while at < n_text:
        c = np.int64(text[at])
        if c == 4 or c == 5:
            # A link's border may lie within a token.
            link ^= 1
            at += 1
            continue
        place = at - shift
        tag = IN_TITLE if place >= title_start and place < title_end else 0
        tag |= IN_LINK if link else 0
        point, length = decode_point(text, at, n_text)
        entry = _entry(point, points)
        kind = entry >> _CLASS_SHIFT & _CLASS_MASK
        digit = entry >> _DIGIT_SHIFT & 1
        lower = entry & _POINT_MASK
        if in_term:
            if c == 2:
                in_term = False
                kind = _NONE
            elif point < 0 or point == _REPLACEMENT:
                at += length
                continue
            else:
                lower = lower if kind != _NONE else point
                kind = _WORD
        if kind != run:
            if run == _WORD:
                tag_all = run_tag | _digit_flags(count, digits)
                n = _emit(run_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            elif run > _WORD and count == 1:
                tag_all = previous_tag | _digit_flags(1, previous_digit)
                n = _emit(run_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            if write >= 0 and run != _NONE:
                write = run_end
            run = kind
            run_start = at if write < 0 else write
            run_end = run_start
            run_tag, count, digits = tag | (TERM if in_term else 0), np.int64(0), np.int64(0)
        at += length
        if kind == _NONE:
            if c == 3:
                ordinal += 1
            elif c == 1:
                in_term = True
            if c < 0x80 and at >= stop and not in_term:
                break
            continue
        size = _length(lower)
        if run_end + size > at:
            room = text.size - n_text
            if room <= 0:
                # Not with the capacity that the interface asks for: keep the capital.
                lower, size = point, length
            else:
                for i in range(n_text - 1, at - 1, -1):
                    text[i + room] = text[i]
                at += room
                n_text += room
                shift += room
                write = run_start
        start = run_end
        _put(text, start, lower, size)
        run_end += size
        if kind > _WORD:
            if count > 0:
                tag_all = previous_tag | _digit_flags(2, previous_digit + digit)
                n = _emit(previous_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            previous_start, previous_tag, previous_digit = start, tag, digit
        count += 1
        digits += digit
    if run == _WORD:
        n = _emit(
            run_start, run_end, run_tag | _digit_flags(count, digits), ordinal, n, flags, block, span_start, span_end
        )
    elif run > _WORD and count == 1:
        n = _emit(
            run_start,
            run_end,
            previous_tag | _digit_flags(1, previous_digit),
            ordinal,
            n,
            flags,
            block,
            span_start,
            span_end,
        )
    if write >= 0 and run != _NONE:
        write = run_end
    return at, n_text, ordinal, link, write, n


@lean_kernel
def tokenise(
    text, n_text, title_start, title_end, seed, tables, fp, flags, block, span_start, span_end
):  # fmt: skip
    """Tokens of the text that `extract` wrote; their number.

    text: uint8[...], text[:n_text] is read and lower-cased in place; with the capacity of `text_bytes_needed` every
    letter finds room for its lower case. title_start, title_end: the title's range in it, or -1. seed: uint64.
    Output arrays hold n_text // 2 + 2 tokens: fp uint64 (XXH64 of the lower-cased UTF-8), flags uint8 (IN_TITLE,
    IN_LINK by the token's first character, ALL_DIGITS, ANY_DIGIT, TERM), block int32 (ordinal, from 0, never falling),
    span_start, span_end uint32. After the call text[span_start:span_end] is the token's string. Scripts without word
    breaks give overlapping pairs of characters.
    """
    n_text = np.int64(n_text)
    points = tables[2]
    title_start, title_end = np.int64(title_start), np.int64(title_end)
    seed = U64(seed)
    ordinal, link, write, n, at = np.int64(0), np.int64(0), np.int64(-1), np.int64(0), np.int64(0)
    size = np.int64(text.size)
    room = np.int64(flags.size)
    # In a pass of its own: a window that was just written cannot be read again before it has left for the cache.
    for i in range(0, min(n_text, size - 63), 64):
        lower_case(text, i)
    while at < n_text:
        if write >= 0 or at + 64 > size or n + 36 > room:
            at, n_text, ordinal, link, write, n = _code_points(
                text, at, n_text, n_text, title_start, title_end, points, ordinal, link, write, n,
                flags, block, span_start, span_end,
            )  # fmt: skip
            continue
        words, digits, breaks, borders, others = word_masks(text, at)
        rest = n_text - at
        valid = below(rest)
        stop = trailing_zeros(others & valid)
        valid &= below(stop)
        # Whole tokens only: up to the last separator before a stop, or to the end of the text.
        if rest < 64 and stop == 64:
            cut = rest
        else:
            cut = 64 - leading_zeros(valid & ~(words | borders))
        used = below(cut)
        w = words & used
        b = borders & used
        # A link's border with word characters on both sides lies within a token.
        glued = (b + (b & (w << _ONE))) & ~b & w
        if cut == 0 or glued != _ZERO:
            # No further than need be, except in a script that is not ASCII's.
            stop = at + 64 if ones(others) > _FOREIGN else min(at + stop + 1, at + 64)
            at, n_text, ordinal, link, write, n = _code_points(
                text, at, stop, n_text, title_start, title_end, points, ordinal, link, write, n,
                flags, block, span_start, span_end,
            )  # fmt: skip
            continue
        digits &= w
        breaks &= used
        linked = odd_up_to(b) ^ (_ZERO - U64(link))
        starts = w & ~(w << _ONE)
        ends = ~w & (w << _ONE)  # below bit 64: a separator or the end of the text lies in the window
        k = U64(n)
        n += ones(starts)
        while starts != _ZERO:
            # Four at once, there or not: how many a window has cannot be predicted.
            for _ in range(4):
                first = starts & (_ZERO - starts)
                last = ends & (_ZERO - ends)
                starts ^= first
                ends ^= last
                inside = last - first
                numeric = digits & inside
                start = at + trailing_zeros(first)
                tag = U64(numeric != _ZERO) << _S3 | U64(numeric == inside) << _S2
                tag |= U64(linked & first != _ZERO) << _ONE
                tag |= U64(start >= title_start) & U64(start < title_end)
                flags[k] = tag
                block[k] = ordinal + ones(breaks & (first - _ONE))
                span_start[k] = start
                span_end[k] = at + trailing_zeros(last)
                k += _ONE
        ordinal += ones(breaks)
        link = (link + ones(b)) & 1
        at += cut
    hash_spans(text, span_start, span_end, n, seed, fp)
    return n
