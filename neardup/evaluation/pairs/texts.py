"""Reads token sequences and texts of a corpus's pages from their sources on demand."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.errors import BadInput, NeardupError
from neardup.evaluation.pairs.corpus import Corpus
from neardup.evaluation.pairs.difference import common_tokens
from neardup.kernels.facts import TITLE_END, TITLE_START
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.tokens import tokenise, tokens_needed
from neardup.page import Page, host_of
from neardup.scheme import Scheme
from neardup.sketch.content import article, main_content
from neardup.sketch.header import Header
from neardup.text.decoding import decode
from neardup.text.extraction import extract_page
from neardup.text.html import text_of
from neardup.text.tables import tables
from neardup.verdict import Coordinates

#: Reads a page again: maps the coordinates of a sketch to the page that is there now, None without one.
ReadPage = Callable[[Coordinates], Page | None]
#: Most bytes of cached token sequences.
CACHE_BYTES_MAX = 256 << 20
PROBLEMS_MAX = 50
#: Most pairs whose common subsequence is cached.
COMMON_MAX = 500_000


@dataclass(frozen=True)
class PageTokens:
    """The tokens of one page as in its sketch: fp uint64[n], with their positions in `text` (UTF-8)."""

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
        ends = self.end.tolist()
        return [data[a:b].decode("utf-8", "replace") for a, b in zip(self.start.tolist(), ends, strict=True)]

    @cached_property
    def content(self) -> npt.NDArray[np.bool_]:
        """bool[n]: tokens of the main content."""
        return main_content(self.flags, self.block, self.text, self.start, self.end)

    @cached_property
    def article(self) -> npt.NDArray[np.bool_]:
        """bool[n]: tokens of the article."""
        return article(self.flags, self.block, self.text, self.start, self.end)


def page_tokens(page: Page, scheme: Scheme) -> PageTokens:
    """Computes the tokens of a page with the scheme's seed; empty for a page that is neither HTML nor text."""
    body = (page.body or b"")[: scheme.body_bytes_max]
    decoded = decode(body, page.content_type, scheme.body_bytes_max)
    extracted = extract_page(b"" if decoded.opaque else decoded.utf8, decoded.mode, host_of(page.url))
    room = min(tokens_needed(extracted.n_text), scheme.tokens_max)
    fp, flags, block = np.empty(room, np.uint64), np.empty(room, np.uint8), np.empty(room, np.int32)
    start, end = np.empty(room, np.uint32), np.empty(room, np.uint32)
    title = extracted.facts[TITLE_START], extracted.facts[TITLE_END]
    key = scheme.constants("token", KEY_WORDS)
    n = tokenise(extracted.text, extracted.n_text, *title, key, tables(), fp, flags, block, start, end)
    # Folding may have made the text longer.
    text = extracted.text[: max(extracted.n_text, int(end[n - 1]) if n else 0)].copy()
    return PageTokens(fp[:n].copy(), flags[:n].copy(), block[:n].copy(), start[:n].copy(), end[:n].copy(), text)


class Texts:
    """Reads pages of a corpus again. problems: reasons of failures, one line each, at most PROBLEMS_MAX."""

    def __init__(self, corpus: Corpus, read_page: ReadPage, scheme: Scheme, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self.corpus = corpus
        self.scheme = scheme
        self.problems: list[str] = []
        self._read_page = read_page
        self._bytes_max, self._bytes = bytes_max, 0
        self._kept: OrderedDict[int, PageTokens | None] = OrderedDict()
        self._common: dict[tuple[int, int], int | None] = {}

    def page(self, number: int) -> Page:
        """Reads one page again, under its normalised URL. Raises BadInput if it is gone or has changed."""
        header = Header(self.corpus.records[number])
        try:
            page = self._read_page(header.coordinates)
        except OSError as error:
            raise BadInput(f"{header.url}: cannot be read any more: {error.strerror or error}") from error
        if page is None:
            raise BadInput(f"{header.url}: its source is gone")
        return Page(header.url, page.body, page.content_type)

    def tokens(self, number: int) -> PageTokens | None:
        """Returns the page's tokens, None if it cannot be read as it was sketched."""
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        found: PageTokens | None = None
        try:
            found = page_tokens(self.page(number), self.scheme)
            if len(found.fp) != Header(self.corpus.records[number]).tokens:
                raise BadInput(f"{self.corpus.urls[number]}: holds another text than the one that was sketched")
        except NeardupError as error:
            found = None
            if len(self.problems) < PROBLEMS_MAX:
                self.problems.append(str(error))
        self._kept[number] = found
        self._bytes += _cost(found)
        while self._bytes > self._bytes_max and len(self._kept) > 2:
            self._bytes -= _cost(self._kept.popitem(last=False)[1])
        return found

    def common(self, a: int, b: int) -> tuple[int, int, int] | None:
        """Returns (tokens of a, tokens of b, length of their longest common subsequence), cached.

        None if a text cannot be read, or the two are too long to compare.
        """
        key = (min(a, b), max(a, b))
        if key not in self._common:
            if len(self._common) >= COMMON_MAX:
                self._common.clear()
            one, other = self.tokens(key[0]), self.tokens(key[1])
            self._common[key] = None if one is None or other is None else common_tokens(one.fp, other.fp)
        common = self._common[key]
        if common is None:
            return None
        sizes = [Header(self.corpus.records[number]).tokens for number in (a, b)]
        return sizes[0], sizes[1], common

    def ratio(self, a: int, b: int) -> float | None:
        """Computes `neardup.evaluation.pairs.difference.common_ratio` of two pages, None as in `common`."""
        found = self.common(a, b)
        if found is None:
            return None
        n, m, common = found
        return common / (n + m - common) if common else 0.0

    def text(self, number: int) -> str:
        """Returns the text of a page, one line per block. Raises BadInput if it cannot be read."""
        page = self.page(number)
        most = self.scheme.body_bytes_max
        decoded = decode((page.body or b"")[:most], page.content_type, most)
        return "" if decoded.opaque else text_of(decoded.utf8, decoded.mode, terms=True)


def _cost(tokens: PageTokens | None) -> int:
    """Estimates the bytes of cached tokens, without `PageTokens.words`: few pages need the strings."""
    return 200 if tokens is None else len(tokens.text) + 21 * len(tokens.fp)
