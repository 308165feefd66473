"""Encodes and decodes records of the `pages` topic by the configured codec.

With each codec the key is the URL as the crawler has it, and a null value without other data is a tombstone. `raw`
stores metadata in headers, `json` and `warc` in the value. A WARC record cannot hold the method of its request, so with
`warc` that is the header `http-method`, too. Decoding raises nothing for a bad record: it returns a page with a
`problem`. It raises only if a store of bodies does not answer.
"""

from neardup.errors import BadInput
from neardup.limits import GONE_STATUSES
from neardup.page import Page
from streams.config.settings import CODECS
from streams.errors import RecordTooLarge
from streams.formats import json, raw, warc
from streams.formats.bodies import Bodies, BodyFolder
from streams.formats.containment import contained
from streams.ports import Outgoing, Record


class Codec:
    """A codec.

    name: one of CODECS. bodies: reads bodies that are not in records. body_bytes_max: the scheme's. topic: named in
    log lines.
    """

    def __init__(self, name: str, bodies: Bodies, body_bytes_max: int, topic: str = "pages") -> None:
        check_codec(name)
        self._name = name
        self._topic = topic
        self._bodies = bodies
        self._body_bytes_max = body_bytes_max

    def page(self, record: Record) -> Page:
        """Decodes a record; the page's `problem` describes what is wrong with it. Raises BodiesAway."""
        where = {"topic": self._topic, "partition": record.partition(), "offset": record.offset()}
        return contained(lambda: self._decoded(record), lambda reason: unreadable(record, reason), **where)

    def _decoded(self, record: Record) -> Page:
        url = _url(record)
        value = record.value()
        if value is None and not (self._name == "raw" and record.headers()):
            return Page(url=url, body=None)
        if self._name == "raw":
            return raw.decode(url, value or b"", record, self._bodies)
        if self._name == "json":
            return json.decode(value or b"", self._bodies)
        return warc.decode(url, value or b"", self._body_bytes_max, raw.method_of(record))


def unreadable(record: Record, problem: str) -> Page:
    """Returns the rejected page of a record. problem: the reason."""
    return Page(url=_url(record), body=b"", problem=problem)


def _url(record: Record) -> str:
    """The key of a record as text. Page percent-encodes bytes that are not UTF-8."""
    return (record.key() or b"").decode("utf-8", "surrogateescape")


def fetch_time(record: Record, codec: str) -> int | None:
    """Returns the fetch time in a record, ms since the epoch; None if it is missing or invalid. Reads no body."""
    # Not logged: `Codec.page` rejects the record later, and logs it.
    return contained(lambda: _fetch_time(record, codec), lambda reason: None)


def _fetch_time(record: Record, codec: str) -> int | None:
    value = record.value()
    if codec == "raw":
        return raw.fetched_at(record)
    if value is None:
        return None
    return json.fetched_at(value) if codec == "json" else warc.fetched_at(value)


def check_codec(name: str) -> None:
    """Raises BadInput for an unknown codec."""
    if name not in CODECS:
        raise BadInput(f"codec {name!r}: there is {', '.join(CODECS)}")


def encode_page(page: Page, codec: str, *, reference: str = "") -> Outgoing:
    """Encodes a page as a record, without its `problem`. codec: raw, json or warc.

    reference: the URL of the body, which is then not in the record. Raises BadInput for a page without URL, an unknown
    codec, or a value that the codec cannot express.
    """
    if not page.url:
        raise BadInput("a page without a URL cannot be published")
    check_codec(codec)
    key = page.url.encode("utf-8", "replace")
    gone = page.body is None or page.status in GONE_STATUSES
    if gone and page.fetched_at is None and page.status not in GONE_STATUSES:
        return Outgoing(key, None)
    encode = {"raw": raw.encode, "json": json.encode, "warc": warc.encode}[codec]
    return encode(page, key, gone, reference)


def fitting(page: Page, codec: str, bytes_max: int, bodies: BodyFolder | None, topic: str) -> Outgoing:
    """Encodes a page; stores its body in `bodies` if the record would exceed `bytes_max`.

    Raises RecordTooLarge with advice, and BadInput as `encode_page`.
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
