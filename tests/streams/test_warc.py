"""WARC files, good ones and what crashed crawlers and hostile people leave: what can be read is read."""

import gzip
import io
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fastwarc.stream_io import BrotliWriter, ZstdWriter
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.page import Page
from streams.compressed import decode_body
from streams.local import LocalSource, open_sources
from streams.ports import SourcedPage
from streams.warc import warc_date
from tests.streams.archives import http, record

BOUND = 100_000


def gz(data: bytes) -> bytes:
    """Without the time in it: workers name tests by their data, and must agree."""
    return gzip.compress(data, mtime=0)


RECORDS = [record(f"http://a.example/{i}", http(b"<p>hello %d</p>" % i * (i + 1))) for i in range(6)]
BODIES = [b"<p>hello %d</p>" % i * (i + 1) for i in range(6)]
ZIPPED = [gz(r) for r in RECORDS]


def zstd(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = ZstdWriter(out)
    writer.write(data)
    writer.close()
    return out.getvalue()


def brotli(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = BrotliWriter(out)
    writer.write(data)
    writer.close()
    return out.getvalue()


def source(tmp_path: Path, data: bytes, name: str = "x.warc") -> LocalSource:
    file = tmp_path / name
    file.write_bytes(data)
    (found,) = open_sources(file, base_url=None, body_bytes_max=BOUND)
    return found


def read(tmp_path: Path, data: bytes) -> tuple[list[Page], list[str]]:
    """All pages and problems; on the way, that each page can be read again and reading can go on after each."""
    archive = source(tmp_path, data)
    pages = list(archive.read())
    problems = [f"{p.byte}: {p.what}" for p in archive.problems]
    check_places(archive, pages)
    return [page.page for page in pages], problems


def check_places(archive: LocalSource, pages: list[SourcedPage]) -> None:
    assert [page.coordinates.offset for page in pages] == list(range(len(pages)))
    for i, page in enumerate(pages):
        assert archive.read_at(page.coordinates) == page.page
        assert list(archive.read(i + 1, page.coordinates.position)) == pages[i + 1 :]


PACKINGS: dict[str, Callable[[list[bytes]], bytes]] = {
    "plain": b"".join,
    "gzip per record": lambda records: b"".join(gz(r) for r in records),
    "one gzip member": lambda records: gz(b"".join(records)),
    "a member, then one of all": lambda records: gz(records[0]) + gz(b"".join(records[1:])),
    "gzip in blocks of 100 bytes": lambda records: b"".join(
        gz(b"".join(records)[i : i + 100]) for i in range(0, len(b"".join(records)), 100)
    ),
    "gzip with padding": lambda records: b"".join(gz(r) + bytes(7) for r in records),
    "zstd per record": lambda records: b"".join(map(zstd, records)),
    "one zstd frame": lambda records: zstd(b"".join(records)),
}


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


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("cut", [1, 3, 5, 20, 60, 100, 150])
def test_a_cut_archive_loses_its_last_record_alone(tmp_path: Path, zipped: bool, cut: int) -> None:
    data = b"".join(ZIPPED if zipped else RECORDS)[:-cut]
    pages, problems = read(tmp_path, data)
    assert [page.body for page in pages[:5]] == BODIES[:5]
    if not zipped and cut <= 4:
        assert (len(pages), problems) == (6, [])  # only line ends are missing
        return
    assert all(page.problem for page in pages[5:])
    assert len(problems) == 1
    assert problems[0].startswith(f"{len(b''.join((ZIPPED if zipped else RECORDS)[:5]))}: ")


@pytest.mark.parametrize("claim", [10**15, 10**30, -5, "many", ""])
def test_an_absurd_length_costs_its_record_alone(tmp_path: Path, claim: int | str) -> None:
    bad = record("http://a.example/bad", http(b"x"), length=claim)
    for pack in ("plain", "gzip per record", "one gzip member"):
        pages, problems = read(tmp_path, PACKINGS[pack]([*RECORDS[:2], bad, *RECORDS[3:]]))
        assert [page.url[-3:] for page in pages] == ["e/0", "e/1", "bad", "e/3", "e/4", "e/5"]
        assert "Content-Length" in pages[2].problem
        assert len(problems) == 1


def test_a_length_beyond_the_file_costs_its_record_alone(tmp_path: Path) -> None:
    bad = record("http://a.example/bad", http(b"x"), length=1_000_000)
    for pack in ("plain", "gzip per record"):
        pages, problems = read(tmp_path, PACKINGS[pack]([*RECORDS[:2], bad, *RECORDS[3:]]))
        assert [page.url[-3:] for page in pages] == ["e/0", "e/1", "bad", "e/3", "e/4", "e/5"]
        assert "has only" in pages[2].problem
        assert len(problems) == 1


@pytest.mark.parametrize(
    "garbage", [b"garbage", b"\r\n" * 50, bytes(3000), b"WARC", b"x\r\n\r\nWARC/\r\n", b"{}" * 40_000]
)
def test_garbage_between_records_is_stepped_over(tmp_path: Path, garbage: bytes) -> None:
    blank = not garbage.strip(b"\r\n")
    for pieces in (RECORDS, ZIPPED):
        padded = not pieces[0].startswith(b"WARC") and not garbage.strip(b"\0")
        pages, problems = read(tmp_path, b"".join([*pieces[:3], garbage, b"\r\n", *pieces[3:]]))
        assert [page.body for page in pages] == BODIES
        if pieces is RECORDS:
            assert len(problems) == (not blank)
        else:
            assert len(problems) == 1 or padded


def test_a_damaged_member_costs_its_record_alone(tmp_path: Path) -> None:
    for at in range(10, len(ZIPPED[2])):
        bad = bytearray(ZIPPED[2])
        bad[at] ^= 0x55
        pages, problems = read(tmp_path, b"".join([*ZIPPED[:2], bad, *ZIPPED[3:]]))
        urls = [page.url for page in pages if not page.problem]
        assert urls == [f"http://a.example/{i}" for i in (0, 1, 3, 4, 5)], at
        assert len(problems) == 1, at


@pytest.mark.parametrize("many", [False, True])
def test_what_precedes_the_damage_of_a_zstd_file_is_read(tmp_path: Path, many: bool) -> None:
    bodies = [random.Random(i).randbytes(400_000 if many else 400) for i in range(6)]
    frames = [zstd(record(f"http://a.example/{i}", http(body))) for i, body in enumerate(bodies)]
    data = b"".join(frames)[:-200]
    archive = source(tmp_path, data, "x.warc.zst")
    archive._bound = 1_000_000
    pages = [page.page for page in archive.read()]
    good = [page.body for page in pages if not page.problem]
    # The record before the damage has nothing after it that would prove it.
    assert (good, len(pages) >= 5) == (bodies[: len(good)], True)
    assert len(good) >= 4
    assert ["zstd" in problem.what for problem in archive.problems] == [True]


def test_what_precedes_the_damage_of_a_member_of_many_records_is_read(tmp_path: Path) -> None:
    bodies = [random.Random(i).randbytes(300).hex().encode() for i in range(20)]
    whole = gz(b"".join(record(f"http://a.example/{i}", http(body)) for i, body in enumerate(bodies)))
    bad = bytearray(whole)
    bad[len(bad) * 3 // 4] ^= 0x55
    pages, problems = read(tmp_path, bytes(bad))
    assert [page.body for page in pages if not page.problem][:12] == bodies[:12]
    assert problems


def test_the_text_records_of_a_wet_file_are_pages(tmp_path: Path) -> None:
    about = record(None, b"software: x", kind="warcinfo", media="application/warc-fields")
    texts = [record(f"http://a.example/{i}", b"text %d" % i, kind="conversion", media="text/plain") for i in range(3)]
    pages, problems = read(tmp_path, b"".join(map(gz, [about, *texts])))
    assert [(page.url, page.body, page.content_type) for page in pages] == [
        (f"http://a.example/{i}", b"text %d" % i, "text/plain") for i in range(3)
    ]
    assert problems == []


def test_what_was_converted_is_no_second_fetch_of_a_page_beside_it(tmp_path: Path) -> None:
    text = record("http://a.example/0", b"hello", kind="conversion", media="text/plain")
    pages, _ = read(tmp_path, RECORDS[0] + text)
    assert [page.body for page in pages] == BODIES[:1]


def test_a_file_without_any_page_says_what_it_holds(tmp_path: Path) -> None:
    about = record(None, b"software: x", kind="warcinfo", media="application/warc-fields")
    other = record("http://a.example/", b"{}", kind="metadata", media="application/json")
    pages, problems = read(tmp_path, about + other * 2)
    assert pages == []
    assert problems == ["0: the file holds no page: 1 record of type warcinfo, 2 records of type metadata"]


@pytest.mark.parametrize(
    "data", [b"", bytes(1000), b"WARC/1.0\r\n", b"WARC/", b"\x1f\x8b", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]
)
def test_files_that_hold_nothing(tmp_path: Path, data: bytes) -> None:
    pages, problems = read(tmp_path, data)
    assert pages == []
    assert len(problems) == 1


def test_a_header_without_an_end(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, b"WARC/1.0\r\n" + b"x" * 1_000_000 + b"\r\n\r\n" + RECORDS[0])
    assert [page.body for page in pages] == BODIES[:1]
    assert len(problems) == 1


def test_a_header_is_read_up_to_its_bound(tmp_path: Path) -> None:
    archive = source(tmp_path, gz(b"WARC/1.0\r\n" + b"x" * 20_000_000 + b"\r\n\r\n" + RECORDS[0]), "x.warc.gz")
    tracemalloc.start()
    pages = list(archive.read())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(pages), peak < 5_000_000) == (1, True)


def test_a_record_without_a_url_is_rejected(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, RECORDS[0] + record(None, http(b"x")) + RECORDS[1])
    assert [page.problem for page in pages] == ["", "a WARC record without WARC-Target-URI", ""]
    assert problems == []


def test_a_record_without_a_type_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    pages, _ = read(tmp_path, RECORDS[0].replace(b"WARC-Type", b"WARC-Typ\xff") + RECORDS[1])
    assert [page.problem for page in pages] == ["a WARC record without WARC-Type", ""]


def test_a_file_of_what_looks_like_gzip_members_ends(tmp_path: Path) -> None:
    pages, problems = read(tmp_path, ZIPPED[0] + b"\x1f\x8b\x08\x00" * 300_000)
    assert len(pages) == 1
    assert problems


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_is_survived(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    pack = data.draw(st.sampled_from(sorted(PACKINGS)))
    whole = bytearray(PACKINGS[pack](RECORDS))
    first = len(PACKINGS[pack](RECORDS[:1])) if pack in ("plain", "gzip per record") else 0
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(first, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] = data.draw(st.integers(0, 255))
        elif data.draw(st.booleans()):
            del whole[at : at + data.draw(st.integers(1, 200))]
        else:
            whole[at:at] = data.draw(st.binary(max_size=50))
        if first >= len(whole):
            break
    pages, _ = read(tmp_path_factory.mktemp("warc"), bytes(whole))
    if first:
        assert pages[0].body == BODIES[0]
    assert len(pages) <= 12


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2020-01-01T00:00:00Z", 1_577_836_800_000),
        ("2020-01-01T00:00:00.123456789Z", 1_577_836_800_123),
        ("2020-01-01T00:00:00", 1_577_836_800_000),
        ("yesterday", None),
        ("", None),
        ("1969-12-31T23:59:59Z", -1000),
        ("2020-13-01T00:00:00Z", None),
    ],
)
def test_dates(text: str, ms: int | None) -> None:
    assert warc_date(text) == ms
