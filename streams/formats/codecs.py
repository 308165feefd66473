"""Records of the `pages` topic as pages. Key: the URL. A null value is a tombstone, whatever the codec.

raw     the value is the body; headers `content-type`, `fetched-at` (ms since the epoch), `http-status`, and `body-ref`,
        the URL of a body that is not in the record
json    one object, see `streams.formats.message.decode_json_page`; `body_ref` as above
warc    one WARC record, plain or in one gzip member
Nothing in a record raises: what cannot be read is a page with a `problem`.
"""

import dataclasses
import zlib
from collections.abc import Callable, Mapping

import orjson

from neardup.errors import BadPage
from neardup.page import Page
from streams.formats.bodies import Bodies
from streams.formats.message import decode_json_page
from streams.formats.warc import HEADER_BYTES_MAX, WarcRecord, page_of
from streams.ports import Record

_GZIP = b"\x1f\x8b"
_INT_DIGITS_MAX = 18


class Codec:
    """name: raw, json or warc. bodies: for what is not in the records. body_bytes_max: of the scheme."""

    def __init__(self, name: str, bodies: Bodies, body_bytes_max: int) -> None:
        decoders: Mapping[str, Callable[[str, bytes, Record], Page]]
        decoders = {"raw": self._raw, "json": self._json, "warc": self._warc}
        self._decode = decoders[name]
        self._headers_matter = name == "raw"
        self._bodies = bodies
        self._body_bytes_max = body_bytes_max

    def page(self, record: Record) -> Page:
        """The page in a record; its `problem` says what is wrong with it."""
        url = (record.key() or b"").decode("utf-8", "replace")
        value = record.value()
        try:
            if value is None and not (self._headers_matter and record.headers()):
                return Page(url=url, body=None)
            return self._decode(url, value or b"", record)
        except BadPage as error:
            return Page(url=url, body=b"", problem=str(error))

    def _raw(self, url: str, value: bytes, record: Record) -> Page:
        headers = {name.lower(): text or b"" for name, text in record.headers() or ()}
        if not url:
            raise BadPage("a record without a key: its URL is not known")
        body: bytes | None = value
        if "body-ref" in headers:
            body = self._bodies.read(headers["body-ref"].decode("utf-8", "replace"))
        elif record.value() is None:
            body = None
        status = _number(headers, "http-status")
        return Page(
            url=url,
            body=body,
            content_type=headers.get("content-type", b"").decode("latin-1"),
            fetched_at=_number(headers, "fetched-at"),
            status=200 if status is None else status,
        )

    def _json(self, url: str, value: bytes, record: Record) -> Page:
        page = decode_json_page(value)
        if b'"body_ref"' not in value:
            return page
        fields = orjson.loads(value)
        reference = fields.pop("body_ref", None)
        if reference is None:
            return page
        if not isinstance(reference, str):
            raise BadPage(f"body_ref is a {type(reference).__name__}, not text")
        page = decode_json_page(orjson.dumps({**fields, "body": ""}))
        return page if page.problem else dataclasses.replace(page, body=self._bodies.read(reference))

    def _warc(self, url: str, value: bytes, record: Record) -> Page:
        page = page_of(_warc_record(value, self._body_bytes_max), self._body_bytes_max)
        if page is None:
            raise BadPage("a WARC record that holds no page")
        return page if page.url else dataclasses.replace(page, url=url)


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not text.removeprefix(b"-").isdigit() or len(text) > _INT_DIGITS_MAX:
        raise BadPage(f"header {name} is {text[:40]!r}, not a number")
    return int(text)


def _warc_record(data: bytes, body_bytes_max: int) -> WarcRecord:
    if data.startswith(_GZIP):
        bound = body_bytes_max + (HEADER_BYTES_MAX << 1)
        try:
            data = zlib.decompressobj(31).decompress(data, bound)
        except zlib.error as error:
            raise BadPage(f"a WARC record whose gzip is damaged: {error}") from error
    head, end, content = data.partition(b"\r\n\r\n")
    if not data.startswith(b"WARC/") or not end:
        raise BadPage("not a WARC record")
    headers: dict[str, str] = {}
    for line in head.split(b"\r\n")[1:]:
        name, colon, text = line.decode("utf-8", "replace").partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), text.strip())
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < _INT_DIGITS_MAX):
        raise BadPage(f"a WARC record whose Content-Length is {length[:40]!r}")
    whole = min(int(length), body_bytes_max + HEADER_BYTES_MAX)
    damage = "" if len(content) >= whole else f"a WARC record of {length} bytes has only {len(content)}"
    return WarcRecord(0, headers, content[: int(length)], damage)
