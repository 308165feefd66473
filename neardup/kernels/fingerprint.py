"""Fingerprints of texts that an attacker can choose (tokens, titles, ends of URLs): 64 bits, under a secret key.

A text of fewer than 16 bytes is hashed by two multilinear functions of its four 32-bit words (Lemire and Kaser 2014,
"Strongly universal string hashing is fast", section 3). The upper halves of the two results form a word, and mix(), a
bijection, of that word is the fingerprint. Two such texts collide under one key of 2**64. A longer text is hashed by
SipHash-1-3 (Aumasson and Bernstein 2012), a keyed pseudo-random function. neardup/sketch/README.md says why not XXH64.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at
from neardup.kernels.mix import mix

U64 = np.uint64
#: A text of at least this many bytes is hashed by SipHash.
SHORT = 16
#: Words of a key: five for each multilinear function, two for SipHash.
KEY_WORDS = 12
_SECOND, _SIPHASH = 5, 10
_LOW32 = U64(0xFFFFFFFF)
_HALF, _WORD, _BYTE = U64(32), U64(64), U64(8)


@lean_kernel
def _rotate(x, by):
    return (x << U64(by)) | (x >> (_WORD - U64(by)))


@lean_kernel
def _round(a, b, c, d):
    a += b
    b = _rotate(b, 13) ^ a
    a = _rotate(a, 32)
    c += d
    d = _rotate(d, 16) ^ c
    a += d
    d = _rotate(d, 21) ^ a
    c += b
    b = _rotate(b, 17) ^ c
    c = _rotate(c, 32)
    return a, b, c, d


@lean_kernel
def _tail(buf, start, end):
    """The bytes buf[start:end], at most 8, as a little-endian word."""
    word = U64(0)
    for i in range(end - start):
        word |= U64(buf[start + i]) << (_BYTE * U64(i))
    return word


@lean_kernel
def siphash(buf, start, end, first, second):
    """SipHash-1-3 of buf[start:end], uint8[...], under a key of two words, uint64. Reads no byte outside the range."""
    at, end = np.int64(start), np.int64(end)
    a, b = first ^ U64(0x736F6D6570736575), second ^ U64(0x646F72616E646F6D)
    c, d = first ^ U64(0x6C7967656E657261), second ^ U64(0x7465646279746573)
    last = U64(end - at) << U64(56)
    while end - at >= 8:
        word = word_at(buf, at)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += 8
    last |= _tail(buf, at, end)
    d ^= last
    a, b, c, d = _round(a, b, c, d)
    a ^= last
    c ^= U64(0xFF)
    for _ in range(3):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@lean_kernel
def _multilinear(low, high, key, at):
    h = key[at] + key[at + 1] * (low & _LOW32) + key[at + 2] * (low >> _HALF)
    return h + key[at + 3] * (high & _LOW32) + key[at + 4] * (high >> _HALF)


@lean_kernel
def fingerprint(buf, start, end, key):
    """Fingerprint of buf[start:end] -> uint64. buf uint8; key uint64[KEY_WORDS]. Reads no byte outside the range.

    A short text becomes two words: its first 8 bytes, and the remaining bytes with the length in the last byte.
    """
    start, end = np.int64(start), np.int64(end)
    if end - start >= SHORT:
        return siphash(buf, start, end, key[_SIPHASH], key[_SIPHASH + 1])
    middle = min(start + 8, end)
    low = _tail(buf, start, middle)
    high = _tail(buf, middle, end) | U64(end - start) << U64(56)
    first, second = _multilinear(low, high, key, 0), _multilinear(low, high, key, _SECOND)
    return mix((first & ~_LOW32) | (second >> _HALF))
