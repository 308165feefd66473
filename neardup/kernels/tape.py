"""Tapes: samples of a page's tokens that keep their order, and the longest common subsequence of two of them.

Let g = mix(token). A token is on the tape of level s if the low s bits of g are 0. Its byte has bit s of g as bit 0,
and the top 7 bits of g as bits 1 to 7. The top two bits are 00 for tokens with digits, and for no others (see
`neardup.kernels.names.marked`). So dropping the bytes whose bit 0 is set turns a tape of level s into one of level s +
1.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.points import RELATIVE, next_flagged

U64 = np.uint64
U32 = np.uint32
U8 = np.uint8
#: Number of levels: the low zero bits that a 64-bit word can have so that a byte still follows them.
LEVELS = 64
_ZERO, _ONE = U64(0), U64(1)
_RELATIVE = U8(RELATIVE)
#: Tokens that `write` reads between two checks whether the tape is complete.
_AT_ONCE = U64(256)


@lean_kernel
def leave_out(flags, n, ids, mixed, counts, many, places):
    """Number the tokens of relative times as the token `many`, which does not occur -> int64, how many they are.

    So tapes leave them out. `put_back` undoes it.

    flags: flags of the tokens (`neardup.kernels.forms`). ids, mixed, counts: the arrays of `write` and `prepare`, with
    room for one more distinct token. places uint32[2 * n] scratch, which `put_back` reads.
    """
    mixed[many], counts[many] = _ZERO, U32(0)
    changed = np.int64(0)
    i = next_flagged(flags, np.int64(0), n, _RELATIVE)
    while i < n:
        counts[ids[i]] -= U32(1)
        places[2 * changed], places[2 * changed + 1] = U32(i), ids[i]
        ids[i] = U32(many)
        changed += 1
        i = next_flagged(flags, i + 1, n, _RELATIVE)
    return changed


@lean_kernel
def put_back(ids, counts, places, changed):
    """Undo `leave_out`, whose arguments and result these are."""
    for k in range(U64(changed)):
        token = places[U64(2) * k + _ONE]
        ids[places[U64(2) * k]] = token
        counts[token] += U32(1)


@lean_kernel
def _kept(mixed, counts, many, most, level):
    """Number of tokens on a tape of this level."""
    mask = (_ONE << U64(level)) - _ONE
    kept = _ZERO
    for i in range(U64(many)):
        kept += min(U64(counts[i]), most) if mixed[i] & mask == _ZERO else _ZERO
    return kept


@lean_kernel
def prepare(mixed, counts, many, occurrences_max, bytes_max, left, byte):
    """Choose the level of a tape -> (level, tokens at this level), int64.

    It is the lowest with at most bytes_max tokens.

    mixed uint64[many], counts uint32[many]: mix of the distinct tokens, and their occurrences (0: not on the tape).
    occurrences_max: occurrences of a token that count, the first ones.
    left uint8[many] out: occurrences of each token on the tape. byte uint8[many] out: its byte.
    """
    most, limit = U64(occurrences_max), U64(bytes_max)
    level = np.int64(0)
    # passes over the tokens are cheaper than a histogram, whose counters would have to wait for each other
    kept = _kept(mixed, counts, many, most, level)
    if kept > limit:
        # each level keeps about half of the tokens of the one below, so the search begins at the expected level
        while level < LEVELS - 1 and kept >> U64(level) > limit:
            level += 1
        kept = _kept(mixed, counts, many, most, level)
        while level > 1 and kept <= limit:
            below = _kept(mixed, counts, many, most, level - 1)
            if below > limit:
                break
            level, kept = level - 1, below
        while level < LEVELS - 1 and kept > limit:
            level += 1
            kept = _kept(mixed, counts, many, most, level)
    mask = (_ONE << U64(level)) - _ONE
    for i in range(U64(many)):
        g = mixed[i]
        left[i] = U8(min(U64(counts[i]), most) if g & mask == _ZERO else _ZERO)
        byte[i] = U8(((g >> U64(56)) & U64(0xFE)) | ((g >> U64(level)) & _ONE))
    return level, np.int64(min(kept, limit))


@lean_kernel
def write(ids, start, end, left, byte, out, at, stop):
    """Append the bytes of the tokens ids[start:end] with left[id] > 0 to out[at:stop] -> the new end. Decrements left.

    stop: the end of the complete tape. Reading stops a few tokens after it is reached.
    """
    to, end_of_tape = U64(at), U64(stop)
    i, last = U64(start), U64(end)
    while i < last and to < end_of_tape:
        until = min(i + _AT_ONCE, last)
        while i < until:
            # no branch: sampled tokens cannot be predicted
            token = U64(ids[i])
            more = left[token]
            on = U8(more != U8(0))
            left[token] = more - on
            if to < end_of_tape:
                out[to] = byte[token]
            to += U64(on)
            i += _ONE
    return np.int64(min(to, end_of_tape))


@lean_kernel
def common_subsequence(rows, words, other, start, end, state):
    """Length of the longest common subsequence of A and other[start:end] (Hyyro 2004, bit-parallel).

    rows uint64[256 * words]: bit j of row c is set if A[j] == c. state uint64[words]
    scratch. Positions outside A are 0 in every row. One machine word per 64 positions of A:
    V = all ones; for each byte c: U = V & rows[c]; V = (V + U) | (V - U), with the carry of the sum over all words; the
    zeros of V count the subsequence.
    """
    for w in range(U64(words)):
        state[w] = ~_ZERO
    for i in range(U64(start), U64(end)):
        row = U64(other[i]) * U64(words)
        carry = _ZERO
        for w in range(U64(words)):
            v = state[w]
            u = v & rows[row + w]
            low = v + u
            total = low + carry
            carry = U64(low < v) | U64(total < low)
            state[w] = total | (v - u)
    length = 0
    for w in range(U64(words)):
        rest = ~state[w]
        while rest != _ZERO:
            rest &= rest - _ONE
            length += 1
    return length
