"""Publishes the pages of WARC files, folders of HTML and JSON lines to the `pages` topic."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from neardup.errors import BadInput
from neardup.limits import GONE_STATUSES
from streams.client import PageProducer
from streams.config.settings import Settings
from streams.errors import RecordTooLarge
from streams.files.not_read import NotRead
from streams.files.sources import BY_DEFAULT, LocalSource, ReadOptions, open_all
from streams.formats.bodies import BodyFolder
from streams.ports import SourcedPage, SourceProgress
from streams.process.shutdown import stopped_by_signals
from streams.roles.runtime import connect, traces_of

#: Problems kept with their text; all are counted.
PROBLEMS_MAX = 100
_PROGRESS_SECONDS = 0.1


@dataclass
class Published:
    """Result of `publish`.

    pages, gone: acknowledged by Kafka; gone are tombstones, 404 and 410. bytes: read from the sources, as stored.
    refused: pages that were read and not published; they are among the problems. fields_taken: fields of ids and texts
    that were guessed, per file. left_out: records of archives that are no pages, by kind. problems: the first
    PROBLEMS_MAX of problems_total. passed_over: files of folders that hold no pages by their names. interrupted:
    whether by a signal; pages that were read before are published.
    """

    pages: int = 0
    gone: int = 0
    bytes: int = 0
    seconds: float = 0.0
    refused: int = 0
    fields_taken: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    passed_over: str = ""
    interrupted: bool = False

    def add_problem(self, text: str) -> None:
        self.problems_total += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)


def publish(
    paths: Sequence[str | Path],
    settings: Settings,
    *,
    reading: ReadOptions = BY_DEFAULT,
    bodies: str | Path | None = None,
    progress: Callable[[SourceProgress], None] = lambda now: None,
    stop: threading.Event | None = None,
    not_read: NotRead | None = None,
) -> Published:
    """Publishes every page of some files in `settings.codec`, and returns when Kafka has acknowledged them.

    A response with a status other than 2xx, 404 and 410 is published, too: its verdict is `rejected`. A part that is no
    page, and a page over the topic's limit, is a problem of the result.

    Args:
        bodies: folder below one of `body_ref_prefixes`, for bodies that are too large for a record.
        stop: event that ends the call early; by default SIGINT and SIGTERM end it.
        not_read: unreadable parts of the inputs that were found before, which become part of the problems.

    Raises BadInput for paths that are no sources, before it publishes; NotDelivered with the URLs, after which the same
    files may be published again (acknowledged pages then get the verdict `unchanged`); TopicError, BrokerError.
    """
    own = stop is None
    stop = stop or threading.Event()
    if bodies is not None:
        _must_be_allowed(BodyFolder(bodies), settings)
    with stopped_by_signals(stop) if own else nullcontext():
        run = _Run(settings, progress, stop)
        run.enlist(paths, reading, not_read or NotRead())
        kafka = connect(settings, "publish").settings
        pages = settings.topics.pages
        traces = traces_of(settings, "publish")
        with (
            nullcontext() if traces is None else closing(traces),
            PageProducer(
                settings.bootstrap, pages, codec=settings.codec, bodies=bodies, kafka=kafka, traces=traces
            ) as producer,
        ):
            run.go(producer)
    return run.result


def _must_be_allowed(bodies: BodyFolder, settings: Settings) -> None:
    if settings.codec == "warc":
        raise BadInput("the warc codec has no references to bodies; use raw or json, or publish without a body folder")
    if not any(bodies.url.startswith(prefix) for prefix in settings.body_ref_prefixes):
        allowed = ", ".join(settings.body_ref_prefixes) or "none"
        raise BadInput(f"{bodies.url} is under no prefix that sketchers read (body_ref_prefixes: {allowed})")


class _Run:
    def __init__(self, settings: Settings, progress: Callable[[SourceProgress], None], stop: threading.Event) -> None:
        self.result = Published()
        self._settings = settings
        self._progress = progress
        self._stop = stop
        self._sources: list[LocalSource] = []
        self._bytes_total = self._bytes_before = 0
        self._began = self._reported = time.monotonic()

    def enlist(self, paths: Sequence[str | Path], reading: ReadOptions, not_read: NotRead) -> None:
        """Opens all sources before any is published."""
        digested = 0

        def on_bytes(path: Path, count: int) -> None:
            nonlocal digested
            digested += count
            self._report("digest", str(path), digested)

        self._sources = open_all(
            list(map(Path, paths)),
            reading,
            body_bytes_max=self._settings.body_bytes_max,
            not_read=not_read,
            on_bytes=on_bytes,
        )
        for line in not_read.lines:
            self.result.add_problem(line)
        self.result.passed_over = not_read.passed_over
        self._bytes_total = sum(source.bytes_total for source in self._sources)
        self.result.fields_taken = [one.record.fields_taken for one in self._sources if one.record.fields]

    def go(self, producer: PageProducer) -> None:
        self._began = time.monotonic()
        for source in self._sources:
            try:
                self._publish_source(source, producer)
            except OSError as error:
                source.cannot_go_on(error)
            for problem in source.problems:
                self.result.add_problem(str(problem))
            if self._stop.is_set():
                self.result.interrupted = True
                break
            self._bytes_before += source.bytes_total
        producer.flush()
        result = self.result
        result.bytes = sum(min(source.bytes_read, source.bytes_total) for source in self._sources)
        result.left_out = dict(sum((source.left_out for source in self._sources), Counter[str]()))
        result.seconds = time.monotonic() - self._began

    def _publish_source(self, source: LocalSource, producer: PageProducer) -> None:
        for sourced in takewhile(lambda _: not self._stop.is_set(), source.read()):
            page = sourced.page
            if page.problem and 200 <= page.status <= 299:
                self._refuse(source, sourced, page.problem)
                continue
            try:
                producer.send(page)
            except (RecordTooLarge, BadInput) as error:
                self._refuse(source, sourced, str(error))
                continue
            if page.body is None or page.status in GONE_STATUSES:
                self.result.gone += 1
            else:
                self.result.pages += 1
            now = time.monotonic()
            if now - self._reported >= _PROGRESS_SECONDS:
                self._reported = now
                self._report("scan", source.record.path, self._bytes_before + source.bytes_read)

    def _refuse(self, source: LocalSource, sourced: SourcedPage, why: str) -> None:
        self.result.refused += 1
        position, url = sourced.coordinates, sourced.page.url
        named = f"{url[:200]}: " if url and not why.startswith(url[:200]) else ""
        self.result.add_problem(f"{source.record.path}: page {position.offset}, byte {position.position}: {named}{why}")

    def _report(self, phase: str, path: str, bytes_done: int) -> None:
        pages = self.result.pages + self.result.gone
        seconds = time.monotonic() - self._began
        self._progress(SourceProgress(phase, path, pages, bytes_done, self._bytes_total, seconds))
