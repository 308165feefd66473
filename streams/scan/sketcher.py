"""The sketcher: pages in, messages of the sketch log out.

Each round: (1) poll a batch of pages; (2) sketch it, a pure function; (3) append full messages, or the rest at the end
of the source; (4) sync the log. A crash after 1 or 2 leaves nothing behind. After 3 the log has the message whole or
not at all: a torn frame is cut when the log is opened. After 4 the message is durable. A restart continues in each
source after the last record that the log accounts for. So each page is in the log once. Messages are divided by their
records alone, so page ids are the same as without the crash.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from streams.formats.message import as_first
from streams.pipeline.sketching import contained_sketches
from streams.ports import SourcedPage
from streams.scan.archive_time import DATES, ArchiveTime
from streams.scan.archives import SketchedPage, messages_of
from streams.state.segments import SegmentLog

POLL_PAGES_MAX = MESSAGE_PAGES_MAX
#: Bytes of bodies in memory at once. A batch ends after the page that exceeds it.
POLL_BYTES_MAX = 32 << 20
#: Pages that are polled before a log begins: the first log time must not depend on batches.
HEAD_BYTES_MAX = 64 << 20


@dataclass
class Sketcher:
    """The sketcher of a log. time: the log time at the end of the log. first: the log is empty."""

    scheme: Scheme
    log: SegmentLog
    time: ArchiveTime
    threads: int = 1
    first: bool = False

    def run(self, pages: Iterable[SourcedPage]) -> Iterator[tuple[int, bytes]]:
        """Sketches `pages`, and yields (offset, message) once the message is durable.

        Offsets of one source must ascend without a gap. Raises what `pages` and the log raise.
        """
        for _, message in messages_of(self._sketched(pages), self.scheme, pages_max=MESSAGE_PAGES_MAX):
            yield self.append(message)

    def append(self, message: bytes) -> tuple[int, bytes]:
        """Appends a message, and returns it with its offset once it is durable. The log's first one names the program.

        Raises what the log raises.
        """
        if self.first:
            message, self.first = as_first(message), False
        offset = self.log.append(message)  # (3)
        self.log.sync()  # (4)
        return offset, message

    def _sketched(self, pages: Iterable[SourcedPage]) -> Iterator[SketchedPage]:
        source = self._begun(iter(pages))
        while batch := _poll(source, POLL_PAGES_MAX, POLL_BYTES_MAX):  # (1)
            for page, record in zip(batch, self._sketch(batch), strict=True):  # (2)
                yield SketchedPage(page.coordinates.source, page.coordinates.offset, record)

    def _begun(self, pages: Iterator[SourcedPage]) -> Iterator[SourcedPage]:
        """Yields the pages. The log time of an empty log begins with the dates of the first ones."""
        if self.time.begun:
            return pages
        head = _poll(pages, DATES, HEAD_BYTES_MAX)
        self.time.begin([page.date for page in head])
        return chain(head, pages)

    def _sketch(self, batch: list[SourcedPage]) -> list[bytes]:
        pages, times = [], []
        for page in batch:
            date = self.time.date(page.date, of_file=page.page.fetched_at is None)
            pages.append(page.page.dated(date) if page.page.fetched_at is None else page.page)
            times.append(self.time.advance(date))
        return contained_sketches(
            pages,
            self.scheme,
            coordinates=[page.coordinates for page in batch],
            log_times=times,
            threads=self.threads,
        )


def _poll(source: Iterator[SourcedPage], pages_max: int, bytes_max: int) -> list[SourcedPage]:
    batch: list[SourcedPage] = []
    size = 0
    for page in islice(source, pages_max):
        batch.append(page)
        size += len(page.page.body or b"")
        if size >= bytes_max:
            break
    return batch
