"""A page comes back from its record as it was given, in every codec."""

from pathlib import Path

import pytest

from neardup.errors import BadInput
from neardup.page import Page
from streams.formats.bodies import Bodies, BodyFolder
from streams.formats.codecs import Codec, encode_page

CODECS = ("raw", "json", "warc")
URL = "https://a.example/ä?b=c"


class Record:
    """An encoded page, as a codec sees it."""

    def __init__(self, page: Page, codec: str, reference: str = "") -> None:
        self._record = encode_page(page, codec, reference=reference)

    def key(self) -> bytes:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def headers(self) -> list[tuple[str, bytes | None]]:
        return list(self._record.headers)

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 5


PAGES = [
    Page(URL, b"<p>plain", "text/html; charset=utf-8", 1_700_000_000_123),
    Page(URL, "<p>grün".encode(), "text/html", None),
    Page(URL, b"\xff\xfe\x00binary\r\n\r\n" + bytes(range(256)), "image/png", 1_000_000_000_000),
    Page(URL, b"", "", 1_000_000_000_001),
    Page(URL, b"\xef\xbb\xbfmark", "text/plain", 1_700_000_000_000),
    Page(URL, b"oops", "text/html", 1_700_000_000_000, 203),
    Page(URL, None),
    Page(URL, None, fetched_at=1_700_000_000_123, status=404),
    Page(URL, None, fetched_at=1_700_000_000_123, status=410),
    Page(URL, None, status=410),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page", PAGES, ids=range(len(PAGES)))
def test_a_page_comes_back_from_its_record(codec: str, page: Page) -> None:
    found = Codec(codec, Bodies((), 10_000_000), 10_000_000).page(Record(page, codec))

    assert found == page


@pytest.mark.parametrize("codec", CODECS)
def test_a_dead_page_is_reported_without_its_error_page(codec: str) -> None:
    dead = Page(URL, b"<h1>Not found", "text/html", 1_700_000_000_000, 404)
    read = Codec(codec, Bodies((), 10_000_000), 10_000_000)

    assert read.page(Record(dead, codec)) == Page(URL, None, fetched_at=1_700_000_000_000, status=404)
    gone_since = Page(URL, None, fetched_at=1_700_000_000_000)
    assert read.page(Record(gone_since, codec)).body is None
    assert read.page(Record(gone_since, codec)).fetched_at == 1_700_000_000_000


@pytest.mark.parametrize("codec", ["raw", "json"])
def test_a_body_beside_its_record_is_read_from_there(codec: str, tmp_path: Path) -> None:
    folder = BodyFolder(tmp_path / "bod ies")
    page = Page(URL, b"large" * 1000, "text/html", 1_700_000_000_000)
    record = Record(page, codec, folder.put(b"large" * 1000))

    assert Codec(codec, Bodies((folder.url,), 10_000_000), 10_000_000).page(record) == page
    assert len(record.value() or b"") < 500
    assert folder.put(b"large" * 1000) == folder.put(b"large" * 1000)
    assert sum(path.is_file() for path in folder.folder.rglob("*")) == 1


def test_page_without_a_record_form_is_refused() -> None:
    with pytest.raises(BadInput, match="without a URL"):
        encode_page(Page("", b""), "raw")
    with pytest.raises(BadInput, match="codec 'avro': there is raw, json, warc"):
        encode_page(Page(URL, b""), "avro")
    with pytest.raises(BadInput, match="a WARC date cannot be -1 ms"):
        encode_page(Page(URL, b"").dated(-1), "warc")
    with pytest.raises(BadInput, match="control character"):
        encode_page(Page("https://a.example/\r\nX: y", b""), "warc")
    with pytest.raises(BadInput, match="no references to bodies"):
        encode_page(Page(URL, b""), "warc", reference="file:///x")
    with pytest.raises(BadInput, match="not to s3://pages/"):
        BodyFolder("s3://pages/")
