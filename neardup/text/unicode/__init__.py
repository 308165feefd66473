"""Class and lower case of every code point, pinned to one version of Unicode.

Python's own tables differ from version to version, and a token must not. `table.txt` is written by `generate.py`.
LICENSE.txt is what the Unicode Consortium asks to go with its data.
"""

from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000
#: Bits of an entry: 0 to 20 the lower-case code point, 21 to 24 the class, 25 set for digits (category Nd).
CLASS_SHIFT = 21
DIGIT_BIT = 25
PAGE_BITS = 7

#: Classes. NONE separates tokens; WORD runs are tokens; runs of the others are cut into pairs of characters.
NONE, WORD, HAN, KANA, THAI, LAO, KHMER, MYANMAR = range(8)


def _lines() -> list[list[str]]:
    text = files(__name__).joinpath("table.txt").read_text("ascii")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def table() -> npt.NDArray[np.uint32]:
    """uint32[8704 + 128 * distinct pages]: the entry of code point c is table[table[c >> 7] + (c & 127)].

    The first 8704 elements say where a page of 128 code points begins; bits of an entry are named above. Made once,
    about 20 ms.
    """
    flat = np.arange(CODE_POINTS, dtype=np.uint32)
    for kind, first, last, value, step in _lines():
        chosen = slice(int(first, 16), int(last, 16) + 1, int(step))
        if kind == "class":
            flat[chosen] |= np.uint32(int(value) << CLASS_SHIFT)
        elif kind == "digit":
            flat[chosen] |= np.uint32(1 << DIGIT_BIT)
        else:  # a distance to the lower-case form; modulo 2**32 it may be negative
            flat[chosen] += np.uint32(int(value) & 0xFFFFFFFF)
    # A separator is never written to a token: its entry is 0, which makes most pages equal.
    flat[(flat >> CLASS_SHIFT) == NONE] = 0
    rows = flat.reshape(-1, 1 << PAGE_BITS)
    seen: dict[bytes, int] = {}
    places = [len(rows) + (seen.setdefault(row.tobytes(), len(seen)) << PAGE_BITS) for row in rows]
    return np.concatenate([np.array(places, np.uint32), np.frombuffer(b"".join(seen), np.uint32)])
