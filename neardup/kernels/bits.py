"""Operations on 64-bit words: unaligned loads, bit counts, masks.

They are small intrinsics that build LLVM IR. None is specific to a processor, so the same source gives the same bits on
every CPU. With the JIT off, Python functions replace them. Under NUMBA_BOUNDSCHECK every load checks its range, as
plain indexing does.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels import lean_kernel

U64 = np.uint64
CHECK = bool(numba.config.BOUNDSCHECK)
_ONE = U64(1)
_ALL = U64(0xFFFFFFFFFFFFFFFF)

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def pointer_to(context, builder, array_type, array, index, element):
    """Pointer to array[index], cast to a pointer to the LLVM type `element`."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def load_from(context, builder, array_type, array, index, element):
    """Load an `element` from array[index]; the address need not be aligned."""
    load = builder.load(pointer_to(context, builder, array_type, array, index, element))
    load.align = 1
    return load


def store_to(context, builder, array_type, array, index, value):
    """Store a value at array[index]; the address need not be aligned."""
    builder.store(value, pointer_to(context, builder, array_type, array, index, value.type)).align = 1


@intrinsic
def _load_word(typing_context, array, index):
    def generate(context, builder, signature, args):
        return load_from(context, builder, signature.args[0], args[0], args[1], I64)

    return types.uint64(array, types.int64), generate


@intrinsic
def _count_trailing(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _count_leading(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _count_ones(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic
def _load_quad(typing_context, array, index):
    def generate(context, builder, signature, args):
        quad = load_from(context, builder, signature.args[0], args[0], args[1], I32)
        return builder.zext(quad, I64)

    return types.int64(array, types.int64), generate


@intrinsic
def _store_quad(typing_context, array, index, value):
    def generate(context, builder, signature, args):
        quad = builder.trunc(args[2], I32)
        store_to(context, builder, signature.args[0], args[0], args[1], quad)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def _prefetch(typing_context, array, index):
    def generate(context, builder, signature, args):
        place = pointer_to(context, builder, signature.args[0], args[0], args[1], I8)
        kind = ir.FunctionType(ir.VoidType(), [place.type, I32, I32, I32])
        declared = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(declared, [place, I32(0), I32(3), I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@lean_kernel
def check_range(array, index, count):
    """Raise IndexError unless array[index : index + count] exists."""
    if index < 0 or index + count > array.size:
        raise IndexError("wide access out of bounds")


@lean_kernel
def word_at(array, index):
    """The 8 bytes from `index` on as a little-endian uint64. The caller guarantees index + 8 <= size."""
    if CHECK:
        check_range(array, index, 8)
    return _load_word(array, index)


@lean_kernel
def trailing_zeros(word):
    """Number of zero bits below the lowest set bit; 64 for 0."""
    return _count_trailing(U64(word))


@lean_kernel
def leading_zeros(word):
    """Number of zero bits above the highest set bit; 64 for 0."""
    return _count_leading(U64(word))


@lean_kernel
def ones(word):
    """Number of set bits."""
    return _count_ones(U64(word))


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


@lean_kernel
def quad_at(array, index):
    """The 4 bytes from `index` on as a little-endian number, int64."""
    if CHECK:
        check_range(array, index, 4)
    return _load_quad(array, index)


@lean_kernel
def put_quad(array, index, value):
    """Write the low 32 bits of value, little-endian, at `index`."""
    if CHECK:
        check_range(array, index, 4)
    _store_quad(array, index, value)


@lean_kernel
def prefetch(array, index):
    """Prefetch the cache line of array[index]. The index may lie beyond the array."""
    _prefetch(array, index)


if numba.config.DISABLE_JIT:
    # Python replacements with the same contracts. They raise IndexError for a range error, too.

    def view(array, index, count):
        """array[index : index + count], which must lie in it."""
        index = int(index)
        check_range(array, index, count)
        return array[index : index + count]

    def word_at(array, index):
        return U64(int.from_bytes(view(array, index, 8).tobytes(), "little"))

    def trailing_zeros(word):
        word = int(word)
        return (word & -word).bit_length() - 1 if word else 64

    def leading_zeros(word):
        return 64 - int(word).bit_length()

    def ones(word):
        return int(word).bit_count()

    def quad_at(array, index):
        return int.from_bytes(view(array, index, 4).tobytes(), "little")

    def put_quad(array, index, value):
        view(array, index, 4)[:] = np.frombuffer((int(value) & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8)

    def prefetch(array, index):
        pass
