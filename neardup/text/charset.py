"""Finds the charset of a body: which of its claims stands, or what detection says.

Claims come from the byte order mark, the content type, and `<meta>` or an XML declaration, in this order, by the
Encoding and HTML standards (WHATWG). Browsers follow the first claim in any case. neardup goes beyond the standards
where a claim is wrong, because a wrong charset makes different texts equal (each byte that is not UTF-8 becomes the
same U+FFFD), and equal texts different:

* A claim stands only if the body is valid by it, except for FEW places or one in DAMAGED_SHARE of the characters beyond
  ASCII. Otherwise the next claim counts, and at last detection. UTF-8 with invalid places alone does not stand: a
  title of two or three letters would be as many U+FFFD.
* A body that is valid UTF-8 is UTF-8 under any claim, if it has enough characters beyond ASCII. Text in another charset
  is hardly ever valid UTF-8 by chance, as each of its letters beyond ASCII would have to be a capital before a sign. In
  two-byte charsets of East Asia chance is greater, so more characters are required.
* `<meta>` may stand in the first LATE_BYTES, if nothing else decides. The HTML standard, too, changes the encoding for
  a `<meta>` behind the first 1,024 bytes ("change the encoding").

A wrong claim of one charset with one byte a character for another one (koi8-r, windows-1251) cannot be recognised: all
bytes are valid in both. Such a text is read as other letters, the same ones each time.
"""

import codecs
import re
from collections.abc import Callable
from functools import lru_cache

import webencodings

from neardup.installed import WIDE

#: Invalid places with which a claim stands, whatever the number of characters: a stray byte, a character cut in two.
FEW = 3
DAMAGED_SHARE = 16
#: Characters beyond ASCII that make valid UTF-8 certain, against a claim of a charset with one byte a character, and of
#: a wider one.
CERTAIN, CERTAIN_WIDE = 2, 6
#: Bytes from which damage is counted, and in which a late `<meta>` is found; both bound the time.
_COUNTED_BYTES, LATE_BYTES = 1 << 16, 1 << 14
_ASCII, _CONTINUING = bytes(range(0x80)), bytes(range(0x80, 0xC0))
_GUESS_SAMPLE = 4096
_PRESCAN = 1024  # "Prescan a byte stream to determine its encoding", HTML standard

_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?([^\s\"';,]{1,64})", re.IGNORECASE)
# Comments, other markup, and the starts of tags, as the standard's prescan meets them.
_MARKUP = re.compile(
    rb"<!--(?:>|->|.*?(?:-->|\Z))|<(?P<tag>/?[a-z][^\s/>]*+)|<[!/?][^>]*+>?", re.IGNORECASE | re.DOTALL
)
# name [= value]; an unclosed quote takes the rest. Groups: name, double-quoted, single-quoted, bare value.
_ATTRIBUTE = re.compile(
    rb"[\s/]*+([^\s/>][^\s/>=]*+)"
    rb"(?:\s*+=\s*+(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^\s>\"'][^\s>]*+)|(?=>)))?+"
)
_TAG_END = re.compile(rb"[\s/]*+>")
_XML_ENCODING = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"'>]{1,64})[\"']")

#: Charsets tried for a page without any hint, after UTF-8: Python's name, the standard's name.
_GUESSES = {
    "cp1252": "windows-1252",
    "cp1251": "windows-1251",
    "cp932": "shift_jis",
    "euc_jp": "euc-jp",
    "gb18030": "gb18030",
    "big5": "big5",
    "cp949": "euc-kr",
    "cp1250": "windows-1250",
    "koi8_r": "koi8-r",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp874": "windows-874",
}
_GUESS_MIN = 6  # with fewer bytes beyond ASCII: windows-1252, as in browsers


def charset_of(body: bytes, content_type: str, kind: str, marked: str, fails: Callable[[str], bool], utf8: bool) -> str:
    """Returns the charset of a body without its byte order mark.

    Args:
        content_type: the header.
        kind: html, xml, plain or unknown.
        marked: the charset of the byte order mark, or "".
        fails: whether transcoding the body from a charset other than UTF-8 makes too much of it U+FFFD.
        utf8: the body certainly is valid UTF-8, but for a character that its end cuts.
    """
    claims = [marked, *of_content_type(content_type)]
    if kind != "plain":
        claims += [of_markup(body[:_PRESCAN]), "utf-8" if kind == "xml" else ""]
    claims = [claim for claim in claims if claim]
    if body.isascii():
        return claims[0] if claims else "iso-2022-jp" if b"\x1b$" in body else "utf-8"
    damaged, characters = (0, _characters(body)) if utf8 else _utf8_of(body)
    mostly = damaged * DAMAGED_SHARE <= damaged + characters
    for claim in claims:
        if claim == "utf-8":
            if mostly or (characters and damaged <= FEW):
                return claim
        elif mostly and characters >= (CERTAIN_WIDE if claim in WIDE else CERTAIN):
            return "utf-8"
        elif not fails(claim):
            return claim
    if mostly:
        return "utf-8"
    late = of_markup(body[:LATE_BYTES]) if kind != "plain" else ""
    if late not in ("", "utf-8", *claims) and not fails(late):
        return late
    return _detected(body)


def _characters(body: bytes) -> int:
    """Characters of more than a byte in the counted part of UTF-8."""
    return len(body[:_COUNTED_BYTES].translate(None, _ASCII + _CONTINUING))


def _utf8_of(body: bytes) -> tuple[int, int]:
    """(places that are not UTF-8, characters beyond ASCII that are), both near the first such place.

    A character that the end cuts is no such place.
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
        return 0, _characters(body)
    except UnicodeDecodeError as error:
        start = max(0, error.start - _COUNTED_BYTES // 2)
    near = body[start : start + _COUNTED_BYTES]
    near = near[len(near) - len(near.lstrip(_CONTINUING)) :] if start else near  # from the start of a character
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(near)
    damaged = text.count("\ufffd") - near.count(b"\xef\xbf\xbd")
    return damaged, len(text) - len(text.encode("ascii", "ignore")) - damaged


@lru_cache(maxsize=256)
def of_content_type(content_type: str) -> tuple[str, ...]:
    """Returns the charsets that a header claims, usually one."""
    found = [_of_label(label) for label in _CHARSET.findall(content_type)]
    # UTF-16 would have been recognised by its mark or its zero bytes, so such a claim is wrong.
    return tuple(charset for charset in dict.fromkeys(found) if charset and not charset.startswith("utf-16"))


def _of_label(label: str) -> str:
    """Name of a charset by the encoding standard, "" for an unknown label.

    "replacement" (iso-2022-kr ...) counts as unknown: the standard replaces such pages by one character, and
    comparing texts needs their content.
    """
    found = webencodings.lookup(label)
    return "" if found is None or found.name == "replacement" else str(found.name)


def of_markup(head: bytes) -> str:
    """The charset that `<meta>` or an XML declaration claims, by the steps of the standard's prescan."""
    declared = _XML_ENCODING.match(head)
    if declared and (claimed := _claimed(declared[1])):
        return claimed
    if b"charset" not in head.lower():
        return ""
    at = 0
    while markup := _MARKUP.search(head, at):
        at = markup.end()
        if markup["tag"] is None:
            continue
        attributes: dict[bytes, bytes] = {}
        while attribute := _ATTRIBUTE.match(head, at):
            at = attribute.end()
            value = attribute[2] or attribute[3] or attribute[4] or b""
            attributes.setdefault(attribute[1].lower(), value)
        if not _TAG_END.match(head, at):
            return ""  # the bytes end in this tag
        if markup["tag"].lower() == b"meta" and (claimed := _of_meta(attributes)):
            return claimed
    return ""


def _of_meta(attributes: dict[bytes, bytes]) -> str:
    if b"charset" in attributes:
        return _claimed(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return ""
    found = _CHARSET.search(attributes.get(b"content", b"").decode("latin-1"))
    return _claimed(found[1].encode("latin-1")) if found else ""


def _claimed(label: bytes) -> str:
    charset = _of_label(label.decode("latin-1").strip())
    # By the standard: a claim that is readable as ASCII is not UTF-16, and x-user-defined is for scripts.
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(charset, charset)


def _detected(body: bytes) -> str:
    """Guesses the charset of a body that is neither ASCII nor UTF-8."""
    # From the text with the first byte beyond ASCII on: ASCII markup gives no hint of the charset.
    found = re.search(rb"[\x80-\xff]", body)
    first = found.start() if found else 0
    at = max(0, first - 32, body.rfind(b">", 0, first) + 1)
    sample = re.sub(rb"<[^<>]{0,512}+>|[\x00-\x20]++", b" ", body[at : at + 4 * _GUESS_SAMPLE])[:_GUESS_SAMPLE]
    if len(sample.translate(None, _ASCII)) < _GUESS_MIN:
        return "windows-1252"
    return _guess(sample)


def _guess(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # slow to import, seldom needed

    best = from_bytes(sample, cp_isolation=list(_GUESSES), preemptive_behaviour=False).best()
    return _GUESSES.get(best.encoding, "windows-1252") if best else "windows-1252"
