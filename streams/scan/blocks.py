"""Sketches of consecutive pages as one block of bytes, and the messages of the log that are cut from blocks.

A block goes from the process that reads and sketches to the one that judges. Its records hold the pages' dates in their
field for log time. Offsets and log time depend on everything before the page, so they are written into the records
where all blocks are in their order. No work here is done in Python page by page but that of the clock.
"""

import pickle
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neardup.limits import MESSAGE_BYTES_MAX
from neardup.scheme import Scheme
from neardup.sketch.layout import field_at
from streams.files.sources import LocalSource
from streams.files.warc_reader import UnreadablePart
from streams.formats.message import ANY_LOG, encode_packed
from streams.pipeline.packing import full_message
from streams.pipeline.sketching import contained_sketches
from streams.ports import Range, SourcedPage
from streams.scan.archive_time import DATES, ArchiveTime

I64s = npt.NDArray[np.int64]
_OFFSET_AT, _FETCHED_AT, _LOG_TIME_AT = (field_at(name) for name in ("offset", "fetched_at", "log_time"))
_HEAD = struct.Struct("<II")
#: Of a page: date (ms since 1970), bytes of its body and of its record, number of its source, whether it is undated.
_COLUMNS = np.dtype([("date", "<i8"), ("body", "<u4"), ("record", "<u4"), ("source", "<u4"), ("undated", "u1")])


@dataclass(slots=True)
class SourceNotes:
    """What was read of one source since the block before.

    number: number of the source. read: bytes of the file up to here; of a folder, bytes of the files that were read.
    problems, times, left_out: those of `LocalSource`.
    """

    number: int
    read: int
    problems: list[UnreadablePart] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def add_to(self, source: LocalSource) -> None:
        """Adds the notes to the source of the scan."""
        source.problems += self.problems
        source.add(self.times, self.left_out)
        if source.record.format is None:
            source.bytes_read += self.read
        else:
            source.bytes_read = max(source.bytes_read, self.read)


class SourceReport:
    """Makes the notes on a source that is being read."""

    def __init__(self, number: int, source: LocalSource) -> None:
        self._number, self._source = number, source
        self._problems = self._read = 0
        self._times, self._left_out = source.counts

    def taken(self) -> SourceNotes:
        """Returns what is new since the last call."""
        source = self._source
        read = source.bytes_read - (self._read if source.record.format is None else 0)
        times, left_out = source.counts
        problems = source.problems[self._problems :]
        notes = SourceNotes(self._number, read, problems, _new(times, self._times), _new(left_out, self._left_out))
        self._problems, self._read, self._times, self._left_out = (
            len(source.problems),
            source.bytes_read,
            times,
            left_out,
        )
        return notes


def _new(counts: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """What is added to counts; also names that are new, and were never counted."""
    return {name: count - before.get(name, 0) for name, count in counts.items() if before.get(name) != count}


@dataclass(slots=True)
class Notes:
    """What a reader reports with a block, of what it read since the block before.

    skipped: pages before the block that the log has already, and that were not sketched.
    damaged: whether the rest of the source is not read. error: what ended the reading. last: nothing follows.
    """

    sources: list[SourceNotes] = field(default_factory=list)
    skipped: int = 0
    damaged: bool = False
    error: BaseException | None = None
    last: bool = False


@dataclass(slots=True)
class Block:
    """Pages in their order. columns: a row of _COLUMNS for each. data: their records, back to back.

    times: effective fetch times, by which pages of several archives are merged; empty in the order of sources.
    """

    columns: npt.NDArray[np.void]
    data: bytes
    notes: Notes
    times: I64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.columns)

    def encode(self) -> bytes:
        """The block as bytes: the lengths of notes and columns u32 each, notes, columns, times, records."""
        notes, columns = pickle.dumps(self.notes), self.columns.tobytes()
        head = _HEAD.pack(len(notes), len(self.columns) << 1 | bool(len(self.times)))
        return b"".join((head, notes, columns, self.times.tobytes(), self.data))

    @classmethod
    def decode(cls, data: bytes) -> "Block":
        """Reads `encode`'s bytes."""
        size, count = _HEAD.unpack_from(data)
        rows, timed = count >> 1, count & 1
        at = _HEAD.size + size
        notes = pickle.loads(memoryview(data)[_HEAD.size : at])
        columns = np.frombuffer(data, _COLUMNS, rows, at)
        at += columns.nbytes
        times = np.frombuffer(data, np.int64, rows * timed, at)
        return cls(columns, data[at + times.nbytes :], notes, times)

    @classmethod
    def of_error(cls, error: BaseException) -> "Block":
        """A block that says why no other follows."""
        return cls(np.zeros(0, _COLUMNS), b"", Notes(error=error, last=True))

    @classmethod
    def of_pages(cls, pages: Sequence[tuple["BlockPages", int]]) -> "Block":
        """A block of pages of other blocks. pages: a block and the number of a page in it."""
        columns = np.array([of.columns[number] for of, number in pages], _COLUMNS)
        return cls(columns, b"".join([of.record(number) for of, number in pages]), Notes())

    def without(self, first: int) -> "Block":
        """The block without its first pages, of which there are `first`."""
        if not first:
            return self
        start = int(self.columns["record"][:first].sum())
        return Block(self.columns[first:], self.data[start:], self.notes, self.times[first:])


def sketched(
    pages: Sequence[SourcedPage], sources: Sequence[int], scheme: Scheme, notes: Notes, *, threads: int = 1
) -> Block:
    """Sketches pages. sources: number of the source of each."""
    records = contained_sketches(
        [page.page for page in pages],
        scheme,
        coordinates=[page.coordinates for page in pages],
        log_times=[page.date for page in pages],
        threads=threads,
    )
    columns = np.zeros(len(pages), _COLUMNS)
    columns["date"] = [page.date for page in pages]
    columns["body"] = [len(page.page.body or b"") for page in pages]
    columns["record"] = [len(record) for record in records]
    columns["source"] = sources
    columns["undated"] = [page.page.fetched_at is None for page in pages]
    return Block(columns, b"".join(records), notes)


class BlockPages:
    """The single pages of a block."""

    def __init__(self, block: Block) -> None:
        self.columns, self._data = block.columns, block.data
        self._ends = np.cumsum(block.columns["record"], dtype=np.int64).tolist()

    def record(self, number: int) -> bytes:
        """The record of a page."""
        return self._data[self._ends[number - 1] if number else 0 : self._ends[number]]


class MessagePacker:
    """Cuts pages into messages of the log, by their records alone, and writes log time and offsets into the records.

    Offsets of one source ascend without a gap.
    """

    def __init__(
        self,
        scheme: Scheme,
        time: ArchiveTime,
        ids: Sequence[str],
        offsets: Sequence[int],
        *,
        pages_max: int,
        head_bytes_max: int | None = None,
        log: bytes = ANY_LOG,
    ) -> None:
        """Begin behind the pages that the log holds.

        Args:
            scheme: parameters of the sketches.
            time: log time at the end of the log.
            ids: id of each source, by its number.
            offsets: ordinal of the next page of each source.
            pages_max: greatest number of pages of a message.
            head_bytes_max: bytes of bodies that end the pages by which the log time of an empty log begins.
            log: topic id of the log.
        """
        self._scheme, self._log = bytes.fromhex(scheme.digest), log
        self._time = time
        self._ids = [bytes.fromhex(each) for each in ids]
        self._next = list(offsets)
        self._pages_max, self._head_bytes_max = pages_max, head_bytes_max
        self._unstamped: list[Block] = []  # pages by which log time begins
        self._lengths: list[int] = []  # of the records that are in no message yet
        self._sources: list[int] = []
        self._offsets: list[int] = []
        self._data = b""

    def add(self, block: Block) -> Iterator[tuple[int, bytes]]:
        """Adds pages, and yields (number of pages, message) of each message that cannot grow."""
        if not self._time.begun:
            self._unstamped.append(block)
            if not self._has_begun():
                return
            blocks, self._unstamped = self._unstamped, []
        else:
            blocks = [block]
        for each in blocks:
            self._append(each)
            yield from self._messages(all_of_them=False)

    def flush(self) -> Iterator[tuple[int, bytes]]:
        """Yields the message of all pages that are left."""
        if self._unstamped:
            self._begin(self._unstamped)
            blocks, self._unstamped = self._unstamped, []
            for each in blocks:
                self._append(each)
        yield from self._messages(all_of_them=True)

    def _has_begun(self) -> bool:
        """Begins log time if the first dates are there."""
        count = size = 0
        for block in self._unstamped:
            for body in block.columns["body"].tolist():
                count, size = count + 1, size + body
                if count == DATES or (self._head_bytes_max is not None and size >= self._head_bytes_max):
                    self._begin(self._unstamped, count)
                    return True
        return False

    def _begin(self, blocks: Sequence[Block], count: int = DATES) -> None:
        dates = [date for block in blocks for date in block.columns["date"].tolist()]
        self._time.begin(dates[:count])

    def _append(self, block: Block) -> None:
        if not len(block):
            return
        columns, time = block.columns, self._time
        dates, times = [], []
        for date, undated in zip(columns["date"].tolist(), columns["undated"].tolist(), strict=True):
            date = time.date(date, of_file=bool(undated))
            dates.append(date)
            times.append(time.advance(date))
        sources = columns["source"].tolist()
        offsets = []
        for source in sources:
            offsets.append(self._next[source])
            self._next[source] += 1
        data = bytearray(block.data)
        lengths = columns["record"].astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        view = np.frombuffer(data, np.uint8)
        _put(view, starts + _OFFSET_AT, offsets)
        _put(view, starts + _LOG_TIME_AT, times)
        undated = columns["undated"].astype(bool)
        if undated.any():
            _put(view, starts[undated] + _FETCHED_AT, np.array(dates, np.int64)[undated])
        self._lengths += lengths.tolist()
        self._sources += sources
        self._offsets += offsets
        self._data += data

    def _messages(self, *, all_of_them: bool) -> Iterator[tuple[int, bytes]]:
        lengths = self._lengths
        ends = np.concatenate(([0], np.cumsum(np.array(lengths, np.int64))))
        first, total = 0, len(lengths)
        while first < total:
            stop = full_message(ends, first, pages_max=self._pages_max, bytes_max=MESSAGE_BYTES_MAX)
            stop = stop or (total if all_of_them else 0)
            if not stop:
                break
            data = self._data[int(ends[first]) : int(ends[stop])]
            yield (
                stop - first,
                encode_packed(self._scheme, self._ranges(first, stop), lengths[first:stop], data, self._log),
            )
            first = stop
        if first:
            self._data = self._data[int(ends[first]) :]
            for each in (self._lengths, self._sources, self._offsets):
                del each[:first]

    def _ranges(self, first: int, stop: int) -> list[Range]:
        spans: dict[int, list[int]] = {}
        for source, offset in zip(self._sources[first:stop], self._offsets[first:stop], strict=True):
            spans.setdefault(source, [offset, 0])[1] = offset + 1
        return [Range(self._ids[source], 0, start, end) for source, (start, end) in spans.items()]


def _put(data: npt.NDArray[np.uint8], places: I64s, values: Sequence[int] | I64s) -> None:
    """Writes 64-bit numbers at some places, little-endian."""
    data[places[:, None] + np.arange(8)] = np.array(values, "<i8").view(np.uint8).reshape(-1, 8)
