"""Tokenises one code point at a time the texts that `neardup.kernels.tokens` cannot process 64 bytes at a time."""

import numpy as np

from neardup.kernels import lean_kernel

#: Flags of a token.
IN_TITLE, IN_LINK, ALL_DIGITS, ANY_DIGIT, TERM = 1, 2, 4, 8, 16

# Bits of a table entry and classes: see neardup/unicode.
POINT_MASK = 0x1FFFFF
CLASS_SHIFT, CLASS_MASK, DIGIT_SHIFT = 21, 15, 25
NONE, WORD, FOLD, IGNORED = 0, 1, 8, 9
_SPACE = 0x20
_REPLACEMENT = 0xFFFD


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
def utf8_length(point):
    """Bytes of a code point in UTF-8."""
    if point < 0x80:
        return 1
    if point < 0x800:
        return 2
    return 3 if point < 0x10000 else 4


@lean_kernel
def put_utf8(text, at, point, length):
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
def entry_of(point, points):
    """Table entry of a code point, 0 for -1."""
    if point < 0:
        return np.int64(0)
    return np.int64(points[np.int64(points[point >> 7]) + (point & 127)])


@lean_kernel
def emit(start, end, tag, ordinal, n, flags, block, span_start, span_end):
    """Append the token text[start:end] -> the new number of tokens. Full arrays drop it."""
    if end <= start or n >= flags.size:
        return n
    flags[n] = tag
    block[n] = ordinal
    span_start[n] = start
    span_end[n] = end
    return n + 1


@lean_kernel
def digit_flags(count, digits):
    """Digit flags of a token of `count` characters, `digits` of which are digits."""
    tag = ANY_DIGIT if digits > 0 else 0
    return tag | ALL_DIGITS if digits == count else tag


@lean_kernel
def _blank(text, start, end):
    """Write spaces to text[start:end], the bytes that a folded token no longer needs -> end."""
    for i in range(start, end):
        text[i] = _SPACE
    return end


@lean_kernel
def _spread(text, at, length, n_text, free, first, points):
    """Replace the character text[at:at + length] by the several characters that it folds to.

    The new characters end where the old one ended, directly before the unread text. If text[free:at] is too short for
    them, the unread text moves to the end of its array. If that has no room either, the character becomes a space.
    free: text[free:at] may be overwritten. first: index in `points` of the bytes of the new characters.
    -> (start of the new characters, bytes of the text, bytes by which the unread text moved).
    """
    size = np.int64(points[first])
    end = at + length
    shift = np.int64(0)
    if end - size < free:
        shift = np.int64(text.size) - n_text
        if shift < size:
            return _blank(text, at, end), n_text, np.int64(0)
        for i in range(n_text - 1, end - 1, -1):
            text[i + shift] = text[i]
    at = end + shift - size
    for i in range(size):
        text[at + i] = points[first + 1 + i]
    return at, n_text + shift, shift


@lean_kernel
def code_points(
    text, at, stop, n_text, title_start, title_end, points, ordinal, link, write, n, flags, block, span_start, span_end
):  # fmt: skip
    """Tokenise from a token boundary on, to the first ASCII separator at or after `stop`.

    Folded tokens replace the text in place; spaces fill bytes that a fold frees. Some characters become longer: two
    capital letters (U+023A, U+023E) and compatibility characters. If one would overwrite unread text, the unread text
    moves to the end of its array, once. From then on n_text is greater, and tokens and separators are written one after
    another at `write` >= 0. Stops early if the arrays are full.
    -> (at, n_text, ordinal, link, write, n), the new values of these arguments.
    """
    shift = np.int64(0)  # bytes by which this call moved the unread text
    run = np.int64(NONE)  # class of the open run
    run_start, run_end = at, at
    run_tag, count, digits = np.int64(0), np.int64(0), np.int64(0)
    # The previous character, in a run of a script without word breaks:
    previous_start, previous_tag, previous_digit = at, np.int64(0), np.int64(0)
    in_term = False
    spread = np.int64(-1)  # the last byte of a character that folded to several
    while at < n_text and n < flags.size:
        c = np.int64(text[at])
        if c == 4 or c == 5:
            # The start or end of a link may lie within a token.
            link ^= 1
            at += 1
            continue
        place = max(at, spread) - shift
        tag = IN_TITLE if place >= title_start and place < title_end else 0
        tag |= IN_LINK if link else 0
        point, length = decode_point(text, at, n_text)
        entry = entry_of(point, points)
        kind = entry >> CLASS_SHIFT & CLASS_MASK
        digit = entry >> DIGIT_SHIFT & 1
        lower = entry & POINT_MASK
        if in_term:
            if c == 2:
                in_term = False
                kind = np.int64(NONE)
            elif point < 0 or point == _REPLACEMENT:
                at += length
                continue
            else:
                # In a URL, a character stays if folding would drop or lengthen it.
                lower = lower if kind != NONE and kind < FOLD else point
                kind = np.int64(WORD)
        elif kind == IGNORED:
            at += length
            continue
        elif kind == FOLD:
            free = run_end if run != NONE else (write if write >= 0 else at)
            spread = at + length - 1
            at, n_text, moved = _spread(text, at, length, n_text, free, lower, points)
            if moved > 0:
                shift += moved
                write = run_start if run != NONE else spread - length + 1
            spread += moved
            continue
        if kind != run:
            if run == WORD:
                tag_all = run_tag | digit_flags(count, digits)
                n = emit(run_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            elif run > WORD and count == 1:
                tag_all = previous_tag | digit_flags(1, previous_digit)
                n = emit(run_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            if run != NONE:
                if write >= 0:
                    write = run_end
                else:
                    _blank(text, run_end, at)
            run = kind
            run_start = at if write < 0 else write
            run_end = run_start
            run_tag, count, digits = tag | (TERM if in_term else 0), np.int64(0), np.int64(0)
        at += length
        if kind == NONE:
            if write >= 0:
                for i in range(length):
                    text[write + i] = text[at - length + i]
                write += length
            if c == 3:
                ordinal += 1
            elif c == 1:
                in_term = True
            if c < 0x80 and at >= stop and at > spread and not in_term:
                break
            continue
        size = utf8_length(lower)
        if run_end + size > at:
            room = text.size - n_text
            if room <= 0:
                # Only if the array is smaller than `text_bytes_needed`: keep the capital letter.
                lower, size = point, length
            else:
                for i in range(n_text - 1, at - 1, -1):
                    text[i + room] = text[i]
                at += room
                n_text += room
                shift += room
                spread += room
                write = run_start
        start = run_end
        put_utf8(text, start, lower, size)
        run_end += size
        if kind > WORD:
            if count > 0:
                tag_all = previous_tag | digit_flags(2, previous_digit + digit)
                n = emit(previous_start, run_end, tag_all, ordinal, n, flags, block, span_start, span_end)
            previous_start, previous_tag, previous_digit = start, tag, digit
        count += 1
        digits += digit
    if run == WORD:
        n = emit(
            run_start, run_end, run_tag | digit_flags(count, digits), ordinal, n, flags, block, span_start, span_end
        )
    elif run > WORD and count == 1:
        n = emit(
            run_start,
            run_end,
            previous_tag | digit_flags(1, previous_digit),
            ordinal,
            n,
            flags,
            block,
            span_start,
            span_end,
        )
    if run != NONE:
        if write >= 0:
            write = run_end
        else:
            _blank(text, run_end, at)
    return at, n_text, ordinal, link, write, n
