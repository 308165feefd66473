"""Figures that stand in a form: clocks, dates, durations, ids, counters with their noun; and relative times.

A page prints such figures by itself, so pages that differ in them alone are one. The other figures are *values*. The
hashes of `values_and_words` show whether pages differ in forms alone, also where the samples of a tape do not; they
follow the tape in a record. Tapes leave relative times out.

The forms, where `12` is a figure (a token of digits) and words are those of `form_words`:

* clock: 12:05, 12:05:59, 12:05pm, 12 pm; a token of ISO 8601 (05t12) is a day and an hour.
* date: 2024-12-05, 5-12-2024, with slashes, too; with full stops if a year has four digits; 5 May, 5th of May 2024,
  Dec 5, May 5, 2024, May 2024; 12月.
* duration: 12 ms, .05 seconds, 12ms.
* id: a token of eight or more hexadecimal digits, letters among them; a UUID.
* counter: 1,234 users, views: 12.
* relative time: 12 hours ago, 2 days 3 hours ago, 2h ago, vor 12 Stunden.

Words and figures of a form have at most two signs beside white space and tags between them; those of clocks and
numeric dates have exactly one.
"""

import numpy as np

from neardup.kernels import inlined_kernel, lean_kernel
from neardup.kernels.form_words import (
    AGO,
    BEFORE,
    COUNTED,
    COUNTER,
    DAY,
    HALF_DAY,
    MAY,
    MONTH,
    SECONDS,
    UNIT,
    A,
    Y,
    kind_of_word,
)
from neardup.kernels.mix import mix
from neardup.kernels.points import ALL_DIGITS, ANY_DIGIT, IN_FORM, OF_OWN_URL, RELATIVE, TERM, next_flagged

U64, U32, U8 = np.uint64, np.uint32, np.uint8
_ALL, _ANY, _IN_FORM, _RELATIVE, _TERM = (U8(flag) for flag in (ALL_DIGITS, ANY_DIGIT, IN_FORM, RELATIVE, TERM))
_COLON, _HYPHEN, _SLASH, _STOP, _COMMA = U8(0x3A), U8(0x2D), U8(0x2F), U8(0x2E), U8(0x2C)
#: Bytes between two tokens of a form, white space and marks of tags included; signs among them.
_BETWEEN_MAX, _SIGNS_MAX = 64, 2
#: Least digits of an id; pairs of figure and unit in a relative time; figures of a number with separators.
_ID_BYTES_MIN, _UNITS_MAX, _PIECES_MAX = 8, 3, 4
_OWN, _EITHER, _OTHERS = U8(OF_OWN_URL), U8(IN_FORM | OF_OWN_URL), U8(ANY_DIGIT | IN_FORM | OF_OWN_URL)


@lean_kernel
def mark_forms(text, n, flags, span_start, span_end):
    """Set IN_FORM in the flags of figures in a form and of its words, RELATIVE in those of tokens of relative times.

    The arguments are those of `neardup.kernels.tokens.tokenise` after the call; n: number of tokens.
    """
    tokens = (text, np.int64(n), flags, span_start, span_end)
    i = next_flagged(flags, np.int64(0), n, _ANY)
    while i < n:
        if not flags[i] & (_IN_FORM | _RELATIVE | _TERM):
            _mark(tokens, i)
        i = next_flagged(flags, i + 1, n, _ANY)


@lean_kernel
def values_and_words(fp, flags, n, distinct, counts, many):
    """Hash what two pages must have in common if they are to differ in forms alone -> values and words, uint64.

    values: hash of the figures in no form, in their order; 0 without any. words: hash of the tokens without digits that
    are in no form, and of URLs of images, whatever their order. Neither has the page's own URL.

    fp uint64, flags uint8: of the n tokens. distinct uint64, counts uint32: the `many` distinct tokens, and their
    occurrences without relative times.
    """
    words = U64(0)
    for j in range(U64(many)):
        words += distinct[j] * U64(counts[j])
    values = U64(0)
    i = next_flagged(flags, np.int64(0), n, _OTHERS)
    while i < n:
        flag = flags[i]
        if not flag & _RELATIVE and (flag & _OWN or not flag & _TERM):
            words -= fp[i]
            if not flag & _EITHER:
                values = mix(values ^ fp[i])
        i = next_flagged(flags, i + 1, n, _OTHERS)
    return values, mix(words)


@inlined_kernel
def _mark(tokens, i):
    """Mark the forms that begin at token i, which has a digit."""
    text, _, flags, span_start, span_end = tokens
    if flags[i] & _ALL:
        sign = _sign(tokens, i)
        tight = sign >= _HYPHEN and sign <= _COLON  # one of - . / :
        if tight and (_clock(tokens, i, sign) or _date(tokens, i, sign) or _uuid(tokens, i, sign)):
            return
        _in_words(tokens, i)
        return
    start, end = np.int64(span_start[i]), np.int64(span_end[i])
    if end - start < _ID_BYTES_MIN and text[start] > U8(57):
        return  # i64: quick, because many pages have such tokens
    sign = _sign(tokens, i)
    if sign == _HYPHEN and _uuid(tokens, i, sign):
        return
    if _is_id(text, start, end):
        flags[i] |= _IN_FORM
        return
    if sign == _COLON and _is_day_and_hour(tokens, i) and _clock(tokens, i, sign):
        return
    _with_letters(tokens, i)


# ---- clocks, numeric dates, ids --------------------------------------------------------------------------------------


@lean_kernel
def _sign(tokens, i):
    """The one byte between token i and the next; 0 if there are more, or no next token."""
    text, n, _, span_start, span_end = tokens
    if i + 1 < n and span_start[i + 1] == span_end[i] + U32(1):
        return text[span_end[i]]
    return U8(0)


@lean_kernel
def _digits(tokens, i):
    """Number of digits at the start of token i."""
    text, _, flags, span_start, span_end = tokens
    at, end = np.int64(span_start[i]), np.int64(span_end[i])
    if flags[i] & _ALL:
        return end - at
    many = np.int64(0)
    while at + many < end and text[at + many] >= U8(48) and text[at + many] <= U8(57):
        many += 1
    return many


@lean_kernel
def _length(tokens, i):
    _, _, _, span_start, span_end = tokens
    return np.int64(span_end[i]) - np.int64(span_start[i])


@lean_kernel
def _value(tokens, i, first, end):
    """The number of the digits first to end - 1 of token i."""
    text, _, _, span_start, _ = tokens
    value = np.int64(0)
    for k in range(first, end):
        value = 10 * value + np.int64(text[np.int64(span_start[i]) + k]) - 48
    return value


@lean_kernel
def _is_day_and_hour(tokens, i):
    """Whether token i is like `05t12`, of a time of ISO 8601."""
    text, _, _, span_start, span_end = tokens
    at = np.int64(span_start[i])
    if np.int64(span_end[i]) - at != 5 or text[at + 2] != U8(116) or _digits(tokens, i) != 2:
        return False
    return text[at + 3] >= U8(48) and text[at + 3] <= U8(57) and text[at + 4] >= U8(48) and text[at + 4] <= U8(57)


@lean_kernel
def _clock(tokens, i, sign):
    """Mark hours, minutes and seconds from token i on; the last one may have letters behind its digits."""
    _, _, flags, _, _ = tokens
    day = _length(tokens, i) == 5 and not flags[i] & _ALL
    if sign != _COLON or not (_length(tokens, i) <= 2 or day):
        return False
    last = i
    while last < i + 2 and (last == i or flags[last] & _ALL) and _sign(tokens, last) == _COLON:
        if not flags[last + 1] & _ANY or _digits(tokens, last + 1) != 2 or _value(tokens, last + 1, 0, 2) > 59:
            break
        last += 1
    if last == i:
        return False
    for k in range(i, last + 1):
        flags[k] |= _IN_FORM
    return True


@lean_kernel
def _date(tokens, i, sign):
    """Mark the three figures of a date from token i on. The last one may be a day and an hour (`05t12`)."""
    _, n, flags, _, _ = tokens
    if sign not in (_HYPHEN, _SLASH, _STOP) or i + 2 >= n or _sign(tokens, i + 1) != sign:
        return False
    if not flags[i + 1] & _ALL or not (flags[i + 2] & _ALL or _is_day_and_hour(tokens, i + 2)):
        return False
    first, second, third = _length(tokens, i), _length(tokens, i + 1), _digits(tokens, i + 2)
    if first > 4 or second > 2 or third > 4:
        return False
    middle = _value(tokens, i + 1, 0, second)
    if first == 4:
        good = _is_year(tokens, i) and third <= 2 and _is_day(middle, _value(tokens, i + 2, 0, third))
    elif flags[i + 2] & _ALL and first <= 2 and (third == 4 or (third == 2 and sign != _STOP)):
        good = (third == 2 or _is_year(tokens, i + 2)) and _is_day(middle, _value(tokens, i, 0, first))
    else:
        good = False
    if good:
        for k in range(i, i + 3):
            flags[k] |= _IN_FORM
    return good


@lean_kernel
def _is_year(tokens, i):
    """Whether token i is a figure from 1900 to 2099."""
    _, _, flags, _, _ = tokens
    if not flags[i] & _ALL or _length(tokens, i) != 4:
        return False
    year = _value(tokens, i, 0, 4)
    return year >= 1900 and year < 2100


@lean_kernel
def _is_day(one, other):
    """Whether two numbers are a month and a day, in either order."""
    return min(one, other) >= 1 and min(one, other) <= 12 and max(one, other) <= 31


@lean_kernel
def _is_hex(text, start, end):
    for at in range(start, end):
        c = text[at]
        if not ((c >= U8(48) and c <= U8(57)) or (c >= U8(97) and c <= U8(102))):
            return False
    return True


@lean_kernel
def _is_id(text, start, end):
    """Whether a token with digits and letters is an id in hexadecimal digits."""
    return end - start >= _ID_BYTES_MIN and _is_hex(text, start, end)


@lean_kernel
def _uuid(tokens, i, sign):
    """Mark the parts of a UUID from token i on: 8, 4, 4, 4 and 12 hexadecimal digits."""
    text, n, flags, span_start, span_end = tokens
    if sign != _HYPHEN or i + 4 >= n:
        return False
    for k in range(5):
        wanted = 8 if k == 0 else (12 if k == 4 else 4)
        if _length(tokens, i + k) != wanted or (k < 4 and _sign(tokens, i + k) != _HYPHEN):
            return False
        if not _is_hex(text, np.int64(span_start[i + k]), np.int64(span_end[i + k])):
            return False
    for k in range(5):
        if flags[i + k] & _ANY:
            flags[i + k] |= _IN_FORM
    return True


# ---- figures and words -----------------------------------------------------------------------------------------------


@lean_kernel
def _are_near(tokens, i):
    """Whether tokens i and i + 1 have only white space, tags and a few signs between them."""
    text, n, flags, span_start, span_end = tokens
    if i < 0 or i + 1 >= n or (flags[i] | flags[i + 1]) & _TERM:
        return False
    at, end = np.int64(span_end[i]), np.int64(span_start[i + 1])
    if end - at > _BETWEEN_MAX:
        return False
    signs = 0
    for k in range(at, end):
        signs += text[k] > U8(32)
    return signs <= _SIGNS_MAX


@lean_kernel
def _kind(tokens, i):
    """What the word i makes of a figure beside it; 0 also for tokens with digits."""
    text, n, flags, span_start, span_end = tokens
    if i < 0 or i >= n or flags[i] & (_ANY | _TERM):
        return np.int64(0)
    return kind_of_word(text, np.int64(span_start[i]), np.int64(span_end[i]))


@lean_kernel
def _kind_after(tokens, i):
    kind = _kind(tokens, i + 1)
    return kind if kind != 0 and _are_near(tokens, i) else np.int64(0)


@lean_kernel
def _kind_before(tokens, i):
    kind = _kind(tokens, i - 1)
    return kind if kind != 0 and _are_near(tokens, i - 1) else np.int64(0)


@lean_kernel
def _end_of_number(tokens, i):
    """The last figure of a number like 1,234 or 12.05 that begins at token i."""
    _, _, flags, _, _ = tokens
    for _ in range(_PIECES_MAX - 1):
        sign = _sign(tokens, i)
        if sign not in (_COMMA, _STOP) or not flags[i + 1] & _ALL:
            break
        i += 1
    return i


@lean_kernel
def _set(tokens, first, last, flag):
    _, _, flags, _, _ = tokens
    for k in range(first, last + 1):
        flags[k] |= flag


@inlined_kernel
def _in_words(tokens, i):
    """Mark the figure i, or the number that begins there, if a word beside it makes a form of it."""
    _, _, _, span_start, span_end = tokens
    last = _end_of_number(tokens, i)
    after, before = _kind_after(tokens, last), _kind_before(tokens, i)
    if after | before == 0:
        return
    if after & UNIT and _relative(tokens, i, last + 1, before):
        return
    if after & DAY and span_start[last + 1] != span_end[last]:
        after = np.int64(0)
    if after & (SECONDS | COUNTED | COUNTER | HALF_DAY | DAY):
        _set(tokens, i, last + 1, _IN_FORM)
    elif before & COUNTER:
        _set(tokens, i - 1, last, _IN_FORM)
    elif last == i:
        _dated(tokens, i, _length(tokens, i), after, before)


@lean_kernel
def _relative(tokens, i, unit, before):
    """Mark a relative time whose first figure is token i and whose first unit is token `unit`, if it is one."""
    _, _, flags, _, _ = tokens
    first = i
    if before & BEFORE:
        first = i - 1
    elif before & A and _are_near(tokens, i - 2) and _kind(tokens, i - 2) & Y:
        first = i - 2
    for _ in range(_UNITS_MAX):
        if _kind_after(tokens, unit) & AGO:
            _set(tokens, i, unit + 1, _RELATIVE)
            return True
        if not (_are_near(tokens, unit) and flags[unit + 1] & _ALL and _kind_after(tokens, unit + 1) & UNIT):
            break
        unit += 2
    if first == i:
        return False
    _set(tokens, first, unit, _RELATIVE)
    return True


@lean_kernel
def _dated(tokens, i, digits, after, before):
    """Mark the day or year i of a date, the month in letters beside it, and the year behind.

    digits: number of digits of token i.
    """
    if _is_year(tokens, i):
        if before & (MONTH | MAY):
            _set(tokens, i - 1, i, _IN_FORM)
        return
    if digits > 2:
        return
    first, last, month = i, i + 1, after
    if not after & (MONTH | MAY):
        first, last, month = i - 1, i, before
    if not month & (MONTH | MAY):
        return
    if _are_near(tokens, last) and _is_year(tokens, last + 1):
        _set(tokens, first, last + 1, _IN_FORM)
    elif month & MONTH:
        _set(tokens, first, last, _IN_FORM)


@lean_kernel
def _with_letters(tokens, i):
    """Mark a token of digits and letters: 5th of a date, 12pm, 12ms, 2h of `2h ago`."""
    text, _, flags, span_start, span_end = tokens
    digits = _digits(tokens, i)
    if digits == 0 or digits == _length(tokens, i):
        return
    start, end = np.int64(span_start[i]) + digits, np.int64(span_end[i])
    kind = kind_of_word(text, start, end)
    if kind & UNIT and _kind_after(tokens, i) & AGO:
        _set(tokens, i, i + 1, _RELATIVE)
    elif kind & (SECONDS | HALF_DAY):
        flags[i] |= _IN_FORM
    elif end - start == 2 and digits <= 2 and _is_ordinal(text, start):
        _dated(tokens, i, digits, _kind_after(tokens, i), _kind_before(tokens, i))


@lean_kernel
def _is_ordinal(text, at):
    """Whether text[at : at + 2] is st, nd, rd or th."""
    one, two = text[at], text[at + 1]
    if two == U8(104):
        return one == U8(116)
    if two == U8(116):
        return one == U8(115)
    return two == U8(100) and (one == U8(110) or one == U8(114))
