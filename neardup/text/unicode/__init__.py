"""Class, lower case and compatibility fold of every code point, pinned to one version of Unicode.

Python's own tables differ from version to version, and a token must not. `tests/neardup/text/unicode_table.py` writes
`table.txt`. LICENSE.txt is the license that the Unicode Consortium requires with its data.
"""

from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000
#: Bits of an entry: 0 to 20 the code point that stands for it in a token (lower-cased, folded), 21 to 24 the class, 25
#: set for digits (category Nd). Of class FOLD, bits 0 to 20 are an index into the table: the number of bytes that stand
#: for it in UTF-8, then the bytes.
CLASS_SHIFT = 21
DIGIT_BIT = 25
PAGE_BITS = 7

#: Classes. NONE separates tokens. WORD runs are tokens. Runs of the scripts are cut into pairs of characters. FOLD
#: stands for several code points. IGNORED characters vanish: a token goes on behind them.
NONE, WORD, HAN, KANA, THAI, LAO, KHMER, MYANMAR, FOLD, IGNORED = range(10)


def _lines() -> list[list[str]]:
    text = files(__name__).joinpath("table.txt").read_text("ascii")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def table() -> npt.NDArray[np.uint32]:
    """uint32[8704 + folds + 128 * distinct blocks]: the entry of code point c is table[table[c >> 7] + (c & 127)].

    A block is 128 code points. The first 8704 elements are the starts of the blocks; bits of an entry are named above.
    Then come the folds, each as a number of bytes and the bytes. Made once, about 30 ms.
    """
    flat = np.arange(CODE_POINTS, dtype=np.uint32)
    folds: list[int] = []
    for kind, first, *rest in _lines():
        if kind == "fold":
            flat[int(first, 16)] = (CODE_POINTS >> PAGE_BITS) + len(folds) | FOLD << CLASS_SHIFT
            folded = "".join(chr(int(code, 16)) for code in rest).encode()
            folds += [len(folded), *folded]
            continue
        last, value, step = rest
        chosen = slice(int(first, 16), int(last, 16) + 1, int(step))
        if kind == "class":
            flat[chosen] |= np.uint32(int(value) << CLASS_SHIFT)
        elif kind == "digit":
            flat[chosen] |= np.uint32(1 << DIGIT_BIT)
        else:  # a distance to the lower-case form; modulo 2**32 it may be negative
            flat[chosen] += np.uint32(int(value) & 0xFFFFFFFF)
    # What no token holds has no code point either, which makes most blocks equal.
    kinds = flat >> CLASS_SHIFT & 15
    for without in (NONE, IGNORED):
        flat[kinds == without] = without << CLASS_SHIFT
    rows = flat.reshape(-1, 1 << PAGE_BITS)
    seen: dict[bytes, int] = {}
    places = [len(rows) + len(folds) + (seen.setdefault(row.tobytes(), len(seen)) << PAGE_BITS) for row in rows]
    return np.concatenate([np.array(places + folds, np.uint32), np.frombuffer(b"".join(seen), np.uint32)])
