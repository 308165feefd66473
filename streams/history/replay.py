"""Verdicts of a stretch of the sketch log once more, the same to the last byte as they were told.

A verdict is a function of the log up to its page. So the log is folded in silence from where a store is (an empty one:
from the log's begin) to the stretch, and aloud in it. Nothing of the live run is touched: the store is the caller's
own, and is given up afterwards.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.index.rocks import RocksStore
from neardup.limits import PLACE_BITS
from neardup.sketch.layout import HEADER
from neardup.verdict import Verdict
from streams.errors import PositionLost, WrongUsage
from streams.files.state import State
from streams.formats.message import Message, decode_entry, is_control
from streams.pipeline.matcher import Matcher

#: Messages folded together, and their bytes: as many as the live matcher takes by default. No verdict depends on it.
BATCH_MESSAGES_MAX = 16
BATCH_BYTES_MAX = 16 << 20

#: Called with the messages folded so far, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of the sketch log: offsets [start, stop), log times [since_ms, until_ms) in ms since the epoch.

    The log time of a message is the greatest of all pages up to its end. None: no such bound. Raises WrongUsage for a
    stretch that cannot hold a message.
    """

    start: int = 0
    stop: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        for what, first, end in (("offset", self.start, self.stop), ("time", self.since_ms, self.until_ms)):
            if first is not None and end is not None and first >= end:
                raise WrongUsage(f"a stretch from {what} {first} up to, and without, {end} holds nothing")

    @property
    def timed(self) -> bool:
        return self.since_ms is not None or self.until_ms is not None

    def begins_behind(self, offset: int, log_time: int) -> bool:
        """Whether all of it lies behind an index that was folded up to an offset, and to a log time."""
        return offset <= self.start or (self.since_ms is not None and log_time < self.since_ms)

    def is_over(self, offset: int, log_time: int) -> bool:
        """Whether neither the message at `offset` nor any later one belongs to it."""
        late = self.until_ms is not None and log_time >= self.until_ms
        return late or (self.stop is not None and offset >= self.stop)

    def holds(self, offset: int, log_time: int) -> bool:
        """Whether the message at `offset` belongs to it. log_time: of the message."""
        begun = offset >= self.start and (self.since_ms is None or log_time >= self.since_ms)
        return begun and not self.is_over(offset, log_time)


def replayed(
    messages: Iterable[tuple[int, bytes]],
    matcher: Matcher,
    stretch: Stretch,
    progress: Callable[[int], None] = lambda offset: None,
) -> Iterator[list[Verdict]]:
    """The verdicts of the stretch, in the log's order, some messages' at a time.

    messages: of the log, from `matcher.next_offset` on, and as far as wanted; its store is written. progress: gets the
    offset after the messages that are folded. Raises what `Matcher.prepare` raises, and PositionLost if the store is
    past the stretch's start.
    """
    if matcher.next_offset > stretch.start and not stretch.timed:
        raise PositionLost(f"the store is at offset {matcher.next_offset}, past the stretch's start, {stretch.start}")
    held: list[tuple[int, bytes]] = []
    size, aloud, log_time = 0, False, matcher.log_time
    for offset, data in messages:
        log_time = max(log_time, log_time_of(data, offset)) if stretch.timed else log_time
        if stretch.is_over(offset, log_time):
            break
        tell = stretch.holds(offset, log_time)
        if held and (tell != aloud or len(held) >= BATCH_MESSAGES_MAX or size + len(data) > BATCH_BYTES_MAX):
            yield from _fold(matcher, held, aloud, progress)
            held, size = [], 0
        held.append((offset, data))
        size += len(data)
        aloud = tell
        if is_control(data):  # behind it another decider may decide
            yield from _fold(matcher, held, aloud, progress)
            held, size = [], 0
    if held:
        yield from _fold(matcher, held, aloud, progress)


def _fold(
    matcher: Matcher, held: list[tuple[int, bytes]], aloud: bool, progress: Callable[[int], None]
) -> Iterator[list[Verdict]]:
    prepared = matcher.prepare(held, emit=aloud)
    if prepared.verdicts:
        yield prepared.verdicts
    matcher.apply(prepared)
    progress(matcher.next_offset)


class Present:
    """Which verdicts of one log and generation a topic holds already.

    A bit for each page: some hundred bytes for a message of 512 pages, whatever is in its verdicts.
    """

    def __init__(self, log: str, generation: str, stretch: Stretch) -> None:
        """log: its topic id in hex. stretch: verdicts beyond its offsets are not kept."""
        self._line, self._stretch = (log, generation), stretch
        self._places: dict[tuple[int, int], int] = {}  # (offset of the message, n) -> a bit for each of its pages

    def add(self, verdict: Mapping[str, Any]) -> None:
        """verdict: as `decode_verdict` gives it; one of another log or generation is left out."""
        offset, place = divmod(verdict["page_id"], 1 << PLACE_BITS)
        stop = self._stretch.stop
        beyond = offset < self._stretch.start or (stop is not None and offset >= stop)
        if beyond or (str(verdict.get("log", "")), str(verdict.get("generation") or "")) != self._line:
            return
        key = offset, verdict["n"]
        self._places[key] = self._places.get(key, 0) | 1 << place

    def missing(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Those that the topic lacks."""
        return [
            verdict
            for verdict in verdicts
            if not self._places.get((verdict.page_id >> PLACE_BITS, verdict.n), 0)
            >> (verdict.page_id & ((1 << PLACE_BITS) - 1))
            & 1
        ]


_LOG_TIME = HEADER.fields["log_time"][1]  # type: ignore[index]


def log_time_of(data: bytes, offset: int) -> int:
    """The greatest log time of a message's pages, in ms since the epoch; 0 of one that has none, or is unreadable."""
    try:
        entry = decode_entry(data, offset)
    except CorruptRecord:
        return 0  # it is told when it is folded, unless an operator has settled it
    if not isinstance(entry, Message) or not entry.records:
        return 0
    times = b"".join(record[_LOG_TIME : _LOG_TIME + 8] for record in entry.records)
    return int(np.frombuffer(times, dtype="<i8").max())


@dataclass(slots=True)
class Replayed:
    """What a replay did. verdicts: given out. present: left out, since the topic holds them already. told: of those
    given out, how many the scan had kept; otherwise: how many of those were kept in other words. program: version that
    began the log, "" where it does not say.
    """

    verdicts: int = 0
    present: int = 0
    told: int = 0
    otherwise: int = 0
    program: str = ""


def replay_scan(
    state: State,
    stretch: Stretch,
    out: BinaryIO,
    progress: Progress = lambda done, total: None,
    *,
    decider: Decider | None = None,
) -> Replayed:
    """Writes the verdicts of the stretch as JSON lines, folded anew, and compares them with those that were kept.

    decider: another one, of the same scheme: what it would have said from the log's begin on; nothing is compared then.
    Raises BadInput, CorruptRecord, StateError.
    """
    done, end = Replayed(), state.log.end()
    kept = state.kept_lines()
    with scratch_store() as store:
        matcher = Matcher(store, decider or state.first_decider)
        for verdicts in replayed(state.log.read(0), matcher, stretch, lambda offset: progress(offset, end)):
            for verdict in verdicts:
                line = verdict.to_json()
                out.write(line + b"\n")
                done.verdicts += 1
                if decider is not None:
                    continue
                was = kept(verdict)
                done.told += was is not None
                done.otherwise += was is not None and was != line
        done.program = matcher.log_program
    out.flush()
    return done


@contextmanager
def scratch_store(state: Path | None = None) -> Iterator[RocksStore]:
    """An index that vanishes again, on disk: that of a long log would not fit into memory. state: where one may be."""
    with tempfile.TemporaryDirectory(prefix="neardup-replay-") as folder:
        store = RocksStore((state or Path(folder)) / "index")
        try:
            yield store
        finally:
            store.close()
