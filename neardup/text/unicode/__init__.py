"""Class, fold and composition of every code point, pinned to one version of Unicode.

Python's own tables differ from version to version, and a token must not. `tests/neardup/text/unicode_table.py` writes
`table.txt`. LICENSE.txt is the license that the Unicode Consortium requires with its data.
"""

from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000
#: Bits of an entry: 0 to 20 the code point that stands for it in a token, 21 set for digits (category Nd), 22 to 25 the
#: class, 26 to 30 the rank of its combining class: 0 for a letter, SECOND for one that may compose with the code point
#: before it. Of class FOLD, bits 0 to 20 are an index into the table: the number of bytes that stand for it in UTF-8,
#: then the bytes.
DIGIT_BIT = 21
CLASS_SHIFT = 22
RANK_SHIFT = 26
SECOND = 31
PAGE_BITS = 7
#: Slots of each of the two hash tables of pairs that compose, three numbers each: first, second, whole, at the slot of
#: first and second; whole, first, second, at the slot of the whole. A slot that is taken moves an entry to the next.
PAIR_SLOTS = 2048
_BLOCKS = CODE_POINTS >> PAGE_BITS

#: Classes. NONE separates tokens. WORD runs are tokens. Runs of the scripts are cut into pairs of characters. FOLD
#: stands for several code points. IGNORED characters vanish: a token goes on behind them.
NONE, WORD, HAN, KANA, THAI, LAO, KHMER, MYANMAR, FOLD, IGNORED = range(10)


def _lines() -> list[list[str]]:
    text = files(__name__).joinpath("table.txt").read_text("ascii")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def slot_of(first: int, second: int) -> int:
    """The first slot of a pair; of a composed code point with 0."""
    return ((first << 21 | second) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 53


def _put(slots: npt.NDArray[np.uint32], slot: int, *entry: int) -> None:
    while slots[slot % PAIR_SLOTS, 0]:
        slot += 1
    slots[slot % PAIR_SLOTS] = entry


@lru_cache(maxsize=1)
def table() -> npt.NDArray[np.uint32]:
    """uint32[]: the entry of code point c is table[table[c >> 7] + (c & 127)].

    A block is 128 code points. The first 8704 elements are the starts of the blocks; bits of an entry are named above.
    Then come the two tables of pairs, and the folds, each as a number of bytes and the bytes. Made once, about 30 ms.
    """
    pairs = np.zeros((2, PAIR_SLOTS, 3), np.uint32)
    base = _BLOCKS + pairs.size
    flat = np.arange(CODE_POINTS, dtype=np.uint32)
    folds: list[int] = []
    for kind, first, *rest in _lines():
        if kind == "fold":
            flat[int(first, 16)] &= np.uint32(SECOND << RANK_SHIFT)
            flat[int(first, 16)] |= np.uint32(base + len(folds) | FOLD << CLASS_SHIFT)
            folded = "".join(chr(int(code, 16)) for code in rest).encode()
            folds += [len(folded), *folded]
            continue
        if kind == "pair":
            one, other, whole = (int(code, 16) for code in (first, *rest))
            _put(pairs[0], slot_of(one, other), one, other, whole)
            if whole != one:
                _put(pairs[1], slot_of(whole, 0), whole, one, other)
            continue
        last, value, step = rest
        chosen = slice(int(first, 16), int(last, 16) + 1, int(step))
        if kind == "class":
            flat[chosen] |= np.uint32(int(value) << CLASS_SHIFT)
        elif kind == "digit":
            flat[chosen] |= np.uint32(1 << DIGIT_BIT)
        elif kind == "rank":
            flat[chosen] |= np.uint32(int(value) << RANK_SHIFT)
        else:  # a distance to the lower-case form; modulo 2**32 it may be negative
            flat[chosen] += np.uint32(int(value) & 0xFFFFFFFF)
    # What no token holds has no code point either, which makes most blocks equal.
    kinds = flat >> CLASS_SHIFT & 15
    for without in (NONE, IGNORED):
        flat[kinds == without] = without << CLASS_SHIFT
    rows = flat.reshape(-1, 1 << PAGE_BITS)
    seen: dict[bytes, int] = {}
    places = [base + len(folds) + (seen.setdefault(row.tobytes(), len(seen)) << PAGE_BITS) for row in rows]
    parts = [np.array(places, np.uint32), pairs.ravel(), np.array(folds, np.uint32)]
    return np.concatenate([*parts, np.frombuffer(b"".join(seen), np.uint32)])
