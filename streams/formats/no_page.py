"""Fetches that brought no page, though something was answered: by method, truncation and status.

An article must not be replaced by the answer to a HEAD request, or by the half of a page. In files such records are
left out and counted. On the topic each record has one verdict, so they are rejected. In both cases the page that was
fetched before stands.
"""

from dataclasses import dataclass

#: Methods that are named in counts; programs send any word.
_METHODS = ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND")
#: Values of WARC-Truncated (ISO 28500:2017, section 5.13).
TRUNCATIONS = ("length", "time", "disconnect", "unspecified")


@dataclass(frozen=True, slots=True)
class NoPage:
    """A record that is no page. kind: kind for counts; one of few values, whatever the record contains."""

    kind: str


def no_page(method: str = "", truncated: str = "", *, empty: bool = False) -> str:
    """Returns why a fetch brought no page, or "".

    A body that was cut at the crawler's limit of length is a page: crawlers cut large pages on purpose. After a limit
    of time, a lost connection or an unknown cause, any part of the page may be missing.

    Args:
        method: method of the request; "" if it is not known, which counts as GET.
        truncated: value of WARC-Truncated; "" for a whole body.
        empty: whether the body is empty.
    """
    name = method.strip().upper()
    if name not in ("", "GET"):
        return f"answer to {name}" if name in _METHODS else "answer to another method"
    cause = truncated.strip().lower()
    if not cause or (cause == "length" and not empty):
        return ""
    return f"body cut off: {cause if cause in TRUNCATIONS else 'unspecified'}"
