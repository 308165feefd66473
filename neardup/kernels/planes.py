"""Bit-sliced counters, eight 64-bit words at a time, in portable LLVM vector IR (see `neardup.kernels.lanes`).

There is one counter for each of 512 bits. Digit p (binary) of all counters is *plane* p, of 8 words: bit i of word w of
plane p is digit p of the counter for bit i of word w. So adding a row of 512 bits costs a few operations on planes.
Offsets in arrays are in words. Indices are checked under NUMBA_BOUNDSCHECK only.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.lanes import CHECK, LANES, VECTOR, load, mix_lanes, splat, store

U64 = np.uint64
#: Tokens per call of `add_tokens`.
STEP = 16
#: Least planes that `add_tokens` needs.
STEP_PLANES = 4
_I64 = ir.IntType(64)


def _projection(context, builder, kinds, args, place):
    """The projection of the token tokens[order[place]]. args: those of `_add_tokens`."""
    token = context.make_array(kinds[0])(context, builder, args[0]).data
    order = context.make_array(kinds[1])(context, builder, args[1]).data
    number = builder.zext(builder.load(builder.gep(order, [place])), _I64)
    word = splat(builder, builder.load(builder.gep(token, [number])))
    return mix_lanes(builder, builder.add(word, load(context, builder, kinds[3], args[3], ir.Constant(_I64, 0))))


def _half_add(context, builder, kind, planes, first, last, carry, row):
    """Add `row` to planes first to last - 1. carry: a stack slot for a vector."""
    builder.store(row, carry)
    with cgutils.for_range(builder, last, start=first, intp=_I64) as loop:
        at = builder.mul(loop.index, ir.Constant(_I64, LANES))
        value, more = load(context, builder, kind, planes, at), builder.load(carry)
        store(context, builder, kind, planes, at, builder.xor(value, more))
        builder.store(builder.and_(value, more), carry)


@intrinsic
def _add_tokens(typing_context, tokens, order, at, offsets, planes, digits):
    def generate(context, builder, signature, args):
        kinds = signature.args
        carry = cgutils.alloca_once(builder, VECTOR)
        rows = []
        for j in range(STEP):
            rows.append(_projection(context, builder, kinds, args, builder.add(args[2], ir.Constant(_I64, j))))
        for level in range(STEP_PLANES):
            place = ir.Constant(_I64, LANES * level)
            value = load(context, builder, kinds[4], args[4], place)
            carries = []
            for x, y in zip(rows[::2], rows[1::2], strict=True):
                part = builder.xor(value, x)
                carries.append(builder.or_(builder.and_(value, x), builder.and_(part, y)))
                value = builder.xor(part, y)
            store(context, builder, kinds[4], args[4], place, value)
            rows = carries
        _half_add(context, builder, kinds[4], args[4], ir.Constant(_I64, STEP_PLANES), args[5], carry, rows[0])
        return context.get_dummy_value()

    return types.none(tokens, order, types.int64, offsets, planes, types.int64), generate


@intrinsic
def _add_token(typing_context, tokens, order, at, offsets, planes, digits):
    def generate(context, builder, signature, args):
        kinds = signature.args
        carry = cgutils.alloca_once(builder, VECTOR)
        row = _projection(context, builder, kinds, args, args[2])
        _half_add(context, builder, kinds[4], args[4], ir.Constant(_I64, 0), args[5], carry, row)
        return context.get_dummy_value()

    return types.none(tokens, order, types.int64, offsets, planes, types.int64), generate


@intrinsic
def _add_planes(typing_context, planes, source, digits, target, top):
    def generate(context, builder, signature, args):
        kind, planes = signature.args[0], args[0]
        carry = cgutils.alloca_once(builder, VECTOR)
        builder.store(ir.Constant(VECTOR, [0] * LANES), carry)

        def place(first, number):
            return builder.add(first, builder.mul(number, ir.Constant(_I64, LANES)))

        with cgutils.for_range(builder, args[2], intp=_I64) as loop:
            to = place(args[3], loop.index)
            a, more = load(context, builder, kind, planes, to), builder.load(carry)
            b = load(context, builder, kind, planes, place(args[1], loop.index))
            part = builder.xor(a, b)
            store(context, builder, kind, planes, to, builder.xor(part, more))
            builder.store(builder.or_(builder.and_(a, b), builder.and_(part, more)), carry)
        with cgutils.for_range(builder, args[4], start=args[2], intp=_I64) as loop:
            to = place(args[3], loop.index)
            a, more = load(context, builder, kind, planes, to), builder.load(carry)
            store(context, builder, kind, planes, to, builder.xor(a, more))
            builder.store(builder.and_(a, more), carry)
        return context.get_dummy_value()

    return types.none(planes, types.int64, types.int64, types.int64, types.int64), generate


@lean_kernel
def _check_tokens(tokens, order, at, count, offsets, planes, digits):
    inside = at >= 0 and at + count <= len(order) and len(offsets) >= LANES
    if not inside or digits < 0 or digits * LANES > len(planes):
        raise IndexError("wide access out of bounds")
    for i in range(at, at + count):
        if order[i] >= len(tokens):
            raise IndexError("wide access out of bounds")


@lean_kernel
def add_tokens(tokens, order, at, offsets, planes, digits):
    """Add the projections of the 16 tokens[order[at : at + 16]] to the counters planes[: 8 * digits].

    Word w of a projection is mix(token + offsets[w]). digits: at least 4, and enough for the sums. A tree of 8 + 4 + 2
    + 1 carry-save adders turns three bits of one weight into a sum and a carry; the carry out of digit 4 ripples on.
    """
    if CHECK:
        _check_tokens(tokens, order, at, STEP, offsets, planes, max(digits, STEP_PLANES))
    _add_tokens(tokens, order, at, offsets, planes, digits)


@lean_kernel
def add_token(tokens, order, at, offsets, planes, digits):
    """`add_tokens` for one token, tokens[order[at]], and any number of digits."""
    if CHECK:
        _check_tokens(tokens, order, at, 1, offsets, planes, digits)
    _add_token(tokens, order, at, offsets, planes, digits)


@lean_kernel
def add_planes(planes, source, digits, target, top):
    """Add the counters at planes[source] (`digits` digits) to those at planes[target] (`top` >= digits digits)."""
    if CHECK:
        below = source < 0 or target < 0 or digits < 0 or top < digits
        if below or source + digits * LANES > len(planes) or target + top * LANES > len(planes):
            raise IndexError("wide access out of bounds")
    _add_planes(planes, source, digits, target, top)


if numba.config.DISABLE_JIT:
    # numpy replacements with the same contracts. They raise IndexError for a range error, too.
    from neardup.kernels.bits import view
    from neardup.kernels.lanes import mixed

    def _ripple(planes, at, digits, row):
        for p in range(int(digits)):
            value = view(planes, at + p * LANES, LANES)
            value[:], row = value ^ row, value & row

    def add_token(tokens, order, at, offsets, planes, digits):
        token = view(tokens, view(order, at, 1)[0], 1)[0]
        _ripple(planes, 0, digits, mixed(view(offsets, 0, LANES) + token))

    def add_tokens(tokens, order, at, offsets, planes, digits):
        for j in range(STEP):
            add_token(tokens, order, int(at) + j, offsets, planes, digits)

    def add_planes(planes, source, digits, target, top):
        for p in range(int(digits)):
            _ripple(planes, target + p * LANES, top - p, view(planes, source + p * LANES, LANES).copy())
