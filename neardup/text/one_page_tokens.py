"""Text to token fingerprints, one page at a time, for reports and tests. Batches use the kernels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.kernels.composition import CLUSTER_POINTS
from neardup.kernels.facts import TITLE_END, TITLE_START
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.points import ALL_DIGITS, ANY_DIGIT, IN_LINK, IN_TITLE, TERM
from neardup.kernels.tokens import tokenise, tokens_needed
from neardup.scheme import constants
from neardup.text.one_page_html import Extracted, extract_page
from neardup.text.tables import tables

__all__ = ["ALL_DIGITS", "ANY_DIGIT", "IN_LINK", "IN_TITLE", "TERM", "Tokens", "tables", "tokens_of", "words"]


@dataclass(frozen=True)
class Tokens:
    """The tokens of one page, in order.

    fp: uint64[n] fingerprint of each token's lower-cased UTF-8. flags: uint8[n], bits IN_TITLE, IN_LINK, ALL_DIGITS,
    ANY_DIGIT, TERM of `neardup.kernels.tokens`. block: int32[n] ordinal of the token's text block. start, end:
    uint32[n], its bytes in `text`, UTF-8.
    """

    fp: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint8]
    block: npt.NDArray[np.int32]
    start: npt.NDArray[np.uint32]
    end: npt.NDArray[np.uint32]
    text: npt.NDArray[np.uint8]

    @cached_property
    def words(self) -> list[str]:
        """Returns the tokens as strings."""
        data = self.text.tobytes()
        return [
            data[a:b].decode("utf-8", "replace") for a, b in zip(self.start.tolist(), self.end.tolist(), strict=True)
        ]


def tokens_of(extracted: Extracted, seed: int = 0, tokens_max: int | None = None) -> Tokens:
    """Return the tokens of an extracted page, which stays unchanged. tokens_max: `Scheme.tokens_max`, or no limit."""
    text, room = extracted.text.copy(), tokens_needed(extracted.n_text)
    room = room if tokens_max is None else min(room, tokens_max)
    fp = np.empty(max(room, CLUSTER_POINTS), np.uint64)
    flags, block = np.empty(room, np.uint8), np.empty(room, np.int32)
    start, end = np.empty(room, np.uint32), np.empty(room, np.uint32)
    title = extracted.facts[TITLE_START], extracted.facts[TITLE_END]
    key = constants(seed, "token", KEY_WORDS)
    n = tokenise(text, extracted.n_text, *title, key, tables(), fp, flags, block, start, end)
    # Folding may have made the text longer.
    size = max(extracted.n_text, int(end[n - 1]) if n else 0)
    fp, flags, block, start, end = fp[:n].copy(), flags[:n].copy(), block[:n].copy(), start[:n].copy(), end[:n].copy()
    return Tokens(fp, flags, block, start, end, text[:size].copy())


def words(page: bytes, mode: int = 0, host: str = "") -> list[str]:
    """The token strings of a page in UTF-8, in order, as sketches contain them.

    mode: 0 HTML, 1 plain text. host: the page's own, lower-case ASCII; URLs of images on it shrink to file names.
    """
    return tokens_of(extract_page(page, mode, host)).words
