"""Fingerprints of many short spans of a text: eight at a time, in portable LLVM vector IR.

The lengths of tokens cannot be predicted, so they only select a mask, and there is no branch. Spans of 16 or more
bytes, one token in fifty, are hashed one by one; with the JIT off, all spans are. The results equal those of
`fingerprint`.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.bits import CHECK, check_range
from neardup.kernels.fingerprint import KEY_WORDS, SHORT, fingerprint

U64 = np.uint64
_LANES = 8
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_I64, _LANES)
_HALVES = ir.VectorType(_I32, _LANES)
#: Constants of mix().
_GAMMA, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _all(value):
    return ir.Constant(_WORDS, [value] * _LANES)


def _in_all_lanes(builder, value):
    word = builder.insert_element(ir.Constant(_WORDS, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(word, ir.Constant(_WORDS, ir.Undefined), ir.Constant(_HALVES, [0] * _LANES))


def _mix(builder, x):
    x = builder.add(x, _all(_GAMMA))
    for shift, factor in ((30, _M1), (27, _M2)):
        x = builder.mul(builder.xor(x, builder.lshr(x, _all(shift))), _all(factor))
    return builder.xor(x, builder.lshr(x, _all(31)))


def _short_hash(builder, low, high, length, key):
    """Fingerprints of spans of fewer than 16 bytes.

    low, high: their bytes as words; bytes beyond the length are ignored.
    """
    wide = builder.sext(builder.icmp_unsigned(">=", length, _all(8)), _WORDS)
    rest = builder.shl(builder.and_(length, _all(7)), _all(3))
    rest = builder.sub(builder.shl(_all(1), rest), _all(1))
    low = builder.and_(low, builder.or_(rest, wide))
    high = builder.or_(builder.and_(high, builder.and_(rest, wide)), builder.shl(length, _all(56)))
    halves = []
    for word in (low, high):
        halves += [builder.and_(word, _all(0xFFFFFFFF)), builder.lshr(word, _all(32))]
    sums = []
    for function in range(2):
        h, *factors = key[5 * function : 5 * function + 5]
        for factor, half in zip(factors, halves, strict=True):
            h = builder.add(h, builder.mul(factor, half))
        sums.append(h)
    upper = builder.and_(sums[0], _all(0xFFFFFFFF00000000))
    return _mix(builder, builder.or_(upper, builder.lshr(sums[1], _all(32))))


@intrinsic
def _hash_short(typing_context, text, starts, ends, at, key, out):
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
        key = [_in_all_lanes(builder, load(4, ir.Constant(_I64, i), _I64, 8)) for i in range(10)]
        builder.store(_short_hash(builder, *words, length, key), pointer(5, args[3], _WORDS)).align = 8
        long = builder.icmp_unsigned(">=", length, _all(SHORT))
        return builder.zext(builder.bitcast(long, _I8), _I64)

    return types.uint64(text, starts, ends, types.int64, key, out), generate


@lean_kernel
def hash_short(text, starts, ends, at, key, out):
    """out[at : at + 8] = fingerprints of 8 spans -> a mask of the spans that are too long; their results are void."""
    if CHECK:
        check_range(starts, at, _LANES)
        check_range(ends, at, _LANES)
        check_range(out, at, _LANES)
        check_range(key, 0, KEY_WORDS)
        for i in range(at, at + _LANES):
            check_range(text, np.int64(starts[i]), SHORT)
    return _hash_short(text, starts, ends, at, key, out)


@lean_kernel
def hash_spans(text, starts, ends, many, key, out):
    """out[i] = fingerprint of text[starts[i] : ends[i]] for i < many.

    text uint8, starts, ends uint32, rising; key uint64[KEY_WORDS]; out uint64.
    """
    size = np.int64(text.size) - SHORT
    i = np.int64(0)
    while i < many:
        at = i
        if many - i < _LANES:
            at = many - _LANES  # the last eight; some of them are hashed twice
        if at < 0 or np.int64(starts[at + _LANES - 1]) > size:
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
        i = at + _LANES


if numba.config.DISABLE_JIT:

    def hash_short(text, starts, ends, at, key, out):
        return U64(0xFF)
