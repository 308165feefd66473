"""The sketcher: pages in, messages of the sketch log out.

Each round: (1) poll a batch of pages; (2) sketch it, a pure function; (3) append the messages that are full, or the
rest at the end of the source; (4) sync the log. A crash after 1 or 2 leaves nothing behind; after 3 the log holds the
message whole or (a torn frame, cut when the log is opened) not at all; after 4 it holds it for good. A restart goes on
in each source after the last record that the log accounts for, so that a page is in the log once, and since messages
are cut by their records alone, with the same page id as without the crash.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from neardup.scheme import Scheme
from neardup.sketch.view import sketch_pages
from streams.formats.message import MESSAGE_BYTES_MAX, MESSAGE_PAGES_MAX, Message, encode_message
from streams.ports import Clock, LogWriter, Range, SourcedPage

POLL_PAGES_MAX = 512
#: Bodies in memory at once; a batch ends after the page that exceeds it.
POLL_BYTES_MAX = 32 << 20

_Pending = tuple[SourcedPage, bytes]


class Sketcher:
    """One per log. log_time: the greatest that the log holds already (ms since the epoch)."""

    def __init__(self, scheme: Scheme, log: LogWriter, clock: Clock, *, log_time: int = 0, threads: int = 1) -> None:
        self.log_time = log_time
        self._scheme = scheme
        self._scheme_digest = bytes.fromhex(scheme.digest)
        self._log = log
        self._clock = clock
        self._threads = threads

    def run(self, pages: Iterable[SourcedPage]) -> Iterator[tuple[int, bytes]]:
        """Sketches `pages` and gives (offset, message) after each message is durable; ends with the pages.

        Offsets of one partition must ascend without a gap. Raises what `pages` and the log raise.
        """
        pending: list[_Pending] = []
        source = iter(pages)
        while batch := _poll(source):  # (1)
            pending += self._sketch(batch)  # (2)
            while full := _full_message(pending):
                yield self._append(pending[:full])  # (3), (4)
                del pending[:full]
        if pending:
            yield self._append(pending)

    def _sketch(self, batch: list[SourcedPage]) -> list[_Pending]:
        times = []
        for page in batch:
            self.log_time = max(self.log_time, min(page.log_time, self._clock.now_ms()))
            times.append(self.log_time)
        records = sketch_pages(
            [page.page for page in batch],
            self._scheme,
            coordinates=[page.coordinates for page in batch],
            log_times=times,
            threads=self._threads,
        )
        return list(zip(batch, records, strict=True))

    def _append(self, pending: list[_Pending]) -> tuple[int, bytes]:
        places = [page.coordinates for page, _ in pending]
        ranges = []
        for (source, partition), run in groupby(places, key=lambda c: (c.source, c.partition)):
            offsets = [c.offset for c in run]
            ranges.append(Range(bytes.fromhex(source), partition, offsets[0], offsets[-1] + 1))
        message = encode_message(Message(self._scheme_digest, tuple(ranges), tuple(record for _, record in pending)))
        offset = self._log.append(message)
        self._log.sync()
        return offset, message


def _poll(source: Iterator[SourcedPage]) -> list[SourcedPage]:
    batch: list[SourcedPage] = []
    size = 0
    for page in islice(source, POLL_PAGES_MAX):
        batch.append(page)
        size += len(page.page.body or b"")
        if size >= POLL_BYTES_MAX:
            break
    return batch


def _full_message(pending: list[_Pending]) -> int:
    """How many of the first records make a full message; 0 if they all fit in one that may grow."""
    size = 0
    for count, (_, record) in enumerate(pending):
        size += len(record)
        if count == MESSAGE_PAGES_MAX or (size > MESSAGE_BYTES_MAX and count):
            return count
    return 0
