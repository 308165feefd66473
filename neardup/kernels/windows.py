"""Masks of 64-byte windows, in portable LLVM vector IR.

A window is the 64 bytes from an index on; bit i of a mask describes byte i of the window. The same source compiles to
AVX-512, AVX2, SSE or NEON, with the same bits. With the JIT off, numpy replaces it. Under NUMBA_BOUNDSCHECK every load
checks its range.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.bits import CHECK, I8, I32, I64, check_range, load_from, store_to

_WIDE = 64
_VECTOR = ir.VectorType(I8, _WIDE)


def _splat(value):
    return ir.Constant(_VECTOR, [value] * _WIDE)


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
    return builder.bitcast(condition, I64)


def _masks(context, builder, signature, conditions):
    return context.make_tuple(builder, signature.return_type, [_mask(builder, c) for c in conditions])


@intrinsic
def _copy_text(typing_context, source, at, target, to):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        control = builder.icmp_unsigned("<", window, _splat(0x20))
        space = builder.select(_within(builder, window, 9, 13), _splat(0x20), _splat(0x7F))
        plain = builder.select(control, space, window)
        store_to(context, builder, signature.args[2], args[2], args[3], plain)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


@intrinsic
def _find_byte(typing_context, array, index, value):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[2], ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, _WIDE), [0] * _WIDE)
        splat = builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)
        return _mask(builder, builder.icmp_unsigned("==", window, splat))

    return types.uint64(array, types.int64, types.uint8), generate


@intrinsic
def _tag_masks(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
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
        kind = ir.VectorType(I8, 16)
        window = load_from(context, builder, signature.args[0], args[0], args[1], kind)

        def all_are(value):
            return ir.Constant(kind, [value] * 16)

        stop = _either(
            builder,
            builder.icmp_unsigned("==", window, all_are(ord(">"))),
            builder.icmp_unsigned("==", window, all_are(ord("/"))),
            builder.icmp_unsigned("<=", window, all_are(0x20)),
        )
        mask = builder.zext(builder.bitcast(stop, ir.IntType(16)), I64)
        mask = builder.or_(mask, ir.Constant(I64, 1 << 16))
        return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))

    return types.int64(array, types.int64), generate


@intrinsic
def _markup_mask(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        return _mask(builder, _either(builder, _is(builder, window, ord("<")), _is(builder, window, ord("&"))))

    return types.uint64(array, types.int64), generate


@intrinsic
def _url_masks(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        odd = _either(
            builder,
            builder.icmp_unsigned("<=", window, _splat(0x20)),
            *(_is(builder, window, ord(char)) for char in "#&?@\\"),
        )
        return _masks(context, builder, signature, [odd, *(_is(builder, window, ord(char)) for char in "/.:")])

    return types.UniTuple(types.uint64, 4)(array, types.int64), generate


@intrinsic
def _lower_case(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        upper = _within(builder, window, ord("A"), ord("Z"))
        lower = builder.select(upper, builder.or_(window, _splat(0x20)), window)
        store_to(context, builder, signature.args[0], args[0], args[1], lower)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _word_masks(typing_context, array, index):
    def generate(context, builder, signature, args):
        window = load_from(context, builder, signature.args[0], args[0], args[1], _VECTOR)
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
                _within(builder, window, 1, 2),
                builder.icmp_unsigned(">=", window, _splat(0x7F)),
            ],
        )

    return types.UniTuple(types.uint64, 6)(array, types.int64), generate


@intrinsic
def _flag_bytes(typing_context, array, index, two, four, eight):
    def generate(context, builder, signature, args):
        result = _splat(0)
        for mask, value in zip(args[2:], (2, 4, 8), strict=True):
            condition = builder.bitcast(mask, ir.VectorType(ir.IntType(1), _WIDE))
            result = builder.or_(result, builder.select(condition, _splat(value), _splat(0)))
        store_to(context, builder, signature.args[0], args[0], args[1], result)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64, types.uint64, types.uint64), generate


@lean_kernel
def copy_text(source, at, target, to):
    """Copy a window, white space as spaces, other control characters as U+007F."""
    if CHECK:
        check_range(source, at, 64)
        check_range(target, to, 64)
    _copy_text(source, at, target, to)


@lean_kernel
def find_byte(array, index, value):
    """Mask of the bytes equal to `value` in a window."""
    if CHECK:
        check_range(array, index, 64)
    return _find_byte(array, index, value)


@lean_kernel
def tag_masks(array, index):
    """Masks of a window: end of a tag's name (white space / >), `>`, `"`, `'`, `=`, ASCII letters."""
    if CHECK:
        check_range(array, index, 64)
    return _tag_masks(array, index)


@lean_kernel
def name_length(array, index):
    """Bytes from index to the first `>`, `/`, white space or control character; 16 if none of 16 is one."""
    if CHECK:
        check_range(array, index, 16)
    return _name_length(array, index)


@lean_kernel
def markup_mask(array, index):
    """Mask of the bytes `<` and `&` in a window."""
    if CHECK:
        check_range(array, index, 64)
    return _markup_mask(array, index)


@lean_kernel
def url_masks(array, index):
    """Masks of a window: bytes that make a URL unusual (controls, white space, # & ? @ backslash), `/`, `.`, `:`."""
    if CHECK:
        check_range(array, index, 64)
    return _url_masks(array, index)


@lean_kernel
def lower_case(array, index):
    """Lower-case the ASCII letters of a window in place."""
    if CHECK:
        check_range(array, index, 64)
    _lower_case(array, index)


@lean_kernel
def word_masks(array, index):
    """Masks of a window without ASCII capitals.

    In order: ASCII letters and digits; ASCII digits; byte 3 (block boundary); bytes 4 and 5 (start and end of a link);
    bytes 1 and 2 (start and end of a term); bytes from 0x7F on.
    """
    if CHECK:
        check_range(array, index, 64)
    return _word_masks(array, index)


@lean_kernel
def flag_bytes(array, index, two, four, eight):
    """Write 64 bytes: byte i has bits 2, 4 and 8 where bit i of the masks is set."""
    if CHECK:
        check_range(array, np.int64(index), 64)
    _flag_bytes(array, index, two, four, eight)


if numba.config.DISABLE_JIT:
    # numpy replacements with the same contracts. They raise IndexError for a range error, too.

    from neardup.kernels.bits import view

    def _window(array, index):
        return view(array, index, _WIDE)

    def _bits(condition):
        return np.packbits(condition, bitorder="little").view(np.uint64)[0]

    def copy_text(source, at, target, to):
        window = _window(source, at)
        space = np.where((window >= 9) & (window <= 13), 0x20, 0x7F)
        _window(target, to)[:] = np.where(window < 0x20, space, window)

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
        window = view(array, index, 16)
        stops = np.flatnonzero((window <= 0x20) | (window == ord(">")) | (window == ord("/")))
        return int(stops[0]) if stops.size else 16

    def markup_mask(array, index):
        window = _window(array, index)
        return _bits((window == ord("<")) | (window == ord("&")))

    def url_masks(array, index):
        window = _window(array, index)
        odd = (window <= 0x20) | np.isin(window, np.frombuffer(b"#&?@\\", np.uint8))
        return _bits(odd), *(_bits(window == ord(char)) for char in "/.:")

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
            _bits((window == 1) | (window == 2)),
            _bits(window >= 0x7F),
        )

    def flag_bytes(array, index, two, four, eight):
        masks = np.array([two, four, eight], np.uint64).view(np.uint8).reshape(3, 8)
        bits = np.unpackbits(masks, axis=1, bitorder="little")
        _window(array, index)[:] = 2 * bits[0] + 4 * bits[1] + 8 * bits[2]
