"""Write neardup/text/unicode/table.txt from Python's own Unicode data: `python -m tests.neardup.text.unicode_table`.

Runs only on a Python whose data are of the pinned version (14.0.0: Python 3.11), so that no other version changes
tokens by chance. Letters, marks and digits are the general categories L*, M* and Nd. Character names, which never
change, give the script. Combining voiced sound marks belong to kana. Lower case is the simple mapping, one code point
to one: U+0130 becomes `i`.

Compatibility characters are folded: a code point stands for its NFKC form, lower-cased. A fold of several code points
is written as a line of its own, with a space for each separator. Two kinds of folds are not made:

* a fold of more than GROWTH_MAX times the bytes (86 characters, such as U+FDFA of 18 letters and U+337F): a page has
  to have room for its folded text;
* a fold without a letter or digit that begins with a space (accents of their own, such as U+00B4).

NFKC of a whole text also composes letters and marks. The table does not: `e` with U+0301 is not U+00E9.

Characters that a browser does not show are ignored: Default_Ignorable_Code_Point of Unicode, and the control characters
U+007F to U+009F without U+0085, which is white space.
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
    return "i" if char == "\u0130" else char.lower()


def _folded(char: str) -> str:
    """What stands for a character in a token, a space for each separator; the character itself where it stays."""
    if "\ud800" <= char <= "\udfff":
        return char
    whole = unicodedata.normalize("NFKC", char)
    folded = "".join(_lower(part) if _class(part) else " " for part in whole)
    letters = any(unicodedata.category(part)[0] == "L" or unicodedata.category(part) == "Nd" for part in whole)
    small = len(folded.encode()) <= GROWTH_MAX * len(char.encode())
    return folded if small and (letters or folded[0] != " ") else _lower(char)


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
    for first, last in _INVISIBLE:
        for point in range(first, last + 1):
            classes[point], folded[point] = _IGNORED, chars[point]
    digits = [int(unicodedata.category(char) == "Nd") for char in single]
    known = zip(single, chars, classes, strict=True)
    lower = [ord(one) - ord(char) if kind not in (_NONE, _IGNORED) else 0 for one, char, kind in known]
    yield f"# Unicode {unicodedata.unidata_version}, written by unicode_table.py: kind, first, last, value, step"
    for kind, values in (("class", classes), ("digit", digits), ("lower", lower)):
        for first, last, value, step in _runs(values, 0):
            yield f"{kind} {first:04X} {last:04X} {value} {step}"
    yield "# fold, code point, and the code points that stand for it"
    for point, parts in enumerate(folded):
        if len(parts) > 1:
            yield " ".join([f"fold {point:04X}", *(f"{ord(part):04X}" for part in parts)])


def main() -> None:
    """Write the table. Exits with a message where the Unicode version is another."""
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"needs Unicode {VERSION} (Python 3.11), this Python has {unicodedata.unidata_version}")
    TABLE.write_text("\n".join(lines()) + "\n", "ascii")


if __name__ == "__main__":
    main()
