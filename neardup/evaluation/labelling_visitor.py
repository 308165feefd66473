"""Prepares a page for a frame beside its text: no script runs, and the browser loads nothing for it.

Three walls: the frame's sandbox, the policy sent with the page (only its own styles and pictures), and the policy of
the surrounding page (only frames of this server). None of them prevents early connections: Chromium connects for a
frame inside the page before it checks the policy, for `<link rel=preconnect>`, and when a link is followed. Elements
that connect by themselves are therefore renamed, and links get another target.
"""

import re
from collections.abc import Callable, Mapping

from neardup.errors import BadInput
from neardup.evaluation.corpus_texts import Texts
from neardup.text.decoding import HTML, decode

#: Headers of the page. `sandbox` also applies if its address is opened outside the frame.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'self'; sandbox"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: A tag's name directly follows its "<". Matches in scripts and attributes are replaced too, without visible effect.
#: Includes animations, which can change the target of a link in a drawing.
_REACHING = re.compile(
    rb"<(?=(?:link|meta|base|iframe|frame|object|embed|fencedframe|portal|animate|set)[\s/>])", re.IGNORECASE
)
#: Following a link would connect, then fail in the frame. The first of several equal attributes counts, so each link is
#: made to lead to its own page. Anchors that are only names stay unchanged, or they would look like links.
_LINK = re.compile(
    rb"""<(a|area)(?=[\s/>])(?!(?:\s{1,9}(?:name|id|class)=(?:"[^"]{0,99}"|'[^']{0,99}'|[\w-]{1,99})){0,3}\s{0,9}>)""",
    re.IGNORECASE,
)
#: Disables clicks unless the page's own style enables them. Appended, since before a doctype it would change the
#: layout.
_STILL = b"<style>a, area { pointer-events: none !important }</style>"


def visitor_page(
    texts: Texts, number: int, rendered: Callable[[str], bytes | None] = lambda url: None
) -> tuple[str, bytes]:
    """Prepares a page of a corpus: (content type, body in UTF-8).

    rendered: returns the body of a URL as a browser rendered it, in UTF-8; None: the fetched body is shown.
    Raises BadInput if the page cannot be read, or is neither HTML nor text.
    """
    if (seen := rendered(texts.corpus.urls[number])) is not None:
        return "text/html", _harmless(seen[: texts.scheme.body_bytes_max].decode("utf-8", "replace").encode())
    page = texts.page(number)
    decoded = decode((page.body or b"")[: texts.scheme.body_bytes_max], page.content_type)
    if decoded.opaque:
        raise BadInput(f"{page.url}: neither HTML nor text")
    if decoded.mode != HTML:
        return "text/plain", decoded.utf8
    return "text/html", _harmless(decoded.utf8)


def _harmless(utf8: bytes) -> bytes:
    return _LINK.sub(rb"<\1 href=#", _REACHING.sub(b"<x-", utf8)) + _STILL
