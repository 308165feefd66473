"""WARC files: what is in them is read, whatever the packing."""

import io
import random
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from streams.formats.warc import fields_of, warc_date
from tests.streams.archives import http, record
from tests.streams.formats.warcs import BODIES, BOUND, PACKINGS, RECORDS, ZIPPED, gz, read


@pytest.mark.parametrize("packing", PACKINGS)
def test_all_packings_give_the_same_pages(tmp_path: Path, packing: str) -> None:
    pages, problems = read(tmp_path, PACKINGS[packing](RECORDS))
    assert [page.body for page in pages] == BODIES
    assert [page.url for page in pages] == [f"http://a.example/{i}" for i in range(6)]
    assert {page.fetched_at for page in pages} == {1_577_836_800_000}
    assert problems == []


@pytest.mark.parametrize("packing", PACKINGS)
def test_headers_of_line_feeds_alone(tmp_path: Path, packing: str) -> None:
    """As in ClueWeb09: WARC 0.18, with dates that are none."""
    old = []
    for one in RECORDS:
        header, _, rest = one.partition(b"\r\n\r\n")
        header = header.replace(b"WARC/1.0", b"WARC/0.18").replace(b"2020-01-01T", b"2009-03-65T")
        old.append(header.replace(b"\r\n", b"\n") + b"\n\n" + rest)
    pages, problems = read(tmp_path, PACKINGS[packing](old))
    assert [page.body for page in pages] == BODIES
    assert {page.fetched_at for page in pages} == {None}
    assert problems == []


def test_fastwarc_reads_the_same(tmp_path: Path) -> None:
    shuffled = random.Random(5)
    made = []
    for i in range(60):
        body = shuffled.randbytes(shuffled.randrange(3000))
        kind = shuffled.choice(["response", "resource", "request", "metadata", "warcinfo"])
        made.append(record(f"http://a.example/{i}", http(body), kind=kind))
    data = b"".join(gz(r) for r in made)
    pages, _ = read(tmp_path, data)
    wanted = WarcRecordType.response | WarcRecordType.resource
    expected = [
        (r.headers["WARC-Target-URI"], r.http_content_type or "")
        for r in ArchiveIterator(io.BytesIO(data), record_types=wanted, parse_http=True)
    ]
    assert [page.url for page in pages] == [url for url, _ in expected]


def test_only_pages_are_pages(tmp_path: Path) -> None:
    data = [
        record(None, b"software: x", kind="warcinfo", media="application/warc-fields"),
        record("http://a.example/", b"GET / HTTP/1.1\r\n\r\n", kind="request"),
        record("http://a.example/r", b"<p>as it is", kind="resource", media="text/html; charset=utf-8"),
        record("dns:a.example", b"1.2.3.4", media="text/dns"),
        record("http://a.example/m", b"x", kind="metadata", media="text/plain"),
        record("<http://a.example/brackets>", http(b"b")),
        record("http://a.example/v", b"HTTP/1.1 200 OK\r\n\r\n", kind="revisit"),
    ]
    pages, problems = read(tmp_path, b"".join(map(gz, data)))
    assert [page.url for page in pages] == [
        *("http://a.example/r", "http://a.example/brackets", "http://a.example/v"),
    ]
    assert (pages[0].body, pages[0].content_type) == (b"<p>as it is", "text/html; charset=utf-8")
    assert "revisit" in pages[2].problem
    assert problems == []


def test_a_folded_header_is_one(tmp_path: Path) -> None:
    folded = record(
        "http://a.example/",
        http(b"x", "X-Y: 1\r\n Content-Encoding: br", content_type="text/html;\r\n\tcharset=koi8-r"),
    )
    (page,), problems = read(tmp_path, folded)
    assert (page.content_type, page.body, problems) == ("text/html; charset=koi8-r", b"x", [])


def test_a_long_body_is_read_up_to_the_bound(tmp_path: Path) -> None:
    long = record("http://a.example/long", http(b"x" * 5_000_000))
    for data in (long + RECORDS[0], gz(long) + ZIPPED[0]):
        pages, problems = read(tmp_path, data)
        assert [len(page.body or b"") for page in pages] == [BOUND + 1, len(BODIES[0])]
        assert problems == []


def test_the_text_records_of_a_wet_file_are_pages(tmp_path: Path) -> None:
    about = record(None, b"software: x", kind="warcinfo", media="application/warc-fields")
    texts = [record(f"http://a.example/{i}", b"text %d" % i, kind="conversion", media="text/plain") for i in range(3)]
    pages, problems = read(tmp_path, b"".join(map(gz, [about, *texts])))
    assert [(page.url, page.body, page.content_type) for page in pages] == [
        (f"http://a.example/{i}", b"text %d" % i, "text/plain") for i in range(3)
    ]
    assert problems == []


def test_conversion_record_is_no_second_fetch(tmp_path: Path) -> None:
    text = record("http://a.example/0", b"hello", kind="conversion", media="text/plain")
    pages, _ = read(tmp_path, RECORDS[0] + text)
    assert [page.body for page in pages] == BODIES[:1]


def test_file_without_pages_names_its_record_types(tmp_path: Path) -> None:
    about = record(None, b"software: x", kind="warcinfo", media="application/warc-fields")
    other = record("http://a.example/", b"{}", kind="metadata", media="application/json")
    pages, problems = read(tmp_path, about + other * 2)
    assert pages == []
    assert problems == ["0: the file holds no page: metadata (2), warcinfo (1)"]


def test_a_target_uri_that_is_not_utf8_is_percent_encoded() -> None:
    """Replaced by U+FFFD, the bytes of two pages would be one URL."""
    uris = [b"http://a/caf\xe9", b"http://a/caf\xe8", "http://a/café".encode(), b"http://a/\xc3\xa9\xe9"]
    found = [fields_of(b"WARC/1.0\r\nWARC-Target-URI: <" + uri + b">\r\n")["warc-target-uri"] for uri in uris]
    assert found == ["<http://a/caf%E9>", "<http://a/caf%E8>", "<http://a/café>", "<http://a/é%E9>"]
    assert fields_of(b"\nserver: caf\xe9") == {"server": "caf\ufffd"}


def test_a_record_without_a_url_is_rejected(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, RECORDS[0] + record(None, http(b"x")) + RECORDS[1])
    assert [page.problem for page in pages] == ["", "a WARC record without WARC-Target-URI", ""]
    assert problems == []


def test_a_record_without_a_type_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    pages, _ = read(tmp_path, RECORDS[0].replace(b"WARC-Type", b"WARC-Typ\xff") + RECORDS[1])
    assert [page.problem for page in pages] == ["a WARC record without WARC-Type", ""]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2020-01-01T00:00:00Z", 1_577_836_800_000),
        ("2020-01-01T00:00:00.123456789Z", 1_577_836_800_123),
        ("2020-01-01T00:00:00", 1_577_836_800_000),
        ("yesterday", None),
        ("", None),
        ("20200101000000", 1_577_836_800_000),
        ("2020-01-01 00:00:00", 1_577_836_800_000),
        ("2020-01-01T01:00:00+01:00", 1_577_836_800_000),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 1_577_836_800_000),
        ("1969-12-31T23:59:59Z", None),
        ("5", None),
        ("2020-13-01T00:00:00Z", None),
    ],
)
def test_dates(text: str, ms: int | None) -> None:
    assert warc_date(text) == ms


def test_a_warc_date_may_be_a_year_alone() -> None:
    assert warc_date("2024") == warc_date("2024-01-01T00:00:00Z") == 1_704_067_200_000
    assert warc_date("0000") is warc_date("1900") is warc_date("20245") is None
