"""Represents a page for signals: its fetched body, its rendered body, and the query that found it."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.scheme import Scheme
from neardup.sketch.one_page_content import main_content
from neardup.sketch.one_page_simhash import simhash
from neardup.text.decoding import decode
from neardup.text.one_page_html import extract_page, text_of, title_of
from neardup.text.one_page_tokens import TERM, Tokens, tokens_of
from neardup.urls import host_of, site_of

#: Bytes of a body that signals read (ours): results are compared in pairs, and one may be huge.
BODY_BYTES_MAX = 1_000_000
#: Fixed, so that signals and models are the same on every machine.
_SEED = 0
_PROJECTIONS = Scheme(_SEED).constants("simhash", 8)


@dataclass(frozen=True)
class Body:
    """One body of a page. A body that is neither HTML nor text has no title, no text and no terms.

    utf8: its first `BODY_BYTES_MAX` bytes in UTF-8. mode: 0 HTML, 1 plain text, 2 neither.
    """

    utf8: bytes
    mode: int = 0

    @classmethod
    def of(cls, body: bytes, content_type: str = "") -> "Body":
        """Decodes a fetched body by its own declarations and its content type."""
        decoded = decode(body[:BODY_BYTES_MAX], content_type)
        return cls(decoded.utf8[:BODY_BYTES_MAX], 2 if decoded.opaque else decoded.mode)

    @cached_property
    def title(self) -> str:
        """The title, white space collapsed; empty if there is none."""
        return title_of(self.utf8) if self.mode == 0 else ""

    @cached_property
    def text(self) -> str:
        """The visible text, one line per block."""
        return text_of(self.utf8, self.mode) if self.mode < 2 else ""

    @cached_property
    def terms(self) -> Sequence[str]:
        """The words of title and text in order, folded to lower case; pairs of characters in scripts without spaces."""
        tokens = self._tokens
        plain = (tokens.flags & TERM) == 0
        return [word for word, kept in zip(tokens.words, plain.tolist(), strict=True) if kept]

    @cached_property
    def simhash(self) -> npt.NDArray[np.uint64]:
        """The simhash of algorithm C, Henzinger 2006: uint64[6], 384 bits (the width is ours)."""
        return simhash(self._tokens.fp, _PROJECTIONS)[0]

    @cached_property
    def content_simhash(self) -> npt.NDArray[np.uint64]:
        """The same of the tokens of the main content alone."""
        return simhash(self._tokens.fp[main_content(self._tokens)], _PROJECTIONS)[0]

    @cached_property
    def _tokens(self) -> Tokens:
        return tokens_of(extract_page(self.utf8 if self.mode < 2 else b"", min(self.mode, 1)), _SEED)


@dataclass(frozen=True)
class Result:
    """A page as one of a query's results.

    url: normalised. rendered: None if the page was not rendered. lang: language of the page; empty if unknown.
    """

    url: str
    fetched: Body
    rendered: Body | None = None
    query: str = ""
    lang: str = ""

    @cached_property
    def domain(self) -> str:
        """The registrable domain (ours)."""
        return site_of(host_of(self.url))

    @cached_property
    def url_terms(self) -> frozenset[str]:
        """The words of the URL, with host and query."""
        return frozenset(re.findall(r"\w+", self.url.partition("://")[2]))

    @cached_property
    def fetched_snippet(self) -> bytes:
        return snippet(self.fetched.text, self.query).encode("utf-8", "replace")

    @cached_property
    def rendered_snippet(self) -> bytes:
        return snippet(self.seen.text, self.query).encode("utf-8", "replace")

    @property
    def seen(self) -> Body:
        """The rendered body, or the fetched one if the page was not rendered, so that no signal is missing (ours)."""
        return self.fetched if self.rendered is None else self.rendered


PASSAGES, PASSAGE_CHARACTERS = 3, 400
#: Characters of a passage before its first term.
_BEFORE = 100
_TERMS_MAX, _PLACES_MAX = 32, 2000


def snippet(text: str, query: str) -> str:
    """Returns the passages with the most distinct query terms, in the order of the text, one line each.

    A term is a word of the query. A term that is not ASCII is also found within words, for scripts without spaces.
    Passages do not overlap. Without a query or any of its terms, the snippet is the start of the text.
    """
    terms = list(dict.fromkeys(term.lower() for term in re.findall(r"\w+", query)))[:_TERMS_MAX]
    found = _places(text, terms) if terms else []
    if not found:
        return text[: PASSAGES * PASSAGE_CHARACTERS]
    starts = [place for place, _ in found]
    passages = []
    for place in starts:
        start = max(0, place - _BEFORE)
        first, last = (bisect_left(starts, edge) for edge in (start, start + PASSAGE_CHARACTERS))
        within = [term for _, term in found[first:last]]
        passages.append((-len(set(within)), -len(within), start))
    chosen: list[int] = []
    for *_, begin in sorted(passages):
        if all(abs(begin - start) >= PASSAGE_CHARACTERS for start in chosen):
            chosen.append(begin)
        if len(chosen) == PASSAGES:
            break
    return "\n".join(text[start : start + PASSAGE_CHARACTERS] for start in sorted(chosen))


def _places(text: str, terms: list[str]) -> list[tuple[int, str]]:
    """Finds the first occurrences of terms: (position, term), in the order of the text."""
    parts = [rf"\b{re.escape(term)}\b" if term.isascii() else re.escape(term) for term in terms]
    found = []
    for match in re.finditer("|".join(parts), text, re.IGNORECASE):
        found.append((match.start(), match[0].lower()))
        if len(found) == _PLACES_MAX:
            break
    return found
