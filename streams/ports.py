"""Interfaces of the stages to the outside. Kafka and files are two sets of adapters."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from neardup.limits import KAFKA_FRAMING_BYTES
from neardup.page import Page
from neardup.verdict import Coordinates

#: Called with the phase of some work, the number done, and the total; 0: unknown.
Progress = Callable[[str, int, int], None]
_NOTE = re.compile("[0-9a-f]{32} [0-9a-f]{32}( [0-9a-f]{32})?")


def silent(phase: str, done: int, total: int) -> None:
    """Shows no progress."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Progress through sources. phase: `digest` (bytes_total unknown) or `scan`. path: the source being read."""

    phase: str
    path: str
    pages: int
    bytes_done: int
    bytes_total: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SourcedPage:
    """One page of an archive. date: date of the page, or of its file if the page has none, ms since 1970."""

    page: Page
    coordinates: Coordinates
    date: int


@dataclass(frozen=True, slots=True)
class Range:
    """Consumer positions `[start, stop)` of one partition of a source that a message accounts for."""

    source: bytes
    partition: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Input and output topic of a role, by their ids: its positions are void once either is recreated.

    source: topic of the positions. sink: topic of the results: the sketch log for positions of `pages`, the verdicts
    for positions of the log.
    """

    source: bytes
    sink: bytes

    @classmethod
    def of(cls, source: str, sink: str) -> "TopicIds":
        """Return the ids of two topics. source, sink: hex digits of the ids."""
        return cls(bytes.fromhex(source), bytes.fromhex(sink))


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed position.

    topic_ids: topics of the position; None for a position set by hand, which belongs to the present topics.
    first: digest of a matcher's decider at the start of the log.
    """

    offset: int
    topic_ids: TopicIds | None = None
    first: str = ""

    @property
    def note(self) -> str:
        """Metadata committed with the offset."""
        assert self.topic_ids is not None
        return f"{self.topic_ids.source.hex()} {self.topic_ids.sink.hex()} {self.first}".rstrip()

    @classmethod
    def read(cls, offset: int, note: str) -> "Committed":
        """Decode `note`; metadata in another format means a position set by hand."""
        if not _NOTE.fullmatch(note):
            return cls(offset)
        source, sink, *first = note.split()
        return cls(offset, TopicIds.of(source, sink), *first)


class Topic(Protocol):
    """id: 16 bytes, new whenever a topic of this name is created."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> bytes: ...


class Record(Protocol):
    """A record of the `pages` topic."""

    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Sequence[tuple[str, bytes | None]] | None: ...
    def timestamp(self) -> tuple[int, int]:
        """(kind, ms since the epoch); kind 2 is LogAppendTime."""
        ...


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Records in the order of arrival (by offset within a partition), and the ranges that they account for.

    ranges: one per partition with records here. `start` is the `stop` of the range before. `stop` is a consumer
    position, so a range includes control and aborted records.
    """

    records: list[Record]
    ranges: list[Range]


class LogFollower(Protocol):
    """The sketch log, from a given offset on."""

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        """Return (offset, message) pairs in order; none after `wait_s` without a message."""
        ...

    def position(self) -> int:
        """Return the next offset; offsets without a message may lie before it."""
        ...

    def lag(self) -> int:
        """Return the messages behind the position, as known locally."""
        ...

    def check(self) -> None:
        """Raises TopicError if the log was deleted or recreated, BrokerError if that is unknown."""
        ...


class SketchLog(LogFollower, Protocol):
    """The sketch log at the start of a matcher: its present range; `poll` continues behind `follow`."""

    @property
    def topic(self) -> Topic: ...
    @property
    def cluster_id(self) -> str: ...

    def first_offset(self) -> int: ...

    def end(self) -> int: ...

    def follow(self, start: int) -> None:
        """Raises PositionLost if `start` is before the log's start or after its end."""
        ...


class Outgoing(NamedTuple):
    """A record to be written. value: None for a null value in Kafka."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """Size in bytes, with Kafka's overhead."""
        headers = sum(len(name) + len(text) for name, text in self.headers)
        return len(self.key) + len(self.value or b"") + headers + KAFKA_FRAMING_BYTES
