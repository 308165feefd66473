"""Similarity of two tapes: the bytes in windows of 3 that both have (straining), and their LCS.

A page is compared with many candidates, so its part of the work (the table of its windows) is kept from pair to pair.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.tape import common_subsequence

U64 = np.uint64
U32 = np.uint32
U8 = np.uint8
_ZERO, _ONE = U64(0), U64(1)
#: Bytes of a window. A byte is kept if a window around it occurs in both tapes (Huang 2008's filtered sketch, in
#: tokens).
RUN = 3
#: Common tokens of a stretch that one token outside the common part cancels (after the slope of Huang 2008's trustable
#: regions).
STRAY = 3
#: Words that surround one token with digits in a time stamp, a counter or a session id.
_WORDS_BY_DIGITS = 3
#: Indices in the state of the tape in the table: its offset, its thinning and shift to the compared level, its bytes
#: there, its tokens with digits; and the number of the pair, which marks the windows that the other tape has.
_WHERE, _HOW, _SIZE, _WITH_DIGITS, _PAIR = 0, 1, 2, 3, 4


@lean_kernel
def _at_level(buf, at, many, thin, shift, out):
    """Copy a tape to out at the compared level -> bytes. thin: drop bytes whose bit 0 is set; shift: compare 7 bits."""
    size = 0
    for i in range(at, at + many):
        value = buf[i]
        if thin and value & U8(1):
            continue
        out[size] = value >> U8(shift)
        size += 1
    return size


@lean_kernel
def _place(window):
    """Hash of a window of 3 bytes: the slot where a look-up begins."""
    return (window * U64(0x9E3779B97F4A7C15)) >> U64(40)


@lean_kernel
def _enter(x, size, table, places):
    """Insert the windows of x into the table (as window + 1) -> places: the slot of each window.

    table: uint32, its length a power of two of at least 4 * size.
    """
    mask = U64(len(table) - 1)
    table[:] = U32(0)
    window = (U64(x[0]) << U64(8)) | (U64(x[1]) << U64(16))
    for i in range(size - (RUN - 1)):
        window = (window >> U64(8)) | (U64(x[i + 2]) << U64(16))
        place = _place(window) & mask
        entry = U32(window + _ONE)
        while table[place] != U32(0) and table[place] != entry:
            place = (place + _ONE) & mask
        table[place] = entry
        places[i] = U32(place)


@lean_kernel
def _meet(table, stamps, stamp, y, size, keep):
    """Stamp the windows of y that the table has, and mark their bytes in keep (uint8) -> the number of such windows."""
    mask = U64(len(table) - 1)
    keep[:size] = U8(0)
    window = (U64(y[0]) << U64(8)) | (U64(y[1]) << U64(16))
    met = 0
    for i in range(size - (RUN - 1)):
        window = (window >> U64(8)) | (U64(y[i + 2]) << U64(16))
        place = _place(window) & mask
        entry = U32(window + _ONE)
        while table[place] != U32(0):
            if table[place] == entry:
                stamps[place] = stamp
                keep[i] = keep[i + 1] = keep[i + 2] = U8(1)
                met += 1
                break
            place = (place + _ONE) & mask
    return met


@lean_kernel
def _met(stamps, stamp, places, size, keep):
    """Mark in keep the bytes of the windows whose slots carry the stamp."""
    keep[:size] = U8(0)
    for i in range(size - (RUN - 1)):
        if stamps[places[i]] == stamp:
            keep[i] = keep[i + 1] = keep[i + 2] = U8(1)


@lean_kernel
def _keep(data, size, keep, out):
    """Copy the marked bytes to out -> their number."""
    many = 0
    for i in range(size):
        out[many] = data[i]
        many += int(keep[i])
    return many


@lean_kernel
def _gaps(data, size, keep, digits):
    """Measure the gaps, which are runs of bytes that are not kept.

    -> int64: gaps; tokens with digits in them; words in them beyond _WORDS_BY_DIGITS per token with digits; all words
    in them; whether a gap is at the end of the tape.
    digits: mask of the two bits that are 0 in the bytes of tokens with digits.
    """
    gaps = with_digits = loose = every = np.int64(0)
    i = 0
    while i < size:
        if keep[i]:
            i += 1
            continue
        gaps += 1
        words = here = np.int64(0)
        while i < size and not keep[i]:
            if data[i] & digits:
                words += 1
            else:
                here += 1
            i += 1
        with_digits += here
        every += words
        loose += max(np.int64(0), words - _WORDS_BY_DIGITS * here)
    return gaps, with_digits, loose, every, size > 0 and not keep[size - 1]


@lean_kernel
def _with_digits(data, size, digits):
    """Number of tokens with digits; see `_gaps`."""
    many = np.int64(0)
    for i in range(size):
        many += np.int64(data[i] & digits == U8(0))
    return many


@lean_kernel
def _stretch(keep, size):
    """Kept tokens of the best stretch: the highest sum of +1 per kept token and -STRAY per other token."""
    best = worth = kept = here = np.int64(0)
    for i in range(size):
        if worth <= 0:
            worth = here = np.int64(0)
        here += np.int64(keep[i])
        worth += np.int64(1) if keep[i] else -np.int64(STRAY)
        if worth > best:
            best, kept = worth, here
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
    x, places, table, stamps, known = first
    y, keep_x, keep_y, kept_x, kept_y, rows, state = room
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
        known[_WITH_DIGITS] = _with_digits(x, size, digits)
        if size >= RUN:
            _enter(x, size, table, places)
    x_size = known[_SIZE]
    y_size = _at_level(buf, b, b_size, b_level < a_level, apart, y)
    out[size_at], out[size_at + 1] = x_size, y_size
    if x_size < RUN or y_size < RUN:
        return
    known[_PAIR] += 1
    stamp = U32(known[_PAIR])
    level = np.int64(1) << np.int64(max(a_level, b_level))
    if _meet(table, stamps, stamp, y, y_size, keep_y) == 0:
        if gaps_at >= 0:
            digits_x, digits_y = known[_WITH_DIGITS], _with_digits(y, y_size, digits)
            loose = max(x_size - (_WORDS_BY_DIGITS + 1) * digits_x, y_size - (_WORDS_BY_DIGITS + 1) * digits_y)
            out[gaps_at] = 1
            out[gaps_at + 1] = max(digits_x, digits_y) * level
            out[gaps_at + 2] = max(loose, np.int64(0)) * level
            out[gaps_at + 3] = 1
            out[gaps_at + 4] = max(x_size - digits_x, y_size - digits_y) * level
        return
    _met(stamps, stamp, places, x_size, keep_x)
    if gaps_at >= 0:
        gaps_x, digits_x, loose_x, words_x, last_x = _gaps(x, x_size, keep_x, digits)
        gaps_y, digits_y, loose_y, words_y, last_y = _gaps(y, y_size, keep_y, digits)
        out[gaps_at] = max(gaps_x, gaps_y)
        out[gaps_at + 1] = max(digits_x, digits_y) * level
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
