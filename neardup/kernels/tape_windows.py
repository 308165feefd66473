"""Windows of 3 bytes of a tape, 16 at a time, and the table of the windows of another tape.

The table has slots of 32 bits; 0 is an empty one, others hold a window + 1. The search for a window begins in the slot
`first_slot`, and goes on with the next slots up to an empty one.
"""

import numpy as np
from numba import types

from neardup.kernels import lean_kernel
from neardup.kernels.operations import (
    BYTE,
    BYTES16,
    BYTES64,
    HALVES16,
    I16,
    I32,
    I64,
    NOTHING,
    NUMBER,
    WORD,
    cast,
    conditions,
    extend,
    operation,
    truncate,
)

U64 = np.uint64
#: Windows that one operation handles; those that begin near the end of a tape read bytes behind it.
AT_ONCE = 16
#: Bytes behind a tape that operations may read.
BEHIND = 64
_FACTOR, _SHIFT = 0x9E3779B1, 12


@lean_kernel
def window_at(tape, i):
    """The window from tape[i] on, uint64."""
    return U64(tape[i]) | U64(tape[i + 1]) << U64(8) | U64(tape[i + 2]) << U64(16)


@lean_kernel
def first_slot(window, mask):
    """The slot where the search for a window (uint64) begins. mask: slots of the table, a power of two, less 1."""
    return (window * U64(_FACTOR) & U64(0xFFFFFFFF)) >> U64(_SHIFT) & mask


def _windows(tape, at):
    first, second, third = (extend(tape.load(at + i, BYTES16), HALVES16) for i in range(3))
    return first | second << 8 | third << 16


def _slots(windows, mask, step):
    return (((windows * _FACTOR) >> _SHIFT) + truncate(step, I32)) & truncate(mask, I32)


@operation(types.UniTuple(WORD, 2), None, NUMBER, None, WORD, NUMBER)
def look_up(tape, at, table, mask, step):
    """Masks of the 16 windows from tape[at] on: those that the slot `step` slots behind their first one has; those for
    which it has another window.
    """
    windows = _windows(tape, at)
    found = table.gather(_slots(windows, mask, step))
    own = found == windows + 1
    other = (found != windows + 1) & (found != 0)
    return extend(cast(own, I16), I64), extend(cast(other, I16), I64)


@operation(NOTHING, None, NUMBER, None, WORD, NUMBER, WORD, WORD)
def stamp_those(tape, at, stamps, mask, step, which, stamp):
    """Write the stamp to the slots of `look_up` of those of the 16 windows from tape[at] on that `which` names."""
    slots = _slots(_windows(tape, at), mask, step)
    stamps.scatter(slots, truncate(stamp, I32), conditions(truncate(which, I16), AT_ONCE))


@operation(WORD, None, NUMBER, None, WORD)
def stamped(places, at, stamps, stamp):
    """Mask of the 16 slots from places[at] on that have the stamp."""
    return extend(cast(stamps.gather(places.load(at, HALVES16)) == truncate(stamp, I32), I16), I64)


@operation(WORD, None, NUMBER, BYTE)
def without(tape, at, bits):
    """Mask of the 64 bytes from tape[at] on that have none of some bits."""
    return cast((tape.load(at, BYTES64) & bits) == 0, I64)
