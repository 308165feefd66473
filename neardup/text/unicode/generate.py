"""Write table.txt from Python's own Unicode data: `python -m neardup.text.unicode.generate`.

Runs only on a Python whose data are of the pinned version (14.0.0: Python 3.11), so that nobody changes tokens by
chance. Letters, marks and digits are the general categories L*, M* and Nd. Scripts are told by character names, which
never change once given. Combining voiced sound marks belong to kana. Lower case is the simple mapping, one code point
to one: U+0130 becomes `i`.
"""

import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

VERSION = "14.0.0"
_NONE, _WORD, _HAN, _KANA, _THAI, _LAO, _KHMER, _MYANMAR = range(8)

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


def _lower(char: str) -> int:
    return 0x69 if char == "\u0130" else ord(char.lower())


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
    classes = [_class(char) for char in chars]
    digits = [int(unicodedata.category(char) == "Nd") for char in chars]
    lower = [_lower(char) - ord(char) if kind else 0 for char, kind in zip(chars, classes, strict=True)]
    yield f"# Unicode {unicodedata.unidata_version}, written by generate.py: kind, first, last, value, step"
    for kind, values in (("class", classes), ("digit", digits), ("lower", lower)):
        for first, last, value, step in _runs(values, 0):
            yield f"{kind} {first:04X} {last:04X} {value} {step}"


def main() -> None:
    """Write the table beside this file. Exits with a message where the Unicode version is another."""
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"needs Unicode {VERSION} (Python 3.11), this Python has {unicodedata.unidata_version}")
    Path(__file__).with_name("table.txt").write_text("\n".join(lines()) + "\n", "ascii")


if __name__ == "__main__":
    main()
