"""Words of 64 bits and windows of 64 bytes, in portable LLVM vector IR.

A window is 64 bytes from an index on; bit i of a mask speaks of byte i of the window. No target intrinsics: the same
source runs as AVX-512, AVX2, SSE or NEON and gives the same bits. With the JIT off numpy stands in. Under
NUMBA_BOUNDSCHECK every wide load checks its range, as plain indexing does.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels import lean_kernel

U64 = np.uint64
_CHECK = bool(numba.config.BOUNDSCHECK)
_WIDE = 64
_ONE = U64(1)
_ALL = U64(0xFFFFFFFFFFFFFFFF)

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_VECTOR = ir.VectorType(_I8, _WIDE)


def _splat(value):
    return ir.Constant(_VECTOR, [value] * _WIDE)


def _pointer(context, builder, array_type, array, index, element):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _load(context, builder, array_type, array, index, element):
    load = builder.load(_pointer(context, builder, array_type, array, index, element))
    load.align = 1
    return load


def _store(context, builder, array_type, array, index, value):
    builder.store(value, _pointer(context, builder, array_type, array, index, value.type)).align = 1


def _is(builder, window, value):
    return builder.icmp_unsigned("==", window, _splat(value))


def _within(builder, window, low, high):
    return builder.icmp_unsigned("<=", builder.sub(window, _splat(low)), _splat(high - low))


def _either(builder, *conditions):
    result = conditions[0]
    for condition in conditions[1:]:
        result = builder.or_(result, condition)
    return result


def _mask(builder, condition):
    return builder.bitcast(condition, _I64)


def _masks(context, builder, signature, conditions):
    return context.make_tuple(builder, signature.return_type, [_mask(builder, c) for c in conditions])


@intrinsic
def _load_word(typing_context, array, index):
    def generate(context, builder, signature, args):
        return _load(context, builder, signature.args[0], args[0], args[1], _I64)

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
def _copy_text(typing_context, source, at, target, to):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        control = builder.icmp_unsigned("<", window, _splat(0x20))
        plain = builder.select(control, _splat(0x20), window)
        _store(context, builder, signature.args[2], args[2], args[3], plain)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


@intrinsic
def _find_byte(typing_context, array, index, value):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), _WIDE), [0] * _WIDE)
        splat = builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)
        return _mask(builder, builder.icmp_unsigned("==", window, splat))

    return types.uint64(array, types.int64, types.uint8), generate


@intrinsic
def _tag_masks(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        greater = _is(builder, window, ord(">"))
        name_end = _either(
            builder,
            greater,
            _is(builder, window, ord("/")),
            _is(builder, window, 0x20),
            _within(builder, window, 9, 10),
            _within(builder, window, 12, 13),
        )
        folded = builder.or_(window, _splat(0x20))
        return _masks(
            context,
            builder,
            signature,
            [
                name_end,
                greater,
                _is(builder, window, ord('"')),
                _is(builder, window, ord("'")),
                _is(builder, window, ord("=")),
                _within(builder, folded, ord("a"), ord("z")),
                _is(builder, window, ord("<")),
                _is(builder, window, ord("&")),
                _is(builder, window, ord("/")),
            ],
        )

    return types.UniTuple(types.uint64, 9)(array, types.int64), generate


@intrinsic
def _fold_words(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        upper = _within(builder, window, ord("A"), ord("Z"))
        lower = builder.select(upper, builder.or_(window, _splat(0x20)), window)
        _store(context, builder, signature.args[0], args[0], args[1], lower)
        digit = _within(builder, lower, ord("0"), ord("9"))
        return _masks(
            context,
            builder,
            signature,
            [
                _either(builder, digit, _within(builder, lower, ord("a"), ord("z"))),
                digit,
                _is(builder, lower, 3),
                _within(builder, lower, 4, 5),
                _either(
                    builder,
                    _within(builder, lower, 1, 2),
                    builder.icmp_unsigned(">=", lower, _splat(0x80)),
                ),
            ],
        )

    return types.UniTuple(types.uint64, 5)(array, types.int64), generate


@lean_kernel
def _check(array, index, count):
    if index < 0 or index + count > array.size:
        raise IndexError("wide load out of bounds")


@lean_kernel
def word_at(array, index):
    """The 8 bytes from `index` on as a little-endian uint64. The caller guarantees index + 8 <= size."""
    if _CHECK:
        _check(array, index, 8)
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
    """uint64 with the lowest `count` bits set, all of them from 64 on. (A shift by 64 has no defined result.)"""
    if count >= 64:
        return _ALL
    return (_ONE << U64(count)) - _ONE


@lean_kernel
def copy_text(source, at, target, to):
    """Copy a window, control characters as spaces."""
    if _CHECK:
        _check(source, at, 64)
        _check(target, to, 64)
    _copy_text(source, at, target, to)


@lean_kernel
def find_byte(array, index, value):
    """Mask of the bytes equal to `value` in a window."""
    if _CHECK:
        _check(array, index, 64)
    return _find_byte(array, index, value)


@lean_kernel
def tag_masks(array, index):
    """Masks of a window: end of a tag's name (white space / >), `>`, `"`, `'`, `=`, ASCII letters, `<`, `&`, `/`."""
    if _CHECK:
        _check(array, index, 64)
    return _tag_masks(array, index)


@lean_kernel
def fold_words(array, index):
    """Lower-case a window's ASCII letters in place; masks of ASCII alphanumerics, of ASCII digits, of byte 3, of
    bytes 4 and 5, and of bytes 1, 2 and 128 to 255.
    """
    if _CHECK:
        _check(array, index, 64)
    return _fold_words(array, index)


if numba.config.DISABLE_JIT:
    # Plain stand-ins with the same contracts; a range error shows as IndexError here too.

    def _window(array, index):
        index = int(index)
        if index < 0 or index + _WIDE > array.size:
            raise IndexError("wide load out of bounds")
        return array[index : index + _WIDE]

    def _bits(condition):
        return np.packbits(condition, bitorder="little").view(np.uint64)[0]

    def word_at(array, index):
        index = int(index)
        if index < 0 or index + 8 > array.size:
            raise IndexError("wide load out of bounds")
        return U64(int.from_bytes(array[index : index + 8].tobytes(), "little"))

    def trailing_zeros(word):
        word = int(word)
        return (word & -word).bit_length() - 1 if word else 64

    def leading_zeros(word):
        return 64 - int(word).bit_length()

    def ones(word):
        return int(word).bit_count()

    def copy_text(source, at, target, to):
        window = _window(source, at)
        _window(target, to)[:] = np.where(window < 0x20, 0x20, window)

    def find_byte(array, index, value):
        return _bits(_window(array, index) == value)

    def tag_masks(array, index):
        window = _window(array, index)
        folded = window | 0x20
        return (
            _bits(np.isin(window, np.frombuffer(b">/ \t\n\f\r", np.uint8))),
            _bits(window == ord(">")),
            _bits(window == ord('"')),
            _bits(window == ord("'")),
            _bits(window == ord("=")),
            _bits((folded >= ord("a")) & (folded <= ord("z"))),
            _bits(window == ord("<")),
            _bits(window == ord("&")),
            _bits(window == ord("/")),
        )

    def fold_words(array, index):
        window = _window(array, index)
        window[:] = np.where((window >= ord("A")) & (window <= ord("Z")), window | 0x20, window)
        digit = (window >= ord("0")) & (window <= ord("9"))
        return (
            _bits(digit | ((window >= ord("a")) & (window <= ord("z")))),
            _bits(digit),
            _bits(window == 3),
            _bits((window == 4) | (window == 5)),
            _bits((window == 1) | (window == 2) | (window >= 0x80)),
        )
