"""Text to token fingerprints, and the tables that the kernels of html and tokens read."""

from functools import lru_cache
from html.entities import html5
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup import unicode
from neardup.kernels import markup as mk
from neardup.kernels.entities import LEGACY_BYTES_MAX, NAME_BYTES_MAX

_MASK = (1 << 64) - 1
_TAG_SLOTS = 1024
_ENTITY_SLOTS = 8192

#: Elements that vanish without breaking a word (Henzinger 2006, section 3: formatting instructions).
FORMATTING = ["a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr"]

_KINDS = {
    **dict.fromkeys(FORMATTING, mk.FORMAT),
    "a": mk.ANCHOR,
    **dict.fromkeys(("br", "input", "bgsound", "basefont"), mk.BREAK),
    "img": mk.IMAGE,
    "image": mk.IMAGE,
    "frame": mk.FRAME,
    "iframe": mk.IFRAME,
    "meta": mk.META,
    "link": mk.LINK,
    "base": mk.BASE,
    "html": mk.HTML,
    "script": mk.SCRIPT,
    "style": mk.STYLE,
    "title": mk.TITLE,
    "textarea": mk.TEXTAREA,
    **dict.fromkeys(("xmp", "noembed", "noframes"), mk.RAW),
    "plaintext": mk.PLAINTEXT,
    "template": mk.TEMPLATE,
    "svg": mk.SVG,
    "math": mk.MATH,
    "foreignobject": mk.HTML_POINT,
    "desc": mk.HTML_POINT,
    "annotation-xml": mk.ANNOTATION,
    **dict.fromkeys(("mi", "mo", "mn", "ms", "mtext"), mk.MATH_TEXT),
}
#: Start tags that end foreign content (HTML standard, section 13.2.6.5).
_BREAKOUT = ["b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var"]


def _tag_tables() -> tuple[npt.NDArray[Any], ...]:
    """Perfect hash of the tag names: the first pair of multipliers without a collision, from a fixed sequence."""
    kinds = dict(_KINDS)
    for name in _BREAKOUT:
        kinds[name] = kinds.get(name, mk.OTHER) | mk.BREAKOUT
    words = [
        (int.from_bytes(name.encode()[:8], "little"), int.from_bytes(name.encode()[8:], "little"))
        for name in kinds
    ]
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        a = state | 1
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        b = state | 1
        slots = [((first * a + second * b) & _MASK) >> 54 for first, second in words]
        if len(set(slots)) == len(slots):
            break
    firsts = np.zeros(_TAG_SLOTS, np.uint64)
    seconds = np.zeros(_TAG_SLOTS, np.uint64)
    values = np.zeros(_TAG_SLOTS, np.int64)
    for slot, (first, second), kind in zip(slots, words, kinds.values(), strict=True):
        firsts[slot], seconds[slot], values[slot] = first, second, kind
    return firsts, seconds, values, np.array([a, b], np.uint64)


def _entity_tables() -> tuple[npt.NDArray[Any], ...]:
    """Open-addressing table of the named references by FNV-1a of their names, without semicolons."""
    names = sorted(name[:-1] for name in html5 if name.endswith(";"))
    slots = np.full(_ENTITY_SLOTS, -1, np.int32)
    offsets = np.zeros(len(names) + 1, np.int32)
    points = np.zeros(2 * len(names), np.uint32)
    legacy = np.array([name in html5 for name in names], np.bool_)
    for number, name in enumerate(names):
        encoded = name.encode()
        if len(encoded) > NAME_BYTES_MAX or (legacy[number] and len(encoded) > LEGACY_BYTES_MAX):
            raise AssertionError(f"entity name too long for the kernel: {name}")
        offsets[number + 1] = offsets[number] + len(encoded)
        value = html5[name + ";"]
        points[2 * number : 2 * number + len(value)] = [ord(char) for char in value]
        h = 0xCBF29CE484222325
        for byte in encoded:
            h = ((h ^ byte) * 0x100000001B3) & _MASK
        at = (h >> 32) & (_ENTITY_SLOTS - 1)
        while slots[at] >= 0:
            at = (at + 1) & (_ENTITY_SLOTS - 1)
        slots[at] = number
    return slots, offsets, np.frombuffer("".join(names).encode(), np.uint8).copy(), points, legacy


@lru_cache(maxsize=1)
def tables() -> tuple[npt.NDArray[Any], ...]:
    """The opaque tuple of arrays that `extract` and `tokenise` take. Made once, about 30 ms."""
    return (*_tag_tables(), *_entity_tables(), *unicode.table())
