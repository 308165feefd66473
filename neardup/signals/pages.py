"""What signals see of a page: a body as it was fetched, one as it was rendered, and the query that found it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neardup.page import host_of, site_of
from neardup.scheme import Scheme
from neardup.signals.snippets import snippet
from neardup.sketch.simhash import simhash
from neardup.text.decoding import decode
from neardup.text.extraction import extract_page
from neardup.text.html import facts_of, text_of
from neardup.text.tokens import TERM, Tokens, tokens_of

#: Bytes of a body that signals look at (ours): results of a query are compared in pairs, and one may be huge.
BODY_BYTES_MAX = 1_000_000
#: A fixed seed: signals and models mean the same on every machine.
_SEED = 0
_PROJECTIONS = Scheme(_SEED).constants("simhash", 8)


@dataclass(frozen=True)
class Body:
    """One body of a page. utf8: its first `BODY_BYTES_MAX` bytes in UTF-8. mode: 0 HTML, 1 plain text, 2 neither.

    What is neither HTML nor text has no title, no text and no terms.
    """

    utf8: bytes
    mode: int = 0

    @classmethod
    def of(cls, body: bytes, content_type: str = "") -> "Body":
        """The body of a page as it was fetched: decoded by what it and its content type say."""
        decoded = decode(body[:BODY_BYTES_MAX], content_type)
        return cls(decoded.utf8[:BODY_BYTES_MAX], 2 if decoded.opaque else decoded.mode)

    @cached_property
    def title(self) -> str:
        """White space collapsed; empty without one."""
        return (facts_of(self.utf8).title or "") if self.mode == 0 else ""

    @cached_property
    def text(self) -> str:
        """What a visitor sees, a line a block."""
        return text_of(self.utf8, self.mode) if self.mode < 2 else ""

    @cached_property
    def terms(self) -> Sequence[str]:
        """The words of title and text in order, folded to lower case; of scripts without spaces pairs of characters."""
        tokens = self._tokens
        plain = (tokens.flags & TERM) == 0
        return [word for word, kept in zip(tokens.words, plain.tolist(), strict=True) if kept]

    @cached_property
    def simhash(self) -> npt.NDArray[np.uint64]:
        """uint64[6]: algorithm C of Henzinger 2006, 384 bits (the width is ours)."""
        return simhash(self._tokens.fp, _PROJECTIONS)[0]

    @cached_property
    def _tokens(self) -> Tokens:
        return tokens_of(extract_page(self.utf8 if self.mode < 2 else b"", min(self.mode, 1)), _SEED)


@dataclass(frozen=True)
class Result:
    """A page as one of a query's results. url: normalised. rendered: None where it was not.

    lang: of the page, for tests across languages; empty: not known.
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
    def fetched_snippet(self) -> bytes:
        return snippet(self.fetched.text, self.query).encode("utf-8", "replace")

    @cached_property
    def rendered_snippet(self) -> bytes:
        return snippet(self.seen.text, self.query).encode("utf-8", "replace")

    @property
    def seen(self) -> Body:
        """The rendered body; of a page that was not rendered the fetched one, so that no signal is missing (ours)."""
        return self.fetched if self.rendered is None else self.rendered
