"""One page as a visitor sees it, for a frame beside its text: nothing of it runs, and nothing is loaded for it.

Three walls: the frame's sandbox, the policy that is sent with the page (styles and pictures of the page itself alone),
and the policy of the page around it (frames of this server alone). None of them keeps a browser from connecting ahead:
Chromium does for a frame within the page before it asks whether that may be loaded, and `<link rel=preconnect>` says
so, or where a link is followed. Elements that reach out by themselves are therefore given another name, and links
another target.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from neardup.errors import BadInput
from neardup.evaluation.pairs.texts import Texts
from neardup.text.decoding import HTML, decode

#: Sent with the page. `sandbox` holds, too, where somebody opens its address outside the frame.
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
#: A tag's name stands directly behind its "<", or it is no tag; what this meets in scripts and attributes is not seen.
#: Animations are among them, as they can give a link of a drawing another target.
_REACHING = re.compile(
    rb"<(?=(?:link|meta|base|iframe|frame|object|embed|fencedframe|portal|animate|set)[\s/>])", re.IGNORECASE
)
#: A link that is followed would end in an error of the frame, and connect before. Of attributes of one name the first
#: counts: each link leads to its own page. What is a name and no link stays one, or it would look like a link.
_LINK = re.compile(
    rb"""<(a|area)(?=[\s/>])(?!(?:\s{1,9}(?:name|id|class)=(?:"[^"]{0,99}"|'[^']{0,99}'|[\w-]{1,99})){0,3}\s{0,9}>)""",
    re.IGNORECASE,
)
#: Where the page does not ask for clicks itself, they do nothing at all. At the end: before a doctype it would change
#: how the page looks.
_STILL = b"<style>a, area { pointer-events: none !important }</style>"


class FramePage(NamedTuple):
    """What a frame is sent: UTF-8."""

    content_type: str
    body: bytes


def visitor_page(texts: Texts, number: int) -> FramePage:
    """The page of a corpus. Raises BadInput where it cannot be read, or is neither HTML nor text."""
    page = texts.page(number)
    decoded = decode((page.body or b"")[: texts.scheme.body_bytes_max], page.content_type)
    if decoded.opaque:
        raise BadInput(f"{page.url}: neither HTML nor text")
    if decoded.mode != HTML:
        return FramePage("text/plain", decoded.utf8)
    harmless = _LINK.sub(rb"<\1 href=#", _REACHING.sub(b"<x-", decoded.utf8))
    return FramePage("text/html", harmless + _STILL)
