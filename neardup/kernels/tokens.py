"""Text to token fingerprints: maximal runs of letters, marks and digits, folded, and their fingerprints.

Folding (`neardup.text.unicode`) lower-cases letters, replaces the compatibility characters of Unicode (fullwidth and
mathematical letters, ligatures) and digits, composes letters and marks (`neardup.kernels.composition`), and drops
characters that a browser does not show (soft hyphens, joiners, variation selectors) or that a writer may leave out
(vowel marks of Arabic and Hebrew). In a term (a URL that is one token), characters that would be dropped, composed or
lengthened stay.

Text is split 64 bytes at a time with bit masks; letters that are not ASCII are added to the masks one by one. All other
text, mainly scripts without word breaks, is split one code point at a time. Both ways give the same tokens. `text` is
folded in place, so after the call a span of it is the token's string.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, leading_zeros, odd_up_to, ones, trailing_zeros
from neardup.kernels.composition import pair_of, parts_of
from neardup.kernels.points import ALL_DIGITS, ANY_DIGIT, IN_LINK, IN_TITLE, TERM, code_points, emit
from neardup.kernels.spans import hash_spans
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
from neardup.kernels.windows import flag_bytes, lower_case, word_masks

U64 = np.uint64
_ZERO = U64(0)
_ONE = U64(1)
_ALL = U64(0xFFFFFFFFFFFFFFFF)

#: A window in a script without word breaks that has more bytes beyond ASCII than this is split one code point at a time
#: to its end. Changes no bit.
_FOREIGN = 12
#: Bytes after the text that `tokenise` reads, and bytes at the end of its array that it writes.
_SPARE_BYTES = 64
#: The first byte that needs a table look-up; `neardup.kernels.writing` writes it for control characters.
_DELETE = 0x7F


def tokens_needed(text_bytes: int) -> int:
    """Upper bound of the tokens of a text. The densest character is U+3358, with two tokens from three bytes."""
    return text_bytes + 2


@lean_kernel
def _is_settled(text, at, place, n_text, point, rank, words, points):
    """Whether the mark at text[at + place] stays as it is: it composes with no letter, and follows marks in order.

    words: mask of the letters before it in its window. A mark without a letter is not settled.
    """
    order = np.int64(0) if rank == SECOND else rank
    while place > 0:
        place -= 1
        while place > 0 and text[at + place] & 0xC0 == 0x80:
            place -= 1
        if words >> U64(place) & _ONE == _ZERO:
            return False
        base, _ = decode_point(text, at + place, n_text)
        before = entry_of(base, points) >> RANK_SHIFT
        if before == 0 or before == SECOND:
            return pair_of(base, point, points) < 0 and (order == 0 or parts_of(base, points)[0] < 0)
        if order == 0 or order == before:
            return True
        if before > order:
            return False
    return False


@lean_kernel
def _plain_fold(first, length, points):
    """Bytes of the fold at points[first] if it has ASCII letters alone, at most `length`; else -1."""
    size = np.int64(points[first])
    if size > length:
        return np.int64(-1)
    for i in range(size):
        if points[first + 1 + i] < 97 or points[first + 1 + i] > 122:
            return np.int64(-1)
    return size


@lean_kernel
def _letters(text, at, n_text, high, words, digits, borders, points):
    """(words, digits, rest): the masks of a window with its bytes that are not ASCII (the mask `high`).

    rest: the first character that masks cannot handle, as one bit; 0: none. Masks cannot handle a letter that becomes
    longer, one that composes, scripts without word breaks, and a character that crosses the end of the window. Letters
    before `rest` are folded in place. Where a fold is shorter, the letters of the token before it move towards it, and
    spaces fill the bytes before the token.
    """
    while high != _ZERO:
        first = high & (_ZERO - high)
        place = trailing_zeros(first)
        point, length = decode_point(text, at + place, n_text)
        if place + length > 64:
            return words, digits, first
        span = (first << U64(length)) - first
        high &= ~span
        entry = entry_of(point, points)
        kind = entry >> CLASS_SHIFT
        if kind == NONE:
            continue
        lower = entry & POINT_MASK
        size = np.int64(0)
        if kind == WORD:
            size = utf8_length(lower)
            if size == length:
                if lower != point:
                    put_utf8(text, at + place, lower, length)
                words |= span
                if entry >> DIGIT_SHIFT & 1:
                    digits |= span
                continue
        elif kind & CLASS_MASK == WORD:  # with a rank
            if lower != point or not _is_settled(text, at, place, n_text, point, kind >> 4, words, points):
                return words, digits, first
            words |= span
            continue
        elif kind == FOLD:
            size = _plain_fold(lower, length, points)
        elif kind != IGNORED:
            return words, digits, first
        if size < 0 or size > length:
            return words, digits, first
        # Move the token's letters before it.
        fewer = length - size
        outside = ~words & (first - _ONE)
        start = 64 - leading_zeros(outside)
        if start > 0 and borders >> U64(start - 1) & _ONE:
            return words, digits, first
        for i in range(place - 1, start - 1, -1):
            text[at + i + fewer] = text[at + i]
        for i in range(start, start + fewer):
            text[at + i] = 32
        if kind == WORD:
            put_utf8(text, at + place + fewer, lower, size)
        else:
            for i in range(size):
                text[at + place + fewer + i] = points[lower + 1 + i]
        moved = digits & (first - _ONE) & ~below(start)
        token = below(place + length) & ~below(start)
        words = (words & ~token) | (token & ~below(start + fewer))
        digits = (digits & ~token) | moved << U64(fewer)
        if kind == WORD and entry >> DIGIT_SHIFT & 1:
            digits |= below(place + length) & ~below(place + fewer)
    return words, digits, _ZERO


@lean_kernel
def _long_run(text, start, n_text, in_term):
    """(end, digit flags) of the ASCII token that begins at `start`; end -1 if it needs the code point path.

    in_term: the token is a term and ends at its mark; else it is a word that is longer than a window.
    """
    at = start
    any_digit = False
    all_digits = True
    while at + 64 <= text.size:
        words, digits, breaks, borders, terms, high = word_masks(text, at)
        valid = below(n_text - at)
        marks = (breaks | borders | terms | high | (_ZERO if in_term else ~words)) & valid
        here = below(trailing_zeros(marks)) & valid
        any_digit |= digits & here != _ZERO
        all_digits &= here & ~digits == _ZERO
        if marks != _ZERO or n_text - at <= 64:
            end = min(at + trailing_zeros(marks), n_text)
            flags = (ALL_DIGITS if all_digits else 0) | (ANY_DIGIT if any_digit else 0)
            if in_term:
                return (end if end < n_text and text[end] == 2 else np.int64(-1)), flags
            outside = end == n_text or (text[end] < _DELETE and text[end] != 4 and text[end] != 5)
            return (end if outside else np.int64(-1)), flags
        at += 64
    return np.int64(-1), 0


@lean_kernel
def tokenise(
    text, n_text, title_start, title_end, key, tables, fp, flags, block, span_start, span_end
):  # fmt: skip
    """Tokenise the text that `extract` wrote -> the number of tokens.

    text uint8: text[:n_text] is read and folded in place. With a capacity of `text_bytes_needed` every fold has room.
    The last 64 bytes of the array are scratch, unless the text reaches them.
    title_start, title_end: range of the title in text, or -1.
    key: see `neardup.kernels.fingerprint`.
    The other arrays are output, one element per token. They hold up to `tokens_needed(n_text)` tokens; smaller arrays
    get the first tokens.
    fp uint64: fingerprint of the folded UTF-8; at least `composition.CLUSTER_POINTS` elements, scratch before.
    flags uint8: ALL_DIGITS, ANY_DIGIT, TERM; IN_TITLE, IN_LINK by the token's first character.
    block int32: number of the block, from 0, ascending.
    span_start, span_end uint32: after the call text[span_start:span_end] is the token's string.
    Scripts without word breaks give overlapping pairs of characters.
    """
    n_text = np.int64(n_text)
    points = tables[2]
    title_start, title_end = np.int64(title_start), np.int64(title_end)
    ordinal, link, write, n, at = np.int64(0), np.int64(0), np.int64(-1), np.int64(0), np.int64(0)
    size = np.int64(text.size)
    room = np.int64(flags.size)
    wide = n_text + 2 * _SPARE_BYTES <= size
    scratch = U64(size - _SPARE_BYTES)
    # A separate pass: reading a window right after writing it would wait until the write has reached the cache.
    for i in range(0, min(n_text, size - 63), 64):
        lower_case(text, i)
    while at < n_text and n < room:
        if write >= 0 or not wide or n + 36 > room:
            at, n_text, ordinal, link, write, n = code_points(
                text, at, n_text, n_text, title_start, title_end, points, ordinal, link, write, n,
                flags, block, span_start, span_end, fp,
            )  # fmt: skip
            continue
        words, digits, breaks, borders, terms, high = word_masks(text, at)
        rest = n_text - at
        valid = below(rest)
        stops = terms & valid
        high &= valid
        if high != _ZERO:
            high &= below(trailing_zeros(stops))  # a term is not folded
            words, digits, unknown = _letters(text, at, n_text, high, words, digits, borders & valid, points)
            stops |= unknown
        stop = trailing_zeros(stops)
        valid &= below(stop)
        # Take whole tokens only: up to a term, to the end of the text, or to the last separator before a stop.
        if stop == 64 and rest < 64:
            cut = rest
        elif stop < 64 and terms >> U64(stop) & _ONE:
            cut = stop
        else:
            cut = 64 - leading_zeros(valid & ~(words | borders))
        used = below(cut)
        w = words & used
        b = borders & used
        # The start or end of a link with word characters on both sides lies within a token.
        glued = (b + (b & (w << _ONE))) & ~b & w
        if cut == 0 or glued != _ZERO:
            if cut == 0 and (stop == 0 or words == _ALL):
                in_term = text[at] == 1
                begin = at + 1 if in_term else at
                end = np.int64(-1)
                if in_term or words == _ALL:
                    end, tag = _long_run(text, begin, n_text, in_term)
                if end >= 0:
                    tag |= (TERM if in_term else 0) | (IN_LINK if link else 0)
                    tag |= IN_TITLE if begin >= title_start and begin < title_end else 0
                    n = emit(begin, end, tag, ordinal, n, flags, block, span_start, span_end)
                    at = end + 1 if in_term else end
                    continue
            # As few bytes as possible, except in text that is mostly not ASCII.
            stop = at + 64 if ones(high) > _FOREIGN else min(at + stop + 1, at + 64)
            at, n_text, ordinal, link, write, n = code_points(
                text, at, stop, n_text, title_start, title_end, points, ordinal, link, write, n,
                flags, block, span_start, span_end, fp,
            )  # fmt: skip
            continue
        digits &= w
        letters = w & ~digits
        breaks &= used
        linked = odd_up_to(b) ^ (_ZERO - U64(link))
        starts = w & ~(w << _ONE)
        ends = ~w & (w << _ONE)  # never bit 64: the window contains a separator or the end of the text
        # Adding a token's first bit carries through its digits. If the carry reaches the token's end, all are digits.
        all_digits = (digits + (starts & digits)) & ends
        no_digit = (letters + (starts & letters)) & ends
        flag_bytes(text, scratch, linked, all_digits >> _ONE, (ends & ~no_digit) >> _ONE)
        first_one = n
        k = U64(n)
        n += ones(starts)
        while starts != _ZERO:
            # Always four per step, because the number of tokens in a window cannot be predicted.
            for _ in range(4):
                start, end = trailing_zeros(starts), trailing_zeros(ends)
                flags[k] = text[scratch + U64(end - 1 & 63)]
                block[k] = ordinal + ones(breaks & (starts & (_ZERO - starts)) - _ONE)
                span_start[k] = at + start
                span_end[k] = at + end
                starts &= starts - _ONE
                ends &= ends - _ONE
                k += _ONE
        if title_start < at + 64 and at < title_end:
            for i in range(first_one, n):
                if np.int64(span_start[i]) >= title_start and np.int64(span_start[i]) < title_end:
                    flags[i] |= IN_TITLE
        ordinal += ones(breaks)
        link = (link + ones(b)) & 1
        at += cut
    hash_spans(text, span_start, span_end, n, key, fp)
    return n
