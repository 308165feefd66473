"""Tokenises one code point at a time the texts that `neardup.kernels.tokens` cannot process 64 bytes at a time."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import trailing_zeros, word_at
from neardup.kernels.composition import compose, has_mark, may_join
from neardup.kernels.unicode_points import (
    CLASS_MASK,
    CLASS_SHIFT,
    DIGIT_SHIFT,
    FOLD,
    IGNORED,
    NONE,
    POINT_MASK,
    RANK_SHIFT,
    SECOND,
    WORD,
    decode_point,
    entry_of,
    put_utf8,
    utf8_length,
)

#: Flags of a token. The last three are set by `neardup.kernels.forms` and `neardup.kernels.own_url`.
IN_TITLE, IN_LINK, ALL_DIGITS, ANY_DIGIT, TERM, IN_FORM, RELATIVE, OF_OWN_URL = 1, 2, 4, 8, 16, 32, 64, 128

U64, U8 = np.uint64, np.uint8
_EIGHT = U64(0x0101010101010101)
_SPACE = 0x20
_REPLACEMENT = 0xFFFD


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
def next_flagged(flags, i, n, wanted):
    """The first of tokens i to n - 1 that has one of the flags `wanted` (uint8); n if none has."""
    eight = _EIGHT * U64(wanted)
    while i < n and i + 8 <= flags.size:
        found = word_at(flags, i) & eight
        if found != U64(0):
            return min(i + (trailing_zeros(found) >> np.int64(3)), n)
        i += 8
    while i < n and flags[i] & wanted == U8(0):
        i += 1
    return min(i, n)


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
def _room(text, end, size, n_text, free):
    """Make room for `size` bytes that replace the characters before text[end] -> (start, n_text, moved bytes).

    The new characters end where the old ones ended, directly before the unread text. If text[free:end] is too short for
    them, the unread text moves to the end of its array. If that has no room either, start is -1.
    """
    shift = np.int64(0)
    if end - size < free:
        shift = np.int64(text.size) - n_text
        if shift < size:
            return np.int64(-1), n_text, np.int64(0)
        for i in range(n_text - 1, end - 1, -1):
            text[i + shift] = text[i]
    return end + shift - size, n_text + shift, shift


@lean_kernel
def code_points(
    text, at, stop, n_text, title_start, title_end, points, ordinal, link, write, n, flags, block, span_start, span_end,
    cluster,
):  # fmt: skip
    """Tokenise from a token boundary on, to the first ASCII separator at or after `stop`.

    Folded tokens replace the text in place; spaces fill bytes that a fold frees. Some characters become longer: two
    capital letters (U+023A, U+023E) and compatibility characters. If one would overwrite unread text, the unread text
    moves to the end of its array, once. From then on n_text is greater, and tokens and separators are written one after
    another at `write` >= 0. Stops early if the arrays are full. cluster: see `neardup.kernels.composition`.
    -> (at, n_text, ordinal, link, write, n), the new values of these arguments.
    """
    shift = np.int64(0)  # bytes by which this call moved the unread text
    run = np.int64(NONE)  # class of the open run
    run_start, run_end = at, at
    run_tag, count, digits = np.int64(0), np.int64(0), np.int64(0)
    # The previous character, in a run of a script without word breaks:
    previous_start, previous_tag, previous_digit = at, np.int64(0), np.int64(0)
    in_term = False
    spread = np.int64(-1)  # the last byte of characters that were folded to several, or composed
    crossed = np.int64(0)  # 1: a start or end of a link lay within them
    while at < n_text and n < flags.size:
        c = np.int64(text[at])
        if crossed != 0 and at > spread:
            link ^= crossed
            crossed = np.int64(0)
        if c == 4 or c == 5:
            # The start or end of a link may lie within a token.
            link ^= 1
            at += 1
            continue
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
        elif run == NONE and entry >> RANK_SHIFT != 0 and entry >> RANK_SHIFT != SECOND:
            at += length  # a mark without a letter
            continue
        elif kind == FOLD or (
            kind != NONE
            and at > spread
            and may_join(text, at + length, n_text)  # spares most letters the call
            and has_mark(text, at + length, n_text, points)
        ):
            begin, end, many = at, at + length, np.int64(0)
            size = np.int64(points[lower]) if kind == FOLD else np.int64(0)
            if at > spread and (kind != FOLD or has_mark(text, end, n_text, points)):
                end, many, size, crossed = compose(text, at, n_text, points, cluster)
            free = run_end if run != NONE else (write if write >= 0 else at)
            spread = end - 1
            at, n_text, moved = _room(text, end, size, n_text, free)
            if at < 0:
                at = _blank(text, begin, end)
                continue
            to = at
            for i in range(many):
                one = np.int64(cluster[i])
                put_utf8(text, to, one, utf8_length(one))
                to += utf8_length(one)
            for i in range(0 if many > 0 else size):
                text[at + i] = points[lower + 1 + i]
            if moved > 0:
                shift += moved
                write = run_start if run != NONE else begin
            spread += moved
            continue
        tag = np.int64(0)
        if kind != run or kind > WORD:
            place = max(at, spread) - shift
            tag = IN_LINK if link else np.int64(0)
            tag |= IN_TITLE if place >= title_start and place < title_end else 0
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
