"""Answers and their requests in archives: which answers are pages, in each order in which programs write records."""

import gzip
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from streams.files import exchanges
from streams.files.exchanges import HELD_RECORDS_MAX, REQUESTS_MAX, Exchanges, with_methods
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, left_out_text, open_sources
from streams.formats.warc import WarcRecord
from streams.ports import SourceProgress
from streams.scan.scan import scan
from tests.streams.archives import html, http, opened, record, small_messages, text, verdicts_in

URL = "http://a.example/1"
BOUND = 100_000
_numbers = count(1)


def named(url: str, content: bytes, kind: str, *, name: str, to: str = "", when: str = "2020-01-01T00:00:00Z") -> bytes:
    """A record with an id, and the id of another one of its exchange."""
    made = record(url, content, kind=kind, media=f"application/http; msgtype={kind}", when=when)
    lines = f"WARC-Record-ID: <urn:uuid:{name}>\r\n" + (f"WARC-Concurrent-To: <urn:uuid:{to}>\r\n" if to else "")
    return made.replace(b"WARC-Date", lines.encode() + b"WARC-Date", 1)


def asked(method: str, url: str = URL) -> bytes:
    return f"{method} / HTTP/1.1\r\nHost: a.example\r\n\r\n".encode()


ARTICLE = http(html("Wool", text(1)))
ANSWERS = {
    "HEAD": http(b"", "Content-Length: 2160"),
    "OPTIONS": http(b"", "Content-Length: 0"),
    "POST": http(b'{"ok": true}', content_type="application/json"),
}


def exchange(order: str, url: str, method: str, answer: bytes, *, minute: int = 0) -> list[bytes]:
    """The records of one exchange, as a program writes them."""
    one, other, third = (str(next(_numbers)) for _ in range(3))
    when = f"2020-01-01T00:{minute:02d}:00Z"
    request, got = asked(method, url), answer
    if order in ("wget", "common crawl"):
        records = [
            named(url, request, "request", name=one, when=when),
            named(url, got, "response", name=other, to=one, when=when),
        ]
        return records + [
            record(url, b"fetchTimeMs: 5", kind="metadata", media="application/warc-fields", when=when)
        ] * (order == "common crawl")
    if order in ("heritrix", "warcprox", "browsertrix"):
        records = [named(url, got, "response", name=other, when=when)]
        if order == "heritrix":
            records.append(named(url, b"via: x", "metadata", name=third, to=other, when=when))
        if order == "browsertrix":
            records.append(named(f"urn:pageinfo:{url}", b"{}", "resource", name=third, when=when))
        return [*records, named(url, request, "request", name=one, to=other, when=when)]
    plain = [
        record(url, request, kind="request", media="application/http; msgtype=request", when=when),
        record(url, got, when=when),
    ]
    return plain if order == "request first, no names" else plain[::-1]


ORDERS = (
    *("wget", "common crawl", "heritrix", "warcprox", "browsertrix"),
    *("request first, no names", "answer first, no names"),
)


def source(path: Path, records: list[bytes]) -> LocalSource:
    path.write_bytes(b"".join(gzip.compress(one, mtime=0) if path.suffix == ".gz" else one for one in records))
    (found,) = open_sources(path, not_read=NotRead(), body_bytes_max=BOUND)
    return found


def crawl(order: str) -> list[bytes]:
    """An article, and what its URL answers to other methods; and an article that was fetched after such an answer."""
    records = exchange(order, URL, "GET", ARTICLE)
    for minute, (method, answer) in enumerate(ANSWERS.items(), 1):
        records += exchange(order, URL, method, answer, minute=minute)
    records += exchange(order, "http://a.example/2", "HEAD", ANSWERS["HEAD"], minute=5)
    return records + exchange(order, "http://a.example/2", "GET", http(html("Silk", text(2))), minute=6)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
@pytest.mark.parametrize("order", ORDERS)
def test_with_methods_finds_each_request(tmp_path: Path, order: str, name: str) -> None:
    archive = source(tmp_path / name, crawl(order))
    pages = list(archive.read())
    assert [page.page.url for page in pages] == [URL, "http://a.example/2"]
    counts = {kind: found for kind, found in archive.left_out.items() if kind.startswith("answer")}
    assert counts == {"answer to HEAD": 2, "answer to OPTIONS": 1, "answer to POST": 1}
    assert archive.left_out["request"] == 6
    for number, page in enumerate(pages):
        assert archive.read_at(page.coordinates) == page.page
        assert list(archive.read(number + 1, page.coordinates.position)) == pages[number + 1 :]


@pytest.mark.parametrize("order", ["wget", "heritrix"])
def test_with_methods_finds_requests_of_fetches_side_by_side(tmp_path: Path, order: str) -> None:
    """Records of several fetches lie between each other: their names decide, and not where they lie."""
    parts = [exchange(order, URL, method, ANSWERS[method], minute=3) for method in ANSWERS]
    parts.append(exchange(order, URL, "GET", ARTICLE, minute=3))
    mixed = [one for step in zip(*parts, strict=True) for one in step]
    archive = source(tmp_path / "a.warc", mixed)
    assert [page.page.body for page in archive.read()] == [html("Wool", text(1))]


def test_an_answer_to_head_has_no_body(tmp_path: Path) -> None:
    """Without names, a request of HEAD is not that of an article before it."""
    records = [record(URL, ARTICLE), *exchange("request first, no names", URL, "HEAD", ANSWERS["HEAD"])]
    assert [page.page.body for page in source(tmp_path / "a.warc", records).read()] == [html("Wool", text(1))]


@pytest.mark.parametrize("order", ORDERS)
def test_with_methods_pairs_answers_under_another_type_of_record(tmp_path: Path, order: str) -> None:
    records = [one.replace(b"application/http; msgtype=response", b"text/html") for one in crawl(order)]
    pages = list(source(tmp_path / "a.warc", records).read())
    assert [page.page.url for page in pages] == [URL, "http://a.example/2"]


def test_an_answer_without_a_request_is_a_page(tmp_path: Path) -> None:
    records = [record(f"http://a.example/{n}", ARTICLE) for n in range(3 * HELD_RECORDS_MAX)]
    assert len(list(source(tmp_path / "a.warc", records).read())) == 3 * HELD_RECORDS_MAX


def test_two_archives_in_one_file_keep_their_orders(tmp_path: Path) -> None:
    records = crawl("wget") + [one.replace(b"a.example", b"b.example") for one in crawl("heritrix")]
    pages = list(source(tmp_path / "a.warc", records).read())
    assert [page.page.url.partition(".")[0] for page in pages] == ["http://a"] * 2 + ["http://b"] * 2


# ---- bounds ---------------------------------------------------------------------------------------------------------


def answers(many: int, size: int = 0) -> Iterator[WarcRecord]:
    for number in range(many):
        headers = {"warc-type": "response", "content-type": "application/http", "content-length": str(size)}
        yield WarcRecord(number, {**headers, "warc-target-uri": f"http://a.example/{number}"})


def read_ahead(records: Iterator[WarcRecord]) -> int:
    """The greatest number of records that were read before one came out."""
    taken, most = 0, 0

    def counting() -> Iterator[WarcRecord]:
        nonlocal taken
        for one in records:
            taken += 1
            yield one

    for came, _ in enumerate(with_methods(counting()), 1):
        most = max(most, taken - came)
    return most


def test_with_methods_holds_a_bounded_number_of_answers() -> None:
    assert read_ahead(answers(1_000)) == HELD_RECORDS_MAX
    assert read_ahead(answers(1_000, exchanges.HELD_BYTES_MAX // 4)) == 4


def test_with_methods_remembers_a_bounded_number_of_requests() -> None:
    def requests() -> Iterator[WarcRecord]:
        for number in range(REQUESTS_MAX + 100):
            fields = {
                "warc-type": "request",
                "warc-record-id": f"<urn:{number}>",
                "warc-target-uri": f"http://{number}/",
            }
            yield WarcRecord(number, fields, b"POST / HTTP/1.1")

    known = Exchanges()
    for one in requests():
        list(known.take(one))
    assert (len(known.requests), len(known.loose)) == (REQUESTS_MAX, HELD_RECORDS_MAX)


def test_with_methods_gives_the_records_before_an_error() -> None:
    def failing() -> Iterator[WarcRecord]:
        yield from answers(3)
        raise OSError("gone")

    found = with_methods(failing())
    assert [next(found)[0].position for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="gone"):
        next(found)


@pytest.mark.parametrize("content", [b"", b"\0" * 99, b"G" * 9_999, b"GET", b"\xff\xfe / HTTP/1.1"])
def test_a_request_that_is_none_leaves_its_answer_a_page(tmp_path: Path, content: bytes) -> None:
    records = [named(URL, content, "request", name="1"), named(URL, ARTICLE, "response", name="2", to="1")]
    assert len(list(source(tmp_path / "a.warc", records).read())) == 1


# ---- a scan ---------------------------------------------------------------------------------------------------------


def test_scan_keeps_the_article_and_counts_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    source(path, crawl("warcprox"))
    with opened(None) as state:
        result = scan([path], state, out=str(tmp_path / "out"))
    assert [(v["verdict"], v["url"]) for v in verdicts_in(tmp_path / "out")] == [
        ("unique", URL),
        ("unique", "http://a.example/2"),
    ]
    counts = "request (6), answer to HEAD (2), answer to OPTIONS (1), answer to POST (1)"
    assert left_out_text(result.left_out) == f"left out, as no pages: 10 records: {counts}"
    assert result.left_out == {"request": 6, "answer to HEAD": 2, "answer to OPTIONS": 1, "answer to POST": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_scan_of_merged_archives_counts_the_same(tmp_path: Path, threads: int) -> None:
    for name, order in (("a", "wget"), ("b", "heritrix")):
        source(
            tmp_path / f"{name}.warc", [one.replace(b"a.example", f"{name}.example".encode()) for one in crawl(order)]
        )
    with opened(None) as state:
        result = scan([tmp_path / "a.warc", tmp_path / "b.warc"], state, merge=True, threads=threads)
    assert result.pages == 4
    assert result.left_out["answer to HEAD"] == 4
    assert result.left_out["request"] == 12


@pytest.mark.parametrize("order", ["wget", "heritrix", "request first, no names", "answer first, no names"])
def test_scan_that_continues_finds_the_same_pages(tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the request of an answer lies before the last page that was judged."""
    small_messages(monkeypatch)
    records: list[bytes] = []
    for number in range(12):
        url = f"http://a.example/{number}"
        head = exchange(order, url, "HEAD", ANSWERS["HEAD"], minute=2 * number)
        get = exchange(order, url, "GET", http(html(f"T{number}", text(number))), minute=2 * number + 1)
        # The request of the answer to HEAD lies before the article, its answer behind it.
        records += [head[0], *get, head[1]] if order in ("wget", "heritrix") else [*head, *get]
    path = tmp_path / "a.warc.gz"
    source(path, records)

    def outcome(folder: str) -> tuple[list[str], dict[str, int]]:
        with opened(tmp_path / folder) as state:
            result = scan([path], state, out=str(tmp_path / "out"))
            return [v["url"] for v in verdicts_in(tmp_path / "out")], result.left_out

    class Killed(Exception):
        pass

    def kill(now: SourceProgress) -> None:
        if now.pages >= 3:
            raise Killed

    with opened(tmp_path / "killed") as state, pytest.raises(Killed):
        scan([path], state, progress=kill)
    assert outcome("killed") == outcome("whole")


# ---- records of archivers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("urn:pageinfo:http://a.example/1", "urn:pageinfo:"),
        ("urn:text:http://a.example/1", "urn:text:"),
        ("urn:thumbnail:http://a.example/1", "urn:thumbnail:"),
        ("urn:view:http://a.example/1", "urn:view:"),
        ("URN:X-wpull:log", "urn:x-wpull:"),
        ("screenshot:http://a.example/1", "screenshot:"),
        ("thumbnail:http://a.example/1", "thumbnail:"),
        ("metadata://gnu.org/software/wget/warc/MANIFEST.txt", "metadata:"),
        ("<metadata://gnu.org/software/wget/warc/wget.log>", "metadata:"),
        ("dns:a.example", "dns:"),
        ("whois://whois.example/a.example", "whois:"),
        ("warcinfo:/a/manifest", "warcinfo:"),
        ("data:text/html,x", "data:"),
        ("about:blank", "about:"),
        ("youtube-dl:00:http://a.example/1", "youtube-dl:"),
    ],
)
@pytest.mark.parametrize("of", ["resource", "response", "revisit"])
def test_records_of_archivers_are_left_out(tmp_path: Path, url: str, kind: str, of: str) -> None:
    archive = source(tmp_path / "a.warc", [record(URL, ARTICLE), record(url, b"<p>x", kind=of, media="text/html")])
    assert [page.page.url for page in archive.read()] == [URL]
    assert archive.left_out == {kind: 1}
    assert archive.problems == []


@pytest.mark.parametrize("url", ["ftp://a.example/x", "file:///x.html", "HTTPS://a.example/", "gemini://a.example/"])
def test_resources_under_addresses_of_pages_are_pages(tmp_path: Path, url: str) -> None:
    (page,) = source(tmp_path / "a.warc", [record(url, b"<p>x", kind="resource", media="text/html")]).read()
    assert page.page.url == url


@pytest.mark.parametrize("url", ["a.example:8080/x", "/x", "a.example/urn:x"])
def test_a_url_that_is_not_absolute_is_still_rejected(tmp_path: Path, url: str) -> None:
    path = tmp_path / "a.warc"
    source(path, [record(url, ARTICLE)])
    with opened(None) as state:
        assert scan([path], state).counts == {"rejected": 1}


def test_kinds_are_bounded(tmp_path: Path) -> None:
    records = [record(f"urn:x{number}:y", b"x", kind="resource", media="text/plain") for number in range(100)]
    records += [record(URL, b"x", kind=f"own{number}", media="text/plain") for number in range(100)]
    archive = source(tmp_path / "a.warc", records)
    assert list(archive.read()) == []
    assert sum(archive.left_out.values()) == 200
    assert len(archive.left_out) <= 21
