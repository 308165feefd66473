"""The installed data on which sketches depend: the public suffix list, Python's codecs, and the charset detector.

A scheme names all three, so sketches made with different ones are never compared. Each is determined once in a process.
"""

import codecs
import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import webencodings
from webencodings.labels import LABELS

#: Python's codecs for charsets whose names mean another codec on the web.
_CODECS = {"gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs"}
#: Charsets with more than one byte per character, except those of Unicode.
WIDE = ("gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr")
_BYTES = [bytes([byte]) for byte in range(256)]
_HIGH, _LOW, _DIGITS = _BYTES[0x80:], _BYTES[0x21:0x7F], _BYTES[0x30:0x3A]


def codec_of(charset: str) -> codecs.CodecInfo:
    """Returns the decoder of a charset, by its name in the encoding standard."""
    name = _CODECS.get(charset)
    found: codecs.CodecInfo = codecs.lookup(name) if name else webencodings.lookup(charset).codec_info
    return found


@lru_cache(maxsize=1)
def public_suffixes() -> str:
    """Digest of the installed public suffix list without its comments, 16 hex digits."""
    spec = find_spec("publicsuffixlist")
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).with_name("public_suffix_list.dat").read_text("utf-8").splitlines()
    return _digest(*sorted(rule[0] for line in lines if (rule := line.split()) and not rule[0].startswith("//")))


@lru_cache(maxsize=1)
def charset_detection() -> str:
    """Version of the library that detects the charset of pages that name none."""
    from importlib.metadata import version  # slow to import

    return f"charset-normalizer {version('charset-normalizer')}"


@lru_cache(maxsize=1)
def charsets() -> str:
    """Digest of the meaning of each charset label and of each character of each charset in Python's codecs, 16 hex
    digits.
    """
    meanings = [f"{label} {name}" for label, name in sorted(LABELS.items())]
    # gbk is read as gb18030; the other charsets are covered by their names.
    others = {"gbk", "utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"}
    pairs = b"\n".join(lead + trail for lead in _HIGH for trail in _BYTES[0x30:])
    for name in sorted(set(LABELS.values()) - others):
        parts = [pairs, *_more(name)] if name in WIDE else _BYTES
        decode = codec_of(name).decode
        meanings += [name, *(decode(part, "replace")[0] for part in parts)]
    return _digest(*meanings)


def _more(charset: str) -> list[bytes]:
    """The byte sequences of a wide charset besides pairs, separated by line ends, which belong to no character."""
    if charset == "euc-jp":
        return [b"\n".join(b"\x8f" + lead + trail for lead in _HIGH for trail in _HIGH)]
    if charset == "iso-2022-jp":
        low = b"".join(lead + trail for lead in _LOW for trail in _LOW)
        return [b"\x1b" + shift + low for shift in (b"$@", b"$B", b"(J", b"(I")]
    if charset == "gb18030":
        ends = [c + d for c in _BYTES[0x81:0xFF] for d in _DIGITS]
        return [a + b + (a + b).join(ends) for a in _BYTES[0x81:0x85] for b in _DIGITS]
    return []


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


#: The fields of a scheme that name what is installed.
NAMES = {"public_suffixes": public_suffixes, "charsets": charsets, "charset_detection": charset_detection}
