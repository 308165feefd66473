"""Emits the verdicts of a stretch of the sketch log again, byte for byte.

A verdict is a function of the log up to its page. So the log is folded without emitting from the offset of a store (0
for an empty one) to the stretch, and with emitting inside it. The live run is not touched: the caller's store is
temporary.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.sketch.layout import HEADER
from neardup.verdict import Verdict
from streams.errors import PositionLost, WrongUsage
from streams.formats.message import Message, decode_entry
from streams.pipeline.follow import batched, follow
from streams.pipeline.matcher import Matcher
from streams.state.directory import temporary_index
from streams.state.scan_reader import ScanReader

#: Called with the number of messages folded, and of all messages.
ReplayProgress = Callable[[int, int], None]


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
        """Whether the whole stretch lies behind an index at an offset and a log time."""
        return offset <= self.start or (self.since_ms is not None and log_time < self.since_ms)

    def is_over(self, offset: int, log_time: int) -> bool:
        """Whether the stretch ends before the message at `offset`."""
        late = self.until_ms is not None and log_time >= self.until_ms
        return late or (self.stop is not None and offset >= self.stop)

    def holds(self, offset: int, log_time: int) -> bool:
        """Whether the stretch holds the message at `offset`. log_time: log time of the message."""
        begun = offset >= self.start and (self.since_ms is None or log_time >= self.since_ms)
        return begun and not self.is_over(offset, log_time)


def replayed(
    messages: Iterable[tuple[int, bytes]],
    matcher: Matcher,
    stretch: Stretch,
    progress: Callable[[int], None] = lambda offset: None,
) -> Iterator[BatchVerdicts]:
    """Yields the verdicts of the stretch in the log's order, in batches.

    messages: messages of the log, from `matcher.next_offset` on. The call writes the matcher's store.
    progress: function that receives the offset after the folded messages.

    Raises the errors of `Matcher.prepare`, and PositionLost if the store is past the start of the stretch.
    """
    if matcher.next_offset > stretch.start and not stretch.timed:
        raise PositionLost(f"the store is at offset {matcher.next_offset}, past the stretch's start, {stretch.start}")
    for prepared in follow(batched(_through(messages, matcher.log_time, stretch)), matcher):
        if prepared is not None and prepared.verdicts:
            yield prepared.verdicts
        del prepared  # it holds all rows of the batch: not while the next one is folded
        progress(matcher.next_offset)


def _through(
    messages: Iterable[tuple[int, bytes]], log_time: int, stretch: Stretch
) -> Iterator[tuple[int, bytes, bool]]:
    """Yields the messages up to the end of the stretch, and whether each lies in it. log_time: before the first one."""
    for offset, data in messages:
        log_time = max(log_time, log_time_of(data, offset)) if stretch.timed else log_time
        if stretch.is_over(offset, log_time):
            return
        yield offset, data, stretch.holds(offset, log_time)


class Present:
    """The newest verdict of each URL of one log and generation that a topic holds: 20 bytes per verdict of the topic.

    Behind it no older verdict of the URL may be written: consumers that keep the last one, and compaction, would lose
    the newer one for good.
    """

    def __init__(self, log: str, generation: str) -> None:
        """log: topic id of the log in hex. generation: name of the generation."""
        self._line = log, generation
        self._held = array("Q"), array("Q"), array("I")  # hash of the URL, page id, n
        self._newest: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # the same, ascending by hash

    def add(self, verdict: Mapping[str, Any]) -> None:
        """Adds a decoded verdict. Verdicts of another log or generation are ignored."""
        if (str(verdict.get("log", "")), str(verdict.get("generation") or "")) == self._line:
            row = _hash_of(verdict["url"]), verdict["page_id"], verdict["n"]
            for held, value in zip(self._held, row, strict=True):
                held.append(value)
            self._newest = None

    def missing(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Returns the verdicts that are newer than all of their URLs in the topic."""
        urls, pages, numbers = self._sorted()
        found = []
        for verdict in verdicts:
            url = np.uint64(_hash_of(verdict.url))
            at = int(np.searchsorted(urls, url))
            known = at < len(urls) and urls[at] == url
            if not known or (verdict.page_id, verdict.n) > (int(pages[at]), int(numbers[at])):
                found.append(verdict)
        return found

    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._newest is None:
            urls, pages, numbers = (np.array(each) for each in self._held)
            order = np.lexsort((numbers, pages, urls))
            last = np.ones(len(order), bool)
            last[:-1] = urls[order][1:] != urls[order][:-1]
            order = order[last]
            self._newest = urls[order], pages[order], numbers[order]
        return self._newest


def _hash_of(url: str) -> int:
    return int.from_bytes(blake2b(url.encode("utf-8", "replace"), digest_size=8).digest(), "little")


_LOG_TIME = HEADER.fields["log_time"][1]  # type: ignore[index]


def log_time_of(data: bytes, offset: int) -> int:
    """The greatest log time of a message's pages, in ms since the epoch; 0 without pages, or if unreadable."""
    try:
        entry = decode_entry(data, offset)
    except CorruptRecord:
        return 0  # the fold reports it, unless an operator has settled it
    if not isinstance(entry, Message) or not entry.records:
        return 0
    times = b"".join(record[_LOG_TIME : _LOG_TIME + 8] for record in entry.records)
    return int(np.frombuffer(times, dtype="<i8").max())


@dataclass(slots=True)
class Replayed:
    """Counts of a replay.

    verdicts: emitted. present: not emitted, because the topic holds them, or a newer verdict of their URL. kept:
    emitted ones that the scan has kept; differing: those of them with other bytes. program: version that began the log,
    "" if it is not recorded.
    """

    verdicts: int = 0
    present: int = 0
    kept: int = 0
    differing: int = 0
    program: str = ""


def replay_scan(
    state: ScanReader,
    stretch: Stretch,
    out: BinaryIO,
    progress: ReplayProgress = lambda done, total: None,
    *,
    decider: Decider | None = None,
) -> Replayed:
    """Writes the verdicts of the stretch as JSON lines, and compares them with the kept ones.

    decider: another one of the same scheme: its verdicts from the log's start on, without a comparison. Raises
    BadInput, CorruptRecord, StateError.
    """
    done, end = Replayed(), state.log.end()
    kept = state.kept_lines()
    first = decider or state.first_decider
    with temporary_index() as store:
        matcher = Matcher(store, first)
        for verdicts in replayed(state.log.read(0), matcher, stretch, lambda offset: progress(offset, end)):
            for verdict, line in zip(verdicts, verdicts.lines(), strict=True):
                out.write(line + b"\n")
                done.verdicts += 1
                if decider is not None:
                    continue
                was = kept(verdict)
                done.kept += was is not None
                done.differing += was is not None and was != line
        done.program = matcher.log_program
    out.flush()
    return done
