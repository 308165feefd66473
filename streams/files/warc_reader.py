"""Reads WARC files, also after damage in them.

Archives of killed crawlers are usually damaged, and fastwarc (2.0) cannot read on: it returns a truncated header as an
empty record without an error, ends at the first bad byte, and has no position for a record that shares its gzip member.
Here a damaged part becomes one `UnreadablePart`, a record with a readable header becomes a page with a `problem`, and
reading continues with the next record that is found. Source: ISO 28500:2017 (WARC 1.1), sections 4 to 6, annex D.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar

from streams.formats.compressed import Damaged, Stream
from streams.formats.http_answer import HEADER_BYTES_MAX, fields_of
from streams.formats.warc import CONVERTED, WarcRecord

#: A record with a greater length counts as damaged. No record of a tebibyte is known.
CONTENT_BYTES_MAX = 1 << 40
_START = re.compile(rb"(?:\A|(?<=\n))WARC/[01]\.\d")
_MAGIC = b"WARC/"


@dataclass(frozen=True, slots=True)
class UnreadablePart:
    """A part of a file that could not be read: `byte` of the file (of its gzip member where it is compressed)."""

    path: str
    byte: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}: byte {self.byte}: {self.what}"


@dataclass(slots=True)
class WarcReader:
    """Reads the records of one file from `position` on, which must be the position of a record (or 0)."""

    #: Another format of archives (`streams.files.arc_reader`) has others: its name; bytes that show whether a record
    #: starts; where one may start in the midst of garbage, and the greatest size of that.
    name: ClassVar[str] = "a WARC"
    start_bytes: ClassVar[int] = len(_MAGIC)
    start: ClassVar[re.Pattern[bytes]] = _START
    start_bytes_max: ClassVar[int] = 16

    path: Path
    content_bytes_max: int
    position: int = 0
    problems: list[UnreadablePart] = field(default_factory=list)
    #: Another reader reads the records from here on: this one stops before the first of them from which a new reader
    #: can read, whose position is then `next_position`.
    end: int | None = None
    next_position: int | None = None
    #: Called before damage is reported and passed over, which may read the file to its end.
    before_damage: Callable[[], None] = lambda: None
    stream: Stream = field(init=False)
    _skipping: bool = False  # the present damage is reported already; the records skipped after it belong to it

    def __post_init__(self) -> None:
        self.stream = Stream(self.path, self.position)

    @staticmethod
    def starts(data: bytes) -> bool:
        """Whether a record starts with these `start_bytes`."""
        return data.startswith(_MAGIC)

    def records(self) -> Iterator[WarcRecord]:
        """Yields every record whose header can be read. Raises OSError."""
        stream, member = self.stream, -1
        while True:
            record = None
            try:
                if not self._find_start():
                    return
                if self.end is not None and stream.position >= self.end and stream.fresh:
                    self.next_position = stream.position
                    return
                record = WarcRecord(stream.position, {})
                self._read(record)
            except Damaged as damage:
                self.before_damage()
                if not (self._skipping and self.problems[-1].byte == damage.position):
                    self._problem(damage.position, str(damage))
                if record is not None and record.headers and not record.damage:
                    record.damage = f"damaged archive: {damage}"
                if not stream.resume_after(damage.position, self.starts):
                    if record is not None and record.headers:
                        yield record
                    return
            if record is None or not record.headers:
                continue
            record.shared, member = record.position == member, record.position
            yield record

    def _find_start(self) -> bool:
        """Skips line ends and garbage up to the start of the next record. All garbage makes one problem."""
        stream = self.stream
        while True:
            if not stream.want(self.start_bytes) and not stream.buffer and not stream.next_member():
                return False
            blank = len(stream.buffer) - len(stream.buffer.lstrip(b"\r\n"))
            if blank:
                stream.take(blank)
                continue
            if not stream.buffer:
                continue
            if self.starts(bytes(stream.buffer[: self.start_bytes])):
                self._skipping = False
                return True
            if not self._skipping:
                self._problem(
                    stream.position, f"no {self.name.split()[-1]} record starts here; skipped to the next one"
                )
            self._skip_garbage()

    def _skip_garbage(self) -> None:
        """Drops bytes up to the next start of a record in this gzip member, or to the member's end."""
        stream = self.stream
        while True:
            found = self.start.search(stream.buffer, 1)
            if found:
                stream.take(found.start())
                return
            # Keep bytes that may be the first half of a record's start, and the line end before it.
            stream.take(max(1, len(stream.buffer) - self.start_bytes_max) if stream.buffer else 0)
            if not stream.fill():
                stream.take(len(stream.buffer))
                return

    def _read(self, record: WarcRecord) -> None:
        """Reads header and content of the record that starts here."""
        stream = self.stream
        header = self._header()
        if header is None:
            self._problem(
                record.position, f"{self.name} header that is cut off or too long; skipped to the next record"
            )
            self._skip_garbage()
            return
        record.headers = header
        text = header.get("content-length", "")
        length = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not 0 <= length <= CONTENT_BYTES_MAX:
            record.damage = f"damaged archive: Content-Length is {text[:40]!r}"
            self._problem(record.position, f"{self.name} record whose Content-Length is {text[:40]!r}")
            return
        if stream.compression == "plain" and length > len(stream.buffer) + stream.size - stream.bytes_read:
            # The content is not read: the claimed length may contain the next records.
            there = len(stream.buffer) + stream.size - stream.bytes_read
            record.damage = f"damaged archive: a record of {length} bytes has only {there}"
            self._problem(record.position, f"{self.name} record of {length} bytes, and the file ends after {there}")
            return
        self._content(record, length)

    def _header(self) -> dict[str, str] | None:
        """The named fields, in lower case; None if they do not end within the bound.

        A header whose first line ends with a line feed alone, as ClueWeb09 has them, ends with two of these.
        """
        stream, scanned = self.stream, 0
        while True:
            first = stream.buffer.find(b"\n", 0, 64)
            blank = b"\n\n" if first > 0 and stream.buffer[first - 1] != 0x0D else b"\r\n\r\n"
            end = stream.buffer.find(blank, max(0, scanned - 3))
            if end >= 0:
                return fields_of(stream.take(end + len(blank))[:end])
            scanned = len(stream.buffer)
            if scanned > HEADER_BYTES_MAX or not (stream.fill() or self._continues()):
                return None

    def _content(self, record: WarcRecord, length: int) -> None:
        """Reads up to the bound and skips the rest. Content continues in gzip members that start no record."""
        stream, kept, left = self.stream, 0, length
        parts: list[bytes] = []
        while left:
            here = min(left, max(0, self.content_bytes_max - kept))
            if here:
                stream.want(min(here, 1 << 20))
                piece = stream.take(min(here, len(stream.buffer)))
                parts.append(piece)
                got = len(piece)
                kept += got
            else:
                got = stream.skip(left)
            left -= got
            if got:
                continue
            if not self._continues():
                record.damage = f"damaged archive: a record of {length} bytes has only {length - left}"
                self._problem(record.position, f"{self.name} record of {length} bytes has only {length - left}")
                return
        record.content = b"".join(parts)
        # Reading the two line ends, too, verifies the checksum of a member that ends here.
        stream.want(4 + self.start_bytes)
        rest = stream.buffer.lstrip(b"\r\n")
        if stream.compression == "gzip" and rest and not self.starts(bytes(rest[: self.start_bytes])):
            # The content counts only if the checksum at the member's end holds: damage may have made it longer.
            self._problem(stream.position, f"no {self.name.split()[-1]} record starts here; skipped to the next one")
            self._skip_garbage()

    def _continues(self) -> bool:
        """Continues a record in the next gzip member; False if that starts a record, or there is none."""
        stream = self.stream
        if not stream.next_member():
            return False
        held = len(stream.buffer)
        stream.want(held + self.start_bytes)
        return not self.starts(bytes(stream.buffer[held : held + self.start_bytes]))

    def _problem(self, byte: int, what: str) -> None:
        self.before_damage()
        self._skipping = True
        self.problems.append(UnreadablePart(str(self.path), byte, what))


def holds_converted(path: Path) -> bool:
    """Whether a WARC file has converted records (a WET file), by its first record that is no warcinfo. Raises OSError.

    In a file with the original pages, conversions do not count: they would be second fetches of the pages.
    """
    reader = WarcReader(path, 0)
    with closing(reader.stream):
        kinds = (record.headers.get("warc-type", "").lower() for record in islice(reader.records(), 8))
        return next((kind for kind in kinds if kind != "warcinfo"), "") in CONVERTED
