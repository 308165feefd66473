"""Text to token fingerprints, one page at a time, for reports and tests. Batches use the kernels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.kernels.facts import TITLE_END, TITLE_START
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.points import ALL_DIGITS, ANY_DIGIT, IN_LINK, IN_TITLE, TERM
from neardup.kernels.tokens import tokenise, tokens_needed
from neardup.scheme import Scheme
from neardup.text.extraction import Extracted, extract_page
from neardup.text.tables import tables

__all__ = ["ALL_DIGITS", "ANY_DIGIT", "IN_LINK", "IN_TITLE", "TERM", "Tokens", "tables", "tokens_of", "words"]


@dataclass(frozen=True)
class Tokens:
    """The tokens of one page, in order.

    fp: uint64[n] fingerprint of each token's lower-cased UTF-8. flags: uint8[n], bits IN_TITLE, IN_LINK, ALL_DIGITS,
    ANY_DIGIT, TERM of `neardup.kernels.tokens`. block: int32[n] ordinal of the token's text block. words: the strings.
    """

    fp: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint8]
    block: npt.NDArray[np.int32]
    words: list[str]


def tokens_of(extracted: Extracted, seed: int = 0) -> Tokens:
    """Tokens of an extracted page, on copies: `extracted` stays as it is."""
    text = extracted.text.copy()
    room = tokens_needed(extracted.n_text)
    fp, flags, block = np.empty(room, np.uint64), np.empty(room, np.uint8), np.empty(room, np.int32)
    start, end = np.empty(room, np.uint32), np.empty(room, np.uint32)
    title_start, title_end = extracted.facts[TITLE_START], extracted.facts[TITLE_END]
    key = Scheme(seed).constants("token", KEY_WORDS)
    n = tokenise(text, extracted.n_text, title_start, title_end, key, tables(), fp, flags, block, start, end)
    data = text.tobytes()
    words = [data[a:b].decode() for a, b in zip(start[:n].tolist(), end[:n].tolist(), strict=True)]
    return Tokens(fp[:n], flags[:n], block[:n], words)


def words(page: bytes, mode: int = 0, host: str = "") -> list[str]:
    """The token strings of a page in UTF-8, in order, as sketches contain them.

    mode: 0 HTML, 1 plain text. host: the page's own, lower-case ASCII; URLs of images on it shrink to file names.
    """
    return tokens_of(extract_page(page, mode, host)).words
