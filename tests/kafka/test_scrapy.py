"""A real Scrapy crawl of a small local site, published to a real broker."""

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from broker import PATIENCE_SECONDS, eventually
from published import read_pages

import neardup
from neardup.page import Page
from streams.config.settings import Topics
from streams.kafka import Admin, Connection
from tests import forked
from tests.streams.archives import html, text
from tests.streams.ask.test_ask import TOKEN, serving

if find_spec("scrapy") is None:  # it is not imported here: each worker would, for half a second
    pytest.skip("scrapy is not installed", allow_module_level=True)

for each in ("scrapy_crawl", "streams.commands", "streams.scrapy"):
    forked.preload(each)

#: Of its process.
CRAWL = """
import json, sys
from pathlib import Path
from scrapy_crawl import crawl

url, given, out = sys.argv[1:]
crawl(url, json.loads(given), Path(out))
raise SystemExit
"""

#: path -> status, headers, body
Answer = tuple[int, dict[str, str], bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def links(*paths: str) -> bytes:
    return b"<p>" + " ".join(f'<a href="{path}">{path}</a>' for path in paths).encode()


class Site:
    """A site on 127.0.0.1. asked: the paths in the order of their requests. on: called before a path is answered."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.asked: list[str] = []
        self.on: dict[str, Callable[[], object]] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.on.get(self.path, lambda: None)()
                status, headers, body = answers.get(self.path, (404, HTML, b"<h1>Not found"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Open = Callable[[dict[str, Answer]], Site]


@pytest.fixture
def open_site() -> Iterator[Open]:
    sites: list[Site] = []

    def make(answers: dict[str, Answer]) -> Site:
        sites.append(Site(answers))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


class Crawl:
    """A crawl of a site in a process of its own. settings: Scrapy's."""

    def __init__(self, folder: Path, site: Site, bootstrap: str, **settings: Any) -> None:
        self._out, self._log = (folder / f"{time.monotonic_ns()}.{kind}" for kind in ("out", "log"))
        self._out.touch()
        given = json.dumps({"NEARDUP_BOOTSTRAP": bootstrap, **settings})
        self._process = forked.Command([f"{site.url}/", given, str(self._out)], self._log, before=CRAWL)

    def said(self) -> list[str]:
        return self._out.read_text().splitlines()

    def end(self) -> tuple[int, dict[str, Any], str]:
        """Exit code, stats and log."""
        try:
            code = self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
        said = self.said()
        return code, json.loads(said[-1]) if said else {}, self._log.read_text()


Start = Callable[..., Crawl]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a crawl of a site to a broker, with settings of Scrapy."""
    return partial(Crawl, tmp_path)


def test_a_crawl_is_published(broker: str, admin: Admin, names: Topics, open_site: Open, start: Start) -> None:
    admin.create(names.pages, 2, 1, {})
    paths = ("/plain", "/moved", "/dead", "/gone", "/broken", "/gzip", "/private", "/image", "/forbidden", "/empty")
    body = "<p>grün".encode()
    site = open_site(
        {
            "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /forbidden\n"),
            "/": (200, HTML, links(*paths) + b'<form action="/search"></form>'),
            "/plain": (200, {"Content-Type": "text/html"}, body),
            "/moved": (301, {"Location": "/target?x=1"}, b"moved"),
            "/target?x=1": (200, HTML, b"<p>here now"),
            "/gone": (410, HTML, b"<h1>Gone"),
            "/broken": (500, HTML, b"<h1>Oops"),
            "/gzip": (200, {**HTML, "Content-Encoding": "gzip"}, gzip.compress(b"<p>packed")),
            "/private": (200, HTML, b"<p>not for the index"),
            "/image": (200, {"Content-Type": "image/png"}, b"\x89PNG\x00"),
            "/empty": (200, {}, b""),
            "/search": (200, HTML, b"<p>results"),
        }
    )
    began = time.time_ns() // 1_000_000
    code, stats, log = start(site, broker, NEARDUP_PAGES_TOPIC=names.pages).end()
    after = time.time_ns() // 1_000_000

    assert (code, log) == (0, "")
    found = {url.removeprefix(site.url): pages for url, pages in read_pages(broker, names.pages, "raw").items()}
    assert {page.fetched_at is not None and began <= page.fetched_at <= after for (page,) in found.values()} == {True}
    kinds = {path: (page.status, page.content_type, page.body) for path, (page,) in found.items()}
    html = "text/html; charset=utf-8"
    assert kinds == {
        "/": (200, html, links(*paths) + b'<form action="/search"></form>'),
        "/plain": (200, "text/html", body),
        "/target?x=1": (200, html, b"<p>here now"),
        "/dead": (404, "", None),
        "/gone": (410, "", None),
        "/gzip": (200, html, b"<p>packed"),
        "/image": (200, "image/png", b"\x89PNG\x00"),
        "/empty": (200, "", b""),
    }
    sizes = sum(len(body or b"") for _, _, body in kinds.values())
    assert stats == {
        "neardup/published": 6,
        "neardup/gone": 2,
        "neardup/bytes": sizes,
        "neardup/acknowledged": 8,
        "neardup/skipped/status_500": 1,
        "neardup/skipped/meta": 1,
        "neardup/skipped/method": 1,
        "finish_reason": "finished",
    }
    assert {"/robots.txt", "/broken", "/private", "/search"} <= set(site.asked)


@pytest.mark.whole
def test_a_cached_page_was_fetched_when_its_date_says(
    broker: str,
    admin: Admin,
    names: Topics,
    tmp_path: Path,
    open_site: Open,
    start: Start,
) -> None:
    admin.create(names.pages, 1, 1, {})
    site = open_site({"/": (200, HTML, b"<p>once")})
    settings = {
        "NEARDUP_PAGES_TOPIC": names.pages,
        "NEARDUP_CODEC": "json",
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "ROBOTSTXT_OBEY": False,
    }
    for _ in range(2):
        assert start(site, broker, **settings).end()[0] == 0

    first, second = read_pages(broker, names.pages, "json")[f"{site.url}/"]
    assert site.asked == ["/"]
    assert first.body == second.body == b"<p>once"
    assert first.fetched_at is not None
    assert second.fetched_at is not None
    # The server's clock is ours, in whole seconds, read a moment before the response came.
    assert second.fetched_at % 1000 == 0
    assert first.fetched_at - 60_000 < second.fetched_at <= first.fetched_at


def test_a_page_that_is_not_published_is_counted_and_the_crawl_goes_on(
    broker: str, admin: Admin, names: Topics, open_site: Open, start: Start
) -> None:
    admin.create(names.pages, 1, 1, {"max.message.bytes": "10000"})
    site = open_site(
        {"/": (200, HTML, links("/large", "/small")), "/large": (200, HTML, b"x" * 10_000), "/small": (200, HTML, b"x")}
    )
    code, stats, log = start(site, broker, NEARDUP_PAGES_TOPIC=names.pages, ROBOTSTXT_OBEY=False).end()

    assert code == 0
    assert (stats["neardup/errors"], stats["neardup/published"], stats["neardup/acknowledged"]) == (1, 2, 2)
    assert f"not published: {site.url}/large: a record of 11," in log
    assert read_pages(broker, names.pages, "raw").keys() == {f"{site.url}/", f"{site.url}/small"}


@pytest.mark.whole
def test_a_full_buffer_holds_downloads_back_and_nothing_else(
    own_broker: Any, names: Topics, open_site: Open, start: Start
) -> None:
    admin = Admin(Connection(own_broker.bootstrap))
    admin.create(names.pages, 1, 1, {})
    paths = [f"/{number}" for number in range(40)]
    site = open_site({"/": (200, HTML, links(*paths)), **dict.fromkeys(paths, (200, HTML, b"x" * 200_000))})
    site.on["/"] = own_broker.pause  # the producer is there, and Kafka answers no more
    crawl = start(
        site,
        own_broker.bootstrap,
        NEARDUP_PAGES_TOPIC=names.pages,
        NEARDUP_BUFFER_BYTES=1 << 20,
        ROBOTSTXT_OBEY=False,
    )
    try:
        waits = eventually(lambda: len(said := crawl.said()) >= 5 and said[:5], "it says that it waits")
        asked = len(site.asked)
    finally:
        own_broker.resume()
    code, stats, _ = crawl.end()

    # Its reactor ran while pages were waiting, and downloads were started in time.
    assert [line.split()[0] for line in waits] == ["waits"] * 5
    assert asked < len(paths)
    assert code == 0
    assert (stats["neardup/published"], stats["neardup/acknowledged"]) == (41, 41)
    assert "neardup/errors" not in stats
    assert len(read_pages(own_broker.bootstrap, names.pages, "raw")) == 41


@pytest.mark.whole
def test_pages_that_a_dead_broker_did_not_take_are_named(
    own_broker: Any, names: Topics, open_site: Open, start: Start
) -> None:
    Admin(Connection(own_broker.bootstrap)).create(names.pages, 1, 1, {})
    site = open_site({"/": (200, HTML, links("/lost")), "/lost": (200, HTML, b"x")})
    site.on["/"] = own_broker.kill
    settings = {"NEARDUP_PAGES_TOPIC": names.pages, "NEARDUP_DELIVERY_SECONDS": 0.5, "ROBOTSTXT_OBEY": False}
    code, stats, log = start(site, own_broker.bootstrap, **settings).end()

    assert code == 0
    assert (stats["neardup/errors"], stats["neardup/published"], stats["neardup/acknowledged"]) == (2, 2, 0)
    assert stats["finish_reason"] == "finished"
    assert re.search(rf"not published: {re.escape(site.url)}/lost: .*\(_", log)


@pytest.mark.whole
def test_a_crawl_that_could_not_publish_does_not_start(broker: str, open_site: Open, start: Start) -> None:
    site = open_site({"/": (200, HTML, b"x")})
    code, stats, log = start(site, broker, NEARDUP_PAGES_TOPIC="nowhere").end()

    assert (code, stats) == (1, {})
    assert "topic nowhere does not exist" in log
    assert site.asked == []


def test_a_repeat_is_published_and_does_not_reach_the_spider(
    broker: str,
    admin: Admin,
    names: Topics,
    tmp_path: Path,
    open_site: Open,
    start: Start,
) -> None:
    admin.create(names.pages, 1, 1, {})
    known = [html(f"Page {number}", text(number)) for number in range(3)]

    def repeat(number: int, link: str) -> bytes:
        return html(f"Page {number}", text(number) + f'<a href="{link}">m</a>')

    site = open_site(
        {
            "/": (200, HTML, links("/copy", "/wanted-copy", "/other")),
            "/copy": (200, HTML, repeat(0, "/behind-copy")),
            "/wanted-copy": (200, HTML, repeat(1, "/behind-wanted")),
            "/other": (200, HTML, html("Other", text(900) + '<a href="/behind-other">m</a>')),
            **dict.fromkeys(("/behind-copy", "/behind-wanted", "/behind-other"), (200, HTML, b"<p>end")),
        }
    )
    with neardup.open_index(tmp_path / "state") as index:
        index.add([Page(f"http://a.example/{number}", body, "text/html") for number, body in enumerate(known)])
    settings = {"NEARDUP_PAGES_TOPIC": names.pages, "ROBOTSTXT_OBEY": False, "NEARDUP_ASK_TOKEN": TOKEN}
    with serving(tmp_path / "state", TOKEN) as url:
        code, stats, log = start(site, broker, NEARDUP_ASK=url, **settings).end()
    assert (code, log) == (0, "")
    assert "/behind-copy" not in site.asked
    assert {"/behind-wanted", "/behind-other"} <= set(site.asked)
    assert stats["neardup/repeats"] == 1
    assert f"{site.url}/copy" in read_pages(broker, names.pages, "raw"), "its verdict says what it repeats"

    # Without the service, the spider gets all.
    code, stats, log = start(site, broker, NEARDUP_ASK=url, **settings, LOG_LEVEL="WARNING").end()
    assert code == 0
    assert stats["neardup/unanswered"] == 5  # of the two with `wanted` it is not asked
    assert log.count("no answer for ") == 1
    assert "/behind-copy" in site.asked


@pytest.mark.whole
@pytest.mark.slow
def test_without_a_bootstrap_the_middleware_is_off(open_site: Open, start: Start) -> None:
    site = open_site({"/": (200, HTML, b"x")})
    code, stats, _ = start(site, "").end()

    assert code == 0
    assert stats == {"finish_reason": "finished"}
    assert "/" in site.asked
