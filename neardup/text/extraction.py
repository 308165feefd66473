"""Runs the extraction kernel on one page, for `neardup.text.html` and `neardup.text.tokens`."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.kernels import html as kernel
from neardup.kernels.facts import FACTS
from neardup.text.tables import tables


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
