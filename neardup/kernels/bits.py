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
            ],
        )

    return types.UniTuple(types.uint64, 6)(array, types.int64), generate


@intrinsic
def _name_length(typing_context, array, index):
    def generate(context, builder, signature, args):
        kind = ir.VectorType(_I8, 16)
        window = _load(context, builder, signature.args[0], args[0], args[1], kind)

        def all_are(value):
            return ir.Constant(kind, [value] * 16)

        stop = _either(
            builder,
            builder.icmp_unsigned("==", window, all_are(ord(">"))),
            builder.icmp_unsigned("==", window, all_are(ord("/"))),
            builder.icmp_unsigned("<=", window, all_are(0x20)),
        )
        mask = builder.zext(builder.bitcast(stop, ir.IntType(16)), _I64)
        mask = builder.or_(mask, ir.Constant(_I64, 1 << 16))
        return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))

    return types.int64(array, types.int64), generate


@intrinsic
def _markup_mask(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        return _mask(builder, _either(builder, _is(builder, window, ord("<")), _is(builder, window, ord("&"))))

    return types.uint64(array, types.int64), generate


@intrinsic
def _load_half(typing_context, array, index):
    def generate(context, builder, signature, args):
        half = _load(context, builder, signature.args[0], args[0], args[1], ir.IntType(16))
        return builder.zext(half, _I64)

    return types.int64(array, types.int64), generate


@intrinsic
def _store_half(typing_context, array, index, value):
    def generate(context, builder, signature, args):
        half = builder.trunc(args[2], ir.IntType(16))
        _store(context, builder, signature.args[0], args[0], args[1], half)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def _lower_case(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        upper = _within(builder, window, ord("A"), ord("Z"))
        lower = builder.select(upper, builder.or_(window, _splat(0x20)), window)
        _store(context, builder, signature.args[0], args[0], args[1], lower)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _word_masks(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = _load(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        digit = _within(builder, window, ord("0"), ord("9"))
        return _masks(
            context,
            builder,
            signature,
            [
                _either(builder, digit, _within(builder, window, ord("a"), ord("z"))),
                digit,
                _is(builder, window, 3),
                _within(builder, window, 4, 5),
                _either(
                    builder,
                    _within(builder, window, 1, 2),
                    builder.icmp_unsigned(">=", window, _splat(0x80)),
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
def odd_up_to(word):
    """Bit i is set if an odd number of bits of word, up to and with bit i, are set."""
    for shift in (1, 2, 4, 8, 16, 32):
        word ^= word << U64(shift)
    return word


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
    """Masks of a window: end of a tag's name (white space / >), `>`, `"`, `'`, `=`, ASCII letters."""
    if _CHECK:
        _check(array, index, 64)
    return _tag_masks(array, index)


@lean_kernel
def name_length(array, index):
    """Bytes from index to the first `>`, `/`, white space or control character; 16 if none of 16 is one."""
    if _CHECK:
        _check(array, index, 16)
    return _name_length(array, index)


@lean_kernel
def markup_mask(array, index):
    """Mask of the bytes `<` and `&` in a window."""
    if _CHECK:
        _check(array, index, 64)
    return _markup_mask(array, index)


@lean_kernel
def half_at(array, index):
    """The 2 bytes from `index` on as a little-endian number, int64."""
    if _CHECK:
        _check(array, index, 2)
    return _load_half(array, index)


@lean_kernel
def put_half(array, index, value):
    """Write the low 16 bits of value, little-endian, at `index`."""
    if _CHECK:
        _check(array, index, 2)
    _store_half(array, index, value)


@lean_kernel
def lower_case(array, index):
    """Lower-case the ASCII letters of a window in place."""
    if _CHECK:
        _check(array, index, 64)
    _lower_case(array, index)


@lean_kernel
def word_masks(array, index):
    """Masks of a window without ASCII capitals: ASCII alphanumerics, ASCII digits, byte 3, bytes 4 and 5, and bytes 1,
    2 and 128 to 255.
    """
    if _CHECK:
        _check(array, index, 64)
    return _word_masks(array, index)


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
        )

    def name_length(array, index):
        index = int(index)
        if index < 0 or index + 16 > array.size:
            raise IndexError("wide load out of bounds")
        window = array[index : index + 16]
        stops = np.flatnonzero((window <= 0x20) | (window == ord(">")) | (window == ord("/")))
        return int(stops[0]) if stops.size else 16

    def markup_mask(array, index):
        window = _window(array, index)
        return _bits((window == ord("<")) | (window == ord("&")))

    def half_at(array, index):
        index = int(index)
        if index < 0 or index + 2 > array.size:
            raise IndexError("wide load out of bounds")
        return int(array[index]) | int(array[index + 1]) << 8

    def put_half(array, index, value):
        index = int(index)
        if index < 0 or index + 2 > array.size:
            raise IndexError("wide store out of bounds")
        array[index], array[index + 1] = int(value) & 255, int(value) >> 8 & 255

    def lower_case(array, index):
        window = _window(array, index)
        window[:] = np.where((window >= ord("A")) & (window <= ord("Z")), window | 0x20, window)

    def word_masks(array, index):
        window = _window(array, index)
        digit = (window >= ord("0")) & (window <= ord("9"))
        return (
            _bits(digit | ((window >= ord("a")) & (window <= ord("z")))),
            _bits(digit),
            _bits(window == 3),
            _bits((window == 4) | (window == 5)),
            _bits((window == 1) | (window == 2) | (window >= 0x80)),
        )
