"""Records of the pages topic as pages; what cannot be read never raises, and never reads what it may not."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.urls import url_of_id
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec, fetch_time, fitting
from streams.formats.json import fetched_at, object_of
from tests.streams.formats.warcs import gz
from tests.streams.scripted import ScriptedRecord

URL = b"http://a.example/"
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>hello"


def page(codec: str, value: bytes | None, key: bytes | None = URL, prefix: str = "", **headers: bytes) -> Page:
    extra = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    bodies = Bodies([prefix] if prefix else [], 1000)
    return Codec(codec, bodies, 1000).page(ScriptedRecord((0, 0), key, value, extra))


def warc(content: bytes = HTTP, *, length: int | None = None, kind: str = "response") -> bytes:
    size = len(content) if length is None else length
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://b.example/x\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {size}"
    )
    return head.encode() + b"\r\n\r\n" + content + b"\r\n\r\n"


def test_raw() -> None:
    found = page("raw", b"<p>", content_type=b"text/html", fetched_at=b"123", http_status=b"203")
    assert found == Page("http://a.example/", b"<p>", "text/html", 123, 203)
    assert page("raw", b"<p>") == Page("http://a.example/", b"<p>")
    assert page("raw", b"x", http_status=b"404").status == 404
    assert page("raw", b"x", http_status=b"0").status == 0


@pytest.mark.parametrize("codec", ["raw", "json", "warc"])
def test_a_null_value_is_a_tombstone(codec: str) -> None:
    assert page(codec, None) == Page("http://a.example/", None)


def test_a_tombstone_keeps_its_time() -> None:
    assert page("raw", None, fetched_at=b"5") == Page("http://a.example/", None, fetched_at=5)


@pytest.mark.parametrize("text", [b"", b"soon", b"1e3", b"9" * 30, "\u0663".encode()])
def test_a_header_that_is_no_number(text: bytes) -> None:
    assert "not a number" in page("raw", b"x", http_status=text).problem
    assert "fetched_at is neither" in page("raw", b"x", fetched_at=text).problem


@pytest.mark.parametrize("given", [b"1772366400.5", b"1772366400500", b"1772366400500000", b"2026-03-01T12:00:00.5Z"])
def test_the_fetch_time_of_a_header_is_read_by_its_unit(given: bytes) -> None:
    found = page("raw", b"x", fetched_at=given)
    assert found.fetched_at == 1_772_366_400_500
    record = ScriptedRecord((0, 0), URL, b"x", (("Fetched-At", given),))
    assert fetch_time(record, "raw") == found.fetched_at
    assert fetch_time(ScriptedRecord((0, 0), URL, b"x", (("fetched-at", b"soon"),)), "raw") is None


@pytest.mark.parametrize("text", [b"", b"high", b"nan", b"-0.1", b"1.01", b"inf", b"1" * 99])
def test_a_score_that_is_none(text: bytes) -> None:
    assert "not a number from 0 to 1" in page("raw", b"x", score=text).problem


@pytest.mark.parametrize("score", [0.0, 0.25, 1.0])
def test_a_score_comes_back_as_it_was_sent(score: float) -> None:
    sent = Page("http://a.example/", b"<p>", score=score)
    for codec in ("raw", "json"):
        made = fitting(sent, codec, 100_000, None, "pages")
        extra = tuple((name, value or b"") for name, value in made.headers)
        assert page(codec, made.value, made.key, **{n.replace("-", "_"): v for n, v in extra}).score == score
    for bad in (True, "0.5", [0.5]):
        line = json.dumps({"url": "http://a.example/", "body": "x", "score": bad}).encode()
        assert re.fullmatch(r"score is .*, and a number is required", page("json", line).problem)
    for bad in (2, -1):
        line = json.dumps({"url": "http://a.example/", "body": "x", "score": bad}).encode()
        assert page("json", line).problem == "score is not a number from 0 to 1"


def test_a_record_without_a_key() -> None:
    assert page("raw", b"x", None) == Page("", b"", problem="a record without a key: its URL is not known")


@pytest.mark.parametrize("codec", ["raw", "json", "warc"])
def test_a_key_that_is_not_utf8_is_percent_encoded(codec: str) -> None:
    keys = [b"http://a.example/caf\xe9", "http://a.example/café".encode(), b"http://a.example/\xc3\xa9/\xe8"]
    urls = ["http://a.example/caf%E9", "http://a.example/café", "http://a.example/é/%E8"]
    assert [page(codec, None, key).url for key in keys] == urls
    assert page(codec, b"\x00", b"http://a.example/\xff").url == "http://a.example/%FF"


def test_surrogates_in_a_url_of_json_stand_for_bytes() -> None:
    lines = [
        rb'{"url": "http://a.example/caf%s", "body": "\ud800", "x": NaN}' % end for end in (rb"\udce9", rb"\udce8")
    ]
    found = [page("json", line) for line in lines]
    assert [each.url for each in found] == ["http://a.example/caf%E9", "http://a.example/caf%E8"]
    assert [(each.body or b"").decode("utf-8-sig") for each in found] == ["\ufffd"] * 2
    rows = [object_of(rb'{"id": "caf%s"}' % end, "id")["id"] for end in (rb"\udce9", rb"\udce8", b"\xed\xa0\x80")]
    assert len({url_of_id(row) for row in rows}) == 3
    deep = b'{"url": "http://a.example/\xef\xbf\xbd", "body": ""}'
    assert page("json", deep).url == "http://a.example/\ufffd"


def test_json() -> None:
    value = {
        "url": "http://c.example/",
        "body": "hi",
        "content_type": "text/plain",
        "fetched_at": 7,
        "http_status": 200,
    }
    assert page("json", json.dumps(value).encode()) == Page("http://c.example/", b"hi", "text/plain", 7)
    assert page("json", b"[]").problem == "not a JSON object but an array"
    assert page("json", b"[]").url == "http://a.example/"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            b'"url": "http://c.example/", "body": "hi", "score": NaN, "rank": -Infinity',
            Page("http://c.example/", b"hi"),
        ),
        (
            b'"url": "http://c.example/", "body": "hi", "fetched_at": 7, "more": 1e999',
            Page("http://c.example/", b"hi", fetched_at=7),
        ),
        (rb'"url": "http://c.example/", "body": "a\ud800b"', Page("http://c.example/", "\ufeffa\ufffdb".encode())),
    ],
)
def test_json_codec_reads_values_of_other_writers(text: bytes, read: Page) -> None:
    value = b"{" + text + b"}"
    assert page("json", value) == read
    assert fetched_at(value) == read.fetched_at


@pytest.mark.parametrize("pack", [bytes, gz])
def test_warc(pack: object) -> None:
    found = page("warc", pack(warc()))  # type: ignore[operator]
    assert found == Page("http://b.example/x", b"<p>hello", "text/html; charset=utf-8", 1_577_836_800_000)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "not a WARC record"),
        (b"WARC/1.1\r\nA: b", "not a WARC record"),
        (warc(kind="request"), "holds no page"),
        (warc(length=10_000), "has only"),
        (warc().replace(b"Content-Length: ", b"Content-Length: x"), "Content-Length is"),
        (gz(warc())[:-30], "not a WARC record|has only|damaged"),
        (b"\x1f\x8bnonsense", "gzip is damaged"),
    ],
)
def test_warc_that_cannot_be_read(value: bytes, why: str) -> None:
    assert re.search(why, page("warc", value).problem)


@given(st.sampled_from(["raw", "json", "warc"]), st.binary(max_size=60), st.binary(max_size=20), st.booleans())
def test_any_bytes_make_a_page(codec: str, value: bytes, key: bytes, framed: bool) -> None:
    value = b"WARC/1.0\r\n" + value + b"\r\n\r\n" if framed else value
    assert isinstance(page(codec, value, key), Page)


def test_a_body_by_reference(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one page.html").write_bytes(b"<p>far away")
    prefix = f"file://{tmp_path}/pages/"
    reference = f"{prefix}one%20page.html"

    assert page("raw", b"", prefix=prefix, body_ref=reference.encode()).body == b"<p>far away"
    assert page("raw", None, prefix=prefix, body_ref=reference.encode()).body == b"<p>far away"
    value = json.dumps({"url": "http://c.example/", "body_ref": reference}).encode()
    assert page("json", value, prefix=prefix) == Page("http://c.example/", b"<p>far away")
    for name, url in (("\\udce9", "%E9"), ("\\udce8", "%E8")):
        value = f'{{"url": "http://c.example/{name}", "body\\u005fref": "{reference}"}}'.encode()
        assert page("json", value, prefix=prefix) == Page(f"http://c.example/{url}", b"<p>far away")


def test_a_long_body_by_reference_is_cut_where_it_is_seen_to_be_too_long(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 5000)
    found = page("raw", b"", prefix=f"file://{tmp_path}/", body_ref=f"file://{tmp_path}/long".encode())
    assert found.body == b"x" * 1001


@pytest.mark.parametrize(
    "name",
    [
        *("../secret", "%2e%2e/secret", "a/../../secret", "link", "", "missing", "sub", "x\0y", "secret?", "a#b"),
        *("..%2fsecret", "%2e%2e%2fsecret", "./../secret"),
    ],
)
def test_references_out_of_the_prefix_are_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "pages" / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "pages" / "link").symlink_to(tmp_path / "secret")
    prefix = f"file://{tmp_path}/pages/"

    found = page("raw", b"", prefix=prefix, body_ref=(prefix + name).encode())

    assert found.body == b""
    assert found.problem.startswith("body-ref")


@pytest.mark.parametrize(
    "reference",
    [
        "file:///etc/passwd",
        "http://a.example/x",
        "/etc/passwd",
        "simplecache::s3://bucket/x",
        "s3://bucket/a::file:///x",
    ],
)
def test_other_places_are_not_allowed(reference: str) -> None:
    assert "not under an allowed prefix" in page("raw", b"", prefix="s3://bucket/", body_ref=reference.encode()).problem
    assert "not under an allowed prefix" in page("raw", b"", body_ref=reference.encode()).problem


@pytest.mark.parametrize("when", [-(1 << 63), -1, 10**16, (1 << 64) - 1])
def test_a_fetch_time_that_no_clock_has_is_rejected(when: int) -> None:
    made = page("json", json.dumps({"url": "http://a.example/", "body": "<p>wool", "fetched_at": when}).encode())
    assert made.problem.startswith("fetched_at is neither")
    (record,) = sketch_pages([made], Scheme(seed=7))
    assert Header(record).problem() == ""
