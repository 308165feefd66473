"""Fingerprints of many short spans of a text, eight at a time. See `neardup.kernels.operations`.

The lengths of tokens cannot be predicted, so they only select a mask, and there is no branch. Spans of 16 or more
bytes, one token in fifty, are hashed one by one. The results equal those of `fingerprint`.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.fingerprint import SHORT, fingerprint
from neardup.kernels.lanes import LANES, mix_lanes
from neardup.kernels.operations import (
    HALVES8,
    I8,
    I64,
    NUMBER,
    WORD,
    WORDS8,
    cast,
    extend,
    lane,
    operation,
    vector,
    where,
)

U64 = np.uint64
_ALL, _LOW32 = (1 << 64) - 1, (1 << 32) - 1


def _short_hash(low, high, length, key):
    """Fingerprints of spans of fewer than 16 bytes.

    low, high: their bytes as words; bytes beyond the length are ignored.
    """
    wide = where(length >= 8, low | _ALL, 0)
    rest = ((length & 0 | 1) << ((length & 7) << 3)) - 1
    low = low & (rest | wide)
    high = (high & rest & wide) | (length << 56)
    halves = [half for word in (low, high) for half in (word & _LOW32, word >> 32)]
    sums = []
    for start in (0, 5):
        h = halves[0] * key.load(start + 1, I64) + key.load(start, I64)
        for number in (1, 2, 3):
            h = h + halves[number] * key.load(start + 1 + number, I64)
        sums.append(h)
    return mix_lanes((sums[0] & (_LOW32 << 32)) | (sums[1] >> 32))


@operation(WORD, None, None, None, NUMBER, None, None)
def hash_short(text, starts, ends, at, key, out):
    """out[at : at + 8] = fingerprints of 8 spans -> a mask of the spans that are too long; their results are void."""
    first = starts.load(at, HALVES8)
    length = extend(ends.load(at, HALVES8) - first, WORDS8)
    places = [extend(lane(first, number), I64) for number in range(LANES)]
    low, high = (vector([text.load(place + shift, I64) for place in places]) for shift in (0, 8))
    out.store(at, _short_hash(low, high, length, key))
    return extend(cast(length >= SHORT, I8), I64)


@lean_kernel
def hash_spans(text, starts, ends, many, key, out):
    """out[i] = fingerprint of text[starts[i] : ends[i]] for i < many.

    text uint8, starts, ends uint32, rising; key uint64[KEY_WORDS]; out uint64.
    """
    size = np.int64(text.size) - SHORT
    i = np.int64(0)
    while i < many:
        at = i
        if many - i < LANES:
            at = many - LANES  # the last eight; some of them are hashed twice
        if at < 0 or np.int64(starts[at + LANES - 1]) > size:
            out[i] = fingerprint(text, starts[i], ends[i], key)
            i += 1
            continue
        long = hash_short(text, starts, ends, at, key, out)
        j = at
        while long != U64(0):
            if long & U64(1):
                out[j] = fingerprint(text, starts[j], ends[j], key)
            long >>= U64(1)
            j += 1
        i = at + LANES
