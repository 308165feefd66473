"""The `raw` codec: the value is the body; headers contain the metadata.

Headers: `content-type`, `fetched-at` (ms since the epoch, or what else `neardup.fetch_times` reads), `http-status`,
`score` (the crawler's, 0 to 1), and `body-ref`, the URL of a body that is not in the record. A record whose
`http-method` is not GET, or whose `truncated` (as WARC-Truncated: `length`, `time`, `disconnect`, `unspecified`) is not
`length`, brought no page and is rejected.
"""

from collections.abc import Mapping
from typing import Any

from neardup.errors import BadPage
from neardup.fetch_times import ms_of_digits, read_time
from neardup.page import Page
from streams.formats.bodies import Bodies
from streams.formats.no_page import no_page
from streams.ports import Outgoing, Record

_INT_DIGITS_MAX, _SCORE_CHARS_MAX = 18, 40


def decode(url: str, value: bytes, record: Record, bodies: Bodies) -> Page:
    """Decodes a record. Raises BadPage."""
    headers = {name.lower(): text or b"" for name, text in record.headers() or ()}
    if not url:
        raise BadPage("a record without a key: its URL is not known")
    answered = "http-method" in headers or "truncated" in headers  # most records say neither
    if answered:
        _must_be_page(headers)
    body: bytes | None = value
    if "body-ref" in headers:
        body = bodies.read(headers["body-ref"].decode("utf-8", "replace"))
    elif record.value() is None:
        body = None
    if answered:
        _must_be_page(headers, empty=body == b"")
    status = _number(headers, "http-status")
    return Page(
        url=url,
        body=body,
        content_type=headers.get("content-type", b"").decode("latin-1"),
        fetched_at=_time(headers.get("fetched-at")),  # Page reads it
        status=200 if status is None else status,
        score=_score(headers),
        truncated=bool(headers.get("truncated")),
    )


def method_of(record: Record) -> str:
    """Returns the header `http-method` of a record of any codec; "" without it."""
    found = (text for name, text in record.headers() or () if name.lower() == "http-method")
    return (next(found, b"") or b"").decode("latin-1")


def _must_be_page(headers: Mapping[str, bytes], *, empty: bool = False) -> None:
    method, truncated = (headers.get(name, b"").decode("latin-1") for name in ("http-method", "truncated"))
    if why := no_page(method, truncated, empty=empty):
        raise BadPage(why)


def fetched_at(record: Record) -> int | None:
    """Returns the fetch time in a record's headers; None if it is missing or none."""
    for name, text in record.headers() or ():
        if name.lower() == "fetched-at":
            try:
                return read_time(_time(text or b"")).ms
            except BadPage:
                return None
    return None


def _time(text: bytes | None) -> Any:
    if text is None:
        return None
    ms = ms_of_digits(text)
    return text.decode("latin-1") if ms is None else ms


def encode(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
    """Encode a page. gone: whether the page is a tombstone. reference: URL of its body, or ""."""
    headers = [("http-status", b"%d" % page.status)]
    if page.fetched_at is not None:
        headers.append(("fetched-at", b"%d" % page.fetched_at))
    if gone:
        return Outgoing(key, None, tuple(headers))
    if page.score is not None:
        headers.append(("score", repr(float(page.score)).encode()))
    if page.content_type:
        headers.append(("content-type", page.content_type.encode("latin-1", "replace")))
    if page.truncated:
        headers.append(("truncated", b"length"))
    if reference:
        headers.append(("body-ref", reference.encode()))
    return Outgoing(key, b"" if reference else page.body, tuple(headers))


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not text.removeprefix(b"-").isdigit() or len(text) > _INT_DIGITS_MAX:
        raise BadPage(f"header {name} is {text[:40]!r}, not a number")
    return int(text)


def _score(headers: Mapping[str, bytes]) -> float | None:
    text = headers.get("score")
    if text is None:
        return None
    try:
        return float(text[:_SCORE_CHARS_MAX])
    except ValueError:
        raise BadPage(f"header score is {text[:40]!r}, not a number from 0 to 1") from None
