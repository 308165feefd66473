"""A defect of a decoder, made on purpose: it rejects one page, of each codec and each kind of file, and is logged."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import BadPage, InvariantBroken
from neardup.page import Page
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.errors import BodiesAway
from streams.files import jsonl_and_parquet
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, open_sources
from streams.formats import json as json_format
from streams.formats import parquet, raw, warc
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec, fetch_time
from streams.formats.compressed import Damaged
from streams.formats.containment import contained, contained_reading
from streams.formats.parquet import parquet_of_lines
from streams.pipeline import sketching
from streams.pipeline.sketching import contained_sketches
from tests.streams.archives import SCHEME, http, record
from tests.streams.scripted import ScriptedRecord

BOUND = 100_000
URL = "http://a.example/1"
BAD = "http://a.example/bad"
FAILED = "the decoder failed with ZeroDivisionError"


def failing(url: str, inner: Callable[..., Any], url_of: Callable[..., str]) -> Callable[..., Any]:
    """`inner` with a defect for the page of one URL."""

    def made(*given: Any, **named: Any) -> Any:
        if url_of(*given) == url:
            raise ZeroDivisionError("a secret of the page")
        return inner(*given, **named)

    return made


# ---- the door itself ------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[[], str]:
    def decode() -> str:
        raise error

    return decode


@pytest.mark.parametrize("error", [OverflowError(), RecursionError(), AssertionError(), OSError(5, "x"), KeyError(1)])
def test_contained_gives_the_type_of_an_error_and_not_its_text(error: Exception) -> None:
    assert contained(raising(error), str) == f"the decoder failed with {type(error).__name__}"


def test_contained_gives_the_reason_of_a_bad_page() -> None:
    assert contained(raising(BadPage("no url")), str) == "no url"


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), InvariantBroken("x"), BodiesAway("x", store="")])
def test_contained_raises_errors_that_are_no_fault_of_a_page(error: BaseException) -> None:
    with pytest.raises(type(error)):
        contained(raising(error), str)


def test_contained_logs_a_defect_once_with_its_position(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        contained(raising(KeyError(1)), str, topic="pages", partition=3, offset=17)
        contained(raising(BadPage("x")), str, topic="pages", partition=3, offset=18)
    (line,) = caplog.records
    fields = line.fields  # type: ignore[attr-defined]
    assert fields["reason"] == "the decoder failed with KeyError"
    assert (fields["topic"], fields["partition"], fields["offset"]) == ("pages", 3, 17)
    assert fields["code"].startswith("test_containment.py:")


def test_contained_reading_ends_at_a_defect_and_keeps_errors_of_the_file() -> None:
    def items(error: Exception) -> Iterator[int]:
        yield 1
        raise error

    ends: list[str] = []
    assert list(contained_reading(items(KeyError()), ends.append)) == [1]
    assert ends == ["the reader failed with KeyError; the rest is not read"]
    with pytest.raises(OSError, match="gone"):
        list(contained_reading(items(OSError("gone")), ends.append))
    with pytest.raises(Damaged, match="cut"):
        list(contained_reading(items(Damaged(3, "cut")), ends.append))


# ---- codecs of the topic --------------------------------------------------------------------------------------------

VALUES = {
    "raw": b"<p>x",
    "json": json.dumps({"url": URL, "body": "x"}).encode(),
    "warc": record(URL, http(b"<p>x")),
}


@pytest.mark.parametrize(("codec", "module"), [("raw", raw), ("json", json_format), ("warc", warc)])
def test_codec_rejects_a_record_at_which_its_decoder_fails(
    codec: str, module: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "decode", failing(BAD, module.decode, lambda *given: BAD))
    monkeypatch.setattr(module, "fetched_at", failing(BAD, module.fetched_at, lambda *given: BAD))
    message = ScriptedRecord((3, 17), URL.encode(), VALUES[codec])
    with caplog.at_level(logging.ERROR):
        page = Codec(codec, Bodies((), BOUND), BOUND, "crawl.pages").page(message)
        assert fetch_time(message, codec) is None
    assert (page.url, page.problem) == (URL, FAILED)
    (line,) = caplog.records
    fields = line.fields  # type: ignore[attr-defined]
    assert (fields["topic"], fields["partition"], fields["offset"]) == ("crawl.pages", 3, 17)


@pytest.mark.parametrize("size", [b"7" + b"f" * 15, b"f" * 16, b"8" + b"0" * 15, b"0" * 15 + b"5"])
def test_a_chunk_size_beyond_any_position_is_no_error(size: bytes) -> None:
    answer = http(b"%s\r\nwords and words" % size, "Transfer-Encoding: chunked")
    page = Codec("warc", Bodies((), BOUND), BOUND).page(ScriptedRecord((0, 0), URL.encode(), record(URL, answer)))
    assert page.problem == ""
    assert page.body


# ---- files ----------------------------------------------------------------------------------------------------------


def opened(path: Path) -> LocalSource:
    (found,) = open_sources(path, not_read=NotRead(), body_bytes_max=BOUND)
    return found


def lines(urls: list[str]) -> bytes:
    return b"".join(json.dumps({"url": url, "body": f"<p>{url}"}).encode() + b"\n" for url in urls)


def file_of(tmp_path: Path, kind: str, urls: list[str]) -> Path:
    path = tmp_path / f"pages.{kind}"
    if kind == "warc":
        path.write_bytes(b"".join(record(url, http(b"<p>" + url.encode())) for url in urls))
    elif kind == "wet":
        records = [record(url, url.encode(), kind="conversion", media="text/plain") for url in urls]
        path.write_bytes(b"".join(records))
    elif kind == "jsonl":
        path.write_bytes(lines(urls))
    else:
        (tmp_path / "lines").write_bytes(lines(urls))
        parquet_of_lines(tmp_path / "lines", {"url": "VARCHAR", "body": "VARCHAR"}, path)
    return path


def test_folder_rejects_a_file_at_which_its_reader_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / f"{name}.html").write_bytes(b"<p>x")
    broken = failing("b.html", LocalSource._file_page, lambda _, path, *__: path.name)
    monkeypatch.setattr(LocalSource, "_file_page", broken)
    pages = [sourced.page for sourced in opened(tmp_path).read()]
    assert [page.problem for page in pages] == ["", FAILED, ""]
    assert pages[1].url.endswith("/b.html")


@pytest.mark.parametrize("kind", ["warc", "wet", "jsonl", "parquet"])
def test_file_rejects_a_page_at_which_its_decoder_fails(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [URL, BAD, "http://a.example/3"]
    path = file_of(tmp_path, kind, urls)
    if kind in ("warc", "wet"):
        broken = failing(BAD, warc.page_of, lambda one, *_: one.headers["warc-target-uri"])
        monkeypatch.setattr(warc, "page_of", broken)
    else:
        broken = failing(BAD, jsonl_and_parquet.document_of, lambda row, *_: row["url"])
        monkeypatch.setattr(jsonl_and_parquet, "document_of", broken)
    source = opened(path)
    with caplog.at_level(logging.ERROR):
        pages = [sourced.page for sourced in source.read()]
    assert [page.problem for page in pages] == ["", FAILED, ""]
    assert source.problems == []
    (line,) = caplog.records
    assert str(line.fields["file"]) == str(path)  # type: ignore[attr-defined]


def test_a_failing_reader_reports_the_unread_rest_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(tmp_path, "parquet", [URL, BAD])

    def rows_of(*_: Any) -> Iterator[Any]:
        yield 0, {"url": URL, "body": "<p>x"}
        raise OverflowError("date value out of range")

    source = opened(path)
    monkeypatch.setattr(parquet, "rows_of", rows_of)
    assert [sourced.page.url for sourced in source.read()] == [URL]
    assert [problem.what for problem in source.problems] == [
        "the reader failed with OverflowError; the rest is not read"
    ]


# ---- sketches -------------------------------------------------------------------------------------------------------


def places(count: int) -> list[Coordinates]:
    return [Coordinates("0f" * 16, 0, offset) for offset in range(count)]


def test_contained_sketches_rejects_the_page_at_which_a_parser_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [Page(url, b"<p>some words of " + url.encode()) for url in (URL, BAD, "http://a.example/3")]
    whole = sketch_pages(pages, SCHEME, coordinates=places(3), log_times=[5, 6, 7])

    def sketch(some: list[Page], *given: Any, **named: Any) -> list[bytes]:
        if any(page.url == BAD and not page.problem for page in some):
            raise ZeroDivisionError
        return sketch_pages(some, *given, **named)

    monkeypatch.setattr(sketching, "sketch_pages", sketch)
    found = contained_sketches(pages, SCHEME, coordinates=places(3), log_times=[5, 6, 7])
    assert (found[0], found[2]) == (whole[0], whole[2])
    assert Header(found[1]).reason == "the sketcher failed with ZeroDivisionError"


@pytest.mark.parametrize("error", [AssertionError, InvariantBroken, MemoryError, ImportError])
def test_contained_sketches_stops_where_no_page_can_be_sketched(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sketch(*_: Any, **__: Any) -> list[bytes]:
        raise error

    monkeypatch.setattr(sketching, "sketch_pages", sketch)
    with pytest.raises(error):
        contained_sketches([Page(URL, b"x")], SCHEME, coordinates=places(1), log_times=[5])
