"""URLs as people read them: percent escapes and host names of other scripts, decoded for display.

A link keeps the URL as it is. Only letters, marks and digits beyond ASCII are decoded: what is shown has the same
slashes, query and escapes, and no character that is invisible, turns the direction of a line, or looks like one with a
meaning. A host name is decoded unless its letters could be taken for Latin ones.
"""

import re
import unicodedata
from functools import lru_cache
from urllib.parse import quote

_ESCAPES = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
_HOST = re.compile(r"(https?://)([^/?#@\[\]:]*xn--[^/?#@\[\]:]*)", re.ASCII)
#: Marks in a row that are shown; more would pile up over other lines.
_MARKS_MAX = 2
#: Bytes of a label of a host name (RFC 1035), and labels that are decoded.
_LABEL_CHARS_MAX, _LABELS_MAX = 63, 20
#: Letters of scripts with capitals like the Latin ones that no Latin letter looks like.
_OWN_LETTERS = frozenset("бгджзийлпфцчшщъыьэюяћђєїґ" + "βγδζηθλμξπσφψω" + "բդէըթժխծկձղճմշչպջռվտփֆ")
_LIKE_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN")
#: Scripts in use today (UAX #31, table 5), by the first words of the names of their letters. Others, such as Lisu and
#: Cherokee, and Latin letters of other widths and styles, have whole words that look like Latin ones.
_SCRIPTS = frozenset(
    [
        *(*_LIKE_LATIN, "ARABIC", "BENGALI", "BOPOMOFO", "CJK", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "GUJARATI"),
        *("GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "IDEOGRAPHIC", "KANNADA", "KATAKANA", "KATAKANA-HIRAGANA"),
        *("KHMER", "LAO", "MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI", "TIBETAN"),
    ]
)
_LATIN_LAST = "\u017f"


def readable(url: str) -> str:
    """Return a URL for display."""
    if "%" in url:
        url = _ESCAPES.sub(lambda found: _decoded(found[0]), url)
    return _HOST.sub(lambda found: found[1] + readable_host(found[2]), url, count=1) if "xn--" in url else url


def _decoded(escapes: str) -> str:
    """Return escaped bytes as text, what is no letter, mark or digit escaped as before."""
    try:
        text = bytes.fromhex(escapes.replace("%", "")).decode()
    except ValueError:
        return escapes
    out, marks = list[str](), 0
    for char in text:
        category = unicodedata.category(char)[0]
        marks = marks + 1 if category == "M" else 0
        if marks > _MARKS_MAX:
            return escapes
        out.append(char if category in "LMN" else quote(char))
    return "".join(out)


@lru_cache(maxsize=4_096)
def readable_host(name: str) -> str:
    """Return the name of a host or site for display."""
    labels = name.split(".", _LABELS_MAX)
    return ".".join(map(_label, labels))


def _label(label: str) -> str:
    if not label.startswith("xn--") or len(label) > _LABEL_CHARS_MAX:
        return label
    try:
        text = label[4:].encode("ascii").decode("punycode")
        same = text.encode("punycode").decode() == label[4:].lower()
    except ValueError:
        return label
    if not same or text.isascii():
        return label
    letters = [char for char in text if unicodedata.category(char)[0] in "LM"]
    if not letters or any(unicodedata.category(char)[0] not in "LMN" and char != "-" for char in text):
        return label
    scripts = {unicodedata.name(char, "?").partition(" ")[0] for char in letters}
    if scripts == {"LATIN"}:
        return text if max(letters) <= _LATIN_LAST else label
    if not scripts <= _SCRIPTS:  # such as Latin letters, with one of another script in a known name
        return label
    if scripts & set(_LIKE_LATIN) and (len(scripts) > 1 or not _OWN_LETTERS & set(letters)):
        return label
    return text
