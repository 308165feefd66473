"""Operations on 64-bit words: unaligned loads, bit counts, masks. See `neardup.kernels.operations`."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.operations import (
    I32,
    I64,
    NOTHING,
    NUMBER,
    WORD,
    bits_set,
    extend,
    operation,
    truncate,
    zeros_above,
    zeros_below,
)

U64 = np.uint64
_ONE = U64(1)
_ALL = U64(0xFFFFFFFFFFFFFFFF)


@operation(WORD, None, NUMBER)
def word_at(array, index):
    """The 8 bytes from `index` on as a little-endian uint64. The caller guarantees index + 8 <= size."""
    return array.load(index, I64)


@operation(NUMBER, WORD)
def trailing_zeros(word):
    """Number of zero bits below the lowest set bit; 64 for 0."""
    return zeros_below(word)


@operation(NUMBER, WORD)
def leading_zeros(word):
    """Number of zero bits above the highest set bit; 64 for 0."""
    return zeros_above(word)


@operation(NUMBER, WORD)
def ones(word):
    """Number of set bits."""
    return bits_set(word)


@lean_kernel
def below(count):
    """uint64 with the lowest `count` bits set; all bits if count >= 64. (A shift by 64 has no defined result.)"""
    if count >= 64:
        return _ALL
    return (_ONE << U64(count)) - _ONE


@lean_kernel
def odd_up_to(word):
    """Prefix parity: bit i of the result is set if an odd number of bits 0 to i of word are set."""
    for shift in (1, 2, 4, 8, 16, 32):
        word ^= word << U64(shift)
    return word


@operation(NUMBER, None, NUMBER)
def quad_at(array, index):
    """The 4 bytes from `index` on as a little-endian number, int64."""
    return extend(array.load(index, I32), I64)


@operation(NOTHING, None, NUMBER, NUMBER)
def put_quad(array, index, value):
    """Write the low 32 bits of value, little-endian, at `index`."""
    array.store(index, truncate(value, I32))


@operation(NOTHING, None, NUMBER)
def prefetch(array, index):
    """Prefetch the cache line of array[index]. The index may lie beyond the array."""
    array.prefetch(index)
