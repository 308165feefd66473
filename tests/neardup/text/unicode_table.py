"""Write neardup/text/unicode/table.txt from Python's own Unicode data: `python -m tests.neardup.text.unicode_table`.

Runs only on a Python whose data are of the pinned version (14.0.0: Python 3.11), so that no other version changes
tokens by chance. Letters, marks and digits are the general categories L*, M* and Nd. Character names, which never
change, give the script. Combining voiced sound marks belong to kana. Lower case is the simple mapping, one code point
to one: U+0130 becomes `i`.

A code point stands for its fold: its NFKC form, lower-cased, with each digit (category Nd) as its ASCII digit, and
letters of one sound as one letter (`SAME`). A fold of several code points is written as a line of its own, with a space
for each separator. Two kinds of folds are not made:

* a fold of more than GROWTH_MAX times the bytes (such as U+FDFA of 18 letters, and U+337F): a page has to have room for
  its folded text;
* a fold without a letter or digit that begins with a space (accents of their own, such as U+00B4).

Letters and marks are composed: `e` with U+0301 is U+00E9. The table has the pairs that compose after folding (without
Hangul, whose syllables are computed), and the canonical combining class of each mark. Classes are numbered in their
order, from 1 on. SECOND marks characters of class 0 that compose with the one before them.

Characters that a browser does not show are ignored: Default_Ignorable_Code_Point of Unicode, and the control characters
U+007F to U+009F without U+0085, which is white space. So are signs that writers of Arabic and Hebrew may leave out:
tatweel, vowel and Quranic marks, points and accents, by their names and category Mn.
"""

import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

VERSION = "14.0.0"
TABLE = Path(__file__).parents[3] / "neardup" / "text" / "unicode" / "table.txt"
_NONE, _WORD, _HAN, _KANA, _THAI, _LAO, _KHMER, _MYANMAR = range(8)
_IGNORED = 9
#: A folded character has at most so many times its bytes in UTF-8. `neardup.kernels.html.text_bytes_needed` relies on
#: it.
GROWTH_MAX = 2
SECOND = 31
#: Letters that one text has in one spelling, and its copy in another.
SAME = str.maketrans(
    {
        "\u03c2": "\u03c3",  # final sigma
        "\u00df": "ss",
        "\u0131": "i",  # dotless, whose capital is `I`
        **dict.fromkeys("\u0622\u0623\u0625\u0671", "\u0627"),  # alef with madda, hamza, wasla
        **dict.fromkeys("\u0649\u06cc", "\u064a"),  # alef maksura, Farsi yeh
        **dict.fromkeys("\u06a9\u06aa", "\u0643"),  # keheh, swash kaf
        **dict.fromkeys("\u06be\u06c0\u06c1\u06c2\u06d5", "\u0647"),  # doachashmee heh, heh goal, ae; with hamza
        "\u06c3": "\u0629",  # teh marbuta goal
    }
)
#: Marks that make no difference on a letter, because `SAME` folds both together: U+0130, alef and heh with hamza.
DROPPED = (("i", "\u0307"), ("\u0627", "\u0654"), ("\u0647", "\u0654"))
_KEPT_MARK = "\u0654"  # hamza above, which makes other letters of waw and yeh
#: Default_Ignorable_Code_Point (DerivedCoreProperties.txt): 4,174 code points; and control characters.
_INVISIBLE = (
    *((0x7F, 0x84), (0x86, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)

_PREFIXES = (
    (("CJK UNIFIED IDEOGRAPH-", "CJK COMPATIBILITY IDEOGRAPH-"), _HAN),
    (("HIRAGANA ", "KATAKANA ", "HALFWIDTH KATAKANA ", "HENTAIGANA "), _KANA),
    (("THAI ",), _THAI),
    (("LAO ",), _LAO),
    (("KHMER ",), _KHMER),
    (("MYANMAR ",), _MYANMAR),
)
_PARTS = (
    ("IDEOGRAPHIC ITERATION MARK", _HAN),
    ("OLD CHINESE ITERATION MARK", _HAN),
    ("VIETNAMESE ALTERNATE READING MARK", _HAN),
    ("KATAKANA-HIRAGANA", _KANA),
)


def _class(char: str) -> int:
    category = unicodedata.category(char)
    if category[0] not in "LM" and category != "Nd":
        return _NONE
    name = unicodedata.name(char, "")
    for prefixes, script in _PREFIXES:
        if name.startswith(prefixes):
            return script
    for part, script in _PARTS:
        if part in name:
            return script
    return _WORD


def _lower(char: str) -> str:
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.decimal(char))
    lower = "i" if char == "\u0130" else char.lower()
    return lower.translate(SAME)


def _ignored(char: str) -> bool:
    if any(first <= ord(char) <= last for first, last in _INVISIBLE) or char == "\u0640":
        return True
    named = unicodedata.name(char, "").startswith(("ARABIC ", "HEBREW "))
    return named and unicodedata.category(char) == "Mn" and char != _KEPT_MARK


def _vanishes(char: str) -> bool:
    """Whether a character is ignored, or such a one on a space or a tatweel (U+FE70 to U+FE7F)."""
    if "\ud800" <= char <= "\udfff":
        return False
    parts = unicodedata.normalize("NFKC", char)
    return _ignored(char) or (any(map(_ignored, parts)) and all(part == " " or _ignored(part) for part in parts))


def _folded(char: str) -> str:
    """What stands for a character in a token, a space for each separator; the character itself where it stays."""
    if "\ud800" <= char <= "\udfff":
        return char
    whole = "".join(part for part in unicodedata.normalize("NFKC", char) if not _ignored(part))
    folded = "".join(_lower(part) if _class(part) else " " for part in whole)
    folded = folded.lower().translate(SAME)  # a second time: parts of lower case that is decomposed
    letters = any(unicodedata.category(part)[0] == "L" or unicodedata.category(part) == "Nd" for part in whole)
    small = len(folded.encode()) <= GROWTH_MAX * len(char.encode())
    return folded if small and folded and (letters or folded[0] != " ") else _lower(char)


def _pairs(folded: list[str]) -> dict[tuple[str, str], str]:
    """What two folded code points compose to."""
    pairs = {(base, mark): base for base, mark in DROPPED}
    for point in range(0x110000):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) != 2 or parts[0].startswith("<") or unicodedata.normalize("NFC", chr(point)) != chr(point):
            continue
        first, second = (folded[int(part, 16)] for part in parts)
        whole = folded[point]
        if len(first) == len(second) == len(whole) == 1 and _class(whole) and not _ignored(chr(int(parts[1], 16))):
            assert pairs.setdefault((first, second), whole) == whole, hex(point)
    return pairs


def _runs(values: list[int], skipped: int) -> Iterator[tuple[int, int, int, int]]:
    """(first, last, value, step): stretches of one value, of every code point or of every second one."""
    at = 0
    while at < len(values):
        value, step, last = values[at], 1, at
        if value == skipped:
            at += 1
            continue
        if values[at + 1 : at + 3] == [skipped, value]:
            step = 2
        while last + step < len(values) and values[last + step] == value:
            if step == 2 and values[last + 1] != skipped:
                break
            last += step
        yield at, last, value, step
        at = last + 1


def lines() -> Iterator[str]:
    """The lines of table.txt."""
    chars = [chr(point) for point in range(0x110000)]
    folded = [_folded(char) for char in chars]
    # The class and digit of a fold of several code points are those of its parts.
    single = [part if len(part) == 1 else char for part, char in zip(folded, chars, strict=True)]
    classes = [_class(char) for char in single]
    for point, char in enumerate(chars):
        if _vanishes(char):
            classes[point], folded[point] = _IGNORED, char
    digits = [int(unicodedata.category(char) == "Nd") for char in single]
    known = zip(single, chars, classes, strict=True)
    lower = [ord(one) - ord(char) if kind not in (_NONE, _IGNORED) else 0 for one, char, kind in known]
    pairs = _pairs(folded)
    orders = [
        unicodedata.combining(char) if kind not in (_NONE, _IGNORED) else 0
        for char, kind in zip(single, classes, strict=True)
    ]
    ranks = {order: rank for rank, order in enumerate(sorted(set(orders)))}
    assert len(ranks) <= SECOND
    seconds = {second for _, second in pairs} | set(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))
    ranked = [ranks[order] or SECOND * (char in seconds) for order, char in zip(orders, single, strict=True)]
    yield f"# Unicode {unicodedata.unidata_version}, written by unicode_table.py: kind, first, last, value, step"
    for kind, values in (("class", classes), ("digit", digits), ("lower", lower), ("rank", ranked)):
        for first, last, value, step in _runs(values, 0):
            yield f"{kind} {first:04X} {last:04X} {value} {step}"
    yield "# fold, code point, and the code points that stand for it"
    for point, parts in enumerate(folded):
        if len(parts) > 1:
            yield " ".join([f"fold {point:04X}", *(f"{ord(part):04X}" for part in parts)])
    yield "# pair, two folded code points, and the one that they compose to"
    for (first, second), whole in sorted(pairs.items()):
        yield f"pair {ord(first):04X} {ord(second):04X} {ord(whole):04X}"


def main() -> None:
    """Write the table. Exits with a message where the Unicode version is another."""
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"needs Unicode {VERSION} (Python 3.11), this Python has {unicodedata.unidata_version}")
    TABLE.write_text("\n".join(lines()) + "\n", "ascii")


if __name__ == "__main__":
    main()
