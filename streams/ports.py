"""What a stage needs of the outside. Kafka and files are two sets of adapters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neardup.page import Page
from neardup.verdict import Coordinates, Verdict


@dataclass(frozen=True, slots=True)
class SourcedPage:
    """One page of an archive with its place. date: of the page, or else of its file, ms since the epoch."""

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
class Hop:
    """Two topics, by their ids: a position of one is void once either was made anew.

    source: the topic that positions are of. sink: the topic that holds what was made of everything before them: the
    sketch log for positions of `pages`, the verdicts for positions of the log.
    """

    source: bytes
    sink: bytes


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed position. hop: None where it was set by hand: it is then meant for the topics that are there.

    first: digest of what decides from the log's begin on, for a matcher's; else empty.
    """

    offset: int
    hop: Hop | None = None
    first: str = ""

    @property
    def note(self) -> str:
        """What is kept beside the offset."""
        assert self.hop is not None
        return f"{self.hop.source.hex()} {self.hop.sink.hex()} {self.first}".rstrip()

    @classmethod
    def read(cls, offset: int, note: str) -> "Committed":
        """A note that is not one of ours is somebody's hand, too."""
        if not _NOTE.fullmatch(note):
            return cls(offset)
        source, sink, *first = note.split()
        return cls(offset, Hop(bytes.fromhex(source), bytes.fromhex(sink)), *first)


_NOTE = re.compile("[0-9a-f]{32} [0-9a-f]{32}( [0-9a-f]{32})?")


class LogReader(Protocol):
    """The sketch log: messages in order of their offset."""

    def read(self, start: int) -> Iterator[tuple[int, bytes]]:
        """(offset, message) from the first offset >= start on."""
        ...

    def end(self) -> int:
        """The offset after the last message."""
        ...


class LogWriter(Protocol):
    """The writing end of the sketch log."""

    def append(self, message: bytes, /) -> int:
        """Appends one message and returns its offset."""
        ...

    def sync(self) -> None:
        """Returns when all appended messages will survive a crash."""
        ...


class VerdictSink(Protocol):
    """Where verdicts go. A batch is given once more after a crash, with the same offset."""

    def emit(self, offset: int, verdicts: Sequence[Verdict]) -> None: ...


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


class RecordBatch(Protocol):
    """Records in the order they came (each partition's by offset), and one range for each partition among them."""

    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def ranges(self) -> list[Range]: ...


class PageReader(Protocol):
    """A member of the group that reads `pages`."""

    @property
    def topic(self) -> Topic: ...
    @property
    def hop(self) -> Hop:
        """From the topic to the sketch log."""
        ...

    @property
    def rebalances(self) -> int:
        """Assignments so far: each begins anew at the committed positions."""
        ...

    def read(self, count: int, *, bytes_max: int, linger_s: float, wait_s: float) -> RecordBatch | None:
        """Waits `wait_s` for a first record, then `linger_s` for more; None if there was none."""
        ...

    def commit(self, ranges: Sequence[Range]) -> None:
        """Commits the stops of ranges whose sketches are acknowledged, of partitions that this member still has.

        What did not get through at an earlier call goes with this one, so it is called with nothing, too. Raises
        TopicError if the sketch log was made anew: it does not hold what was acknowledged.
        """
        ...

    def check(self) -> None:
        """Raises TopicError if the topic, or the sketch log, was deleted or made anew since this reader began."""
        ...

    def assigned(self) -> list[int]: ...

    def lag(self) -> dict[int, int]: ...


class RecordWriter(Protocol):
    """An idempotent producer to one topic. sent, acknowledged: records so far; those of one partition are in order."""

    @property
    def sent(self) -> int: ...
    @property
    def acknowledged(self) -> int: ...

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> None: ...

    def poll(self, wait_s: float = 0.0) -> int:
        """Takes acknowledgements in and returns how many records wait for theirs; raises if a record failed."""
        ...


class LogFollower(Protocol):
    """The sketch log, from a given offset on."""

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        """(offset, message) in order; empty if none came in `wait_s`."""
        ...

    def position(self) -> int:
        """The offset to read next; it may be behind more than the last message."""
        ...

    def lag(self) -> int:
        """Messages behind the position, as far as is known without asking."""
        ...

    def check(self) -> None:
        """Raises TopicError if the log was deleted or made anew since; BrokerError where nobody can tell."""
        ...


class SketchLog(LogFollower, Protocol):
    """The sketch log as a matcher begins on it: what it holds now, then `follow`, and `poll` goes on from there."""

    @property
    def topic(self) -> Topic: ...
    @property
    def cluster_id(self) -> str: ...

    def begin(self) -> int: ...

    def end(self) -> int: ...

    def follow(self, start: int) -> None:
        """Raises PositionLost if `start` is before the log's begin or after its end."""
        ...


class VerdictTransactions(Protocol):
    """Verdicts and the log's next offset, visible together or not at all."""

    @property
    def hop(self) -> Hop:
        """From the log to the verdicts."""
        ...

    #: Goes with each committed offset; set before the first commit.
    first: str

    def init(self) -> None:
        """Fences whoever had the line before, and settles his transaction."""
        ...

    def committed(self) -> Committed | None:
        """The log's offset that verdicts were committed up to; None: never, or expired."""
        ...

    def commit(
        self,
        verdicts: Sequence[tuple[bytes, bytes]],
        next_offset: int,
        audit: Sequence[bytes] = (),
        headers: Mapping[int, Sequence[tuple[str, bytes]]] = ...,
    ) -> None:
        """Commits (key, value) pairs, and lines of an audit; when it returns, they are. headers: of some of the pairs.

        Raises if that is not so, or not known. No further commit may follow then: make a new object and `init` it.
        """
        ...

    def check(self) -> None:
        """Raises TopicError if the topic was deleted or made anew since; BrokerError where nobody can tell."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int: ...
