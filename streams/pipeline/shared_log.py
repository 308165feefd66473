"""One reader of the sketch log for all shards of a process: each message is fetched and decoded once.

Each shard reads through a view with a position of its own. The last messages are kept for the other views. After its
shard restored an old checkpoint, a view may be before the kept messages: it has a reader of its own until it reaches
them.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.errors import CorruptRecord, OtherVersion
from neardup.sharded.shard import Question
from neardup.sketch.header import Header
from streams.formats.message import Forget, Message, decode_entry

if TYPE_CHECKING:
    from streams.kafka import KafkaLog

#: Bytes of messages that are kept for other views; the last message is kept, whatever its size.
_KEPT_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One message of the log, decoded. A message that the judge skips or rejects has no pages.

    size: bytes of the message. pages: number of sketches of the message. log_time: log time of its last page in ms;
    None without pages.
    """

    offset: int
    size: int
    pages: int
    question: Question
    is_takedown: bool = False
    log_time: int | None = None


def decode_message(offset: int, data: bytes, scheme: str, log_id: bytes) -> LogMessage:
    """Decodes a message. Raises OtherVersion.

    Args:
        scheme: digest of the scheme; a message of another one counts as one without pages.
        log_id: topic id of the log; a message that was written for another log counts as one without pages.
    """
    try:
        entry = decode_entry(data, offset)
    except OtherVersion:
        raise
    except CorruptRecord:
        return LogMessage(offset, len(data), 0, Question(offset, ()))
    if not isinstance(entry, Message) or entry.scheme.hex() != scheme or not entry.meant_for(log_id):
        return LogMessage(offset, len(data), 0, Question(offset, ()), isinstance(entry, Forget))
    log_time = None
    with suppress(ValueError, CorruptRecord):  # the judge handles unreadable records
        if entry.records:
            log_time = Header(entry.records[-1]).log_time
    question = Question(offset, entry.records)
    return LogMessage(offset, len(data), len(entry.records), question, log_time=log_time)


class SharedLog:
    """The log of one process. All views are used by one thread; any thread may make one."""

    def __init__(
        self, make_reader: "Callable[[], KafkaLog]", decode: Callable[[int, bytes], LogMessage], kept_max: int
    ) -> None:
        """
        Args:
            make_reader: makes a reader of the log, which `follow` positions.
            decode: `decode_message` of this log and scheme.
            kept_max: messages that are kept; a shard may be two epochs ahead of another.
        """
        self.make_reader, self.decode = make_reader, decode
        self._kept_max = kept_max
        self._kept: deque[LogMessage] = deque()
        self._bytes = 0
        self._reader: KafkaLog | None = None
        #: The kept messages are those of the log from `_begin` up to `_end`, where the reader stands.
        self._begin = self._end = 0
        self._views: frozenset[LogView] = frozenset()  # replaced, never changed, because threads make views
        self._lock = threading.Lock()

    def view(self, start: int) -> "LogView":
        """Returns a view whose first message is that at `start` or later. Close it after use."""
        view = LogView(self, start)
        with self._lock:
            self._views = self._views | {view}
        return view

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def holds(self, position: int) -> bool:
        return self._reader is not None and self._begin <= position <= self._end

    def serves(self, view: "LogView") -> bool:
        """Returns whether the shared reader can serve the view. Moves a reader that serves no other view to it."""
        if self.holds(view.position):
            return True
        if any(self.holds(other.position) for other in self._views - {view}):
            return False
        if self._reader is None:
            self._reader = self.make_reader()
        self._reader.follow(view.position)
        self._kept.clear()
        self._bytes, self._begin, self._end = 0, view.position, view.position
        return True

    def read(self, position: int, count: int, bytes_max: int, wait_s: float) -> list[LogMessage]:
        """Returns messages from `position` on, for which `holds` must be true."""
        assert self._reader is not None
        if position == self._end:
            for offset, data in self._reader.poll(count, bytes_max=bytes_max, wait_s=wait_s):
                self._kept.append(self.decode(offset, data))
                self._bytes += len(data)
            self._end = self._reader.position()
        found = [message for message in self._kept if message.offset >= position][:count]
        while len(self._kept) > self._kept_max or (self._bytes > _KEPT_BYTES_MAX and len(self._kept) > 1):
            dropped = self._kept.popleft()
            self._bytes -= dropped.size
            self._begin = dropped.offset + 1
        return found

    def end(self) -> int:
        return self._end

    def lag(self, position: int) -> int:
        """Returns the number of messages after `position`, for which `holds` must be true."""
        return (self._reader.lag() if self._reader is not None else 0) + max(0, self._end - position)

    def drop(self, view: "LogView") -> None:
        with self._lock:
            self._views = self._views - {view}


class LogView:
    """The log as one shard reads it. position: position of the next message."""

    def __init__(self, shared: SharedLog, position: int) -> None:
        self.position = position
        self._shared = shared
        self._own: KafkaLog | None = None

    def poll(self, count: int, *, bytes_max: int, wait_s: float) -> list[LogMessage]:
        """Returns the next messages, in order; none after `wait_s` without a message."""
        shared = self._shared
        if shared.serves(self):
            self._close_own()
            found = shared.read(self.position, count, bytes_max, wait_s)
            end = shared.end()
        else:
            if self._own is None:
                self._own = shared.make_reader()
                self._own.follow(self.position)
            polled = self._own.poll(count, bytes_max=bytes_max, wait_s=wait_s)
            found = [shared.decode(offset, data) for offset, data in polled]
            end = self._own.position()
        # Offsets without a message may follow the last one that was read.
        self.position = found[-1].offset + 1 if found and len(found) >= count else max(self.position, end)
        return found

    def begin(self) -> int:
        """Offset of the log's first message. Raises BrokerError."""
        with closing(self._shared.make_reader()) as reader:
            return reader.first_offset()

    def lag(self) -> int:
        """Messages behind the position, as known locally."""
        return self._own.lag() if self._own is not None else self._shared.lag(self.position)

    def close(self) -> None:
        self._close_own()
        self._shared.drop(self)

    def _close_own(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None
