"""Reads WARC records and their pages: the `warc` codec, and the functions by which files of records are read.

Source: ISO 28500:2017 (WARC 1.1), sections 4 to 6, annex D. Files of many records: `streams.files.warc_reader`.
"""

import dataclasses
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from neardup.errors import BadInput, BadPage
from neardup.fetch_times import IN_ORDER, read_time
from neardup.limits import GONE_STATUSES
from neardup.page import Page
from streams.formats.containment import contained
from streams.formats.http_answer import HEADER_BYTES_MAX, begins_answer, fields_of, read_answer
from streams.formats.no_page import NoPage, no_page
from streams.ports import Outgoing

#: Bytes of a record besides a body: HTTP headers, and the growth by a content encoding.
CONTENT_SLACK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_LENGTH_DIGITS_MAX = 18
_YEAR_10000_MS = 253_402_300_800_000
_PAGES = ("response", "resource", "revisit")
#: Schemes of pages. Archivers store their own records under others: `urn:pageinfo:`, `metadata://`, `screenshot:`, and
#: answers of other protocols: `dns:`, `whois:`.
_SCHEMES = ("http", "https", "ftp", "ftps", "sftp", "file", "gopher", "gemini")
_YEAR = re.compile(r"\d{4}", re.ASCII)
#: A host with a port is no scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}):(?!\d+(?:/|\Z))(?:([A-Za-z0-9-]{1,30}):)?")
_OTHER_TYPES = ("warcinfo", "request", "metadata", "conversion", "continuation")
#: A WET file, as Common Crawl makes them: the text of pages, as records of their own.
CONVERTED = ("conversion",)


@dataclass(slots=True)
class WarcRecord:
    """A WARC record. position: byte at which it, or its gzip member, starts.

    shared: another record starts in the same member. content: the first bytes, at most the reader's limit. damage: why
    the content is incomplete, or "".
    """

    position: int
    headers: dict[str, str]
    content: bytes = b""
    damage: str = ""
    shared: bool = False

    @property
    def length(self) -> int:
        """The bytes of the whole content, as the header says; 0 if it says none."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0

    @property
    def is_http_answer(self) -> bool:
        """Whether the content is an HTTP answer with its status line and headers.

        Programs also write such a record without `application/http`. Its error page would be taken for an article.
        """
        kind, media = (self.headers.get(name, "").lower() for name in ("warc-type", "content-type"))
        if kind not in ("response", "revisit"):
            return False
        return media.partition(";")[0].strip() == "application/http" or (
            _url_of(self.headers).lower().startswith(("http:", "https:")) and begins_answer(self.content)
        )


def decode(url: str, value: bytes, body_bytes_max: int, method: str = "") -> Page:
    """Decodes the page of one record, plain or in one gzip member.

    url: used if the record names none. method: method of the request, which is another record. Raises BadPage.
    """
    page = page_of(_record(value, body_bytes_max), body_bytes_max, method=method)
    if isinstance(page, NoPage):
        raise BadPage(f"a WARC record that holds no page: {page.kind}")
    return page if page.url else dataclasses.replace(page, url=url)


def fetched_at(value: bytes) -> int | None:
    """Returns the WARC-Date of a record, plain or in one gzip member; None without one."""
    if value.startswith(_GZIP):
        try:
            value = zlib.decompressobj(31).decompress(value, HEADER_BYTES_MAX)
        except zlib.error:
            return None
    head = value[:HEADER_BYTES_MAX].partition(b"\r\n\r\n")[0]
    return warc_date(fields_of(head).get("warc-date", ""))


def encode(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
    """Encode a page. gone: whether the page is a tombstone.

    Raises BadInput for values that a WARC record cannot express.
    """
    if reference:
        raise BadInput(f"{page.url}: the warc codec has no references to bodies; use raw or json")
    if any(ord(char) < 0x20 for char in page.url + page.content_type):
        raise BadInput(f"{page.url!r}: a control character in URL or content type would break a WARC header")
    body = b"" if gone else page.body or b""
    status = 404 if gone and page.status not in GONE_STATUSES else page.status
    content_type = b"Content-Type: %s\r\n" % page.content_type.encode("utf-8", "replace") if page.content_type else b""
    head = b"HTTP/1.1 %03d \r\n%sContent-Length: %d\r\n\r\n" % (status, content_type, len(body))
    lines = [b"WARC/1.1", b"WARC-Type: response", b"WARC-Target-URI: " + key]
    # Of the record's content, so that the same fetch published twice is the same record.
    name = uuid5(NAMESPACE_URL, f"{page.url} {page.fetched_at} {sha256(body).hexdigest()}")
    lines.append(b"WARC-Record-ID: <urn:uuid:%s>" % str(name).encode())
    if page.fetched_at is not None:
        if not 0 <= page.fetched_at < _YEAR_10000_MS:
            raise BadInput(f"{page.url}: a WARC date cannot be {page.fetched_at} ms since 1970")
        date = datetime.fromtimestamp(page.fetched_at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        lines.append(b"WARC-Date: %s.%03dZ" % (date.encode(), page.fetched_at % 1000))
    if page.truncated:
        lines.append(b"WARC-Truncated: length")
    lines.append(b"Content-Type: application/http; msgtype=response")
    lines.append(b"Content-Length: %d" % (len(head) + len(body)))
    return Outgoing(key, b"\r\n".join(lines) + b"\r\n\r\n" + head + body + b"\r\n\r\n")


def _record(data: bytes, body_bytes_max: int) -> WarcRecord:
    if data.startswith(_GZIP):
        bound = body_bytes_max + (HEADER_BYTES_MAX << 1)
        try:
            data = zlib.decompressobj(31).decompress(data, bound)
        except zlib.error as error:
            raise BadPage(f"a WARC record whose gzip is damaged: {error}") from error
    head, end, content = data.partition(b"\r\n\r\n")
    if not data.startswith(b"WARC/") or not end:
        raise BadPage("not a WARC record")
    if len(head) > HEADER_BYTES_MAX:
        raise BadPage(f"a WARC record with a header of more than {HEADER_BYTES_MAX >> 10} kB")
    headers = fields_of(head)
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < _LENGTH_DIGITS_MAX):
        raise BadPage(f"a WARC record whose Content-Length is {length[:40]!r}")
    whole = min(int(length), body_bytes_max + HEADER_BYTES_MAX)
    damage = "" if len(content) >= whole else f"a WARC record of {length} bytes has only {len(content)}"
    return WarcRecord(0, headers, content[: int(length)], damage)


def page_of(record: WarcRecord, body_bytes_max: int, *, converted: bool = False, method: str = "") -> Page | NoPage:
    """Returns the page of a record, or the kind of a record that holds none: of an archiver, or of no page fetch.

    converted: conversion records are pages, too. method: method of the request that the record answers; "": not known.
    Transfer and content encodings of bodies are decoded, and bodies cut after body_bytes_max + 1 bytes.
    """
    headers = record.headers
    kind = headers.get("warc-type", "").lower()
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    url = _url_of(headers)
    if kind and kind not in _PAGES + CONVERTED * converted:
        return NoPage(kind if kind in _OTHER_TYPES else "another type")
    if other := "dns:" if media == "text/dns" else _other_scheme(url):
        return NoPage(other)
    if why := no_page(method):
        return NoPage(why)
    fetched_at = warc_date(headers.get("warc-date", ""))
    rejected = partial(Page, url=url, body=b"", fetched_at=fetched_at)
    if record.damage:
        return rejected(problem=record.damage)
    if not kind:  # every record has one: this may have been a page
        return rejected(problem="a WARC record without WARC-Type")
    if not url:
        return rejected(problem="a WARC record without WARC-Target-URI")
    if kind == "revisit":
        return rejected(problem="a revisit record: its archive does not hold the body")
    # A segment is the beginning of a record that was cut at a limit of length.
    truncated = headers.get("warc-truncated", "") or ("length" if "warc-segment-number" in headers else "")
    if not record.is_http_answer:
        body = record.content[: body_bytes_max + 1]
        if why := no_page(truncated=truncated, empty=not body):
            return NoPage(why)
        content_type = headers.get("content-type", "")
        return Page(url, body, content_type, fetched_at, truncated=bool(truncated))
    return _http_page(record, Page(url, b"", fetched_at=fetched_at), truncated, body_bytes_max + 1)


def _http_page(record: WarcRecord, page: Page, truncated: str, bound: int) -> Page | NoPage:
    """Return the page of an HTTP answer. page: page with the URL and the fetch time of the answer."""
    try:
        # Whatever else its reader kept: a scan and a copy must find the same pages.
        content = record.content[: bound + CONTENT_SLACK_BYTES]
        answer = read_answer(content, cut=len(content) < record.length)
        # The range of a whole page is the page.
        status = 200 if answer.status == 206 and not answer.is_partial else answer.status
        page = dataclasses.replace(page, status=status)
        if answer.status in GONE_STATUSES:
            return dataclasses.replace(page, body=None)
        if answer.is_partial:
            return NoPage(f"HTTP status {answer.status}")
        if not 200 <= answer.status < 300:
            return dataclasses.replace(page, problem=f"HTTP status {answer.status}")
        why = no_page(truncated=truncated, empty=not answer.body)
        if why := why or ("" if truncated else answer.missing):
            return NoPage(why)
        content_type = answer.headers.get("content-type", "")
        body = answer.decoded(bound)
    except BadPage as error:
        return dataclasses.replace(page, problem=str(error))
    return dataclasses.replace(page, body=body, content_type=content_type, truncated=bool(truncated))


def _url_of(headers: dict[str, str]) -> str:
    return headers.get("warc-target-uri", "").strip().removeprefix("<").removesuffix(">")


def _other_scheme(url: str) -> str:
    """Returns the scheme of a URL that is none of a page, of a URN with its namespace; "" of a page."""
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    if found is None or scheme in _SCHEMES:
        return ""
    return f"urn:{found[2].lower()}:" if scheme == "urn" and found[2] else f"{scheme}:"


def contained_page_of(
    record: WarcRecord, body_bytes_max: int, *, converted: bool, file: object, method: str = ""
) -> Page | NoPage:
    """Return `page_of` for readers of files: a defect of a decoder gives a rejected page. file: name in log lines."""
    url = record.headers.get("warc-target-uri", "")
    return contained(
        lambda: page_of(record, body_bytes_max, converted=converted, method=method),
        lambda reason: Page(url=url, body=b"", problem=reason),
        file=file,
        position=record.position,
    )


def warc_date(text: str) -> int | None:
    """Parses a WARC-Date in any form of `neardup.fetch_times` to ms since the epoch; None if it is no date."""
    try:
        found = read_time(f"{text}-01" if _YEAR.fullmatch(text) else text)  # WARC 1.1 allows a year alone
    except BadPage:
        return None
    return None if found.read_as == IN_ORDER else found.ms
