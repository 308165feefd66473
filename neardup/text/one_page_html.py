"""Page bytes to text and title, one page at a time, for reports and tests. Batches use the extraction kernel itself."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.kernels import html as kernel
from neardup.kernels import writing
from neardup.kernels.facts import FACTS, TITLE_END, TITLE_START
from neardup.text.tables import tables

FACT_BYTES_MAX, TITLE_BYTES_MAX = 2048, 512
_TERM = re.compile(b"%c[^%c]*%c" % (writing.TERM_START, writing.TERM_END, writing.TERM_END))
_NOT_SHOWN = bytes([writing.ANCHOR_START, writing.ANCHOR_END, writing.DELETE])
_REFERENCE = re.compile(r"&(?:#[xX][0-9a-fA-F]+;?|#[0-9]+;?|[A-Za-z0-9]{1,32};|[A-Za-z0-9]{1,6}(?![A-Za-z0-9=]))")


@dataclass(frozen=True)
class Extracted:
    """Output of the kernel for one page: text uint8[capacity] of which n_text count, facts int64[FACTS]."""

    page: bytes
    text: npt.NDArray[np.uint8]
    n_text: int
    facts: npt.NDArray[np.int64]


def extract_page(page: bytes, mode: int = 0, host: str = "") -> Extracted:
    """Run the kernel on one page in UTF-8. mode: 0 HTML, 1 plain text. host: the page's own, lower-case ASCII."""
    size = len(page)
    # Read-only like the pages of a batch, so that the kernel is compiled once.
    buf = np.frombuffer(page + bytes(kernel.PADDING_BYTES), np.uint8)
    own = np.frombuffer(host.encode() + bytes(1), np.uint8)
    text = np.zeros(kernel.text_bytes_needed(size), np.uint8)
    facts = np.zeros(FACTS, np.int64)
    n_text = kernel.extract(buf, 0, size, mode, own, 0, own.size - 1, tables(), text, facts)
    return Extracted(page, text, int(n_text), facts)


def _named(term: re.Match[bytes]) -> bytes:
    return b" [" + term.group()[1:-1] + b"] "


def text_of(page: bytes, mode: int = 0, *, terms: bool = False) -> str:
    """The text of a page for reading: one line per block; images and frames as `[img]`, or with `terms` by name."""
    extracted = extract_page(page, mode)
    marked = extracted.text[: extracted.n_text].tobytes()
    return "\n".join(line for block in blocks_of(marked, _named if terms else b" [img] ") if (line := line_of(block)))


def blocks_of(marked: bytes, term: bytes | Callable[[re.Match[bytes]], bytes]) -> list[bytes]:
    """The blocks of a page's text in their order, without marks. term: replaces the names of images and frames."""
    return _TERM.sub(term, marked).translate(None, _NOT_SHOWN).split(bytes([writing.BLOCK]))


def line_of(block: bytes) -> str:
    """A block as one line: white space collapsed."""
    return " ".join(block.decode("utf-8", "replace").split())


def unescape_value(value: bytes) -> str:
    """An attribute's raw value as text, cut to FACT_BYTES_MAX bytes, by the attribute rule for missing semicolons."""
    raw = value[:FACT_BYTES_MAX].decode("utf-8", "replace")
    return " ".join(_REFERENCE.sub(lambda match: html.unescape(match[0]), raw).split())


def title_of(page: bytes) -> str:
    """The title of an HTML page, at most TITLE_BYTES_MAX bytes of it; empty without a title."""
    extracted = extract_page(page)
    start, end = extracted.facts[TITLE_START : TITLE_END + 1].tolist()
    if start < 0:
        return ""
    # White space may be long; a character that the limit cuts in two is dropped.
    collapsed = b" ".join(extracted.text[start:end].tobytes().replace(bytes([writing.DELETE]), b"").split())
    return collapsed[:TITLE_BYTES_MAX].decode("utf-8", "ignore")
