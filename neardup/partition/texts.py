"""Extracts the compared text of a page, and its sentences."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from neardup.kernels.facts import TITLE_END, TITLE_START
from neardup.page import Page
from neardup.partition.parameters import Parameters
from neardup.sketch.one_page_content import main_content
from neardup.text.decoding import decode
from neardup.text.one_page_html import blocks_of, extract_page, line_of
from neardup.text.one_page_tokens import tokens_of
from neardup.urls import host_of, site_of

# ASCII marks end a sentence before white space (3.5 and a.example stay whole) and behind Han, kana and hangul. Marks of
# other scripts always end it, as those scripts put no space behind them.
_CUT = re.compile(
    r"[.!?;:,]+(?=[\s\"')\]]|$)|(?<=[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff])[.!?;:,]+"
    r"|[\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\uff61\uff64\ufe50-\ufe52\ufe54-\ufe57\u2026\u2025]+"  # CJK
    r"|[\u060c\u061b\u061f\u06d4\u0964\u0965\u0589\u055d\u1362-\u1368\u17d4\u17d5\u104a\u104b\u0387\u037e]+"
)

#: The unit of a passage's length: a word, or one character in scripts without word breaks.
_UNIT = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]|\w+")
#: A passage ends after this many times `passage_words` at the latest: text that repeats one word has no boundary.
_PASSAGE_FACTOR_MAX = 4

#: Ranges of code points that take two columns of a terminal, and two bytes in the paper's encoding of Chinese.
_WIDE = np.array(
    [
        *((0x1100, 0x115F), (0x2E80, 0xA4CF), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xF900, 0xFAFF)),
        *((0xFE30, 0xFE6F), (0xFF00, 0xFF60), (0xFFE0, 0xFFE6), (0x1F300, 0x1FAFF), (0x20000, 0x3FFFD)),
    ],
    np.uint32,
)


@dataclass(frozen=True, slots=True)
class Document:
    """A page as the partition sees it.

    site: the registrable domain. text: the compared text, one line per block; empty if there is nothing to compare.
    digest: 16 bytes, of the text; b"" for an empty text.
    """

    url: str
    site: str
    text: str
    digest: bytes


def document_of(page: Page, parameters: Parameters, *, body_bytes_max: int) -> Document:
    """Builds the document of a page, under its normalised URL.

    A body that is neither HTML nor text has an empty text.
    """
    text = compared_text((page.body or b"")[:body_bytes_max], page.content_type, parameters)
    digest = xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass")) if text else b""
    return Document(page.url, site_of(host_of(page.url)), text, digest)


def compared_text(body: bytes, content_type: str, parameters: Parameters) -> str:
    """Returns the first `compared_bytes` of the main content or of all visible text, white space collapsed, a line per
    block.

    All text is compared if main content is off or has fewer than `content_bytes_min` bytes: in a page of lists and
    tables the main content is empty, or a sentence that all its siblings share. The title is never part of it.
    """
    decoded = decode(body, content_type)
    if decoded.opaque:
        return ""
    extracted = extract_page(decoded.utf8, decoded.mode)
    marked = bytearray(extracted.text[: extracted.n_text].tobytes())
    start, end = extracted.facts[TITLE_START : TITLE_END + 1].tolist()
    if start >= 0:
        marked[start:end] = b" " * (end - start)
    blocks = blocks_of(bytes(marked), b" ")
    if parameters.main_content:
        tokens = tokens_of(extracted)
        chosen = np.unique(tokens.block[main_content(tokens)]).tolist()
        content = _text([blocks[ordinal] for ordinal in chosen], parameters.compared_bytes)
        if width(content) >= parameters.content_bytes_min:
            return content
    return _text(blocks, parameters.compared_bytes)


def _text(blocks: list[bytes], bytes_max: int) -> str:
    lines, left = [], bytes_max
    for block in blocks:
        if line := line_of(block):
            line = _beginning(line, left)
            lines.append(line)
            left -= width(line) + 1
        if left <= 0:
            break
    return "\n".join(lines)


def sentences(text: str, parameters: Parameters) -> list[tuple[str, int]]:
    """Returns the distinct sentences longer than `sentence_bytes` of a compared text, in order, each with its width in
    bytes.
    """
    return _long_enough((piece for block in text.split("\n") for piece in _CUT.split(block)), parameters)


def passages(text: str, parameters: Parameters) -> list[tuple[str, int]]:
    """Returns the distinct passages of a compared text in the form of `sentences`; punctuation is ignored.

    A passage ends behind a word whose hash, together with the word before it, is a multiple of `passage_words`.
    Boundaries depend only on the two words there, so an edit changes only the passages around it.
    """
    return _long_enough((piece for block in text.split("\n") for piece in _pieces(block, parameters)), parameters)


def _pieces(block: str, parameters: Parameters) -> Iterator[str]:
    start = units = 0
    before = ""
    for match in _UNIT.finditer(block):
        unit = match.group()
        units += 1
        boundary = xxhash.xxh3_64_intdigest(f"{before} {unit}".encode("utf-8", "surrogatepass"))
        if boundary % parameters.passage_words == 0 or units == _PASSAGE_FACTOR_MAX * parameters.passage_words:
            yield block[start : match.end()]
            start, units = match.end(), 0
        before = unit
    yield block[start:]


def _long_enough(pieces: Iterable[str], parameters: Parameters) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for piece in pieces:
        sentence = piece.strip()
        if 2 * len(sentence) > parameters.sentence_bytes and sentence not in found:
            wide = width(sentence)
            if wide > parameters.sentence_bytes:
                found[sentence] = wide
    return list(found.items())


def points(text: str) -> npt.NDArray[np.uint32]:
    """Returns the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def widths(code_points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Counts the bytes of each character: two for full width, as in the paper's encoding, else one."""
    out = np.ones(len(code_points), np.uint8)
    if len(code_points) and code_points.max() >= _WIDE[0, 0]:
        after = np.searchsorted(_WIDE[:, 0], code_points, side="right")
        inside = (after > 0) & (code_points <= _WIDE[np.maximum(after - 1, 0), 1])
        out += inside
    return out


def width(text: str) -> int:
    """Counts the bytes of a text."""
    return len(text) if text.isascii() else int(widths(points(text)).sum())


def weight(sentence_width: int) -> int:
    """Returns 1 + ln(length) in units of 2**-20. Whole numbers add up to the same sign on every machine."""
    return round((1 + math.log(sentence_width)) * (1 << 20))


def _beginning(line: str, bytes_max: int) -> str:
    if 2 * len(line) <= bytes_max or (line.isascii() and len(line) <= bytes_max):
        return line
    if line.isascii():
        return line[:bytes_max]
    ends = np.cumsum(widths(points(line[:bytes_max])), dtype=np.int64)
    return line[: int(np.searchsorted(ends, bytes_max, side="right"))]
