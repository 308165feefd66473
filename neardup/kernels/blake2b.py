"""BLAKE2b (RFC 7693) with a digest of 16 bytes: hashes URLs, and with a key the bodies of pages. Arithmetic wraps."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at

U64 = np.uint64
DIGEST_BYTES = 16
_BLOCK = 128
_SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    dtype=np.int64,
)
_IV = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    dtype=np.uint64,
)
#: Digest length, fan-out and depth 1; the key's length in bytes is the second byte.
_PARAMETERS = U64(0x01010000 | DIGEST_BYTES)


@lean_kernel
def _turn(x, by):
    return (x >> by) | (x << (U64(64) - by))


@lean_kernel
def _mix(v, a, b, c, d, x, y):
    v[a] = v[a] + v[b] + x
    v[d] = _turn(v[d] ^ v[a], U64(32))
    v[c] = v[c] + v[d]
    v[b] = _turn(v[b] ^ v[c], U64(24))
    v[a] = v[a] + v[b] + y
    v[d] = _turn(v[d] ^ v[a], U64(16))
    v[c] = v[c] + v[d]
    v[b] = _turn(v[b] ^ v[c], U64(63))


@lean_kernel
def blake2b(buf, start, end, key, person, state):
    """BLAKE2b-128 of buf[start:end] with a personalisation -> its two little-endian words, uint64.

    buf uint8; key uint64[0 to 8], empty for none; person uint64[2]; state uint64[40] scratch.
    """
    h, v, m = state[:8], state[8:24], state[24:40]
    for i in range(8):
        h[i] = _IV[i]
    h[0] ^= _PARAMETERS | U64(8 * len(key)) << U64(8)
    h[6] ^= person[0]
    h[7] ^= person[1]
    at, left = np.int64(start), np.int64(end) - np.int64(start)
    total = U64(0)
    keyed = len(key) > 0
    while True:
        size = min(left, np.int64(_BLOCK))
        if keyed:  # the key is the first block
            keyed = False
            size = np.int64(0)
            m[:] = U64(0)
            for i in range(len(key)):
                m[i] = key[i]
            total += U64(_BLOCK)
        else:
            whole = size >> 3
            for i in range(whole):
                m[i] = word_at(buf, at + 8 * i)
            for i in range(whole, 16):
                m[i] = U64(0)
            for i in range(8 * whole, size):
                m[i >> 3] |= U64(buf[at + i]) << U64(8 * (i & 7))
        at += size
        left -= size
        total += U64(size)
        for i in range(8):
            v[i] = h[i]
            v[8 + i] = _IV[i]
        v[12] ^= total
        if left == 0:
            v[14] = ~v[14]
        for r in range(12):
            s = _SIGMA[r % 10]
            _mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]])
            _mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]])
            _mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]])
            _mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]])
            _mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]])
            _mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]])
            _mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]])
            _mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]])
        for i in range(8):
            h[i] ^= v[i] ^ v[8 + i]
        if left == 0:
            break
    return h[0], h[1]
