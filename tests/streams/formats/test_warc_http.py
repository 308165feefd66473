"""HTTP inside of WARC files: statuses, and bodies with their encodings undone, within a bound."""

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from neardup.page import Page
from streams.formats.compressed import decode_body
from streams.formats.warc import CHUNKS_MAX, WarcRecord, fields_of, page_of
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
        (
            ["Transfer-Encoding: chunked", "Content-Encoding: gzip"],
            b"%x\r\n" % len(gz(BODY)) + gz(BODY),
        ),
    ],
)
def test_encodings_are_undone(tmp_path: Path, headers: list[str], body: bytes) -> None:
    (page,), _ = read(tmp_path, record("http://a.example/", http(body, *headers)))
    assert (page.body, page.problem) == (BODY, "")


def test_a_cut_encoding_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gz(random.Random(1).randbytes(20_000))
    (page,), _ = read(tmp_path, record("http://a.example/", http(packed[:15_000], "Content-Encoding: gzip")))
    assert page.body is not None
    assert len(page.body) > 10_000


@pytest.mark.parametrize(
    ("coding", "body"),
    [("rot13", b"abc"), ("gzip", b"\x1f\x8b\x08rubbish"), ("br", b"\xff\xff\xff"), ("gzip,gzip,gzip,gzip", b"x")],
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
    assert page is not None
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
