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
from neardup.url_bytes import without_surrogates
from streams.formats.compressed import decode_body
from streams.formats.containment import contained
from streams.ports import Outgoing

#: Of a WARC header, and of an HTTP header in a record: servers refuse longer ones.
HEADER_BYTES_MAX = 64 << 10
#: Chunks of a body: enough for 10 MB in chunks of 50 bytes. Smaller chunks only serve to waste time.
CHUNKS_MAX = 200_000
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]{0,4000})?\r?\n")
_GZIP = b"\x1f\x8b"
_LENGTH_DIGITS_MAX = 18
_YEAR_10000_MS = 253_402_300_800_000
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_TARGET = b"warc-target-uri"
_PAGES = ("response", "resource", "revisit")
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


def decode(url: str, value: bytes, body_bytes_max: int) -> Page:
    """Decodes the page of one record, plain or in one gzip member.

    url: used if the record names none. Raises BadPage.
    """
    page = page_of(_record(value, body_bytes_max), body_bytes_max)
    if page is None:
        raise BadPage("a WARC record that holds no page")
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
    """Encodes a page. gone: it is a tombstone. Raises BadInput for values that a WARC record cannot express."""
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


def page_of(record: WarcRecord, body_bytes_max: int, *, converted: bool = False) -> Page | None:
    """Returns the page of a record; None if it contains none (requests, warcinfo, DNS answers and so on).

    converted: conversion records are pages, too. Transfer and content encodings of bodies are decoded, and bodies cut
    after body_bytes_max + 1 bytes.
    """
    headers = record.headers
    kind = headers.get("warc-type", "").lower()
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (kind and kind not in _PAGES + CONVERTED * converted) or media == "text/dns":
        return None
    url = headers.get("warc-target-uri", "").strip().removeprefix("<").removesuffix(">")
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
    if kind in ("resource", *CONVERTED) or media != "application/http":
        body = record.content[: body_bytes_max + 1]
        return Page(url=url, body=body, content_type=headers.get("content-type", ""), fetched_at=fetched_at)
    return _http_page(record.content, url, fetched_at, body_bytes_max)


def contained_page_of(record: WarcRecord, body_bytes_max: int, *, converted: bool, file: object) -> Page | None:
    """`page_of` for readers of files: a defect of a decoder gives a rejected page. file: its name in the log line."""
    url = record.headers.get("warc-target-uri", "")
    return contained(
        lambda: page_of(record, body_bytes_max, converted=converted),
        lambda reason: Page(url=url, body=b"", problem=reason),
        file=file,
        position=record.position,
    )


def warc_date(text: str) -> int | None:
    """Parses a WARC-Date in any form of `neardup.fetch_times` to ms since the epoch; None if it is no date."""
    try:
        found = read_time(text)
    except BadPage:
        return None
    return None if found.read_as == IN_ORDER else found.ms


def _http_page(content: bytes, url: str, fetched_at: int | None, bound: int) -> Page:
    status_line = _STATUS.match(content)
    if not status_line:
        return Page(url=url, body=b"", fetched_at=fetched_at, problem="no HTTP status line")
    status = int(status_line[1])
    rejected = partial(Page, url=url, body=b"", fetched_at=fetched_at, status=status)
    if status in GONE_STATUSES:
        return Page(url=url, body=None, fetched_at=fetched_at, status=status)
    if not 200 <= status < 300:
        return rejected(problem=f"HTTP status {status}")
    head = content[:HEADER_BYTES_MAX]
    ends = [(at, size) for end, size in ((b"\r\n\r\n", 4), (b"\n\n", 2)) if (at := head.find(end)) >= 0]
    if not ends and len(content) > HEADER_BYTES_MAX:
        return rejected(problem=f"an HTTP header of more than {HEADER_BYTES_MAX >> 10} kB")
    if not ends:
        return rejected(problem="an HTTP header without an end")
    at, size = min(ends)
    headers = fields_of(content[:at])
    body: bytes | None = content[at + size :]
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _unchunk(body or b"")
        if body is None:
            return rejected(problem=f"a body of more than {CHUNKS_MAX:,} chunks")
    codings = [c for c in headers.get("content-encoding", "").split(",") if c.strip()]
    if len(codings) > 3:
        return rejected(problem=f"{len(codings)} content encodings")
    for coding in reversed(codings):
        if not body:
            break
        body = decode_body(body, coding, bound + 1)
    if body is None:
        return rejected(problem=f"cannot decode Content-Encoding {', '.join(codings)[:60]!r}")
    return Page(
        url=url,
        body=body[: bound + 1],
        content_type=headers.get("content-type", ""),
        fetched_at=fetched_at,
        status=status,
    )


def _unchunk(body: bytes) -> bytes | None:
    """Decodes chunked transfer coding as far as it is valid. Returns a body that is not chunked unchanged.

    None for more chunks than CHUNKS_MAX.
    """
    parts: list[bytes] = []
    at = 0
    while found := _CHUNK.match(body, at):
        length = int(found[1], 16)
        if length == 0:
            return b"".join(parts)
        if len(parts) == CHUNKS_MAX:
            return None
        start = found.end()
        # A size is a number of the page: 16 digits are beyond what a position can be.
        length = min(length, len(body) - start)
        parts.append(body[start : start + length])
        at = start + length
        at += 2 if body.startswith(b"\r\n", at) else 1
    return b"".join(parts) if parts else body


def fields_of(header: bytes) -> dict[str, str]:
    """Parses header lines into a dictionary by lower-case names, without the first line and unreadable ones.

    The first value of a repeated name is used. Linear in the header's length, however its lines are folded. Bytes that
    are not UTF-8 are percent-encoded in the URL of a record (`neardup.urls`), and U+FFFD elsewhere.
    """
    found: dict[str, list[str]] = {}
    folding: list[str] | None = None
    for line in header.split(b"\n")[1:]:
        text = _text(line.rstrip(b"\r"))
        if text[:1] in (" ", "\t") and folding is not None:  # folded
            folding.append(text.strip())
            continue
        name, colon, value = text.partition(":")
        name = name.strip().lower()
        folding = None
        if colon and name:
            folding = [value.strip()]
            if found.setdefault(name, folding) is not folding:
                folding = []  # what belongs to a later value goes with it
    return {name: " ".join(parts) for name, parts in found.items()}


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        if line[: len(_TARGET)].lower() == _TARGET:
            return without_surrogates(line.decode("utf-8", "surrogateescape"))
        return line.decode("utf-8", "replace")
