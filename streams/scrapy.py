"""A Scrapy crawl as a source of pages: downloader middlewares that publish fetched pages, and skip repeats.

    # settings.py
    DOWNLOADER_MIDDLEWARES = {"streams.scrapy.PublishMiddleware": 50}
    NEARDUP_BOOTSTRAP = "127.0.0.1:9092"

At 50 it sees responses after redirects, retries and decompression, as spiders do.

| setting | default | |
|---|---|---|
| NEARDUP_BOOTSTRAP | | Kafka's brokers; without it the middleware is off |
| NEARDUP_PAGES_TOPIC | "pages" | its whole name, with the roles' `topic_prefix` |
| NEARDUP_CODEC | "raw" | as the sketchers have it: raw, json or warc |
| NEARDUP_BODIES | | a folder for bodies over the topic's limit, under one of the sketchers' `body_ref_prefixes` |
| NEARDUP_KAFKA | {} | librdkafka settings (TLS, SASL) |
| NEARDUP_BUFFER_BYTES | 67108864 | pages on their way; when it is full, downloads wait, and nothing else does |
| NEARDUP_DELIVERY_SECONDS | 120 | a page that Kafka has not taken by then is an error |
| NEARDUP_ASK | | URL of `neardup ask`: repeats are published, but do not reach the spider |
| NEARDUP_ASK_TOKEN | | its token |
| NEARDUP_ASK_SECONDS | 5 | a page without an answer by then goes on to the spider |

Published is every response with a page (status 2xx, but not 204, 206 and the like) to a GET that reaches a spider,
under its final URL: a redirect is followed first, and says nothing about the URL it was found at. 404 and 410 say that
the page is gone. Left out are other statuses, other methods, incomplete bodies, what no spider asked for (robots.txt,
files of media pipelines), and requests with
`meta={"neardup": False}`. Of a response from Scrapy's cache the Date header is the time of the fetch.

With NEARDUP_ASK, a published page that the service calls `exact_duplicate` or `near_duplicate` of another URL does not
reach the spider: neither are its items extracted nor its links followed. A request with `meta={"neardup_skip": False}`
reaches the spider in any case. The answer is as old as the service's index, so a repeat may get through. The spider
gets every page while the service does not answer; a warning says so at once, and then once a minute.

A crawl does not start if Kafka does not answer within ten seconds, or if the topic is missing: one line says why, and
the exit code is 1.

PatternsMiddleware is a filter of its own: it drops requests before they are fetched, by `patterns.json` of the views,
and needs no broker. The files are read once, when the crawl starts.

    DOWNLOADER_MIDDLEWARES = {"streams.scrapy.PatternsMiddleware": 40}
    NEARDUP_PATTERNS = "patterns.json"

| setting | default | |
|---|---|---|
| NEARDUP_PATTERNS | | files of `patterns.json`, with commas between; without it the filter is off |
| NEARDUP_PATTERNS_SHARE | 0.9 | least share of repeats among the pages of a pattern |
| NEARDUP_PATTERNS_PAGES | 20 | least number of pages of a pattern |

A request with `meta={"neardup_skip": False}` is made in any case. The stats count `neardup/skipped/pattern`.

Stats: `neardup/published`, `neardup/gone`, `neardup/bytes`, `neardup/acknowledged` (when the spider closes),
`neardup/errors`, `neardup/skipped/REASON`, `neardup/repeats`, `neardup/unanswered`. An error is logged with its URL,
and never stops the crawl.
"""

import http.client
import logging
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import orjson
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import create_looping_call, sleep
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from neardup.errors import BadInput, BadPage, NeardupError
from neardup.fetch_times import read_time
from neardup.limits import GONE_STATUSES, NO_PAGE_STATUSES
from neardup.page import Page
from neardup.report.url_patterns import PAGES_MIN, SHARE_MIN, RepeatingUrls
from neardup.standing import DUPLICATES
from neardup.wording import counted
from streams.client import BUFFER_BYTES, PageProducer
from streams.formats.codecs import encode_page

T = TypeVar("T")

_POLL_SECONDS = 0.1
#: Between two warnings about a service that does not answer.
_UNANSWERED_SECONDS = 60.0
_log = logging.getLogger(__name__)


class PublishMiddleware:
    """See the module. Everything happens on the crawl's own thread; only the start asks Kafka something and waits."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured without NEARDUP_BOOTSTRAP, and what PageProducer raises: such a crawl does not start."""
        settings = crawler.settings
        bootstrap = settings.get("NEARDUP_BOOTSTRAP")
        if not bootstrap:
            raise NotConfigured("NEARDUP_BOOTSTRAP is not set")
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._producer = PageProducer(
            bootstrap,
            settings.get("NEARDUP_PAGES_TOPIC", "pages"),
            codec=settings.get("NEARDUP_CODEC", "raw"),
            bodies=settings.get("NEARDUP_BODIES"),
            kafka=settings.getdict("NEARDUP_KAFKA"),
            buffer_bytes=settings.getint("NEARDUP_BUFFER_BYTES", BUFFER_BYTES),
            delivery_s=settings.getfloat("NEARDUP_DELIVERY_SECONDS", 120.0),
            on_error=self._failed,
        )
        ask = settings.get("NEARDUP_ASK")
        token, seconds = settings.get("NEARDUP_ASK_TOKEN"), settings.getfloat("NEARDUP_ASK_SECONDS", 5.0)
        self._ask = _AskClient(ask, token, seconds) if ask else None
        self._unanswered = UnansweredLog()
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "PublishMiddleware":
        return _started(cls, crawler)

    def _opened(self, spider: Spider) -> None:
        # Acknowledgements are taken in although no further page may come for long.
        self._polling = create_looping_call(self._poll)
        self._polling.start(_POLL_SECONDS, now=False)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Hands the response on once it is in the buffer; while that is full, it waits, and the crawl goes on."""
        reason = _left_out(request, response)
        if reason:
            if reason != "unasked":
                self._stats.inc_value(f"neardup/skipped/{reason}")
            return response
        page = _page(response)
        repeat_of = await self._repeat_of(request, page)
        try:
            while not self._producer.offer(page):
                self._stats.inc_value("neardup/waits")
                await sleep(_POLL_SECONDS)
        except NeardupError as error:
            self._failed(page.url, str(error))
            return response
        self._stats.inc_value("neardup/gone" if page.body is None else "neardup/published")
        self._stats.inc_value("neardup/bytes", len(page.body or b""))
        if repeat_of:
            self._stats.inc_value("neardup/repeats")
            raise IgnoreRequest(f"{page.url} repeats {repeat_of}")
        return response

    async def _repeat_of(self, request: Request, page: Page) -> str:
        """Return the URL that the page repeats by the service's answer, or ""."""
        if self._ask is None or page.body is None or request.meta.get("neardup_skip") is False:
            return ""
        try:
            return await maybe_deferred_to_future(deferToThread(self._ask.repeat_of, page))
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            self._stats.inc_value("neardup/unanswered")
            self._unanswered.add(page.url, error)
            return ""

    def _poll(self) -> None:
        try:
            self._producer.poll()
        except NeardupError as error:
            self._polling.stop()
            self._failed("", str(error))

    async def _closed(self, spider: Spider) -> None:
        """Waits, without blocking other crawls, until Kafka has everything or has given it up."""
        if self._polling.running:
            self._polling.stop()
        try:
            while self._producer.poll():
                await sleep(_POLL_SECONDS)
        except NeardupError as error:
            self._failed("", str(error))
        finally:
            self._stats.set_value("neardup/acknowledged", self._producer.acknowledged)
            self._producer.close()

    def _failed(self, url: str, reason: str) -> None:
        self._stats.inc_value("neardup/errors")
        _log.error("not published: %s", f"{url}: {reason}" if url and not reason.startswith(url) else reason)


class UnansweredLog:
    """Logs pages for which the service of `neardup ask` has no answer: one at once, and then one a minute.

    clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quiet_until, self._left_out, self._first = 0.0, 0, True

    def add(self, url: str, error: Exception) -> None:
        now = self._clock()
        if not self._first and now < self._quiet_until:
            self._left_out += 1
            return
        more = "pages without an answer reach the spider, and are logged once a minute"
        if not self._first:
            more = f"nor for {counted(self._left_out, 'page')} since the last warning"
        _log.warning("no answer for %s: %s; %s", url, error, more)
        self._quiet_until, self._left_out, self._first = now + _UNANSWERED_SECONDS, 0, False


class PatternsMiddleware:
    """Drops requests for URLs whose patterns yield repeats, before they are fetched. See the module."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured without NEARDUP_PATTERNS, and BadInput for a file that cannot be read."""
        settings = crawler.settings
        paths = settings.getlist("NEARDUP_PATTERNS")
        if not paths:
            raise NotConfigured("NEARDUP_PATTERNS is not set")
        assert crawler.stats is not None
        self._stats = crawler.stats
        try:
            self._repeating = RepeatingUrls(
                [Path(path).read_bytes() for path in paths],
                share_min=settings.getfloat("NEARDUP_PATTERNS_SHARE", SHARE_MIN),
                pages_min=settings.getint("NEARDUP_PATTERNS_PAGES", PAGES_MIN),
            )
        except OSError as error:
            raise BadInput(f"NEARDUP_PATTERNS: {error.filename}: {error.strerror}") from error

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "PatternsMiddleware":
        return _started(cls, crawler)

    def process_request(self, request: Request) -> None:
        """Raises IgnoreRequest for a URL with such a pattern."""
        if request.callback is NO_CALLBACK or request.meta.get("neardup_skip") is False:
            return
        if pattern := self._repeating.pattern_of(request.url):
            self._stats.inc_value("neardup/skipped/pattern")
            raise IgnoreRequest(f"{request.url} has the pattern {pattern}, whose pages repeat others")


def _started(make: Callable[[Crawler], T], crawler: Crawler) -> T:
    """Return the middleware. Log an error that ends the start of the crawl as one sentence, and raise it."""
    kafka_log = logging.getLogger("neardup.kafka")
    kafka_log.addFilter(_no_error)
    try:
        return make(crawler)
    except NeardupError as error:
        _log.critical("the crawl does not start: %s", error)
        for name in ("twisted", "asyncio"):
            logging.getLogger(name).addFilter(_LoggedAlready(error))
        raise
    finally:
        kafka_log.removeFilter(_no_error)


def _no_error(record: logging.LogRecord) -> bool:
    """Drop errors of the connection during the start, whose own error names their cause."""
    return record.levelno < logging.ERROR


class _LoggedAlready(logging.Filter):
    """Drops the traceback of an error that ended the start of a crawl and was logged as a sentence.

    Twisted logs an error that no code handles as two records: a heading, then the traceback.
    """

    def __init__(self, error: NeardupError) -> None:
        super().__init__()
        self._error = error

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is not None and record.exc_info[1] is self._error:
            return False
        return record.getMessage() != "Unhandled error in Deferred:"


class _AskClient:
    """Sends questions to the service of `neardup ask`. url: URL of the service, with the path /ask."""

    def __init__(self, url: str, token: str | None, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the crawl's proxies are not ours

    def repeat_of(self, page: Page) -> str:
        """Return the URL that the page repeats, or "". Raises OSError and others without a valid answer."""
        request = urllib.request.Request(self._url, encode_page(page, "json").value, self._headers)
        with self._opener.open(request, timeout=self._seconds) as answer:
            verdict = orjson.loads(answer.read())["verdict"]
        return str(verdict["representative"]["url"]) if verdict["verdict"] in DUPLICATES else ""


def _left_out(request: Request, response: Response) -> str:
    """Why a response is not published, or ""."""
    if request.callback is NO_CALLBACK:
        return "unasked"
    if request.meta.get("neardup") is False:
        return "meta"
    if request.method != "GET":
        return "method"
    no_page = not 200 <= response.status <= 299 or response.status in NO_PAGE_STATUSES
    if response.status not in GONE_STATUSES and no_page:
        return f"status_{response.status}"
    if "dataloss" in response.flags or "partial" in response.flags:
        return "incomplete"
    return ""


def _page(response: Response) -> Page:
    return Page(
        url=response.url,
        body=None if response.status in GONE_STATUSES else response.body,
        content_type=(response.headers.get("Content-Type") or b"").decode("latin-1"),
        fetched_at=_fetched_at(response),
        status=response.status,
    )


def _fetched_at(response: Response) -> int:
    if "cached" in response.flags:
        try:
            return read_time((response.headers.get("Date") or b"").decode("latin-1")).ms
        except BadPage:
            pass
    return time.time_ns() // 1_000_000
