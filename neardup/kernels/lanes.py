"""Eight 64-bit words at a time, in portable LLVM vector IR.

LLVM's own vectoriser keeps to half of the width that the widest CPUs have; explicit vectors use all of it, become two
or four narrower ones elsewhere, and give the same bits everywhere. With the JIT off numpy stands in. Indices are
trusted, but under NUMBA_BOUNDSCHECK each one is checked. Arithmetic wraps.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels import lean_kernel

U64 = np.uint64
LANES = 8
#: Words that `any_contender` takes at once.
GROUP = 8
#: Rows that `add_rows` takes at once.
STEP = 16
_CHECK = bool(numba.config.BOUNDSCHECK)
_I64 = ir.IntType(64)
_VECTOR = ir.VectorType(_I64, LANES)
_PIECES = ir.VectorType(ir.IntType(16), 4 * LANES)
_GAMMA, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _constant(value):
    return ir.Constant(_VECTOR, [value] * LANES)


def _pointer(context, builder, array_type, array, index, offset=0):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [builder.add(index, ir.Constant(_I64, offset))])


def _load(context, builder, array_type, array, index, offset=0):
    pointer = _pointer(context, builder, array_type, array, index, offset)
    load = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()))
    load.align = 8
    return load


def _store(context, builder, array_type, array, index, value, offset=0):
    pointer = _pointer(context, builder, array_type, array, index, offset)
    builder.store(value, builder.bitcast(pointer, _VECTOR.as_pointer())).align = 8


def _splat(builder, word):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, word, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, zeros)


def _mix(builder, x):
    z = builder.add(x, _constant(_GAMMA))
    z = builder.mul(builder.xor(z, builder.lshr(z, _constant(30))), _constant(_M1))
    z = builder.mul(builder.xor(z, builder.lshr(z, _constant(27))), _constant(_M2))
    return builder.xor(z, builder.lshr(z, _constant(31)))


@intrinsic
def _shingle(typing_context, tokens, at, factors, out):
    def generate(context, builder, signature, args):
        kinds = signature.args
        total = _constant(0)
        for j in range(8):
            factor = builder.load(_pointer(context, builder, kinds[2], args[2], ir.Constant(_I64, j)))
            part = _load(context, builder, kinds[0], args[0], args[1], j)
            total = builder.add(total, builder.mul(part, _splat(builder, factor)))
        _store(context, builder, kinds[3], args[3], args[1], _mix(builder, total))
        return context.get_dummy_value()

    return types.none(tokens, types.int64, factors, out), generate


def _pieces(context, builder, signature, args, word):
    """Pieces of z ^ (z >> 32), z = word * multiplier[at : at + 8]; args: a word or words, index, multiplier, at, ..."""
    factors = _load(context, builder, signature.args[2], args[2], args[3])
    z = builder.mul(_splat(builder, word), factors)
    return builder.bitcast(builder.xor(z, builder.lshr(z, _constant(32))), _PIECES)


def _not_above(context, builder, signature, args, pieces):
    pointer = _pointer(context, builder, signature.args[4], args[4], args[5])
    least = builder.load(builder.bitcast(pointer, _PIECES.as_pointer()))
    least.align = 2
    return builder.bitcast(builder.icmp_unsigned("<=", pieces, least), ir.IntType(32))


@intrinsic
def _contenders(typing_context, words, index, multiplier, at, leading, first):
    def generate(context, builder, signature, args):
        word = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1]))
        return _not_above(context, builder, signature, args, _pieces(context, builder, signature, args, word))

    return types.uint32(words, types.int64, multiplier, types.int64, leading, types.int64), generate


@intrinsic
def _any_contender(typing_context, words, index, multiplier, at, leading, first):
    def generate(context, builder, signature, args):
        least = None
        for j in range(GROUP):
            word = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], j))
            pieces = _pieces(context, builder, signature, args, word)
            if least is not None:
                pieces = builder.select(builder.icmp_unsigned("<", pieces, least), pieces, least)
            least = pieces
        return _not_above(context, builder, signature, args, least)

    return types.uint32(words, types.int64, multiplier, types.int64, leading, types.int64), generate


@intrinsic
def _lower(typing_context, words, index, multiplier, at, fronts, first, step):
    def generate(context, builder, signature, args):
        kinds = signature.args
        factors = _load(context, builder, kinds[2], args[2], args[3])
        least = []
        places = []
        for j in range(4):
            places.append(builder.add(args[5], builder.mul(args[6], ir.Constant(_I64, j))))
            least.append(_load(context, builder, kinds[4], args[4], places[j]))
        for i in range(GROUP):
            word = builder.load(_pointer(context, builder, kinds[0], args[0], args[1], i))
            z = builder.mul(_splat(builder, word), factors)
            y = builder.xor(z, builder.lshr(z, _constant(32)))
            for j in range(4):
                turn = 48 - 16 * j
                value = y
                if turn:
                    value = builder.or_(builder.shl(y, _constant(turn)), builder.lshr(y, _constant(64 - turn)))
                least[j] = builder.select(builder.icmp_unsigned("<", value, least[j]), value, least[j])
        for j in range(4):
            _store(context, builder, kinds[4], args[4], places[j], least[j])
        return context.get_dummy_value()

    return types.none(words, types.int64, multiplier, types.int64, fronts, types.int64, types.int64), generate


@intrinsic
def _project(typing_context, token, offsets, rows, at):
    def generate(context, builder, signature, args):
        kinds = signature.args
        x = builder.add(_splat(builder, args[0]), _load(context, builder, kinds[1], args[1], ir.Constant(_I64, 0)))
        _store(context, builder, kinds[2], args[2], args[3], _mix(builder, x))
        return context.get_dummy_value()

    return types.none(types.uint64, offsets, rows, types.int64), generate


@intrinsic
def _copy_row(typing_context, source, at, target, to):
    def generate(context, builder, signature, args):
        kinds = signature.args
        _store(context, builder, kinds[2], args[2], args[3], _load(context, builder, kinds[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.none(source, types.int64, target, types.int64), generate


def _carry_save(builder, a, b, c):
    """Full adder of each bit: sum a ^ b ^ c, carry the majority."""
    part = builder.xor(a, b)
    return builder.xor(part, c), builder.or_(builder.and_(a, b), builder.and_(part, c))


@intrinsic
def _add_rows(typing_context, rows, at, planes, plane, carry):
    def generate(context, builder, signature, args):
        kinds = signature.args
        inputs = [_load(context, builder, kinds[0], args[0], args[1], LANES * j) for j in range(STEP)]
        for level in range(4):
            value = _load(context, builder, kinds[2], args[2], args[3], LANES * level)
            carries = []
            for x, y in zip(inputs[::2], inputs[1::2], strict=True):
                value, out = _carry_save(builder, value, x, y)
                carries.append(out)
            _store(context, builder, kinds[2], args[2], args[3], value, LANES * level)
            inputs = carries
        _store(context, builder, kinds[0], args[0], args[4], inputs[0])
        return context.get_dummy_value()

    return types.none(rows, types.int64, planes, types.int64, types.int64), generate


@lean_kernel
def _check(array, index, count):
    if index < 0 or index + count > array.size:
        raise IndexError("wide access out of bounds")


@lean_kernel
def shingle(tokens, at, factors, out):
    """out[i] = mix(sum over j < 8 of tokens[i + j] * factors[j]) for the 8 words i from `at` on."""
    if _CHECK:
        _check(tokens, at, 15)
        _check(factors, 0, 8)
        _check(out, at, 8)
    _shingle(tokens, at, factors, out)


@lean_kernel
def contenders(words, index, multiplier, at, leading, first):
    """Which 16-bit pieces of 8 products do not exceed leading[first : first + 32] (uint16) -> uint32, bit 4 w + j.

    Piece j (0: lowest) is of z ^ (z >> 32), z = words[index] * multiplier[at + w].
    """
    if _CHECK:
        _check(words, index, 1)
        _check(multiplier, at, LANES)
        _check(leading, first, 4 * LANES)
    return _contenders(words, index, multiplier, at, leading, first)


@lean_kernel
def any_contender(words, index, multiplier, at, leading, first):
    """All that `contenders` finds for the 8 words from index on, in one mask: 0 if there is none."""
    if _CHECK:
        _check(words, index, GROUP)
        _check(multiplier, at, LANES)
        _check(leading, first, 4 * LANES)
    return _any_contender(words, index, multiplier, at, leading, first)


@lean_kernel
def lower(words, index, multiplier, at, fronts, first, step):
    """fronts[first + j * step + w] = min(itself, y with piece j turned to the front), for the 8 words from index on.

    y and its pieces as in `contenders`, for 8 products w; 4 pieces j.
    """
    if _CHECK:
        _check(words, index, GROUP)
        _check(multiplier, at, LANES)
        _check(fronts, first, 3 * step + LANES)
    _lower(words, index, multiplier, at, fronts, first, step)


@lean_kernel
def project(token, offsets, rows, at):
    """rows[at + w] = mix(token + offsets[w]) for 8 words w."""
    if _CHECK:
        _check(offsets, 0, LANES)
        _check(rows, at, LANES)
    _project(token, offsets, rows, at)


@lean_kernel
def copy_row(source, at, target, to):
    """target[to + w] = source[at + w] for 8 words w."""
    if _CHECK:
        _check(source, at, LANES)
        _check(target, to, LANES)
    _copy_row(source, at, target, to)


@lean_kernel
def add_rows(rows, at, planes, plane, carry):
    """Add the 16 rows of 8 words from rows[at] on to bit-sliced counters, of which planes[plane:] are 4 digits.

    What they carry beyond, one row that stands for 16 of these, goes to rows[carry : carry + 8]. A tree of carry-save
    adders: 8 + 4 + 2 + 1 of them, each of which turns three bits of one weight into a sum and a carry.
    """
    if _CHECK:
        _check(rows, at, STEP * LANES)
        _check(rows, carry, LANES)
        _check(planes, plane, 4 * LANES)
    _add_rows(rows, at, planes, plane, carry)


if numba.config.DISABLE_JIT:
    # Plain stand-ins with the same contracts; a range error shows as IndexError here too.

    def _view(array, index, count):
        index = int(index)
        if index < 0 or index + count > array.size:
            raise IndexError("wide access out of bounds")
        return array[index : index + count]

    def _mixed(x):
        z = x + U64(_GAMMA)
        z = (z ^ (z >> U64(30))) * U64(_M1)
        z = (z ^ (z >> U64(27))) * U64(_M2)
        return z ^ (z >> U64(31))

    def shingle(tokens, at, factors, out):
        total = sum(_view(tokens, at + j, LANES) * factors[j] for j in range(8))
        _view(out, at, LANES)[:] = _mixed(total)

    def contenders(words, index, multiplier, at, leading, first):
        z = _view(multiplier, at, LANES) * _view(words, index, 1)[0]
        pieces = (z ^ (z >> U64(32))).view(np.uint16)
        return np.packbits(pieces <= _view(leading, first, 4 * LANES), bitorder="little").view(np.uint32)[0]

    def any_contender(words, index, multiplier, at, leading, first):
        masks = [contenders(words, int(index) + j, multiplier, at, leading, first) for j in range(GROUP)]
        return np.bitwise_or.reduce(masks)

    def lower(words, index, multiplier, at, fronts, first, step):
        z = _view(words, index, GROUP)[:, None] * _view(multiplier, at, LANES)
        y = z ^ (z >> U64(32))
        for j in range(4):
            turn = 48 - 16 * j
            value = (y << U64(turn)) | (y >> U64(64 - turn)) if turn else y
            least = _view(fronts, first + j * step, LANES)
            np.minimum(least, value.min(axis=0), out=least)

    def project(token, offsets, rows, at):
        _view(rows, at, LANES)[:] = _mixed(_view(offsets, 0, LANES) + token)

    def copy_row(source, at, target, to):
        _view(target, to, LANES)[:] = _view(source, at, LANES)

    def add_rows(rows, at, planes, plane, carry):
        inputs = list(_view(rows, at, STEP * LANES).reshape(STEP, LANES))
        for level in range(4):
            value = _view(planes, plane + level * LANES, LANES)
            carries = []
            for x, y in zip(inputs[::2], inputs[1::2], strict=True):
                carries.append((value & x) | (value & y) | (x & y))
                value[:] = value ^ x ^ y
            inputs = carries
        _view(rows, carry, LANES)[:] = inputs[0]
