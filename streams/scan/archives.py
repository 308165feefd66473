"""Reads many archives side by side, in several processes, and yields their sketches in one order: by fetch time.

The next page is the one with the earliest fetch time among the first unread pages of all archives; at equal times, that
of the archive named first. So the order does not depend on the number or speed of processes, and a resumed read yields
the same order. Limit: an archive keeps its own order, so a page behind a later one comes late. A page counts as fetched
no later than the next page of its archive: one date in the future must not hold back the rest.

Each process reads, merges and sketches some of the archives. Only sketches are transferred, and merged again here: the
minimum of the parts' minima is the minimum of all. Log time is written into the sketches here, in their final order.
"""

import heapq
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from operator import itemgetter
from typing import Any

from neardup.errors import BadInput, NeardupError
from neardup.limits import MESSAGE_BYTES_MAX, MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from neardup.sketch.layout import field_at
from streams.files.sources import LocalSource, SourceRecord
from streams.formats.message import ANY_LOG, Message, encode_message
from streams.pipeline.accounting import Mark
from streams.pipeline.packing import full_message
from streams.pipeline.sketching import contained_sketches
from streams.ports import Range, SourcedPage
from streams.scan.archive_time import DATES, ArchiveTime

_BATCH_PAGES = 128
_BATCH_BYTES = 8 << 20
#: fetched_at and log_time stand side by side in a record.
_DATES = struct.Struct("<qq")
_DATES_AT = field_at("fetched_at")
#: Archives that are open at once; each has two pages and a piece of its file in memory.
ARCHIVES_MAX = 1_000


class ReaderLost(NeardupError):
    """A process that read archives was killed, usually for lack of memory. Run it again, with fewer threads."""


@dataclass(frozen=True, slots=True)
class SketchedPage:
    """A page's record of the sketch log. offset: ordinal in its archive. undated: it has the date of its file."""

    source: str
    offset: int
    record: bytes
    undated: bool = False


@dataclass(slots=True)
class _ArchiveBatch:
    """Message of a process: pages in order, their keys (time, number of the archive), and problems of the archives.

    times: `LocalSource.times` of all pages so far. The last message has no pages, and has the counts of the records
    that the archives left out.
    """

    keys: list[tuple[int, int]]
    pages: list[SketchedPage]
    bytes_read: int
    problems: list[tuple[str, str]]
    times: Counter[str]
    left_out: Counter[str] = field(default_factory=Counter)


class SketchedArchives:
    """The sketched pages of archives: an iterable for one pass, and a context manager that ends the processes.

    bytes_read, bytes_total: bytes of the stored archives. problems: id of the archive and text of each unreadable part
    so far. left_out: counts of records that are no pages, by kind, once all archives are read.
    """

    def __init__(
        self,
        sources: Sequence[LocalSource],
        marks: Mapping[str, Mark],
        scheme: Scheme,
        processes: int,
        time: ArchiveTime,
    ) -> None:
        """marks: the index's mark of each source, by id. time: the log time of the log so far."""
        self._time = time
        self.bytes_total = sum(source.bytes_total for source in sources)
        self.problems: list[tuple[str, str]] = []
        self.left_out: Counter[str] = Counter()
        self._read: dict[int, int] = {}
        self._times: dict[int, Counter[str]] = {}
        self._processes: list[Any] = []
        numbered = [(number, each.record, marks.get(each.record.id, Mark())) for number, each in enumerate(sources)]
        parts = [numbered[first::processes] for first in range(min(processes, len(numbered)))]
        if processes == 1:
            self._batches = [_batches(part, scheme) for part in parts]
        else:
            self._batches = [self._received(part, scheme) for part in parts]

    def _received(self, own: "list[_Own]", scheme: Scheme) -> "Iterator[_ArchiveBatch]":
        """Starts a process, and yields its batches."""
        context = get_context("spawn")  # a fork would copy locks that the Kafka client's threads hold
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(own, scheme, there), daemon=True)
        process.start()
        there.close()
        self._processes.append((process, here))
        return _from_pipe(here)

    @property
    def bytes_read(self) -> int:
        return sum(self._read.values())

    @property
    def times(self) -> Counter[str]:
        """Pages by how their fetch times were read, as `LocalSource.times`."""
        return sum(self._times.values(), Counter())

    def __iter__(self) -> Iterator[SketchedPage]:
        """Raises ReaderLost, and BadInput for an archive that can no longer be read."""
        pages = self._in_order()
        if not self._time.begun:
            head = list(islice(pages, DATES))
            self._time.begin([_DATES.unpack_from(page.record, _DATES_AT)[1] for page in head])
            pages = chain(head, pages)
        yield from map(self._timed, pages)

    def _timed(self, page: SketchedPage) -> SketchedPage:
        """Replaces the date in the log-time field by the log time; an undated page gets its date as fetch time."""
        fetched_at, date = _DATES.unpack_from(page.record, _DATES_AT)
        date = self._time.date(date, of_file=page.undated)
        log_time = self._time.advance(date)
        record = bytearray(page.record)
        _DATES.pack_into(record, _DATES_AT, date if page.undated else fetched_at, log_time)
        return SketchedPage(page.source, page.offset, bytes(record), page.undated)

    def _in_order(self) -> Iterator[SketchedPage]:
        """All pages. The log-time field of their records holds their dates."""
        parts = [self._pages(worker, batches) for worker, batches in enumerate(self._batches)]
        # Keys differ: each has the number of its archive, and each archive one process.
        return (page for _, page in heapq.merge(*parts, key=itemgetter(0)))

    def _pages(self, worker: int, batches: "Iterator[_ArchiveBatch]") -> Iterator[tuple[tuple[int, int], SketchedPage]]:
        for batch in batches:
            self._read[worker] = batch.bytes_read
            self._times[worker] = batch.times
            self.problems += batch.problems
            self.left_out += batch.left_out
            yield from zip(batch.keys, batch.pages, strict=True)

    def __enter__(self) -> "SketchedArchives":
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._processes:
            pipe.close()
            process.terminate()
            process.join()


#: An archive of a process: its number among all, its record, and its mark in the index.
_Own = tuple[int, SourceRecord, Mark]


def _from_pipe(pipe: Connection) -> Iterator[_ArchiveBatch]:
    while True:
        try:
            found = pipe.recv()
        except EOFError as error:
            raise ReaderLost("a process that read archives was killed; run it again, with fewer threads") from error
        if isinstance(found, BaseException):
            raise found
        yield found
        if not found.pages:
            return


def messages_of(
    pages: Iterable[SketchedPage], scheme: Scheme, *, pages_max: int = MESSAGE_PAGES_MAX, log: bytes = ANY_LOG
) -> Iterator[tuple[int, bytes]]:
    """Yields (number of pages, message). Each message has the ranges of its pages, one per archive.

    log: topic id of the target log.
    """
    held: list[SketchedPage] = []
    size = 0
    for page in pages:
        held.append(page)
        size += len(page.record)
        if len(held) > pages_max or size > MESSAGE_BYTES_MAX:
            records = [each.record for each in held]
            if full := full_message(records, pages_max=pages_max, bytes_max=MESSAGE_BYTES_MAX):
                yield full, _message(held[:full], scheme, log)
                del held[:full]
                size = sum(len(each.record) for each in held)
    if held:
        yield len(held), _message(held, scheme, log)


def _message(pages: Sequence[SketchedPage], scheme: Scheme, log: bytes) -> bytes:
    spans: dict[str, tuple[int, int]] = {}
    for page in pages:
        first, _ = spans.get(page.source, (page.offset, 0))
        spans[page.source] = first, page.offset + 1
    ranges = tuple(Range(bytes.fromhex(source), 0, *span) for source, span in spans.items())
    return encode_message(Message(bytes.fromhex(scheme.digest), ranges, tuple(page.record for page in pages), log))


def _work(own: list[_Own], scheme: Scheme, pipe: Connection) -> None:
    """Runs one process. It ends if its parent is gone."""
    with suppress(BrokenPipeError):
        try:
            for batch in _batches(own, scheme):
                pipe.send(batch)
        except NeardupError as error:
            pipe.send(error)


def _batches(own: list[_Own], scheme: Scheme) -> Iterator[_ArchiveBatch]:
    sources = [LocalSource(record, scheme.body_bytes_max) for _, record, _ in own]
    reported = [0] * len(sources)  # problems of each

    def batch(keys: list[tuple[int, int]], pages: list[SourcedPage]) -> _ArchiveBatch:
        records = contained_sketches(
            [page.page for page in pages],
            scheme,
            coordinates=[page.coordinates for page in pages],
            log_times=[page.date for page in pages],
        )
        new = [
            (each.record.id, str(problem))
            for count, each in zip(reported, sources, strict=True)
            for problem in each.problems[count:]
        ]
        reported[:] = [len(each.problems) for each in sources]
        made = [
            SketchedPage(page.coordinates.source, page.coordinates.offset, data, page.page.fetched_at is None)
            for page, data in zip(pages, records, strict=True)
        ]
        times = sum((Counter(source.times) for source in sources), Counter[str]())
        return _ArchiveBatch(keys, made, sum(source.bytes_read for source in sources), new, times)

    keys: list[tuple[int, int]] = []
    pages: list[SourcedPage] = []
    size = 0
    parts = [_keyed(number, source, mark) for (number, _, mark), source in zip(own, sources, strict=True)]
    for key, page in heapq.merge(*parts, key=itemgetter(0)):
        keys.append(key)
        pages.append(page)
        size += len(page.page.body or b"")
        if len(pages) == _BATCH_PAGES or size >= _BATCH_BYTES:
            yield batch(keys, pages)
            keys, pages, size = [], [], 0
    if pages:
        yield batch(keys, pages)
    last = batch([], [])
    for source in sources:
        last.left_out += source.left_out
    yield last


def _keyed(number: int, source: LocalSource, mark: Mark) -> Iterator[tuple[tuple[int, int], SourcedPage]]:
    """The pages of one archive behind `mark`, with (time, number of the archive)."""
    try:
        for time, page in _with_times(source.read(mark.offset, mark.position)):
            yield (time, number), page
    except OSError as error:
        path = error.filename or source.record.path
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}; run it again once it can be") from error


def _with_times(pages: Iterator[SourcedPage]) -> Iterator[tuple[int, SourcedPage]]:
    """Yields pages with their effective fetch times: no later than the next page's date."""
    page = next(pages, None)
    while page is not None:
        after = next(pages, None)
        yield page.date if after is None else min(page.date, after.date), page
        page = after
