"""Canonical composition (UAX 15) of a letter and its marks, so that NFC, NFD and forms between them are one token.

A cluster is a character with the marks behind it. Its folded code points are decomposed, ordered by combining class,
and composed. A cluster has at most CLUSTER_POINTS code points; what follows is dropped, so that a page of marks takes
linear time.
"""

import numpy as np

from neardup.kernels import inlined_kernel, lean_kernel
from neardup.kernels.unicode_points import (
    CLASS_MASK,
    CLASS_SHIFT,
    FOLD,
    IGNORED,
    PAIR_SLOTS,
    PAIRS,
    POINT_MASK,
    RANK_SHIFT,
    SECOND,
    WHOLES,
    decode_point,
    entry_of,
    utf8_length,
)

U64 = np.uint64
#: Elements of the scratch array of a cluster.
CLUSTER_POINTS = 32
#: A cluster of so many code points takes no further vowel of Hangul or of Indic scripts: it begins the next one.
_SECONDS_MAX = 8
_FACTOR, _BITS, _SLOT_SHIFT = U64(0x9E3779B97F4A7C15), U64(21), U64(53)
#: First bytes in UTF-8 of the characters beyond ASCII that have a rank or are not shown; bit i is byte C0 + i. Of those
#: with C2, none follows the soft hyphen.
_JOINING = U64(0x0009_840F_BBC4_3004)
_C2, _SOFT_HYPHEN = 0xC2, 0xAD
# Hangul syllables (The Unicode Standard, section 3.12): leading consonants, vowels, trailing consonants.
_L, _V, _T, _S = 0x1100, 0x1161, 0x11A7, 0xAC00
_LS, _VS, _TS = 19, 21, 28


@lean_kernel
def _slot(first, second):
    return np.int64(((U64(first) << _BITS | U64(second)) * _FACTOR) >> _SLOT_SHIFT)


@lean_kernel
def pair_of(first, second, points):
    """The code point that two compose to, -1 if none."""
    if first >= _L and first < _L + _LS and second >= _V and second < _V + _VS:
        return _S + ((first - _L) * _VS + second - _V) * _TS
    syllable = first - _S
    if syllable >= 0 and syllable < _LS * _VS * _TS and syllable % _TS == 0 and second > _T and second < _T + _TS:
        return first + second - _T
    slot = _slot(first, second)
    while points[PAIRS + 3 * slot] != 0:
        if points[PAIRS + 3 * slot] == first and points[PAIRS + 3 * slot + 1] == second:
            return np.int64(points[PAIRS + 3 * slot + 2])
        slot = (slot + 1) & (PAIR_SLOTS - 1)
    return np.int64(-1)


@lean_kernel
def parts_of(whole, points):
    """(first, second): the pair that composes to a code point, (-1, 0) if none. Syllables of Hangul count as none."""
    slot = _slot(whole, 0)
    while points[WHOLES + 3 * slot] != 0:
        if points[WHOLES + 3 * slot] == whole:
            return np.int64(points[WHOLES + 3 * slot + 1]), np.int64(points[WHOLES + 3 * slot + 2])
        slot = (slot + 1) & (PAIR_SLOTS - 1)
    return np.int64(-1), np.int64(0)


@inlined_kernel
def may_join(text, at, n_text):
    """Whether the first bytes of text[at:n_text] allow `has_mark` to be true; it is false behind most letters."""
    if at >= n_text:
        return False
    c = np.int64(text[U64(at)])
    if c < 0x80:
        return c == 4 or c == 5 or c == 0x7F
    if c == _C2:
        return at + 1 < n_text and np.int64(text[U64(at + 1)]) <= _SOFT_HYPHEN
    return c > _C2 and _JOINING >> U64(c & 63) & U64(1) != U64(0)


@lean_kernel
def has_mark(text, at, n_text, points):
    """Whether text[at:n_text] begins with what may compose with the character before it.

    Starts and ends of links and characters that a browser does not show may stand between them.
    """
    while at < n_text:
        c = np.int64(text[at])
        if c < 0x80:
            if c != 4 and c != 5 and c != 0x7F:
                return False
            at += 1
            continue
        if not may_join(text, at, n_text):
            return False
        point, length = decode_point(text, at, n_text)
        entry = entry_of(point, points)
        if entry >> CLASS_SHIFT & CLASS_MASK != IGNORED:
            return entry >> RANK_SHIFT != 0
        at += length
    return False


@lean_kernel
def _order(point, points):
    """The rank of a code point's combining class, 0 for class 0."""
    rank = entry_of(point, points) >> RANK_SHIFT
    return np.int64(0) if rank == SECOND else rank


@lean_kernel
def _append(point, points, cluster, many):
    """Add a code point to a cluster, behind the marks that it does not precede -> the number of code points."""
    order = _order(point, points)
    to = many
    if many == CLUSTER_POINTS:
        return many
    if order > 0:
        base = many - 1
        while base >= 0 and np.int64(cluster[base]) >> 21 != 0:
            base -= 1
        if base >= 0 and pair_of(np.int64(cluster[base]), point, points) == np.int64(cluster[base]):
            return many  # a mark that makes no difference
        while to > 0 and np.int64(cluster[to - 1]) >> 21 > order:
            cluster[to] = cluster[to - 1]
            to -= 1
    cluster[to] = order << 21 | point
    return many + 1


@lean_kernel
def _decompose(point, points, cluster, many):
    """Add the parts of a code point to a cluster -> the number of code points."""
    tail = np.int64(0)  # at most three marks, the first one lowest
    while True:
        first, second = parts_of(point, points)
        if first < 0:
            break
        tail = tail << 21 | second
        point = first
    many = _append(point, points, cluster, many)
    while tail != 0:
        many = _append(tail & POINT_MASK, points, cluster, many)
        tail >>= 21
    return many


@lean_kernel
def _composed(cluster, many, points):
    """Compose cluster[:many], in order, in place, and remove the orders -> the number of code points."""
    base, last, out = np.int64(-1), np.int64(0), np.int64(0)
    for i in range(many):
        order, point = np.int64(cluster[i]) >> 21, np.int64(cluster[i]) & POINT_MASK
        if base >= 0 and (last == 0 or last < order):
            whole = pair_of(np.int64(cluster[base]), point, points)
            if whole >= 0:
                cluster[base] = whole
                continue
        if order == 0:
            base = out
        last = order
        cluster[out] = point
        out += 1
    return out


@lean_kernel
def compose(text, at, n_text, points, cluster):
    """Write the composed code points of the cluster at text[at:n_text] to cluster uint64[CLUSTER_POINTS].

    -> (end of the cluster in text, number of code points, their bytes in UTF-8, 1 if links start or end within it an
    odd number of times).
    """
    end, many = at, np.int64(0)
    links, crossed = np.int64(0), np.int64(0)
    while at < n_text:
        if many > 0 and (text[at] == 4 or text[at] == 5):
            links ^= 1
            at += 1
            continue
        point, length = decode_point(text, at, n_text)
        entry = entry_of(point, points)
        kind, rank = entry >> CLASS_SHIFT & CLASS_MASK, entry >> RANK_SHIFT
        if many > 0 and kind == IGNORED:
            at += length
            continue
        if many > 0 and (rank == 0 or (rank == SECOND and many >= _SECONDS_MAX)):
            break
        if kind == FOLD:
            place = (entry & POINT_MASK) + 1
            stop = place + np.int64(points[place - 1])
            while place < stop:
                point, size = decode_point(points, place, stop)
                many = _decompose(point, points, cluster, many)
                place += size
        else:
            many = _decompose(entry & POINT_MASK, points, cluster, many)
        at += length
        end = at
        crossed ^= links
        links = np.int64(0)
    many = _composed(cluster, many, points)
    size = np.int64(0)
    for i in range(many):
        size += utf8_length(np.int64(cluster[i]))
    return end, many, size, crossed
