"""Parts of a source that several processes read side by side, with the same pages as one reader of the whole.

A part is a range of bytes of an archive or of JSON lines, of row groups of a Parquet file, or of files of a folder.
Where its first record starts, how many rows are before it, and which answers still wait for their requests depends on
everything before the part. So each part begins with the `Handover` of the part before it. To have work while it waits,
a part of an archive looks for a record by itself, and reads ahead from there; if the handover names another place, the
reader begins again at that place. A wrong guess costs time, and no page.

A part ends before the first record behind its end from which a new reader can read on: at any record of a plain file,
and at the start of a gzip member. Formats of which no part can be read alone are one part.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from neardup.page import Page
from streams.files.exchanges import Exchanges
from streams.files.input_formats import InputFormat
from streams.files.jsonl_and_parquet import JsonLines
from streams.files.sources import LocalSource, SourceRecord
from streams.files.warc_reader import WarcReader
from streams.formats.compressed import PIECE_BYTES, Stream
from streams.formats.containment import contained_reading
from streams.formats.warc import WarcRecord
from streams.ports import SourcedPage

T = TypeVar("T")

#: Bytes of a part: of a gzip file, of a plain file; files of a folder.
GZIP_BYTES, PLAIN_BYTES, FILES = 4 << 20, 16 << 20, 256
#: Bytes of content that a part of an archive reads before it has its handover, besides its last record.
AHEAD_BYTES_MAX = 64 << 20
#: Kinds of records left out that are counted apart until a block is done; the source keeps fewer of them.
_KINDS_MAX = 1_000
#: Positions of a part that are tried as the start of a gzip member.
_TRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a source: bytes, or ordinals of rows or files. stop: None: up to the source's end.

    ordinal: number of pages before the part, if it is the first part that is read; else None.
    """

    start: int
    stop: int | None
    ordinal: int | None = None


@dataclass(slots=True)
class Handover:
    """What a part must know of everything before it.

    position: where its first record starts; None: nothing more is read.
    ordinal: rows of a table before the part.
    exchanges: those of an archive so far.
    """

    position: int | None
    ordinal: int = 0
    exchanges: Exchanges = field(default_factory=Exchanges)


class Relay(Protocol):
    """The way from one part of a source to the next."""

    def take(self) -> Handover:
        """Wait for the handover of the part before."""
        ...

    def give(self, handover: Handover) -> None:
        """Pass on to the next part. Afterwards the handover must not be changed."""
        ...


class _OtherStart(Exception):
    """The part begins elsewhere than where its reader guessed."""


def parts_of(source: LocalSource, offset: int, position: int | None) -> list[Part]:
    """Divides what is left of a source. Raises OSError.

    Args:
        source: the source.
        offset: ordinal of the first page that is required. Parts may begin before it.
        position: position of the page before.
    """
    start, ordinal = source.start_of(offset, position)
    cuts = [cut for cut in _cuts(source.record) if cut > start]
    ends: list[int | None] = [*cuts, None]
    return [
        Part(first, stop, None if number else ordinal)
        for number, (first, stop) in enumerate(zip([start, *cuts], ends, strict=True))
    ]


def _cuts(record: SourceRecord) -> Sequence[int]:
    """Where a source may be cut."""
    form, path = record.format, Path(record.path)
    if form is None:
        return range(FILES, len(record.files), FILES)
    if form.ordinals:
        from streams.formats.parquet import ParquetDamaged, spans_of

        try:
            return [first for first, _ in spans_of(path)]
        except ParquetDamaged:  # it is reported when the rows are read
            return []
    with closing(Stream(path)) as stream:
        compression, size = stream.compression, stream.size
    if compression == "gzip" and form.records is not None:
        return range(GZIP_BYTES, size, GZIP_BYTES)
    return range(PLAIN_BYTES, size, PLAIN_BYTES) if compression == "plain" and _divisible(form) else []


def _divisible(form: InputFormat) -> bool:
    """Whether a part of a plain file can be read alone."""
    return form.records is not None or form.rows is JsonLines


class SourcePart(LocalSource):
    """One part of a source. Its counts (`times`, `left_out`, `problems`, `bytes_read`) are those of the part."""

    _kinds_max = _KINDS_MAX

    def __init__(self, record: SourceRecord, body_bytes_max: int, part: Part, relay: Relay) -> None:
        super().__init__(record, body_bytes_max)
        self._part, self._relay = part, relay

    def pages(self) -> Iterator[SourcedPage]:
        """Yields the pages of the part. Raises OSError.

        Coordinates of an archive's pages have offsets counted from the part's first page. In the parts of all other
        sources they are those of the source.
        """
        form, part = self.record.format, self._part
        if form is not None and form.records is not None:
            yield from self._sourced(self._records_part(form), 0)
            return
        if form is not None and not form.ordinals and _divisible(form):
            yield from self._lines_part()
            return
        ordinal = part.start if part.ordinal is None else part.ordinal
        self._pass_on()
        span = part.start, part.stop
        yield from self._sourced(self._folder(*span) if form is None else self._table(self._rows(), *span), ordinal)

    def _pass_on(self) -> None:
        if self._part.stop is not None:
            self._relay.give(Handover(self._part.stop))

    # ---- JSON lines

    def _lines_part(self) -> Iterator[SourcedPage]:
        part = self._part
        rows = self._rows()
        assert isinstance(rows, JsonLines)
        start = part.start if part.ordinal is not None else _line_start(Path(self.record.path), part)
        if part.stop is None:
            ordinal = self._ordinal()
            yield from self._sourced(((rows.page(line, at), at) for at, line in self._lines(rows, start)), ordinal)
            return
        lines = deque(contained_reading(self._lines(rows, start), self._ended_by_defect, file=self.record.path))
        ordinal = self._ordinal()
        self._relay.give(Handover(part.stop, ordinal + len(lines)))
        yield from self._sourced(((rows.page(line, at), at) for at, line in _drained(lines)), ordinal)

    def _lines(self, rows: JsonLines, start: int | None) -> Iterator[tuple[int, bytes]]:
        if start is not None:
            for at, line in self._up_to_damage(rows.lines(start, self._part.stop)):
                self.bytes_read = at
                yield at, line

    def _ordinal(self) -> int:
        return self._part.ordinal if self._part.ordinal is not None else self._relay.take().ordinal

    # ---- archives

    def _records_part(self, form: InputFormat) -> Iterator[tuple[Page, int]]:
        for record, method in self._records(form):
            self.bytes_read = max(self.bytes_read, record.position)
            yield from self._page_of(record, method, form.converted)

    def _records(self, form: InputFormat) -> Iterator[tuple[WarcRecord, str]]:
        """The records of the part, and those that the part before held, with their methods."""
        part = self._part
        first = part.ordinal is not None
        start = part.start if first else self._guess(form)
        ahead = None if start is None else self._ahead(start, None if first else start)
        handover = Handover(part.start) if first else self._relay.take()
        exchanges = handover.exchanges
        if handover.position is None or (part.stop is not None and handover.position >= part.stop):
            if part.stop is None:
                yield from exchanges.end()
            else:
                self._relay.give(handover)
            if ahead is not None:
                ahead.reader.stream.close()
            return
        if ahead is None or handover.position != start:
            if ahead is not None:
                ahead.reader.stream.close()
            self.problems.clear()
            ahead = self._ahead(handover.position, None)
        with closing(ahead.reader.stream):
            due = deque(one for record in _drained(ahead.records) for one in exchanges.take(record))
            if ahead.ended:
                due.extend(self._end(exchanges, ahead))
            yield from _drained(due)
            if not ahead.ended:
                for record in ahead.rest():
                    yield from exchanges.take(record)
                yield from self._end(exchanges, ahead)
        if ahead.failure is not None:
            raise ahead.failure

    def _end(self, exchanges: Exchanges, ahead: "_RecordsAhead") -> Sequence[tuple[WarcRecord, str]]:
        """Hands over at the end of the part. Returns records that are no longer held."""
        if ahead.failure is not None or self._part.stop is None:
            due = list(exchanges.end())
            if self._part.stop is not None:
                self._relay.give(Handover(None))
            return due
        self._relay.give(Handover(ahead.reader.next_position, 0, exchanges))
        return ()

    def _ahead(self, start: int, guess: int | None) -> "_RecordsAhead":
        """Reads ahead from a position. guess: the position, if it is not sure that a record starts there."""
        ahead = _RecordsAhead(self._reader(start), self._part.stop)

        def verify() -> None:
            if self._relay.take().position != guess:
                raise _OtherStart

        if guess is not None:
            ahead.reader.before_damage = verify
        ahead.read()
        ahead.reader.before_damage = lambda: None
        return ahead

    def _guess(self, form: InputFormat) -> int | None:
        """The first position of the part at which a record starts by all appearances."""
        assert form.records is not None
        path, part = Path(self.record.path), self._part
        with closing(Stream(path)) as stream:
            stop = stream.size if part.stop is None else part.stop
            if stream.compression == "gzip":
                return stream.first_member(part.start, stop, form.records.starts, _TRIES_MAX)
        return _record_start(path, part.start, stop, form.records)


class _RecordsAhead:
    """Records of an archive that were read ahead. ended: whether they are all. failure: error of the reader."""

    def __init__(self, reader: WarcReader, end: int | None) -> None:
        self.reader, self.records = reader, deque[WarcRecord]()
        reader.end = end
        self.ended = False
        self.failure: Exception | None = None
        self._found = reader.records()

    def read(self) -> None:
        """Reads up to the bound, or to the end."""
        size = 0
        for record in self.rest():
            self.records.append(record)
            size += len(record.content)
            if size >= AHEAD_BYTES_MAX:
                return

    def rest(self) -> Iterator[WarcRecord]:
        """Yields the records that were not read yet."""
        try:
            for record in self._found:  # noqa: UP028 - `yield from` would end them with this generator
                yield record
        except _OtherStart:
            self.records.clear()
        except Exception as error:  # noqa: BLE001 - raised by the part, behind the records before
            self.failure = error
        self.ended = True


def _drained(items: deque[T]) -> Iterator[T]:
    """Yields and removes the items, so that each is freed once it is done with."""
    while items:
        yield items.popleft()


def _line_start(path: Path, part: Part) -> int | None:
    """The first position of the part at which a line starts; None if there is none."""
    with path.open("rb") as file:
        file.seek(part.start - 1)
        at = part.start - 1
        while part.stop is None or at < part.stop - 1:
            piece = file.read(PIECE_BYTES)
            if not piece:
                return None
            if (found := piece.find(b"\n")) >= 0:
                start = at + found + 1
                return start if part.stop is None or start < part.stop else None
            at += len(piece)
    return None


def _record_start(path: Path, start: int, stop: int, form: type[WarcReader]) -> int | None:
    """The first position in [start, stop) of a plain file at which a record starts by all appearances."""
    with path.open("rb") as file:
        at = max(0, start - 1)
        file.seek(at)
        kept = b""
        while at < stop:
            piece = file.read(PIECE_BYTES)
            if not piece:
                return None
            window = kept + piece
            window_at = at - len(kept)
            found = form.start.search(window, 1)
            if found:
                position = window_at + found.start()
                return position if position < stop else None
            at += len(piece)
            kept = window[-form.start_bytes_max :]
    return None
