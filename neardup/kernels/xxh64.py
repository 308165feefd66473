"""XXH64 (Collet, xxHash specification 0.1.1) of a page's fingerprints.

These are keyed, so no author can choose them.
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
_P1 = U64(0x9E3779B185EBCA87)
_P2 = U64(0xC2B2AE3D27D4EB4F)
_P3 = U64(0x165667B19E3779F9)
_P4 = U64(0x85EBCA77C2B2AE63)
_P5 = U64(0x27D4EB2F165667C5)
_R1, _R7, _R12, _R18, _R27, _R31 = (U64(r) for r in (1, 7, 12, 18, 27, 31))
_S29, _S32, _S33 = U64(29), U64(32), U64(33)
_W64 = U64(64)
_ZERO, _ONE, _TWO, _THREE = U64(0), U64(1), U64(2), U64(3)


@lean_kernel
def _rotate(x, by):
    return (x << by) | (x >> (_W64 - by))


@lean_kernel
def _round(lane, word):
    return _rotate(lane + word * _P2, _R31) * _P1


@lean_kernel
def _merge(h, lane):
    return (h ^ _round(_ZERO, lane)) * _P1 + _P4


@lean_kernel
def _eat8(h, word):
    return _rotate(h ^ _round(_ZERO, word), _R27) * _P1 + _P4


@lean_kernel
def _avalanche(h):
    h = (h ^ (h >> _S33)) * _P2
    h = (h ^ (h >> _S29)) * _P3
    return h ^ (h >> _S32)


@lean_kernel
def xxh64_twice(words, n, first_seed, second_seed, products):
    """XXH64 of the little-endian bytes of words[:n] under two seeds, uint64 each. A third of the work serves both.

    products uint64[>= n] scratch for the shared part: its multiplications are independent, so they run in parallel.
    """
    count = U64(n)
    for k in range(count):
        products[k] = words[k] * _P2
    at = _ZERO
    h, g = U64(first_seed) + _P5, U64(second_seed) + _P5
    if count >= U64(4):
        a, b, c, d = U64(first_seed) + _P1 + _P2, U64(first_seed) + _P2, U64(first_seed), U64(first_seed) - _P1
        e, f, i, j = U64(second_seed) + _P1 + _P2, U64(second_seed) + _P2, U64(second_seed), U64(second_seed) - _P1
        while count - at >= U64(4):
            w, x, y, z = products[at], products[at + _ONE], products[at + _TWO], products[at + _THREE]
            a, e = _rotate(a + w, _R31) * _P1, _rotate(e + w, _R31) * _P1
            b, f = _rotate(b + x, _R31) * _P1, _rotate(f + x, _R31) * _P1
            c, i = _rotate(c + y, _R31) * _P1, _rotate(i + y, _R31) * _P1
            d, j = _rotate(d + z, _R31) * _P1, _rotate(j + z, _R31) * _P1
            at += U64(4)
        h = _rotate(a, _R1) + _rotate(b, _R7) + _rotate(c, _R12) + _rotate(d, _R18)
        h = _merge(_merge(_merge(_merge(h, a), b), c), d)
        g = _rotate(e, _R1) + _rotate(f, _R7) + _rotate(i, _R12) + _rotate(j, _R18)
        g = _merge(_merge(_merge(_merge(g, e), f), i), j)
    h += U64(8) * count
    g += U64(8) * count
    while at < count:
        h, g = _eat8(h, words[at]), _eat8(g, words[at])
        at += _ONE
    return _avalanche(h), _avalanche(g)
