"""Similarity of two tapes: the bytes in windows of 3 that both have (straining), and their LCS.

A page is compared with many candidates, so its part of the work (the table of its windows) is kept from pair to pair.
Kept bytes, and tokens with digits, are the set bits of words: bit i & 63 of word i >> 6 is that of byte i.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, leading_zeros, ones, trailing_zeros
from neardup.kernels.tape import common_subsequence
from neardup.kernels.tape_windows import AT_ONCE, first_slot, look_up, stamp_those, stamped, window_at, without

U64 = np.uint64
U32 = np.uint32
U8 = np.uint8
_ZERO, _ONE = U64(0), U64(1)
#: Bytes of a window. A byte is kept if a window around it occurs in both tapes (Huang 2008's filtered sketch, in
#: tokens).
RUN = 3
#: Slots of the table for each byte of the tape: a window is seldom outside of its first slot.
SLOTS = 16
#: Common tokens of a stretch that one token outside the common part cancels (after the slope of Huang 2008's trustable
#: regions).
STRAY = 3
#: Words that surround one token with digits in a time stamp, a counter or a session id.
_WORDS_BY_DIGITS = 3
#: Indices in the state of the tape in the table: its offset, its thinning and shift to the compared level, its bytes
#: there, its tokens with digits; the number of the pair, which marks the windows that the other tape has; and the slots
#: of the table that are in use, less 1.
_WHERE, _HOW, _SIZE, _WITH_DIGITS, _PAIR, _MASK = 0, 1, 2, 3, 4, 5


@lean_kernel
def _at_level(buf, at, many, thin, shift, out):
    """Copy a tape to out at the compared level -> bytes. thin: drop bytes whose bit 0 is set; shift: compare 7 bits."""
    if not thin:
        for i in range(U64(many)):
            out[i] = buf[U64(at) + i] >> U8(shift)
        return many
    size = 0
    for i in range(at, at + many):
        value = buf[i]
        if value & U8(1):
            continue
        out[size] = value >> U8(shift)
        size += 1
    return size


@lean_kernel
def _enter(x, size, table, places):
    """Insert the windows of x into the table (as window + 1) -> the slots in use, less 1, uint64.

    table uint32: its length is a power of two, at least SLOTS * size. places uint32[size + AT_ONCE] out: the slot of
    each window, then zeros.
    """
    slots = AT_ONCE
    while slots < SLOTS * size:
        slots *= 2
    mask = U64(slots - 1)
    table[:slots] = U32(0)
    for i in range(size - (RUN - 1)):
        window = window_at(x, i)
        place = first_slot(window, mask)
        entry = U32(window + _ONE)
        while table[place] != U32(0) and table[place] != entry:
            place = (place + _ONE) & mask
        table[place] = entry
        places[i] = U32(place)
    places[size - (RUN - 1) : size + AT_ONCE] = U32(0)
    return mask


@lean_kernel
def _meet(table, mask, stamps, stamp, y, size, keep):
    """Stamp the windows of y that the table has, and mark their bytes in keep -> whether there are such windows.

    keep uint64 out: a word for each 64 bytes of y.
    """
    windows = size - (RUN - 1)
    met, carry = _ZERO, _ZERO
    for word in range((size + 63) >> 6):
        begins = _ZERO
        for i in range(word << 6, min(windows, (word + 1) << 6), AT_ONCE):
            left, step, found = below(min(windows - i, AT_ONCE)), np.int64(0), _ZERO
            while left != _ZERO:
                own, other = look_up(y, i, table, mask, step)
                own &= left
                if own != _ZERO:
                    stamp_those(y, i, stamps, mask, step, own, stamp)
                    found |= own
                left &= other
                step += 1
            begins |= found << U64(i & 63)
        met |= begins
        keep[word] = _bytes_of(begins) | carry
        carry = _left_over(begins)
    return met != _ZERO


@lean_kernel
def _met(stamps, stamp, places, size, keep):
    """Mark in keep the bytes of the windows whose slots carry the stamp."""
    windows = size - (RUN - 1)
    carry = _ZERO
    for word in range((size + 63) >> 6):
        begins = _ZERO
        for i in range(word << 6, min(windows, (word + 1) << 6), AT_ONCE):
            begins |= (stamped(places, i, stamps, stamp) & below(windows - i)) << U64(i & 63)
        keep[word] = _bytes_of(begins) | carry
        carry = _left_over(begins)


@lean_kernel
def _bytes_of(begins):
    """The bytes of windows in the word where these begin."""
    return begins | begins << _ONE | begins << U64(2)


@lean_kernel
def _left_over(begins):
    """The bytes of windows in the word behind that where they begin."""
    return begins >> U64(63) | begins >> U64(62)


@lean_kernel
def _keep(data, size, keep, out):
    """Copy the marked bytes to out -> their number. out: room for one byte more."""
    many = _ZERO
    for i in range(U64(size)):
        out[many] = data[i]
        many += keep[i >> U64(6)] >> (i & U64(63)) & _ONE
    return np.int64(many)


@lean_kernel
def _next(words, i, size, flip):
    """The first set bit from i on, or size. flip: all bits set: the first clear bit."""
    while i < size:
        rest = (words[i >> 6] ^ flip) >> U64(i & 63)
        if rest != _ZERO:
            return min(size, i + trailing_zeros(rest))
        i = (i | 63) + 1
    return size


@lean_kernel
def _last_before(words, i):
    """The last set bit before i, or -1."""
    while i > 0:
        last = i - 1
        rest = words[last >> 6] << U64(63 - (last & 63))
        if rest != _ZERO:
            return last - leading_zeros(rest)
        i = last & ~63
    return np.int64(-1)


@lean_kernel
def _count(words, first, end):
    """Number of set bits from `first` to end - 1."""
    many = np.int64(0)
    while first < end:
        until = min(end, (first | 63) + 1)
        many += ones(words[first >> 6] >> U64(first & 63) & below(until - first))
        first = until
    return many


@lean_kernel
def _digits_of(data, size, digits, out):
    """Mark the tokens with digits in out -> their number. digits: the two bits that are 0 in their bytes."""
    many = np.int64(0)
    for word in range((size + 63) >> 6):
        out[word] = without(data, word << 6, digits) & below(size - (word << 6))
        many += ones(out[word])
    return many


@lean_kernel
def _gaps(size, keep, with_digits):
    """Measure the gaps, which are runs of bytes that are not kept.

    -> int64: gaps; tokens with digits in them; words in them beyond _WORDS_BY_DIGITS per token with digits; all words
    in them; whether a gap is at the end of the tape.
    with_digits: the tokens with digits.
    """
    gaps = digits = every = np.int64(0)
    before = _ONE  # whether the byte before the word is kept
    for word in range((size + 63) >> 6):
        gap = ~keep[word] & below(size - (word << 6))
        gaps += ones(gap & (keep[word] << _ONE | before))
        before = keep[word] >> U64(63)
        here = ones(gap & with_digits[word])
        digits += here
        every += ones(gap) - here
    loose = every
    if digits > 0:
        i = _next(with_digits, np.int64(0), size, _ZERO)
        while i < size:
            if keep[i >> 6] >> U64(i & 63) & _ONE:
                i = _next(with_digits, i + 1, size, _ZERO)
                continue
            first, end = _last_before(keep, i) + 1, _next(keep, i, size, _ZERO)
            here = _count(with_digits, i, end)
            loose -= min(end - first - here, _WORDS_BY_DIGITS * here)
            i = _next(with_digits, end, size, _ZERO)
    last = size - 1
    return gaps, digits, loose, every, size > 0 and keep[last >> 6] >> U64(last & 63) & _ONE == _ZERO


@lean_kernel
def _stretch(keep, size):
    """Kept tokens of the best stretch: the highest sum of +1 per kept token and -STRAY per other token."""
    best = worth = kept = here = np.int64(0)
    i = np.int64(0)
    while i < size:
        end = _next(keep, i, size, ~_ZERO)
        if worth <= 0:
            worth = here = np.int64(0)
        here += end - i
        worth += end - i
        if worth > best:
            best, kept = worth, here
        i = _next(keep, end, size, _ZERO)
        worth -= STRAY * (i - end)
    return kept


@lean_kernel
def compare_tapes(buf, a, a_size, a_level, b, b_size, b_level, first, room, out, size_at, score_at, gaps_at, run_at):
    """Compare the tapes at buf[a] and buf[b]: LJ = |LCS| / (|A| + |B| - |LCS|) -> out[score_at].

    LJ is 0 if the levels differ by two or more. |A| and |B| are the bytes at the compared level, before straining.

    a_size, b_size, a_level, b_level: bytes and level of each tape.
    first, room: scratch, see `neardup.pairs.scoring.tape_room`. first keeps the state of the tape at buf[a] between
    pairs.
    size_at: |A| and |B| go to out[size_at], out[size_at + 1].
    gaps_at: the gaps go to out[gaps_at : gaps_at + 5], see `neardup.pairs.pair.Pair`; -1: not wanted.
    run_at: the tokens of the longest common stretch, and the compared level, go to out[run_at], out[run_at + 1]; -1:
    not wanted.
    """
    x, places, table, stamps, digits_x, known = first
    y, kept_x, kept_y, keep_x, keep_y, digits_y, rows, state = room
    apart = abs(a_level - b_level)
    out[size_at], out[size_at + 1] = a_size, b_size
    out[score_at] = 0.0
    if gaps_at >= 0:
        out[gaps_at : gaps_at + 5] = 0.0
    if run_at >= 0:
        out[run_at], out[run_at + 1] = 0.0, max(a_level, b_level)
    if apart > 1:
        return
    digits = U8(0xC0) >> U8(apart)
    how = 2 * apart + (a_level < b_level)
    if known[_WHERE] != a or known[_HOW] != how:
        size = _at_level(buf, a, a_size, a_level < b_level, apart, x)
        known[_WHERE], known[_HOW], known[_SIZE] = a, how, size
        known[_WITH_DIGITS] = _digits_of(x, size, digits, digits_x)
        if size >= RUN:
            known[_MASK] = np.int64(_enter(x, size, table, places))
    x_size = known[_SIZE]
    y_size = _at_level(buf, b, b_size, b_level < a_level, apart, y)
    out[size_at], out[size_at + 1] = x_size, y_size
    if x_size < RUN or y_size < RUN:
        return
    known[_PAIR] += 1
    stamp, mask = U64(known[_PAIR]) & U64(0xFFFFFFFF), U64(known[_MASK])
    level = np.int64(1) << np.int64(max(a_level, b_level))
    if not _meet(table, mask, stamps, stamp, y, y_size, keep_y):
        if gaps_at >= 0:
            many_x, many_y = known[_WITH_DIGITS], _digits_of(y, y_size, digits, digits_y)
            loose = max(x_size - (_WORDS_BY_DIGITS + 1) * many_x, y_size - (_WORDS_BY_DIGITS + 1) * many_y)
            out[gaps_at] = 1
            out[gaps_at + 1] = max(many_x, many_y) * level
            out[gaps_at + 2] = max(loose, np.int64(0)) * level
            out[gaps_at + 3] = 1
            out[gaps_at + 4] = max(x_size - many_x, y_size - many_y) * level
        return
    _met(stamps, stamp, places, x_size, keep_x)
    if gaps_at >= 0:
        _digits_of(y, y_size, digits, digits_y)
        gaps_x, many_x, loose_x, words_x, last_x = _gaps(x_size, keep_x, digits_x)
        gaps_y, many_y, loose_y, words_y, last_y = _gaps(y_size, keep_y, digits_y)
        out[gaps_at] = max(gaps_x, gaps_y)
        out[gaps_at + 1] = max(many_x, many_y) * level
        out[gaps_at + 2] = max(loose_x, loose_y) * level
        out[gaps_at + 3] = last_x or last_y
        out[gaps_at + 4] = max(words_x, words_y) * level
    m = _keep(x, x_size, keep_x, kept_x)
    n = _keep(y, y_size, keep_y, kept_y)
    kept = min(m, n)
    # a common prefix and suffix belong to some longest common subsequence
    start = 0
    while start < m and start < n and kept_x[start] == kept_y[start]:
        start += 1
    same = start
    while m > start and n > start and kept_x[m - 1] == kept_y[n - 1]:
        m -= 1
        n -= 1
        same += 1
    if m > start and n > start:
        words = (m - start + 63) >> 6
        rows[: 256 * words] = _ZERO
        for i in range(start, m):
            j = i - start
            rows[np.int64(kept_x[i]) * words + (j >> 6)] |= _ONE << U64(j & 63)
        same += common_subsequence(rows, words, kept_y, start, n, state)
    out[score_at] = same / (x_size + y_size - same)
    if gaps_at >= 0:
        out[gaps_at + 2] += (kept - same) * level
    if run_at >= 0:
        out[run_at] = min(_stretch(keep_x, x_size), _stretch(keep_y, y_size), same)
