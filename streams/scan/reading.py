"""Reads and sketches sources, as blocks: parts of one source after the other, or several archives by fetch times.

Each function runs in the process of a scan, or in processes of its own (`streams.scan.sketch_processes`).
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.files.parts import Handover, Part, Relay, SourcePart
from streams.files.sources import LocalSource, SourceRecord
from streams.pipeline.accounting import Mark
from streams.ports import SourcedPage
from streams.scan.blocks import Block, Notes, SourceReport, sketched

#: Pages that are sketched together, and bytes of their bodies in memory: a batch ends after the page that exceeds them.
BATCH_PAGES_MAX, BATCH_BYTES_MAX = 512, 16 << 20
#: Pages read and not sketched, as the log has them, after which a reader reports its progress.
_SKIPPED_MAX = 4096


@dataclass(frozen=True, slots=True)
class SourceToRead:
    """A source, and how far the log accounts for it."""

    record: SourceRecord
    mark: Mark


class NoRelay:
    """The relay of a source that is one part."""

    def take(self) -> Handover:
        raise AssertionError("the first part of a source has no part before it")

    def give(self, handover: Handover) -> None:
        raise AssertionError("the last part of a source has no part behind it")


class PartSketches:
    """The pages of one part of a source, sketched. position: where reading is, for errors."""

    def __init__(
        self, number: int, given: SourceToRead, part: Part, relay: Relay, scheme: Scheme, *, threads: int = 1
    ) -> None:
        """number: number of the source among those of the scan."""
        self._number, self._mark, self._scheme, self._threads = number, given.mark, scheme, threads
        self._source = SourcePart(given.record, scheme.body_bytes_max, part, relay)
        form = given.record.format
        self._archive = form is not None and form.records is not None
        self._numbered = not self._archive or part.ordinal is not None
        self._report = SourceReport(number, self._source)
        self._skipped = 0
        self.position = part.start

    def blocks(self) -> Iterator[Block]:
        """Yields the blocks; the last one has no pages, and the notes on the rest. Raises nothing for a bad file."""
        batch: list[SourcedPage] = []
        size = 0
        error: OSError | None = None
        try:
            for page in self._source.pages():
                self.position = page.coordinates.position
                self._source.note_time(page.page)
                if self._is_logged(page):
                    self._skipped += 1
                    if self._skipped == _SKIPPED_MAX:
                        yield self._block([])
                    continue
                batch.append(page)
                size += len(page.page.body or b"")
                if len(batch) >= BATCH_PAGES_MAX or size >= BATCH_BYTES_MAX:
                    yield self._block(batch)
                    batch, size = [], 0
        except OSError as failure:  # the pages before it count
            error = failure
        if batch:
            yield self._block(batch)
        last = self._block([])
        last.notes.error, last.notes.damaged, last.notes.last = error, self._source.damaged, True
        yield last

    def _is_logged(self, page: SourcedPage) -> bool:
        """Whether the log has the page, as far as this part can tell; the log's own count decides."""
        at, mark = page.coordinates, self._mark
        if self._numbered and at.offset < mark.offset:
            return True
        return self._archive and mark.position is not None and mark.offset > 0 and at.position < mark.position

    def _block(self, batch: list[SourcedPage]) -> Block:
        notes = Notes([self._report.taken()], self._skipped)
        self._skipped = 0
        return sketched(batch, [self._number] * len(batch), self._scheme, notes, threads=self._threads)


def blocks_by_time(own: Sequence[tuple[int, SourceToRead]], scheme: Scheme) -> Iterator[Block]:
    """Yields the pages of some archives in the order of their fetch times. own: archives with their numbers.

    At equal times the archive with the lesser number is first. Raises BadInput for an archive that cannot be read.
    """
    sources = {number: LocalSource(each.record, scheme.body_bytes_max) for number, each in own}
    reports = [SourceReport(number, source) for number, source in sources.items()]

    def block(keys: list[tuple[int, int]], pages: list[SourcedPage]) -> Block:
        made = sketched(pages, [number for _, number in keys], scheme, Notes([each.taken() for each in reports]))
        made.times = np.array([time for time, _ in keys], np.int64)
        return made

    keys: list[tuple[int, int]] = []
    pages: list[SourcedPage] = []
    size = 0
    parts = [_keyed(number, sources[number], each.mark) for number, each in own]
    for key, page in heapq.merge(*parts, key=itemgetter(0)):
        keys.append(key)
        pages.append(page)
        size += len(page.page.body or b"")
        if len(pages) >= BATCH_PAGES_MAX or size >= BATCH_BYTES_MAX:
            yield block(keys, pages)
            keys, pages, size = [], [], 0
    if pages:
        yield block(keys, pages)
    last = block([], [])
    last.notes.last = True
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
