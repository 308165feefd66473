"""Operations on vectors of eight 64-bit words. See `neardup.kernels.operations`.

LLVM's own vectoriser uses only half of the width of the widest CPUs. Explicit vectors use all of it. On other CPUs they
become two or four narrower vectors, with the same bits.
"""

from numba import types

from neardup.kernels.operations import (
    I32,
    I64,
    NOTHING,
    NUMBER,
    PIECES32,
    WORD,
    WORDS8,
    cast,
    fold,
    lane,
    least,
    operation,
)

LANES = 8
#: Words per call: of `lower` (GROUP), of `least_pieces` and `least_turned` (BLOCK).
GROUP, BLOCK = 8, 64
#: Number of 16-bit pieces in 8 words.
PIECES = 4 * LANES
_ALL = (1 << 64) - 1


def mix_lanes(words):
    """`neardup.kernels.mix` of 8 words."""
    words = words + 0x9E3779B97F4A7C15
    words = (words ^ (words >> 30)) * 0xBF58476D1CE4E5B9
    words = (words ^ (words >> 27)) * 0x94D049BB133111EB
    return words ^ (words >> 31)


def _folded(words):
    return words ^ (words >> 32)


@operation(NOTHING, None, NUMBER, None, None)
def shingle(tokens, at, factors, out):
    """out[i] = mix(sum over j < 8 of tokens[i + j] * factors[j]) for the 8 words i from `at` on."""
    first, *others = (tokens.load(at + j, WORDS8) * factors.load(j, I64) for j in range(8))
    for other in others:
        first = first + other
    out.store(at, mix_lanes(first))


@operation(NOTHING, None, NUMBER, None, NUMBER, None, NUMBER, NUMBER)
def lower(words, index, multiplier, at, fronts, first, step):
    """Lower fronts[first + j * step + w] to the least rotated value of the 8 words from index on, for w < 8, j < 4.

    The value is y = z ^ (z >> 32) with z = word * multiplier[at + w], rotated so that piece j is at the front. A word
    has 4 pieces of 16 bits; piece 0 is the lowest.
    """
    factors = multiplier.load(at, WORDS8)
    found = [fronts.load(first + step * j, WORDS8) for j in range(4)]
    for i in range(GROUP):
        y = _folded(factors * words.load(index + i, I64))
        turned = [(y << turn) | (y >> (64 - turn)) for turn in (48, 32, 16)]
        found = [least(value, before) for value, before in zip((*turned, y), found, strict=True)]
    for j, value in enumerate(found):
        fronts.store(first + step * j, value)


@operation(NOTHING, None, NUMBER, None, NUMBER, None, NUMBER, None, NUMBER)
def least_pieces(words, index, multiplier, at, pieces, to, leading, first):
    """pieces[to + 4 w + j] = the least piece j of y over the 64 words from index on.

    Also lowers leading[first + 4 w + j] to it. y and its pieces are those of `lower`. pieces, leading uint16.
    """
    factors = multiplier.load(at, WORDS8)

    def lowered(group, found):
        for i in range(GROUP):
            y = _folded(factors * words.load(index + group * GROUP + i, I64))
            found = least(cast(y, PIECES32), found)
        return found

    found = fold(BLOCK // GROUP, cast(factors | _ALL, PIECES32), lowered)
    pieces.store(to, found)
    leading.store(first, least(found, leading.load(first, PIECES32)))


@operation(types.uint32, None, NUMBER, None, NUMBER)
def equal_pieces(pieces, at, leading, first):
    """Mask of equal elements, uint32: bit i is 1 if pieces[at + i] == leading[first + i]."""
    return cast(pieces.load(at, PIECES32) == leading.load(first, PIECES32), I32)


@operation(WORD, None, NUMBER, WORD, WORD)
def least_turned(words, index, factor, turn):
    """The least rotate_left(y, turn) over the 64 words from index on, uint64; y as in `lower`, z = word * factor.

    turn < 64.
    """
    back = (64 - turn) & 63

    def lowered(group, found):
        y = _folded(words.load(index + group * LANES, WORDS8) * factor)
        return least((y << turn) | (y >> back), found)

    found = fold(BLOCK // LANES, words.load(index, WORDS8) | _ALL, lowered)
    first, *others = (lane(found, i) for i in range(LANES))
    for other in others:
        first = least(other, first)
    return first
