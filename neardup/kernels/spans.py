"""XXH64 of many short spans of a text: eight at a time, in portable LLVM vector IR.

Lengths of tokens cannot be predicted, so every step is computed for every lane and chosen by its condition. Spans of 16
bytes and more, one token in fifty, go one by one. With the JIT off all do. The bits are those of `xxh64`.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.bits import CHECK, check_range
from neardup.kernels.xxh64 import xxh64

U64 = np.uint64
_LANES = 8
#: A span of fewer bytes lies in two words of 8 bytes.
_SHORT = 16
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_I64, _LANES)
_HALVES = ir.VectorType(_I32, _LANES)


def _all(value):
    return ir.Constant(_WORDS, [value] * _LANES)


def _rotate(builder, x, by):
    # as LLVM's own rotation: it would make the two shifts of a product two products
    kind = ir.FunctionType(_WORDS, [_WORDS, _WORDS, _WORDS])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fshl.v8i64"), [x, x, _all(by)])


def _times(builder, x, factor):
    return builder.mul(x, _all(factor))


def _eat8(builder, h, word):
    part = _times(builder, _rotate(builder, _times(builder, word, _P2), 31), _P1)
    return builder.add(_times(builder, _rotate(builder, builder.xor(h, part), 27), _P1), _all(_P4))


def _eat4(builder, h, word):
    part = _times(builder, builder.and_(word, _all(0xFFFFFFFF)), _P1)
    return builder.add(_times(builder, _rotate(builder, builder.xor(h, part), 23), _P2), _all(_P3))


def _eat1(builder, h, word):
    part = _times(builder, builder.and_(word, _all(0xFF)), _P5)
    return _times(builder, _rotate(builder, builder.xor(h, part), 11), _P1)


def _avalanche(builder, h):
    h = _times(builder, builder.xor(h, builder.lshr(h, _all(33))), _P2)
    h = _times(builder, builder.xor(h, builder.lshr(h, _all(29))), _P3)
    return builder.xor(h, builder.lshr(h, _all(32)))


def _short_hash(builder, low, high, length, seed):
    """XXH64 of spans of less than 16 bytes, given as little-endian words; bytes beyond a length may hold anything."""

    def at_least(x, value):
        return builder.icmp_unsigned(">=", x, _all(value))

    h = builder.add(builder.add(seed, _all(_P5)), length)
    wide = at_least(length, 8)
    h = builder.select(wide, _eat8(builder, h, low), h)
    tail = builder.select(wide, high, low)
    rest = builder.and_(length, _all(7))
    four = at_least(rest, 4)
    h = builder.select(four, _eat4(builder, h, tail), h)
    tail = builder.select(four, builder.lshr(tail, _all(32)), tail)
    rest = builder.and_(rest, _all(3))
    for bytes_left in (1, 2, 3):
        h = builder.select(at_least(rest, bytes_left), _eat1(builder, h, tail), h)
        tail = builder.lshr(tail, _all(8))
    return _avalanche(builder, h)


@intrinsic
def _hash_short(typing_context, text, starts, ends, at, seed, out):
    def generate(context, builder, signature, args):
        def pointer(place, index, element):
            data = context.make_array(signature.args[place])(context, builder, args[place]).data
            return builder.bitcast(builder.gep(data, [index]), element.as_pointer())

        def load(place, index, element, align):
            value = builder.load(pointer(place, index, element))
            value.align = align
            return value

        starts, ends = (load(place, args[3], _HALVES, 4) for place in (1, 2))
        length = builder.zext(builder.sub(ends, starts), _WORDS)
        words = []
        for shift in (0, 8):
            word = ir.Constant(_WORDS, ir.Undefined)
            for lane in range(_LANES):
                number = ir.Constant(_I32, lane)
                start = builder.zext(builder.extract_element(starts, number), _I64)
                part = load(0, builder.add(start, ir.Constant(_I64, shift)), _I64, 1)
                word = builder.insert_element(word, part, number)
            words.append(word)
        seed = ir.Constant(_WORDS, ir.Undefined)
        for lane in range(_LANES):
            seed = builder.insert_element(seed, args[4], ir.Constant(_I32, lane))
        builder.store(_short_hash(builder, *words, length, seed), pointer(5, args[3], _WORDS)).align = 8
        long = builder.icmp_unsigned(">=", length, _all(_SHORT))
        return builder.zext(builder.bitcast(long, _I8), _I64)

    return types.uint64(text, starts, ends, types.int64, types.uint64, out), generate


@lean_kernel
def hash_short(text, starts, ends, at, seed, out):
    """out[at : at + 8] = XXH64 of eight spans; the bits of the answer tell which are too long and hold nothing yet."""
    if CHECK:
        check_range(starts, at, _LANES)
        check_range(ends, at, _LANES)
        check_range(out, at, _LANES)
        for i in range(at, at + _LANES):
            check_range(text, np.int64(starts[i]), _SHORT)
    return _hash_short(text, starts, ends, at, seed, out)


@lean_kernel
def hash_spans(text, starts, ends, many, seed, out):
    """out[i] = XXH64 of text[starts[i] : ends[i]] for i < many. text uint8, starts, ends uint32, rising; out uint64."""
    size = np.int64(text.size) - _SHORT
    i = np.int64(0)
    while i < many:
        at = i
        if many - i < _LANES:
            at = many - _LANES  # the last eight, some of them once more
        if at < 0 or np.int64(starts[at + _LANES - 1]) > size:
            out[i] = xxh64(text, np.int64(starts[i]), np.int64(ends[i]), seed)
            i += 1
            continue
        long = hash_short(text, starts, ends, at, seed, out)
        j = at
        while long != U64(0):
            if long & U64(1):
                out[j] = xxh64(text, np.int64(starts[j]), np.int64(ends[j]), seed)
            long >>= U64(1)
            j += 1
        i = at + _LANES


if numba.config.DISABLE_JIT:

    def hash_short(text, starts, ends, at, seed, out):
        return U64(0xFF)
