"""Pages as records of the `pages` topic and back, by the codec that the settings name.

Whatever the codec, the key is the URL as the crawler has it, and a null value is a tombstone where nothing else is to
be said of it. What one writes the other reads; `raw` tells the rest in headers, `json` and `warc` in the value.
What cannot be read is a page with a `problem`: no record raises. Only a store of bodies that does not answer does.
"""

from neardup.errors import BadInput, BadPage
from neardup.limits import GONE_STATUSES
from neardup.page import Page
from streams.config.settings import CODECS
from streams.errors import RecordTooLarge
from streams.formats import json, raw, warc
from streams.formats.bodies import Bodies, BodyFolder
from streams.formats.outgoing import Outgoing
from streams.ports import Record


class Codec:
    """name: of CODECS. bodies: for what is not in the records. body_bytes_max: of the scheme."""

    def __init__(self, name: str, bodies: Bodies, body_bytes_max: int) -> None:
        check_codec(name)
        self._name = name
        self._bodies = bodies
        self._body_bytes_max = body_bytes_max

    def page(self, record: Record) -> Page:
        """The page in a record; its `problem` says what is wrong with it. Raises BodiesAway."""
        url = (record.key() or b"").decode("utf-8", "replace")
        value = record.value()
        try:
            if value is None and not (self._name == "raw" and record.headers()):
                return Page(url=url, body=None)
            if self._name == "raw":
                return raw.decode(url, value or b"", record, self._bodies)
            if self._name == "json":
                return json.decode(value or b"", self._bodies)
            return warc.decode(url, value or b"", self._body_bytes_max)
        except BadPage as error:
            return unreadable(record, str(error))


def unreadable(record: Record, problem: str) -> Page:
    """The page of a record that is rejected. problem: why."""
    return Page(url=(record.key() or b"").decode("utf-8", "replace"), body=b"", problem=problem)


def fetch_time(record: Record, codec: str) -> int | None:
    """When a page was fetched, by its record alone, in ms since the epoch; None where that is not said, or cannot be
    read. Bodies are not looked at, and nothing is fetched.
    """
    value = record.value()
    if codec == "raw":
        return raw.fetched_at(record)
    if value is None:
        return None
    return json.fetched_at(value) if codec == "json" else warc.fetched_at(value)


def check_codec(name: str) -> None:
    """Raises BadInput if there is no such codec."""
    if name not in CODECS:
        raise BadInput(f"codec {name!r}: there is {', '.join(CODECS)}")


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
    if codec == "raw":
        return raw.encode(page, key, gone, reference)
    if codec == "json":
        return json.encode(page, key, gone, reference)
    return warc.encode(page, key, gone, reference)


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
