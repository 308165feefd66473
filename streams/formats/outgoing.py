"""Pages as records of the `pages` topic: what a crawler's side writes and `streams.formats.codecs` reads.

Whatever the codec, the key is the URL as the crawler has it, and a page that is gone has a null value where nothing
else is to be said of it. `raw` tells the rest in headers, `json` and `warc` in the value.
"""

import base64
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

import orjson

from neardup.errors import BadInput
from neardup.limits import GONE_STATUSES, KAFKA_FRAMING_BYTES
from neardup.page import Page
from streams.errors import RecordTooLarge

_YEAR_10000_MS = 253_402_300_800_000


class Outgoing(NamedTuple):
    """One record. value: None where Kafka shall have no value."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """Bytes, what Kafka adds included."""
        headers = sum(len(name) + len(text) for name, text in self.headers)
        return len(self.key) + len(self.value or b"") + headers + KAFKA_FRAMING_BYTES


def encode_page(page: Page, codec: str, *, reference: str = "") -> Outgoing:
    """The record of a page; `problem` is not told. codec: raw, json or warc.

    reference: the URL where the body lies; it is not in the record then. Raises BadInput for a page without URL, an
    unknown codec, or what the codec cannot say.
    """
    if not page.url:
        raise BadInput("a page without a URL cannot be published")
    check_codec(codec)
    key = page.url.encode("utf-8", "replace")
    gone = page.body is None or page.status in GONE_STATUSES
    if gone and page.fetched_at is None and page.status not in GONE_STATUSES:
        return Outgoing(key, None)
    return _CODECS[codec](page, key, gone, reference)


def _raw(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
    headers = [("http-status", b"%d" % page.status)]
    if page.fetched_at is not None:
        headers.append(("fetched-at", b"%d" % page.fetched_at))
    if gone:
        return Outgoing(key, None, tuple(headers))
    if page.content_type:
        headers.append(("content-type", page.content_type.encode("latin-1", "replace")))
    if reference:
        headers.append(("body-ref", reference.encode()))
    return Outgoing(key, b"" if reference else page.body, tuple(headers))


def _json(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
    fields: dict[str, object] = {"url": key.decode(), "http_status": page.status}
    if page.fetched_at is not None:
        fields["fetched_at"] = page.fetched_at
    if gone:
        fields["body"] = None
        return Outgoing(key, orjson.dumps(fields))
    if page.content_type:
        fields["content_type"] = page.content_type.encode("utf-8", "replace").decode()
    if reference:
        fields["body_ref"] = reference
    else:
        fields["body"] = _json_body(page.body or b"")
    return Outgoing(key, orjson.dumps(fields))


def _json_body(body: bytes) -> object:
    """Text where the same bytes come back from it, else base64."""
    if body.isascii():
        return body.decode("ascii")
    return {"base64": base64.b64encode(body).decode("ascii")}


def _warc(page: Page, key: bytes, gone: bool, reference: str) -> Outgoing:
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


_CODECS: Mapping[str, Callable[[Page, bytes, bool, str], Outgoing]] = {"raw": _raw, "json": _json, "warc": _warc}


def check_codec(name: str) -> None:
    """Raises BadInput if there is no such codec."""
    if name not in _CODECS:
        raise BadInput(f"codec {name!r}: there is {', '.join(_CODECS)}")


class BodyFolder:
    """Where bodies go that no record can hold. A file is named by its content: published twice, it is there once."""

    def __init__(self, place: str | Path) -> None:
        """place: a folder or a `file:` URL; it is made when the first body comes. Raises BadInput for other URLs."""
        text = str(place)
        if "://" in text and not text.startswith("file:///"):
            raise BadInput(f"bodies go to a folder or a file:/// URL, not to {text}")
        self.folder = Path(unquote(urlsplit(text).path) if text.startswith("file:///") else os.path.abspath(text))
        self.url = "file://" + quote(os.fsencode(self.folder)).rstrip("/") + "/"

    def put(self, body: bytes) -> str:
        """The URL of the body, which is on disk when this returns. Raises BadInput if it cannot be written."""
        name = sha256(body).hexdigest()
        path = self.folder / name[:2] / name
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{name}.{os.getpid()}.part")
                with part.open("wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(path)
        except OSError as error:
            raise BadInput(f"cannot write a body to {path}: {error.strerror}") from error
        return f"{self.url}{name[:2]}/{name}"


def fitting(page: Page, codec: str, bytes_max: int, bodies: BodyFolder | None, topic: str) -> Outgoing:
    """The record of a page, its body beside it in `bodies` if the record would exceed `bytes_max`.

    Raises RecordTooLarge, saying what can be done, and BadInput as `encode_page`.
    """
    record = encode_page(page, codec)
    if record.size <= bytes_max:
        return record
    if bodies is not None and page.body is not None and codec != "warc":
        small = encode_page(page, codec, reference="file:///")
        if small.size + len(bodies.url) + 80 <= bytes_max:  # a digest in hex, and its folder
            return encode_page(page, codec, reference=bodies.put(page.body))
    way_out = "" if bodies is not None else ", or name a folder for bodies that the sketchers can read"
    raise RecordTooLarge(
        f"{page.url[:200]}: a record of {record.size:,} bytes, and topic {topic} takes {bytes_max:,}: raise its "
        f"max.message.bytes{way_out}"
    )
