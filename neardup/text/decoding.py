"""Decodes bytes as fetched to UTF-8: finds the charset, and whether they are HTML, plain text or neither (opaque).

No content of a page makes these functions raise.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from neardup.installed import WIDE, codec_of
from neardup.kernels import batch as batches
from neardup.kernels import sniffing
from neardup.kernels.html import PADDING_BYTES
from neardup.limits import BODY_BYTES_MAX
from neardup.text.charset import DAMAGED_SHARE, FEW, charset_of, of_content_type
from neardup.text.xml_text import as_html, is_feed

HTML, PLAIN = 0, 1


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded body. utf8: the page for the kernels, of `mode` HTML or PLAIN; invalid bytes in it act as U+FFFD.

    charset: name by the encoding standard, "" if opaque. opaque: neither HTML nor text; utf8 is the body as fetched.
    cut: utf8 is only the first part, because the whole would be too long.
    """

    utf8: bytes
    charset: str
    mode: int
    opaque: bool = False
    cut: bool = False


# Bytes from which binary bodies are recognised and charsets are guessed; bounds the time of both.
_SAMPLE = 4096
_HEADER_CHARS = 1024  # of a content type
_PRESCAN = 1024
#: Bytes from which it is seen whether a claim fails; bytes of ASCII that are no UTF-16.
_CLAIM_SAMPLE, _ASCII_MIN = 1 << 15, 32
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
#: Bytes that are transcoded at a time; an even number.
_PIECE_BYTES = 1 << 16

# Types without meaning (MIME sniffing standard, section 7): the bytes decide.
_UNKNOWN_TYPES = frozenset(("", "unknown/unknown", "application/unknown", "*/*"))
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))

# First bytes of files that servers send as text/html by mistake. None of them starts a text.
_MAGIC = re.compile(
    rb"%PDF-|%!PS-Adobe|\x89PNG\r\n|GIF8[79]a|\xff\xd8\xff|II\*\x00|MM\x00\*|\x00\x00[\x01\x02]\x00"
    rb"|RIFF....(?:WEBP|WAVE|AVI )"
    rb"|PK\x03\x04|PK\x05\x06|\x1f\x8b\x08|BZh[1-9]1AY|\xfd7zXZ\x00|7z\xbc\xaf\x27\x1c|\x28\xb5\x2f\xfd|Rar!\x1a\x07"
    rb"|\x7fELF|\xca\xfe\xba\xbe|\x00asm|OggS\x00|ID3[\x02-\x04]|fLaC\x00|....ftyp|\x1a\x45\xdf\xa3|FLV\x01"
    rb"|[CF]WS[\x01-\x08\x0e-\x1f]"
    rb"|wOF[F2]|\x00\x01\x00\x00\x00|OTTO\x00|SQLite format 3\x00|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    re.DOTALL,
)
#: Classes of first bytes for `sniff`: 1: _MAGIC may match; 2: a byte order mark.
_FIRST_BYTES = np.zeros(256, np.uint8)
_FIRST_BYTES[list(b"%\x89GI\xffM\x00RP\x1fB\xfd7\x28\x7f\xcaOfF\x1aCwS\xd0")] = 1
_FIRST_BYTES[[bom[0] for bom, _ in _BOMS]] |= 2
_PADDING = bytes(PADDING_BYTES)
# "Binary data bytes" of the MIME sniffing standard, without ESC, which ISO-2022 texts have.
_BINARY_BYTES = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
_NO_TEXT = dict.fromkeys([*_BINARY_BYTES, 0xFFFD])
# Compressed data has 10% of them, text none, a damaged text a few.
_BINARY_SHARE = 1 / 20
_BINARY_MIN = 8

_TAG = re.compile(
    rb"\A\s*+<[!?/a-z]|</?(?:html|head|body|title|meta|div|span|p|a|br|table|tr|td|ul|li|h[1-6]|img|script)[\s/>]",
    re.IGNORECASE,
)


def decode(body: bytes, content_type: str, bytes_max: int = BODY_BYTES_MAX, *, valid: bool = False) -> Decoded:
    """Decode a body. The charset comes from the byte order mark, `content_type`, `<meta>`, or detection, in this order,
    if the body is valid by it: see `neardup.text.charset`. valid: the body is known to be valid UTF-8.

    Bodies in ASCII or UTF-8 are returned unchanged, also with a few invalid bytes. Others become at most
    bytes_max bytes of UTF-8, as does XML: feeds, also under another type of text, and XHTML are rewritten as HTML. Time
    is linear: at most some hundredths of a second per megabyte.
    """
    content_type = content_type[:_HEADER_CHARS]
    kind = _kind(content_type)
    if kind == "opaque" or _MAGIC.match(body):
        return Decoded(body, "", PLAIN, True)
    mark, charset = next((bom for bom in _BOMS if body.startswith(bom[0])), (b"", ""))
    whole, body = body, body[len(mark) :]
    if (
        charset.startswith("utf-16")
        and len(body) >= _ASCII_MIN
        and b"\0" not in body[:_SAMPLE]
        and body[:_SAMPLE].isascii()
    ):
        charset = ""  # ASCII behind a wrong mark: no text in UTF-16 has such units alone
    if not charset.startswith("utf-16"):
        sample = body[:_SAMPLE].rstrip(b"\0")  # a text that is padded with zero bytes is a text
        charset = charset or _unmarked_utf16(sample)
        if not charset.startswith("utf-16") and _is_binary(sample):
            return Decoded(whole, "", PLAIN, True)
    if not charset.startswith("utf-16"):
        charset = charset_of(body, content_type, kind, charset, partial(_fails, body), valid)
    utf8, cut = _transcode(body, charset, bytes_max)
    if kind == "unknown":
        kind = "html" if _TAG.search(utf8[:_PRESCAN]) else "plain"
    feed = is_feed(utf8[:_PRESCAN])
    if feed or kind == "xml":
        utf8, more = as_html(utf8, feed, bytes_max)
        return Decoded(utf8, charset, HTML, cut=cut or more)
    return Decoded(utf8, charset, PLAIN if kind == "plain" else HTML, cut=cut)


def decode_into(
    batch: batches.Batch, bodies: Sequence[bytes | None], content_types: Sequence[str], first: int, bytes_max: int
) -> tuple[batches.Batch, list[int]]:
    """Decode bodies as `decode` does -> (the batch with these pages from `first` on, pages that were cut).

    None: a page without a body. Most bodies are recognised as UTF-8, and copied once.
    """
    given = [body or b"" for body in bodies]
    pages = slice(first, first + len(given))
    starts, ends, modes = batch.starts[pages], batch.ends[pages], batch.modes[pages]
    buffer = _joined(given, starts, ends)
    claims = np.array([_claim(content_type[:_HEADER_CHARS]) for content_type in content_types], np.int64)
    doubts = np.empty(len(given), np.uint8)
    sniffing.sniff(buffer, starts, ends, claims, _FIRST_BYTES, modes, doubts)
    changed, cut = False, []
    for i in np.flatnonzero(doubts & ~np.uint8(sniffing.VALID)).tolist():
        body, doubt = given[i], doubts[i]
        if bodies[i] is None:
            modes[i] = batches.NOTHING
        elif doubt & sniffing.LOOK or _MAGIC.match(body):
            decoded = decode(body, content_types[i], bytes_max, valid=bool(doubt & sniffing.VALID))
            if decoded.cut:
                cut.append(first + i)
            changed = changed or decoded.utf8 is not body
            given[i] = decoded.utf8
            modes[i] = batches.OPAQUE if decoded.opaque else decoded.mode
        elif doubt & sniffing.LOOK_FOR_TAGS:
            modes[i] = HTML if _TAG.search(body[:_PRESCAN]) else PLAIN
    return batch._replace(buffer=_joined(given, starts, ends) if changed else buffer), cut


def _joined(
    bodies: Sequence[bytes], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """Join bodies in one uint8 array, each followed by 256 zero bytes. starts, ends int64 out."""
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    np.cumsum(sizes + PADDING_BYTES, out=ends)
    ends -= PADDING_BYTES
    np.subtract(ends, sizes, out=starts)
    return np.frombuffer(_PADDING.join((*bodies, b"")), np.uint8)


_CLAIMS = {"opaque": sniffing.OPAQUE_TYPE, "unknown": sniffing.UNKNOWN, "xml": sniffing.XML}


@lru_cache(maxsize=256)
def _claim(content_type: str) -> int:
    kind = _kind(content_type)
    if kind in _CLAIMS:
        return _CLAIMS[kind]
    if of_content_type(content_type)[:1] == ("utf-8",):
        return sniffing.PLAIN_UTF8 if kind == "plain" else sniffing.HTML_UTF8
    return sniffing.PLAIN_ANY if kind == "plain" else sniffing.HTML_ANY


@lru_cache(maxsize=256)
def _kind(content_type: str) -> str:
    """html, xml, plain, unknown or opaque."""
    essence = re.split(r"[;,]", content_type[:256], maxsplit=1)[0].strip().lower()
    if essence in _UNKNOWN_TYPES or "/" not in essence:
        return "unknown"
    if essence == "text/html":
        return "html"
    if essence in ("text/xml", "application/xml") or essence.endswith("+xml"):
        return "xml"
    return "plain" if essence.startswith("text/") else "opaque"


def _unmarked_utf16(sample: bytes) -> str:
    """Recognise UTF-16 without a mark: markup is ASCII, so one byte of most pairs is zero, and the other rarely is."""
    pairs = len(sample) // 2
    if pairs < 8 or sample.count(0) * 16 < pairs:
        return ""
    first, second = sample[0::2].count(0), sample[1::2].count(0)
    charset = "utf-16le" if second > first else "utf-16be"
    text = _from_utf16(sample, charset)
    odd = len(text) - len(text.translate(_NO_TEXT)) + min(first, second)
    return charset if odd * 50 <= pairs else ""


def _is_binary(sample: bytes) -> bool:
    binary = len(sample) - len(sample.translate(None, _BINARY_BYTES))
    return binary >= _BINARY_MIN and binary > _BINARY_SHARE * len(sample)


def _fails(body: bytes, charset: str) -> bool:
    """Whether more of a sample becomes U+FFFD by this charset than a claim may damage.

    The sample starts at the first byte beyond ASCII, with which a character begins.
    """
    table = _table(charset)
    if table and "\ufffd" not in table:
        return False
    start = _BEYOND_ASCII.search(body)
    at = start.start() if start and charset != "iso-2022-jp" else 0
    text = b"".join(_pieces(body[at : at + _CLAIM_SAMPLE], charset)).decode("utf-8", "replace")
    damaged = text[:-1].count("\ufffd")  # the sample may end within a character
    return damaged > FEW and damaged * DAMAGED_SHARE > len(text) - len(text.encode("ascii", "ignore"))


def _transcode(body: bytes, charset: str, bytes_max: int) -> tuple[bytes, bool]:
    """(the body as UTF-8, at most bytes_max bytes; whether it was cut). One byte of Thai becomes three."""
    if charset == "utf-8" or (charset != "iso-2022-jp" and not charset.startswith("utf-16") and body.isascii()):
        return body, False
    parts, left = [], bytes_max
    for utf8 in _pieces(body, charset):
        if len(utf8) > left:
            while left > 0 and utf8[left] & 0xC0 == 0x80:  # within a character
                left -= 1
            parts.append(utf8[:left])
            return b"".join(parts), True
        parts.append(utf8)
        left -= len(utf8)
    return b"".join(parts), False


def _pieces(body: bytes, charset: str) -> Iterator[bytes]:
    """The body as UTF-8 in pieces, so that little more is transcoded than is used."""
    table = _table(charset)
    decoder = None if table or charset.startswith("utf-16") else codec_of(charset).incrementaldecoder
    stateful = decoder("replace") if decoder else None
    at = characters = 0
    while at < len(body):
        end = at + _PIECE_BYTES
        if table:
            text = codecs.charmap_decode(body[at:end], "replace", table)[0]
        elif stateful:
            try:
                text = stateful.decode(body[at:end], end >= len(body))
            except UnicodeError:
                # "pending buffer overflow", in spite of "replace": Python's decoders of several tables keep eight bytes
                # of an escape sequence that they do not know. A call with all bytes needs to keep none.
                yield codec_of(charset).decode(body, "replace")[0][characters:].encode("utf-8", "replace")
                return
            characters += len(text)
        else:
            high = 1 if charset == "utf-16le" else 0
            if end < len(body) and body[end - 2 + high] & 0xFC == 0xD8:
                end -= 2  # not between the two halves of a pair
            text = _from_utf16(body[at:end], charset)
        yield text.encode("utf-8", "replace")
        at = end


@lru_cache(maxsize=64)
def _table(charset: str) -> str:
    """All 256 characters of a single-byte charset, "" for other charsets.

    Undefined bytes are U+FFFD here, so that no byte takes the slow error handling of the codec.
    """
    if charset in WIDE or charset.startswith("utf-16"):
        return ""
    decoder = codec_of(charset).decode
    return "".join(decoder(bytes([byte]), "replace")[0] for byte in range(256))


def _from_utf16(body: bytes, charset: str) -> str:
    """Decode UTF-16. Lone surrogates become U+FFFD here, because the codec takes seconds for a page of them."""
    dtype = "<u2" if charset == "utf-16le" else ">u2"
    units = np.frombuffer(body[: len(body) & ~1], dtype=dtype).astype("<u2")
    high, low = (units & 0xFC00) == 0xD800, (units & 0xFC00) == 0xDC00
    if high.any() or low.any():
        units[high & ~np.append(low[1:], False)] = 0xFFFD
        units[low & ~np.append(False, high[:-1])] = 0xFFFD
    return units.tobytes().decode("utf-16-le")
