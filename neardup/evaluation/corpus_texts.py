"""Reads token sequences and texts of a corpus's pages from their sources on demand."""

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.errors import BadInput, NeardupError
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.text_difference import common_tokens
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.one_page_content import article, main_content
from neardup.text.decoding import decode
from neardup.text.one_page_html import extract_page, text_of
from neardup.text.one_page_tokens import Tokens, tokens_of
from neardup.urls import host_of
from neardup.verdict import Coordinates

#: Reads a page again: maps the coordinates of a sketch to the page that is there now, None without one.
ReadPage = Callable[[Coordinates], Page | None]
#: Most bytes of cached token sequences.
CACHE_BYTES_MAX = 256 << 20
PROBLEMS_MAX = 50
#: Most pairs whose common subsequence is cached.
COMMON_MAX = 500_000


class PageTokens(Tokens):
    """The tokens of one page as in its sketch."""

    @cached_property
    def content(self) -> npt.NDArray[np.bool_]:
        """bool[n]: tokens of the main content."""
        return main_content(self)

    @cached_property
    def article(self) -> npt.NDArray[np.bool_]:
        """bool[n]: tokens of the article."""
        return article(self)


def page_tokens(page: Page, scheme: Scheme) -> PageTokens:
    """Computes the tokens of a page with the scheme's seed; empty for a page that is neither HTML nor text."""
    body = (page.body or b"")[: scheme.body_bytes_max]
    decoded = decode(body, page.content_type, scheme.body_bytes_max)
    extracted = extract_page(b"" if decoded.opaque else decoded.utf8, decoded.mode, host_of(page.url))
    return PageTokens(**vars(tokens_of(extracted, scheme.seed, scheme.tokens_max)))


class Texts:
    """Reads pages of a corpus again. problems: reasons of failures, one line each, at most PROBLEMS_MAX."""

    def __init__(self, corpus: Corpus, read_page: ReadPage, scheme: Scheme) -> None:
        self.corpus = corpus
        self.scheme = scheme
        self.problems: list[str] = []
        self._read_page = read_page
        self._bytes = 0
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
        while self._bytes > CACHE_BYTES_MAX and len(self._kept) > 2:
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
        """Computes `neardup.evaluation.text_difference.common_ratio` of two pages, None as in `common`."""
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
