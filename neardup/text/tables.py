"""The tables that the kernels of html and tokens read: tag names, character references, code points."""

from functools import lru_cache
from html.entities import html5

import numpy as np
import numpy.typing as npt

from neardup.errors import InvariantBroken
from neardup.kernels import markup as mk
from neardup.kernels.entities import ENTITY_HEADER, ENTITY_SLOTS, LEGACY_BYTES_MAX, NAME_BYTES_MAX
from neardup.text import unicode

Tables = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]

_MASK = (1 << 64) - 1

#: Elements that vanish without breaking a word (Henzinger 2006, section 2: formatting instructions).
FORMATTING = (
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins"),
    *("kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt"),
    *("u", "var", "wbr"),
)

#: Elements that break a word: blocks, parts of lists and tables, and elements that are boxes in the default style sheet
#: of the HTML standard (section 15.3). Elements in neither list are inline, as are unknown and custom ones.
BLOCKS = (
    *("address", "article", "aside", "blockquote", "button", "canvas", "caption", "center", "col", "colgroup", "dd"),
    *("details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset"),
    *("h3", "h4", "h5", "h6", "header", "hgroup", "hr", "legend", "li", "listing", "main", "marquee", "menu", "meter"),
    *("nav", "ol", "optgroup", "option", "p", "pre", "progress", "rt", "rtc", "search", "section", "select", "summary"),
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "video"),
)

_KINDS = {
    **dict.fromkeys(FORMATTING, mk.FORMAT),
    **dict.fromkeys(BLOCKS, mk.BLOCK),
    "a": mk.ANCHOR,
    **dict.fromkeys(("br", "input"), mk.BREAK),
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
    "xmp": mk.RAW,
    **dict.fromkeys(("noembed", "noframes"), mk.UNSHOWN),
    "plaintext": mk.PLAINTEXT,
    "template": mk.TEMPLATE,
    "svg": mk.SVG,
    "math": mk.MATH,
    "foreignobject": mk.HTML_POINT,
    "desc": mk.HTML_POINT,
    "annotation-xml": mk.ANNOTATION,
    **dict.fromkeys(("mi", "mo", "mn", "ms", "mtext"), mk.MATH_TEXT),
    "h1": mk.HEADING,
    "h2": mk.SUBHEADING,
}
#: Start tags that end foreign content (HTML standard, section 13.2.6.5).
_BREAKOUT = (
    *("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol"),
    *("p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var"),
)


def _tag_table() -> npt.NDArray[np.uint64]:
    """Perfect hash of the tag names: the first pair of multipliers without a collision, from a fixed sequence."""
    kinds = dict(_KINDS)
    for name in _BREAKOUT:
        kinds[name] = kinds.get(name, mk.OTHER) | mk.BREAKOUT
    words = [
        (int.from_bytes(name.encode()[:8], "little"), int.from_bytes(name.encode()[8:], "little")) for name in kinds
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
    table = np.zeros(2 + 3 * mk.TAG_SLOTS, np.uint64)
    table[:2] = a, b
    for slot, (first, second), kind in zip(slots, words, kinds.values(), strict=True):
        table[2 + 3 * slot : 5 + 3 * slot] = first, second, kind
    return table


def _entity_table() -> npt.NDArray[np.uint32]:
    """Named references in the layout of `neardup.kernels.entities`, by FNV-1a of their names without semicolons."""
    names = sorted(name[:-1] for name in html5 if name.endswith(";"))
    slots = [0] * ENTITY_SLOTS
    offsets, points, legacy = [0], [], []
    for number, name in enumerate(names):
        encoded = name.encode()
        legacy.append(int(name in html5))
        if len(encoded) > NAME_BYTES_MAX or (legacy[-1] and len(encoded) > LEGACY_BYTES_MAX):
            raise InvariantBroken(f"entity name too long for the kernel: {name}")
        offsets.append(offsets[-1] + len(encoded))
        value = [ord(char) for char in html5[name + ";"]]
        points += [value[0], value[1] if len(value) > 1 else 0]
        h = 0xCBF29CE484222325
        for byte in encoded:
            h = ((h ^ byte) * 0x100000001B3) & _MASK
        at = (h >> 32) & (ENTITY_SLOTS - 1)
        while slots[at]:
            at = (at + 1) & (ENTITY_SLOTS - 1)
        slots[at] = number + 1
    parts = [slots, offsets, points, legacy, list("".join(names).encode())]
    starts = np.cumsum([ENTITY_HEADER, *map(len, parts)])[1:5]
    return np.concatenate([starts, *parts]).astype(np.uint32)


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The opaque tuple of arrays that `extract` and `tokenise` take: tags, references, code points. Made once."""
    return _tag_table(), _entity_table(), unicode.table()
