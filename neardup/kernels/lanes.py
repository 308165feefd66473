"""Operations on vectors of eight 64-bit words, in portable LLVM vector IR.

LLVM's own vectoriser uses only half of the width of the widest CPUs. Explicit vectors use all of it. On other CPUs they
become two or four narrower vectors, with the same bits. With the JIT off, numpy replaces them. Indices are checked
under NUMBA_BOUNDSCHECK only. Arithmetic wraps.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.bits import CHECK, check_range

U64 = np.uint64
LANES = 8
#: Words per call: of `lower` (GROUP), of `least_pieces` and `least_turned` (BLOCK).
GROUP, BLOCK = 8, 64
#: Number of 16-bit pieces in 8 words.
PIECES = 4 * LANES
_I64 = ir.IntType(64)
VECTOR = ir.VectorType(_I64, LANES)
_PIECES = ir.VectorType(ir.IntType(16), PIECES)
_GAMMA, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _constant(value):
    return ir.Constant(VECTOR, [value] * LANES)


def _pointer(context, builder, array_type, array, index, offset=0):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [builder.add(index, ir.Constant(_I64, offset))])


def load(context, builder, array_type, array, index, offset=0):
    """8 words of an array from index + offset on."""
    pointer = _pointer(context, builder, array_type, array, index, offset)
    found = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    found.align = 8
    return found


def store(context, builder, array_type, array, index, value, offset=0):
    """Store 8 words to an array, from index + offset on."""
    pointer = _pointer(context, builder, array_type, array, index, offset)
    builder.store(value, builder.bitcast(pointer, VECTOR.as_pointer())).align = 8


def _pieces_at(context, builder, array_type, array, index):
    pointer = _pointer(context, builder, array_type, array, index)
    found = builder.load(builder.bitcast(pointer, _PIECES.as_pointer()))
    found.align = 2
    return found


def _put_pieces(context, builder, array_type, array, index, value):
    pointer = _pointer(context, builder, array_type, array, index)
    builder.store(value, builder.bitcast(pointer, _PIECES.as_pointer())).align = 2


def splat(builder, word):
    """A vector with the same word in all 8 lanes."""
    undefined = ir.Constant(VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, word, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, zeros)


def mix_lanes(builder, x):
    """`neardup.kernels.mix` of 8 words."""
    z = builder.add(x, _constant(_GAMMA))
    z = builder.mul(builder.xor(z, builder.lshr(z, _constant(30))), _constant(_M1))
    z = builder.mul(builder.xor(z, builder.lshr(z, _constant(27))), _constant(_M2))
    return builder.xor(z, builder.lshr(z, _constant(31)))


def _least(builder, a, b):
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _folded(builder, words, factors):
    """z ^ (z >> 32), z = words * factors."""
    z = builder.mul(words, factors)
    return builder.xor(z, builder.lshr(z, _constant(32)))


@intrinsic
def _shingle(typing_context, tokens, at, factors, out):
    def generate(context, builder, signature, args):
        kinds = signature.args
        total = _constant(0)
        for j in range(8):
            factor = builder.load(_pointer(context, builder, kinds[2], args[2], ir.Constant(_I64, j)))
            part = load(context, builder, kinds[0], args[0], args[1], j)
            total = builder.add(total, builder.mul(part, splat(builder, factor)))
        store(context, builder, kinds[3], args[3], args[1], mix_lanes(builder, total))
        return context.get_dummy_value()

    return types.none(tokens, types.int64, factors, out), generate


@intrinsic
def _lower(typing_context, words, index, multiplier, at, fronts, first, step):
    def generate(context, builder, signature, args):
        kinds = signature.args
        factors = load(context, builder, kinds[2], args[2], args[3])
        places = [builder.add(args[5], builder.mul(args[6], ir.Constant(_I64, j))) for j in range(4)]
        least = [load(context, builder, kinds[4], args[4], place) for place in places]
        for i in range(GROUP):
            word = builder.load(_pointer(context, builder, kinds[0], args[0], args[1], i))
            y = _folded(builder, splat(builder, word), factors)
            for j in range(4):
                turn = 48 - 16 * j
                value = y
                if turn:
                    value = builder.or_(builder.shl(y, _constant(turn)), builder.lshr(y, _constant(64 - turn)))
                least[j] = _least(builder, value, least[j])
        for place, value in zip(places, least, strict=True):
            store(context, builder, kinds[4], args[4], place, value)
        return context.get_dummy_value()

    return types.none(words, types.int64, multiplier, types.int64, fronts, types.int64, types.int64), generate


@intrinsic
def _least_pieces(typing_context, words, index, multiplier, at, pieces, to, leading, first):
    def generate(context, builder, signature, args):
        kinds = signature.args
        factors = load(context, builder, kinds[2], args[2], args[3])
        least = cgutils.alloca_once(builder, _PIECES)
        builder.store(ir.Constant(_PIECES, [0xFFFF] * PIECES), least)
        with cgutils.for_range(builder, ir.Constant(_I64, BLOCK // GROUP), intp=_I64) as loop:
            start = builder.add(args[1], builder.mul(loop.index, ir.Constant(_I64, GROUP)))
            value = builder.load(least)
            for i in range(GROUP):
                word = builder.load(_pointer(context, builder, kinds[0], args[0], start, i))
                y = _folded(builder, splat(builder, word), factors)
                value = _least(builder, builder.bitcast(y, _PIECES), value)
            builder.store(value, least)
        value = builder.load(least)
        _put_pieces(context, builder, kinds[4], args[4], args[5], value)
        before = _pieces_at(context, builder, kinds[6], args[6], args[7])
        _put_pieces(context, builder, kinds[6], args[6], args[7], _least(builder, value, before))
        return context.get_dummy_value()

    where = types.int64
    return types.none(words, where, multiplier, where, pieces, where, leading, where), generate


@intrinsic
def _equal_pieces(typing_context, pieces, at, leading, first):
    def generate(context, builder, signature, args):
        kinds = signature.args
        a = _pieces_at(context, builder, kinds[0], args[0], args[1])
        b = _pieces_at(context, builder, kinds[2], args[2], args[3])
        return builder.bitcast(builder.icmp_unsigned("==", a, b), ir.IntType(32))

    return types.uint32(pieces, types.int64, leading, types.int64), generate


@intrinsic
def _least_turned(typing_context, words, index, factor, turn):
    def generate(context, builder, signature, args):
        factors, turn = splat(builder, args[2]), splat(builder, args[3])
        back = builder.and_(builder.sub(_constant(64), turn), _constant(63))
        least = cgutils.alloca_once(builder, VECTOR)
        builder.store(_constant((1 << 64) - 1), least)
        with cgutils.for_range(builder, ir.Constant(_I64, BLOCK // LANES), intp=_I64) as loop:
            start = builder.add(args[1], builder.mul(loop.index, ir.Constant(_I64, LANES)))
            y = _folded(builder, load(context, builder, signature.args[0], args[0], start), factors)
            value = builder.or_(builder.shl(y, turn), builder.lshr(y, back))
            builder.store(_least(builder, value, builder.load(least)), least)
        value = builder.load(least)
        out = None
        for i in range(LANES):
            lane = builder.extract_element(value, ir.Constant(ir.IntType(32), i))
            out = lane if out is None else _least(builder, lane, out)
        return out

    return types.uint64(words, types.int64, types.uint64, types.uint64), generate


@lean_kernel
def shingle(tokens, at, factors, out):
    """out[i] = mix(sum over j < 8 of tokens[i + j] * factors[j]) for the 8 words i from `at` on."""
    if CHECK:
        check_range(tokens, at, 15)
        check_range(factors, 0, 8)
        check_range(out, at, 8)
    _shingle(tokens, at, factors, out)


@lean_kernel
def lower(words, index, multiplier, at, fronts, first, step):
    """Lower fronts[first + j * step + w] to the least rotated value of the 8 words from index on, for w < 8, j < 4.

    The value is y = z ^ (z >> 32) with z = word * multiplier[at + w], rotated so that piece j is at the front. A word
    has 4 pieces of 16 bits; piece 0 is the lowest.
    """
    if CHECK:
        check_range(words, index, GROUP)
        check_range(multiplier, at, LANES)
        check_range(fronts, first, 3 * step + LANES)
    _lower(words, index, multiplier, at, fronts, first, step)


@lean_kernel
def least_pieces(words, index, multiplier, at, pieces, to, leading, first):
    """pieces[to + 4 w + j] = the least piece j of y over the 64 words from index on.

    Also lowers leading[first + 4 w + j] to it.
    y and its pieces are those of `lower`. pieces, leading uint16.
    """
    if CHECK:
        check_range(words, index, BLOCK)
        check_range(multiplier, at, LANES)
        check_range(pieces, to, PIECES)
        check_range(leading, first, PIECES)
    _least_pieces(words, index, multiplier, at, pieces, to, leading, first)


@lean_kernel
def equal_pieces(pieces, at, leading, first):
    """Mask of equal elements, uint32: bit i is 1 if pieces[at + i] == leading[first + i]."""
    if CHECK:
        check_range(pieces, at, PIECES)
        check_range(leading, first, PIECES)
    return _equal_pieces(pieces, at, leading, first)


@lean_kernel
def least_turned(words, index, factor, turn):
    """The least rotate_left(y, turn) over the 64 words from index on, uint64; y as in `lower`, z = word * factor.

    turn < 64.
    """
    if CHECK:
        check_range(words, index, BLOCK)
    return _least_turned(words, index, factor, turn)


if numba.config.DISABLE_JIT:
    # numpy replacements with the same contracts. They raise IndexError for a range error, too.

    from neardup.kernels.bits import view

    def mixed(x):
        """`mix_lanes`."""
        z = x + U64(_GAMMA)
        z = (z ^ (z >> U64(30))) * U64(_M1)
        z = (z ^ (z >> U64(27))) * U64(_M2)
        return z ^ (z >> U64(31))

    def _turned(y, turn):
        return (y << U64(turn)) | (y >> U64(64 - turn)) if turn else y

    def shingle(tokens, at, factors, out):
        total = sum(view(tokens, at + j, LANES) * factors[j] for j in range(8))
        view(out, at, LANES)[:] = mixed(total)

    def lower(words, index, multiplier, at, fronts, first, step):
        z = view(words, index, GROUP)[:, None] * view(multiplier, at, LANES)
        y = z ^ (z >> U64(32))
        for j in range(4):
            least = view(fronts, first + j * step, LANES)
            np.minimum(least, _turned(y, 48 - 16 * j).min(axis=0), out=least)

    def least_pieces(words, index, multiplier, at, pieces, to, leading, first):
        z = view(words, index, BLOCK)[:, None] * view(multiplier, at, LANES)
        found = (z ^ (z >> U64(32))).view(np.uint16).min(axis=0)
        view(pieces, to, PIECES)[:] = found
        least = view(leading, first, PIECES)
        np.minimum(least, found, out=least)

    def equal_pieces(pieces, at, leading, first):
        same = view(pieces, at, PIECES) == view(leading, first, PIECES)
        return np.packbits(same, bitorder="little").view(np.uint32)[0]

    def least_turned(words, index, factor, turn):
        z = view(words, index, BLOCK) * factor
        return _turned(z ^ (z >> U64(32)), int(turn)).min()
