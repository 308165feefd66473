"""Operations on words and vectors that numba lacks: the base of `bits`, `windows`, `lanes`, `planes` and `spans`.

An operation is a Python function of values. While a kernel is compiled, the values are those of LLVM, and the function
builds portable code: the same source becomes AVX-512, AVX2, SSE or NEON, with the same bits. With the JIT off, the
values are numpy's, and the same function computes. Numbers are unsigned; arithmetic wraps. Under NUMBA_BOUNDSCHECK and
with the JIT off each access raises IndexError if it is not inside of its array.
"""

import inspect

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

CHECK = bool(numba.config.BOUNDSCHECK)
#: Types of arguments and results.
NOTHING, NUMBER, WORD, BYTE = types.void, types.int64, types.uint64, types.uint8
#: Types of values.
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_DEFINED = ir.Constant(ir.IntType(1), 0)  # counts of zeros are defined for 0, too
BYTES64 = ir.VectorType(I8, 64)
WORDS8 = ir.VectorType(I64, 8)
HALVES8 = ir.VectorType(I32, 8)
PIECES32 = ir.VectorType(I16, 32)
BYTES16 = ir.VectorType(I8, 16)
HALVES16 = ir.VectorType(I32, 16)


def _count(kind):
    return kind.count if isinstance(kind, ir.VectorType) else 1


def _width(kind):
    return kind.element.width if isinstance(kind, ir.VectorType) else kind.width


def _dtype(kind):
    return np.dtype(f"u{_width(kind) // 8}")


def _binary(method):
    return lambda self, other: self.made(method, self.value, self.like(other))


def _comparison(sign):
    return lambda self, other: self.made("icmp_unsigned", sign, self.value, self.like(other))


class Value:
    """A word or a vector of LLVM. Other operands may be numbers and, for a vector, words: they count for each lane."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    def made(self, method, *operands):
        return Value(self.builder, getattr(self.builder, method)(*operands))

    def like(self, other):
        kind = self.value.type
        if not isinstance(other, Value):
            return ir.Constant(kind, [int(other)] * kind.count if isinstance(kind, ir.VectorType) else int(other))
        if _count(kind) == _count(other.value.type):
            return other.value
        undefined, zeros = ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(I32, kind.count), None)
        return self.builder.shuffle_vector(
            self.builder.insert_element(undefined, other.value, I32(0)), undefined, zeros
        )

    __add__, __sub__, __mul__ = _binary("add"), _binary("sub"), _binary("mul")
    __radd__ = __add__
    __rsub__ = lambda self, other: self.made("sub", self.like(other), self.value)  # noqa: E731
    __and__, __or__, __xor__ = _binary("and_"), _binary("or_"), _binary("xor")
    __lshift__, __rshift__ = _binary("shl"), _binary("lshr")
    __eq__, __ne__, __lt__, __le__, __ge__ = (_comparison(sign) for sign in ("==", "!=", "<", "<=", ">="))
    __hash__ = None


def cast(value, kind):
    """The bits of a value as another type. A vector of conditions becomes a mask: bit i is condition i."""
    if isinstance(value, Value):
        return value.made("bitcast", value.value, kind)
    if value.dtype == bool:
        value = np.packbits(value, bitorder="little")
    found = np.atleast_1d(value).view(_dtype(kind))
    return found if isinstance(kind, ir.VectorType) else found[0]


def conditions(mask, count):
    """The lowest bits of a mask as a vector of conditions."""
    if isinstance(mask, Value):
        return mask.made("bitcast", mask.value, ir.VectorType(ir.IntType(1), count))
    return np.unpackbits(np.atleast_1d(mask).view(np.uint8), bitorder="little")[:count].astype(bool)


def extend(value, kind):
    """A value in elements of more bits."""
    return value.made("zext", value.value, kind) if isinstance(value, Value) else value.astype(_dtype(kind))


def truncate(word, kind):
    """The low bits of a word."""
    if isinstance(word, Value):
        return word.made("trunc", word.value, kind)
    return _dtype(kind).type(int(word) & (1 << kind.width) - 1)


def where(condition, one, other):
    """one where the condition holds, else other. Two plain numbers are bytes."""
    plain = isinstance(one, int) and isinstance(other, int)
    if not isinstance(condition, Value):
        return np.where(condition, np.uint8(one) if plain else one, other)
    like = one if isinstance(one, Value) else other
    like = extend(condition, ir.VectorType(I8, condition.value.type.count)) if plain else like
    return condition.made("select", condition.value, like.like(one), like.like(other))


def least(one, other):
    """The lesser of each two elements."""
    return where(one < other, one, other)


def within(vector, low, high):
    """Whether each element is one of low to high."""
    return vector - low <= high - low


def lane(vector, number):
    """One element of a vector."""
    return vector.made("extract_element", vector.value, I32(number)) if isinstance(vector, Value) else vector[number]


def vector(elements):
    """A vector of words."""
    if not isinstance(elements[0], Value):
        return np.array(elements)
    builder = elements[0].builder
    made = ir.Constant(ir.VectorType(elements[0].value.type, len(elements)), ir.Undefined)
    for number, element in enumerate(elements):
        made = builder.insert_element(made, element.value, I32(number))
    return Value(builder, made)


def zeros_below(word):
    """Number of zero bits below the lowest set bit, int64; 64 for 0."""
    if isinstance(word, Value):
        return word.made("cttz", word.value, _DEFINED)
    return (int(word) & -int(word)).bit_length() - 1 if word else 64


def zeros_above(word):
    """Number of zero bits above the highest set bit, int64; 64 for 0."""
    return word.made("ctlz", word.value, _DEFINED) if isinstance(word, Value) else 64 - int(word).bit_length()


def bits_set(word):
    """Number of set bits, int64."""
    return word.made("ctpop", word.value) if isinstance(word, Value) else int(word).bit_count()


def fold(count, state, step, start=0):
    """The state after state = step(i, state) for i = start to count - 1. The code is a loop: count may be a value."""
    if not isinstance(state, Value):
        for i in range(start, count):
            state = step(i, state)
        return state
    builder = state.builder
    held = cgutils.alloca_once(builder, state.value.type)
    builder.store(state.value, held)
    with cgutils.for_range(builder, _index(count), start=_index(start), intp=I64) as loop:
        builder.store(step(Value(builder, loop.index), Value(builder, builder.load(held))).value, held)
    return Value(builder, builder.load(held))


def _index(number):
    return number.value if isinstance(number, Value) else ir.Constant(I64, int(number))


class Array:
    """An array of integers, in which values of several elements are read and written at any element."""

    def __init__(self, context, builder, kind, value):
        made = context.make_array(kind)(context, builder, value)
        self._context, self._builder, self._data, self._size = context, builder, made.data, made.nitems
        self._bits = kind.dtype.bitwidth

    def _place(self, index, kind):
        builder, index = self._builder, _index(index)
        if CHECK:
            end = builder.add(index, ir.Constant(I64, _count(kind) * _width(kind) // self._bits))
            outside = builder.icmp_signed("<", index, ir.Constant(I64, 0))
            with builder.if_then(builder.or_(outside, builder.icmp_signed(">", end, self._size))):
                self._context.call_conv.return_user_exc(builder, IndexError, ("wide access out of bounds",))
        return builder.bitcast(builder.gep(self._data, [index]), kind.as_pointer())

    def load(self, index, kind):
        """A value of a type from array[index] on."""
        found = self._builder.load(self._place(index, kind))
        found.align = self._bits // 8
        return Value(self._builder, found)

    def store(self, index, value):
        """Write a value from array[index] on."""
        place = self._place(index, value.value.type)
        self._builder.store(value.value, place).align = self._bits // 8

    def gather(self, indices):
        """The elements at a vector of 32-bit indices, each as large as an index."""
        call, places, every = self._scattered("gather", indices)
        found = call(places, I32(indices.value.type.element.width // 8), every, ir.Constant(indices.value.type, None))
        return Value(self._builder, found)

    def scatter(self, indices, value, chosen):
        """Write a number to the elements at those of a vector of 32-bit indices where `chosen` holds."""
        call, places, _ = self._scattered("scatter", indices)
        call(indices.like(value), places, I32(indices.value.type.element.width // 8), chosen.value)

    def _scattered(self, name, indices):
        """A function that calls `llvm.masked.gather` or `scatter`, the places of elements, and conditions that hold."""
        builder, kind = self._builder, indices.value.type
        if CHECK:
            for number in range(kind.count):
                self._place(extend(lane(indices, number), I64), kind.element)
        wide = ir.VectorType(I64, kind.count)
        offsets = extend(indices, wide) * (self._bits // 8) + Value(builder, builder.ptrtoint(self._data, I64))
        places = builder.inttoptr(offsets.value, ir.VectorType(kind.element.as_pointer(), kind.count))
        which = ir.VectorType(ir.IntType(1), kind.count)
        returned = kind if name == "gather" else ir.VoidType()

        def call(*given):
            of = ir.FunctionType(returned, [each.type for each in given])
            called = f"llvm.masked.{name}.v{kind.count}i{kind.element.width}.v{kind.count}p0"
            return builder.call(cgutils.get_or_insert_function(builder.module, of, called), given)

        return call, places, ir.Constant(which, [1] * kind.count)

    def prefetch(self, index):
        """Bring the cache line of array[index] near. The index may lie outside of the array."""
        place = self._builder.bitcast(self._builder.gep(self._data, [_index(index)]), I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, I32, I32, I32])
        called = cgutils.get_or_insert_function(self._builder.module, kind, "llvm.prefetch.p0")
        self._builder.call(called, [place, I32(0), I32(3), I32(1)])


class _PlainArray:
    """An array of numpy in the place of `Array`."""

    def __init__(self, array):
        self._array = array

    def _view(self, index, size):
        index, count = int(index), size // self._array.itemsize
        if index < 0 or index + count > self._array.size:
            raise IndexError("wide access out of bounds")
        return self._array[index : index + count]

    def load(self, index, kind):
        dtype = _dtype(kind)
        found = self._view(index, _count(kind) * dtype.itemsize).view(dtype)
        return found.copy() if isinstance(kind, ir.VectorType) else found[0]

    def store(self, index, value):
        value = np.atleast_1d(value)
        self._view(index, value.nbytes)[:] = value.view(self._array.dtype)

    def gather(self, indices):
        return self._array[indices]

    def scatter(self, indices, value, chosen):
        self._array[indices[chosen]] = value

    def prefetch(self, index):
        pass


def _plain(build, returned, kinds):
    """The operation as a function of numpy arrays and numbers."""
    made = [_PlainArray if kind is None else np.dtype(str(kind)).type for kind in kinds]

    def run(*args):
        found = build(*(make(arg) for make, arg in zip(made, args, strict=True)))
        return int(found) if returned is NUMBER else found

    return run


def operation(returned, *kinds):
    """Return a decorator that makes an operation, which kernels call, of a function of values.

    returned: numba's type of the result. kinds: numba's types of the arguments; None: an array.
    """

    def decorate(build):
        if numba.config.DISABLE_JIT:
            return _plain(build, returned, kinds)

        def generate(context, builder, signature, args):
            given = [
                Array(context, builder, of, arg) if kind is None else Value(builder, arg)
                for kind, of, arg in zip(kinds, signature.args, args, strict=True)
            ]
            found = build(*given)
            if found is None:
                return context.get_dummy_value()
            if isinstance(found, tuple):
                return context.make_tuple(builder, signature.return_type, [each.value for each in found])
            return found.value

        def typed(typing_context, *args):
            return returned(*(arg if kind is None else kind for kind, arg in zip(kinds, args, strict=True))), generate

        own = inspect.signature(build).parameters.values()
        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typed.__signature__ = inspect.Signature([context, *own])
        typed.__name__, typed.__doc__ = build.__name__, build.__doc__
        return intrinsic(typed)

    return decorate
