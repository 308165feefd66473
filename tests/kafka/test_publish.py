"""Files into the `pages` topic: what a sketcher reads there is what a scan reads from the files."""

import gzip
import os
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from published import read_pages

from neardup.errors import BadInput
from neardup.page import Page
from streams.client import NotDelivered, PageProducer
from streams.config.settings import Settings, Topics
from streams.errors import TopicError
from streams.files.not_read import NotRead
from streams.files.sources import ReadOptions, open_sources
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes
from streams.operate import publish as module
from streams.operate.publish import publish
from streams.ports import SourceProgress
from tests.streams import archives
from tests.streams.archives import Sample

CRAWL = [*archives.crawl(12), Sample("dead.html", b"<h1>Not found", 1_577_836_900_000, 404)]


@pytest.fixture
def settings(broker: str, admin: Admin, names: Topics) -> Settings:
    topics.create(admin, names, Sizes(partitions=2))
    return Settings(bootstrap=broker, pages_topic=names.pages)


def found(settings: Settings, *prefixes: str) -> dict[str, list[Page]]:
    return read_pages(settings.bootstrap, settings.topics.pages, settings.codec, *prefixes)


def in_files(*paths: Path, base_url: str | None = None) -> dict[str, list[Page]]:
    """What a scan reads, by URL."""
    pages: dict[str, list[Page]] = {}
    for path in paths:
        for source in open_sources(path, ReadOptions(base_url), not_read=NotRead(), body_bytes_max=10_000_000):
            for sourced in source.read():
                pages.setdefault(sourced.page.url, []).append(sourced.page)
    return pages


@pytest.mark.parametrize("codec", ["raw", "json", "warc"])
@pytest.mark.parametrize(
    "write",
    [
        lambda folder: archives.write_warc(folder / "a.warc.gz", CRAWL),
        lambda folder: archives.write_json_lines(folder / "a.jsonl", CRAWL),
        lambda folder: archives.write_folder(folder / "pages", CRAWL[:-1]),
    ],
    ids=["warc", "jsonl", "folder"],
)
def test_published_pages_are_those_of_a_scan(
    settings: Settings, tmp_path: Path, codec: str, write: Callable[[Path], Path]
) -> None:
    settings = replace(settings, codec=codec)
    path = write(tmp_path)
    wanted = in_files(path)
    result = publish([path], settings)

    assert found(settings) == {
        # The text of an error page is useless.
        url: [replace(page, body=None, content_type="") if page.status == 404 else page for page in pages]
        for url, pages in wanted.items()
    }
    dead = path.name != "pages"
    assert (result.pages, result.gone) == (len(CRAWL) - 1, dead)
    assert (result.refused, result.problems, result.interrupted) == (0, [], False)
    assert result.bytes == sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())


def test_several_sources_go_in_their_order(settings: Settings, tmp_path: Path) -> None:
    old, new = Sample("x.html", b"<p>old"), Sample("x.html", b"<p>new")
    paths = [
        archives.write_warc(tmp_path / "2.warc", [old]),
        archives.write_json_lines(tmp_path / "1.jsonl", [new]),
        archives.write_folder(tmp_path / "site", [old]),
    ]
    result = publish(paths, settings, reading=ReadOptions("http://a.example"))

    bodies = [page.body for page in found(settings)["http://a.example/x.html"]]
    assert bodies == [b"<p>old", b"<p>new", b"<p>old"]
    assert result.pages == 3


def test_other_statuses_are_published_and_non_pages_reported(settings: Settings, tmp_path: Path) -> None:
    moved = archives.record("http://a.example/moved", archives.http(b"", "Location: /x", status=301))
    broken = archives.record("http://a.example/broken", b"no HTTP at all")
    fine = archives.records(CRAWL[:2])
    path = tmp_path / "a.warc"
    path.write_bytes(fine[0] + moved + b"garbage\n" + broken + fine[1])
    result = publish([path], settings)

    pages = found(settings)
    assert pages.keys() == {"http://a.example/page0.html", "http://a.example/page1.html", "http://a.example/moved"}
    assert pages["http://a.example/moved"][0].status == 301
    assert (result.pages, result.refused, result.problems_total) == (3, 1, 2)
    place = len(fine[0] + moved)
    refused = f"{path}: page 2, byte {place + 8}: http://a.example/broken: no HTTP status line"
    assert set(result.problems) == {
        refused,
        f"{path}: byte {place}: no WARC record starts here; skipped to the next one",
    }


def test_a_page_over_the_limit_is_named_and_the_rest_goes(
    settings: Settings, admin: Admin, names: Topics, tmp_path: Path
) -> None:
    admin.create(f"{names.pages}.small", 1, 1, {"max.message.bytes": "100000"})
    settings = replace(settings, pages_topic=f"{names.pages}.small")
    large = Sample("large.html", b"<p>" + b"x" * 200_000)
    path = archives.write_json_lines(tmp_path / "a.jsonl", [large, *CRAWL[:2]])
    result = publish([path], settings)

    assert (result.pages, result.refused) == (2, 1)
    (problem,) = result.problems
    assert problem.startswith(f"{path}: page 0, byte 0: http://a.example/large.html: a record of 201,")
    assert "takes 100,000: raise its max.message.bytes, or name a folder for bodies" in problem

    bodies = tmp_path / "bodies"
    settings = replace(settings, body_ref_prefixes=(f"file://{tmp_path}/",))
    result = publish([path], settings, bodies=bodies)
    assert (result.pages, result.refused) == (3, 0)
    assert found(settings, f"file://{tmp_path}/")["http://a.example/large.html"][-1].body == large.body

    with pytest.raises(BadInput, match=r"bodies/ is under no prefix that sketchers read .*: file:///elsewhere/"):
        publish([path], replace(settings, body_ref_prefixes=("file:///elsewhere/",)), bodies=bodies)
    with pytest.raises(BadInput, match="the warc codec has no references"):
        publish([path], replace(settings, codec="warc"), bodies=bodies)


def test_nothing_is_published_if_a_source_is_none(settings: Settings, tmp_path: Path) -> None:
    path = archives.write_warc(tmp_path / "a.warc", CRAWL)
    with pytest.raises(BadInput, match="no such file"):
        publish([path, tmp_path / "missing.warc"], settings)
    assert found(settings) == {}
    with pytest.raises(TopicError, match="topic nowhere does not exist"):
        publish([path], replace(settings, pages_topic="nowhere"))


def test_a_page_that_the_broker_refuses_is_named(
    settings: Settings, admin: Admin, names: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.create(f"{names.pages}.small", 1, 1, {"max.message.bytes": "100000"})
    # As if the topic's limit had been lowered in the meantime.
    monkeypatch.setattr(module, "PageProducer", partial(PageProducer, record_bytes_max=1_000_000))
    large = Sample("large.html", random.Random(1).randbytes(200_000).hex().encode())
    path = archives.write_warc(tmp_path / "a.warc", [large])
    named = r"^1 page not written to .*: http://a.example/large.html: a record is larger .* \(MSG_SIZE_TOO_LARGE"
    with pytest.raises(NotDelivered, match=named):
        publish([path], replace(settings, pages_topic=f"{names.pages}.small"))


def test_progress_tells_bytes_and_pages(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROGRESS_SECONDS", 0.0)
    paths = [archives.write_warc(tmp_path / f"{number}.warc.gz", CRAWL) for number in range(2)]
    reported: list[SourceProgress] = []
    done = publish(paths, settings, progress=reported.append)

    total = sum(path.stat().st_size for path in paths)
    digest = [now for now in reported if now.phase == "digest"]
    reading = [now for now in reported if now.phase == "scan"]
    assert digest[-1].bytes_done == total
    assert [now.pages for now in reading] == list(range(1, 2 * len(CRAWL) + 1))
    assert [now.bytes_done for now in reading] == sorted(now.bytes_done for now in reading)
    assert reading[-1].bytes_done == reading[-1].bytes_total == total
    assert (done.pages, done.gone) == (2 * len(CRAWL) - 2, 2)


@pytest.mark.parametrize("how", ["event", "signal"])
def test_a_stopped_call_says_how_far_it_came(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(module, "_PROGRESS_SECONDS", 0.0)
    path = archives.write_warc(tmp_path / "a.warc", CRAWL)
    stop = threading.Event() if how == "event" else None

    def leave(now: SourceProgress) -> None:
        if now.phase == "scan" and now.pages == 5:
            if stop:
                stop.set()
            else:
                os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = publish([path], settings, progress=leave, stop=stop)

    assert (result.interrupted, result.pages) == (True, 5)
    assert len(found(settings)) == 5
    assert signal.getsignal(signal.SIGINT) is before


def test_memory_is_bounded_by_the_buffer_not_by_the_files(settings: Settings, tmp_path: Path) -> None:
    """Far more than the producer's buffer goes through."""
    line = archives.json_line(Sample("x.html", b"<p>" + b"x" * 200_000), "http://a.example/", encoded=False)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(line * 100, 1))
    result = publish([path], replace(settings, kafka_values={"publish.queue.buffering.max.kbytes": "1024"}))

    assert result.pages == 100
    assert len(found(settings)["http://a.example/x.html"]) == 100
