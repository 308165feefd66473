"""HTTP inside of WARC files: statuses, and bodies with their encodings undone, within a bound."""

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from neardup.page import Page
from streams.formats.compressed import decode_body
from streams.formats.http_answer import CHUNKS_MAX, fields_of
from streams.formats.no_page import NoPage
from streams.formats.warc import WarcRecord, page_of
from tests.streams.archives import http, record
from tests.streams.formats.warcs import BOUND, brotli, gz, read, zstd


@pytest.mark.parametrize(
    ("status", "gone", "problem"),
    [
        (200, False, ""),
        (203, False, ""),
        (404, True, ""),
        (410, True, ""),
        (301, False, "status 301"),
        (500, False, "500"),
    ],
)
def test_statuses(tmp_path: Path, status: int, gone: bool, problem: str) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", http(b"body", status=status)))
    assert (page.body is None, page.status) == (gone, status)
    assert problem in page.problem
    assert bool(page.problem) == bool(problem)


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\nx", b"HTTP/1.1 200 OK"]
)
def test_bad_http_is_rejected(tmp_path: Path, content: bytes) -> None:
    (page,), problems = read(tmp_path, record("http://a.example/", content))
    assert page.problem
    assert problems == []


def deflate_raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


BODY = b"<html><body>" + b"words and words " * 200 + b"</body></html>"


def chunked(data: bytes, size: int = 700) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


CHUNKED = b"".join(
    b"%x;ext=1\r\n%s\r\n" % (len(BODY[i : i + 700]), BODY[i : i + 700]) for i in range(0, len(BODY), 700)
)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["Content-Encoding: gzip"], gz(BODY)),
        (["Content-Encoding: GZIP"], gz(BODY[:9]) + gz(BODY[9:])),
        (["Content-Encoding: deflate"], zlib.compress(BODY)),
        (["Content-Encoding: deflate"], deflate_raw(BODY)),
        (["Content-Encoding: br"], brotli(BODY)),
        (["Content-Encoding: zstd"], zstd(BODY)),
        (["Content-Encoding: deflate, gzip"], gz(zlib.compress(BODY))),
        (["Content-Encoding: identity"], BODY),
        (["Content-Encoding: gzip"], BODY),  # unpacked by the crawler, the header kept
        (["Content-Encoding: br"], BODY),
        (["Content-Encoding: UTF-8"], BODY),  # no coding at all
        (["Transfer-Encoding: chunked"], CHUNKED + b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], CHUNKED),
        (["Transfer-Encoding: chunked"], BODY),
        (["Transfer-Encoding: gzip, chunked"], chunked(gz(BODY))),
        (["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], chunked(gz(BODY))),
        (["Transfer-Encoding: deflate;q=1, chunked"], chunked(zlib.compress(BODY))),
        (["Transfer-Encoding: gzip, chunked"], BODY),
        (["Transfer-Encoding: gzip"], gz(BODY)),
        (["Transfer-Encoding: Chunked", "Transfer-Encoding: chunked"], chunked(BODY)),
        (["Transfer-Encoding: identity"], BODY),
        (["Content-Encoding: x-gzip"], gz(BODY)),
        (["Content-Encoding: gzip", "Content-Encoding: gzip"], gz(BODY)),
        (["Content-Encoding: gzip"], zlib.compress(BODY)),
        (["Content-Encoding: deflate"], gz(BODY)),
        (['Content-Encoding: "gzip"'], gz(BODY)),
        (["Content-Encoding: aws-chunked, gzip"], gz(BODY)),
        (["Content-Encoding: none"], BODY),
        (["Content-Encoding: zstd"], BODY),
        (["Content-Encoding: deflate"], BODY),
        (
            ["Transfer-Encoding: chunked", "Content-Encoding: gzip"],
            b"%x\r\n" % len(gz(BODY)) + gz(BODY),
        ),
    ],
)
def test_encodings_are_undone(tmp_path: Path, headers: list[str], body: bytes) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", http(body, *headers)))
    assert (page.body, page.problem) == (BODY, "")


TEXT = b"Chapter of the river\r\nWondered walked doctor planted singer.\r\n" * 20


@pytest.mark.parametrize(
    "body",
    [
        b"1\r\n" + TEXT,
        b"4\n" + TEXT.replace(b"\r", b""),
        b"0\r\n" + TEXT,
        b"2024\r\n" + TEXT,  # in hex, more bytes than the text has
        b"fade\r\n" + TEXT,
        b"5\nwords\n" + TEXT,
        b"14\r\n" + TEXT,  # the first chunk would end with its line
        b"1\na\n2\nbc\n",
    ],
)
@pytest.mark.parametrize("media", ["text/plain", "text/html"])
def test_unchunked_keeps_a_text_that_begins_with_a_number(tmp_path: Path, body: bytes, media: str) -> None:
    answer = http(body, "Transfer-Encoding: chunked", content_type=media)
    (page,), _ = read(tmp_path, record("http://a.example/", answer))
    assert (page.body, page.problem) == (body, "")


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        (chunked(BODY)[:-1], BODY),
        (chunked(BODY)[:-7], BODY),
        (chunked(BODY)[:1500], BODY[:1481]),  # in the third chunk
        (chunked(BODY, 5000)[:900], BODY[:895]),  # in the first one
        (chunked(BODY) + b"Server: x\r\n", BODY),
        (chunked(BODY)[:-2] + b"Expires: 0\r\n\r\n", BODY),
        (b"0\r\n\r\n", b""),
    ],
)
def test_unchunked_reads_a_body_that_is_cut_off(tmp_path: Path, body: bytes, whole: bytes) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", http(body, "Transfer-Encoding: chunked")))
    assert (page.body, page.problem) == (whole, "")


@pytest.mark.parametrize("coding", ["deflate", "br", "gzip", "zstd", "x-unknown", "utf-8"])
def test_decode_body_keeps_a_decoded_text(coding: str) -> None:
    for text in (TEXT, "Über die Wolle, und über die Karde. ".encode("latin-1") * 5, "羊毛".encode(), b"%PDF-1.4\0"):
        assert decode_body(text, coding, BOUND) == text


@pytest.mark.parametrize(
    "line",
    [
        *(b"HTTP 200 Document follows", b"http/1.0 200 ok", b"ICY 200 OK", b"HTTP/2 200", b"\r\nHTTP/1.1 200 OK"),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK",
    ],
)
def test_status_lines_of_old_servers_and_interim_answers(tmp_path: Path, line: bytes) -> None:
    content = line + b"\r\nContent-Type: text/html\r\n\r\n<p>words"
    (page,), _ = read(tmp_path, record("http://a.example/", content))
    assert (page.status, page.content_type, page.body, page.problem) == (200, "text/html", b"<p>words", "")


def test_an_answer_without_a_status_line_is_its_markup(tmp_path: Path) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", b"\n<html><p>words"))
    assert (page.body, page.problem) == (b"\n<html><p>words", "")


# ---- answers that brought no page -----------------------------------------------------------------------------------


def kind_of(answer: bytes, **headers: str) -> str:
    """The kind of a record that is no page, "" of a page."""
    given = {"warc-type": "response", "warc-target-uri": "http://a.example/", **HTTP, **headers}
    given = {name.replace("_", "-"): value for name, value in given.items()}
    found = page_of(WarcRecord(0, {**given, "content-length": str(len(answer))}, answer), BOUND)
    return found.kind if isinstance(found, NoPage) else ""


@pytest.mark.parametrize("cause", ["disconnect", "time", "unspecified", "DISCONNECT", "of my own"])
def test_a_body_that_was_cut_off_is_no_page(cause: str) -> None:
    known = cause.lower() if cause != "of my own" else "unspecified"
    assert kind_of(http(b"<p>words"), warc_truncated=cause) == f"body cut off: {known}"
    assert kind_of(b"<p>words", warc_truncated=cause, warc_type="resource", content_type="text/html")


def test_a_body_that_was_cut_at_a_limit_of_length_is_a_page(tmp_path: Path) -> None:
    assert kind_of(http(b""), warc_truncated="length") == "body cut off: length"
    data = record("http://a.example/", http(b"<p>words", "Content-Length: 900"))
    (page,), _ = read(tmp_path, data.replace(b"WARC-Date", b"WARC-Truncated: length\r\nWARC-Date"))
    assert (page.truncated, page.body) == (True, b"<p>words")


@pytest.mark.parametrize(
    ("body", "headers", "kind"),
    [
        (b"", ["Content-Length: 2160"], "body missing"),
        (b"", ["Transfer-Encoding: chunked"], "body missing"),
        (b"", ["Content-Encoding: gzip"], "body missing"),
        (b"", ["Content-Length: 0", "Content-Encoding: gzip"], ""),
        (b"", ["Content-Length: 0"], ""),
        (b"", [], ""),
        (b"<p>words", ["Content-Length: 900"], "body cut off: shorter than its Content-Length"),
        (b"<p>words", ["Content-Length: 8"], ""),
        (b"<p>words", ["Content-Length: 10"], ""),  # the last line end was stripped
        (b"<p>words", ["Content-Length: 13"], ""),  # and the byte order mark
        (b"<p>words", ["Content-Length: 3"], ""),
        (b"<p>words", ["Content-Length: many"], ""),
        (b"<p>words", ["Content-Length: " + "9" * 30], ""),
        (b"<p>a\nb\nc\nd", ["Content-Length: 14"], ""),  # line ends were changed
        (b"<p>words</body></HTML>\n", ["Content-Length: 900"], ""),
        (b"<p>words", ["Content-Length: 900", "Content-Encoding: gzip"], ""),  # the length of the encoded body
        (
            gz(BODY)[:60],
            ["Content-Length: 900", "Content-Encoding: gzip"],
            "body cut off: shorter than its Content-Length",
        ),
        (chunked(b"<p>words"), ["Content-Length: 900", "Transfer-Encoding: chunked"], ""),
    ],
)
def test_a_declared_body_that_is_not_there(body: bytes, headers: list[str], kind: str) -> None:
    assert kind_of(http(body, *headers)) == kind


@pytest.mark.parametrize("media", ["", "text/html", "message/http", "application/octet-stream"])
def test_an_http_answer_under_another_type_of_record_is_one(tmp_path: Path, media: str) -> None:
    records = [
        record("http://a.example/1", http(gz(BODY), "Content-Encoding: gzip"), media=media),
        record("https://a.example/2", http(b"<p>gone", status=404), media=media),
        record("http://a.example/3", BODY, media=media),
        record("ftp://a.example/4", http(BODY), media=media),
        record("http://a.example/5", http(BODY), media=media, kind="resource"),
    ]
    pages, _ = read(tmp_path, b"".join(records))
    assert [page.body for page in pages] == [BODY, None, BODY, http(BODY), http(BODY)]


@pytest.mark.parametrize("status", [204, 205, 206, 207, 208, 226, 304])
def test_statuses_without_a_page(status: int) -> None:
    assert kind_of(http(b"<p>words", status=status)) == f"HTTP status {status}"


def test_a_range_of_the_whole_page_is_the_page(tmp_path: Path) -> None:
    whole = http(b"<p>words", "Content-Range: bytes 0-7/8", status=206)
    (page,), _ = read(tmp_path, record("http://a.example/", whole))
    assert (page.status, page.body) == (200, b"<p>words")
    assert kind_of(http(b"<p>words", "Content-Range: bytes 0-7/9", status=206)) == "HTTP status 206"
    assert kind_of(http(b"<p>words", "Content-Range: bytes 0-7/*", status=206)) == "HTTP status 206"


def test_a_body_that_the_reader_cut_is_a_page(tmp_path: Path) -> None:
    long = http(b"<p>" + b"words " * 1_000_000, "Content-Length: 6000003")
    (page,), _ = read(tmp_path, record("http://a.example/", long))
    assert len(page.body or b"") == BOUND + 1


def test_cut_content_encoding_gives_its_readable_part(tmp_path: Path) -> None:
    packed = gz(random.Random(1).randbytes(20_000))
    (page,), _ = read(tmp_path, record("http://a.example/", http(packed[:15_000], "Content-Encoding: gzip")))
    assert page.body is not None
    assert len(page.body) > 10_000


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("rot13", b"\x01\x02abc"),
        ("gzip", b"\x1f\x8b\x08rubbish"),
        ("br", b"\xff\xff\xff"),
        ("gzip,gzip,gzip,gzip", b"x"),
    ],
)
def test_an_encoding_that_cannot_be_undone_is_rejected(tmp_path: Path, coding: str, body: bytes) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", http(body, f"Content-Encoding: {coding}")))
    assert "encoding" in page.problem.lower()


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gz, zlib.compress, brotli, zstd])
def test_a_bomb_is_cut_at_the_bound(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    coding = {gz: "gzip", zlib.compress: "deflate", brotli: "br", zstd: "zstd"}[pack]
    bomb = http(pack(b"<p>" + bytes(50_000_000)), f"Content-Encoding: {coding}")
    (page,), _ = read(tmp_path, record("http://a.example/", bomb))
    assert page.body is not None
    assert len(page.body) == BOUND + 1
    unpacked = decode_body(pack(bytes(50_000_000)), coding, BOUND)
    assert unpacked is not None
    assert len(unpacked) == BOUND, "what is beyond the bound is not even unpacked"


# ---- headers and chunks that are made to be slow --------------------------------------------------------------------


HTTP = {"content-type": "application/http; msgtype=response"}


def fetched(header: bytes, body: bytes) -> Page:
    content = b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n" + body
    record = WarcRecord(0, {"warc-type": "response", "warc-target-uri": "http://a.example/", **HTTP}, content)
    page = page_of(record, 20_000_000)
    assert isinstance(page, Page)
    return page


def test_a_folded_header_is_one_value_() -> None:
    page = fetched(b"Content-Type: text/html;\r\n charset=\r\n\tlatin-1\r\nContent-Type: no", b"x")
    assert page.content_type == "text/html; charset= latin-1"
    few, many = (fields_of(b"x\nA: 1" + b"\n b" * count) for count in (10, 20_000))
    assert (len(few["a"]), len(many["a"])) == (1 + 2 * 10, 1 + 2 * 20_000)


def test_a_header_longer_than_servers_take_is_refused() -> None:
    folded = b"A: b\r\n" + b" c\r\n" * 40_000
    page = fetched(folded + b"B: d", b"<p>x")
    assert page.problem == "an HTTP header of more than 64 kB"
    assert fetched(b"A: " + b"b" * 60_000, b"<p>x").problem == ""


def test_more_chunks_than_anybody_sends_are_refused() -> None:
    chunked = b"Transfer-Encoding: chunked"
    assert fetched(chunked, b"1\r\nx\r\n" * CHUNKS_MAX + b"0\r\n\r\n").body == b"x" * CHUNKS_MAX
    assert fetched(chunked, b"1\r\nx\r\n" * (CHUNKS_MAX + 1)).problem == f"a body of more than {CHUNKS_MAX:,} chunks"
    assert fetched(chunked, b"5;name=value\r\nhello\r\n 3 \r\n, y\r\n0\r\n\r\n").body == b"hello, y"
