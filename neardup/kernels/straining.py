"""The filtered sketch of a pair (Huang 2008; neardup/partition/README.md, step 5): windows that both texts hold.

A window begins at each character, and is as short as possible with at least `window` bytes. A shorter text is one
window. Windows are compared by 64-bit hashes, so a false match has a probability of 2**-64.
"""

import numpy as np

from neardup.kernels import kernel

U64 = np.uint64
_ZERO, _ONE = U64(0), U64(1)
#: Base of the rolling hash: sum of (c + 1) * _BASE**(characters to the window's end), mod 2**64, then mixed.
_BASE = U64(0x9E3779B97F4A7C15)
_MIX = U64(0xFF51AFD7ED558CCD)


@kernel
def strain(a, b, widths_a, widths_b, window, keep_a, keep_b):
    """Mark the characters that lie in a window of both texts -> int64 each, marked characters of a and of b.

    a, b: uint32 code points. widths_a, widths_b uint8: bytes of each character, 1 or 2. keep_a, keep_b uint8 out.
    """
    hash_a, ends_a = _windows(a, widths_a, window)
    hash_b, ends_b = _windows(b, widths_b, window)
    size = 16
    while size < 2 * len(hash_a):
        size *= 2
    mask = U64(size - 1)
    table, met = np.zeros(size, np.uint64), np.zeros(size, np.uint8)
    places = np.empty(len(hash_a), np.uint32)
    for i in range(len(hash_a)):
        at = hash_a[i] & mask
        while table[at] != _ZERO and table[at] != hash_a[i]:
            at = (at + _ONE) & mask
        table[at] = hash_a[i]
        places[i] = at
    reach = kept_b = np.int64(0)
    for i in range(len(b)):
        if i < len(hash_b):
            at = hash_b[i] & mask
            while table[at] != _ZERO and table[at] != hash_b[i]:
                at = (at + _ONE) & mask
            if table[at] != _ZERO:
                met[at] = 1
                reach = max(reach, np.int64(ends_b[i]))
        keep_b[i] = i < reach
        kept_b += np.int64(i < reach)
    reach = kept_a = np.int64(0)
    for i in range(len(a)):
        if i < len(hash_a) and met[places[i]]:
            reach = max(reach, np.int64(ends_a[i]))
        keep_a[i] = i < reach
        kept_a += np.int64(i < reach)
    return kept_a, kept_b


@kernel
def _windows(text, widths, window):
    """(hashes uint64[windows], ends int32[windows]) of a text's windows. Window i begins at character i.

    No hash is 0.
    """
    n = len(text)
    hashes, ends = np.empty(n, np.uint64), np.empty(n, np.int32)
    powers = np.empty(window + 1, np.uint64)
    powers[0] = _ONE
    for i in range(window):
        powers[i + 1] = powers[i] * _BASE
    many = start = 0
    rolling, counted = _ZERO, 0
    for end in range(n):
        rolling = rolling * _BASE + U64(text[end]) + _ONE
        counted += np.int64(widths[end])
        while counted >= window:
            hashes[many], ends[many] = _mixed(rolling), end + 1
            many += 1
            rolling -= (U64(text[start]) + _ONE) * powers[end - start]
            counted -= np.int64(widths[start])
            start += 1
    if many == 0 and n > 0:
        hashes[0], ends[0] = _mixed(rolling), n
        many = 1
    return hashes[:many], ends[:many]


@kernel
def _mixed(word):
    word = (word ^ (word >> U64(33))) * _MIX
    return (word ^ (word >> U64(29))) | _ONE
