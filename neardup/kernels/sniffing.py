"""Finds the bodies of a batch that need no decoding, by their bytes alone."""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels import lean_kernel
from neardup.kernels.bits import CHECK, below, check_range, ones, word_at

U64 = np.uint64
U8 = np.uint8
_ZERO = U64(0)
_FTYP = U64(int.from_bytes(b"ftyp", "little"))
_WINDOW = 64
_VECTOR = ir.VectorType(ir.IntType(8), _WINDOW)
#: Claims of a content type: HTML or plain text in UTF-8; the same with no or another charset; no claim; another type.
HTML_UTF8, PLAIN_UTF8, HTML_ANY, PLAIN_ANY, UNKNOWN, OPAQUE_TYPE = 0, 1, 2, 3, 4, 5
HTML, PLAIN, OPAQUE = 0, 1, 2
#: Bits of what Python must still check: whether the first bytes are a magic number; whether there are tags; everything.
MAGIC, LOOK_FOR_TAGS, LOOK = 1, 2, 4
#: Bytes at the start of a body that are searched for binary data (see `neardup.text.decoding`).
SAMPLE = 4096


@intrinsic
def _strange(typing_context, array, index):
    def generate(context, builder, signature, args):
        def of(value):
            return ir.Constant(_VECTOR, [value] * _WINDOW)

        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        window = builder.load(builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer()))
        window.align = 1
        escape = builder.icmp_unsigned("==", window, of(27))
        shift = builder.icmp_unsigned("==", builder.and_(window, of(0xFE)), of(14))
        beyond = builder.icmp_unsigned(">=", window, of(0x80))
        binary = builder.icmp_unsigned("<", window, of(0x20))
        for value in (9, 10, 12, 13, 27):
            binary = builder.and_(binary, builder.icmp_unsigned("!=", window, of(value)))
        continuing = builder.icmp_unsigned("==", builder.and_(window, of(0xC0)), of(0x80))
        masks = (binary, builder.or_(beyond, builder.or_(escape, shift)), continuing)
        word = ir.IntType(64)
        return context.make_tuple(builder, signature.return_type, [builder.bitcast(mask, word) for mask in masks])

    return types.UniTuple(types.uint64, 3)(array, types.int64), generate


@lean_kernel
def strange(array, index):
    """Three masks of the 64 bytes from `index` on.

    They mark control characters that no text has; bytes that are not ASCII, or shift to another character set; and
    bytes that continue a UTF-8 character.
    """
    if CHECK:
        check_range(array, index, _WINDOW)
    return _strange(array, index)


if numba.config.DISABLE_JIT:
    from neardup.kernels.bits import view

    def strange(array, index):
        """The replacement with the JIT off."""
        window = view(array, index, _WINDOW)
        binary = (window < 0x20) & ~np.isin(window, (9, 10, 12, 13, 27))
        beyond = (window >= 0x80) | np.isin(window, (14, 15, 27))
        return tuple(
            np.packbits(mask, bitorder="little").view(np.uint64)[0] for mask in (binary, beyond, window & 0xC0 == 0x80)
        )


@lean_kernel
def _has_binary(buffer, start, end):
    seen = _ZERO
    for at in range(start, end, _WINDOW):
        seen |= strange(buffer, at)[0] & below(end - at)
    return seen != _ZERO


@lean_kernel
def is_plain_ascii(buffer, start, end):
    """Whether buffer[start:end] is ASCII without a shift to another character set.

    Reads up to 63 bytes beyond `end`.
    """
    seen = _ZERO
    for at in range(start, end, _WINDOW):
        seen |= strange(buffer, at)[1] & below(end - at)
    return seen == _ZERO


@lean_kernel
def characters(text, start, end):
    """Characters of the UTF-8 text[start:end], int64: bytes that continue none. Reads up to 63 bytes beyond `end`."""
    continuing = np.int64(0)
    for at in range(start, end, _WINDOW):
        continuing += np.int64(ones(strange(text, at)[2] & below(end - at)))
    return end - start - continuing


@lean_kernel
def sniff(buffer, starts, ends, claims, first_bytes, modes, doubts):
    """Guess the kind of each body.

    buffer uint8: bodies at starts to ends, each followed by at least 64 bytes. claims int64[bodies]: see above.
    first_bytes uint8[256]: 1 for the first bytes of magic numbers, 2 for those of byte order marks.
    modes int64[bodies] out: HTML, PLAIN or OPAQUE. doubts uint8[bodies] out: bits of what Python must still check.
    """
    for i in range(len(starts)):
        start, end, claim = starts[i], ends[i], claims[i]
        doubts[i] = 0
        modes[i] = OPAQUE
        if claim == OPAQUE_TYPE and start < end:
            continue
        if start == end:
            doubts[i] = LOOK
            continue
        kind = first_bytes[buffer[start]]
        # an MPEG-4 file has its brand after four bytes
        if kind & U8(1) or word_at(buffer, start) >> U64(32) == _FTYP:
            doubts[i] |= U8(MAGIC)
        if kind & U8(2) or _has_binary(buffer, start, min(end, start + SAMPLE)):
            doubts[i] |= U8(LOOK)
        elif claim <= PLAIN_UTF8:
            modes[i] = claim
        elif not is_plain_ascii(buffer, start, end):
            doubts[i] |= U8(LOOK)
        elif claim == UNKNOWN:
            doubts[i] |= U8(LOOK_FOR_TAGS)
        else:
            modes[i] = claim - HTML_ANY
