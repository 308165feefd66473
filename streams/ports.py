"""What a stage needs of the outside. Kafka and files are two sets of adapters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from neardup.page import Page
from neardup.verdict import Coordinates, Verdict


@dataclass(frozen=True, slots=True)
class SourcedPage:
    """One `pages` record with its place. log_time: ms since the epoch of the broker or archive, clamped to now."""

    page: Page
    coordinates: Coordinates
    log_time: int


@dataclass(frozen=True, slots=True)
class Range:
    """Consumer positions `[start, stop)` of one partition of a source that a message accounts for."""

    source: bytes
    partition: int
    start: int
    stop: int


class Source(Protocol):
    """Pages in order, from a position that a finished message gave."""

    def read(self) -> Iterator[SourcedPage]: ...


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


class Clock(Protocol):
    def now_ms(self) -> int: ...
