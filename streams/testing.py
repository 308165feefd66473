"""Ports that do as they are told, for tests of what is built on the roles: nothing here waits, and nothing is random.

A `PagesTopic` is read by `ScriptedPages`, one a sketcher; sketchers write through `ScriptedWriter`s, whose records
arrive when `deliver` says so; the matcher follows a `ListLog` and commits to a `VerdictLine`, which fences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from neardup.index.base import Family, Writes
from neardup.index.memory import MemoryStore
from streams.errors import Fenced
from streams.ports import Range


@dataclass(slots=True)
class ManualClock:
    """Stands still until it is moved."""

    ms: int = 0

    def now_ms(self) -> int:
        return self.ms


@dataclass(frozen=True, slots=True)
class ScriptedRecord:
    """A record of the pages topic. time_ms: as the broker stamped it."""

    at: tuple[int, int]
    url: bytes | None
    body: bytes | None
    extra: tuple[tuple[str, bytes], ...] = ()
    time_ms: int = 0

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def key(self) -> bytes | None:
        return self.url

    def value(self) -> bytes | None:
        return self.body

    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        return self.extra

    def timestamp(self) -> tuple[int, int]:
        return (2, self.time_ms)


@dataclass(slots=True)
class PagesTopic:
    """The pages topic, and what the sketchers' group has committed."""

    partitions: list[list[ScriptedRecord]]
    committed: dict[int, int]
    name: str = "pages"
    id: bytes = b"\1" * 16

    @classmethod
    def empty(cls, partitions: int) -> "PagesTopic":
        return cls([[] for _ in range(partitions)], dict.fromkeys(range(partitions), 0))

    def publish(
        self,
        partition: int,
        url: bytes | None,
        body: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        time_ms: int = 0,
    ) -> ScriptedRecord:
        records = self.partitions[partition]
        records.append(ScriptedRecord((partition, len(records)), url, body, tuple(headers), time_ms))
        return records[-1]


@dataclass(slots=True)
class _Batch:
    records: list[ScriptedRecord]
    ranges: list[Range]


class ScriptedPages:
    """One member of the group. `assign` is a rebalance; a member that is `cut_off` reads on, but commits nothing."""

    def __init__(self, topic: PagesTopic) -> None:
        self.topic = topic
        self.cut_off = False
        self.rebalances = 0
        self._positions: dict[int, int] = {}

    def assign(self, partitions: Sequence[int]) -> None:
        """Cooperative: partitions that stay keep their positions, new ones begin where the group has committed."""
        self._positions = {p: self._positions.get(p, self.topic.committed[p]) for p in partitions}
        self.rebalances += 1

    def read(self, count: int, *, bytes_max: int, linger_s: float, wait_s: float) -> _Batch | None:
        """Up to `count` records, of each partition in turn."""
        batch = _Batch([], [])
        for partition, start in self._positions.items():
            found = self.topic.partitions[partition][start : start + count - len(batch.records)]
            if found:
                self._positions[partition] = start + len(found)
                batch.records += found
                batch.ranges.append(Range(self.topic.id, partition, start, start + len(found)))
        return batch if batch.records else None

    def commit(self, ranges: Sequence[Range]) -> None:
        for span in ranges:
            mine = span.partition in self._positions and not self.cut_off
            if mine and span.stop > self.topic.committed[span.partition]:  # never back, as KafkaPages
                self.topic.committed[span.partition] = span.stop

    def check(self) -> None:
        """It is always the same topic."""

    def assigned(self) -> list[int]:
        return sorted(self._positions)

    def lag(self) -> dict[int, int]:
        return {p: len(self.topic.partitions[p]) - at for p, at in self._positions.items()}


@dataclass(slots=True)
class ListLog:
    """The sketch log. `follower` gives a reader of its own."""

    messages: list[bytes] = field(default_factory=list)

    def ahead(self, start: int) -> list[tuple[int, bytes]]:
        return list(enumerate(self.messages))[start:]

    def follower(self, start: int) -> "ListFollower":
        return ListFollower(self, start)


@dataclass(slots=True)
class ListFollower:
    log: ListLog
    at: int

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        found = self.log.ahead(self.at)[:count]
        self.at += len(found)
        return found

    def position(self) -> int:
        return self.at

    def lag(self) -> int:
        return len(self.log.messages) - self.at


class ScriptedWriter:
    """A producer whose records arrive, in order, when `deliver` is called, or when somebody waits for them.

    at_once: they arrive as soon as they are sent.
    """

    def __init__(self, arrived: list[bytes], *, at_once: bool = False) -> None:
        self._at_once = at_once
        self.sent = self.acknowledged = 0
        self._arrived = arrived
        self._under_way: list[bytes] = []

    def send(self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        self._under_way.append(value or b"")
        self.sent += 1
        if self._at_once:
            self.deliver(1)

    def poll(self, wait_s: float = 0.0) -> int:
        if wait_s:
            self.deliver(1)
        return self.sent - self.acknowledged

    def deliver(self, count: int) -> None:
        """The next `count` records arrive and are acknowledged."""
        arriving, self._under_way = self._under_way[:count], self._under_way[count:]
        self._arrived += arriving
        self.acknowledged += len(arriving)

    def lose(self) -> None:
        """What is under way never arrives."""
        self._under_way = []


@dataclass(slots=True)
class VerdictLine:
    """Committed verdicts as (key, JSON), lines of an audit, and the log's offset that goes with them.

    owner: the newest `Transactions`.
    """

    verdicts: list[tuple[bytes, bytes]] = field(default_factory=list)
    audit: list[bytes] = field(default_factory=list)
    committed: int | None = None
    owner: object = None


class Transactions:
    """One matcher's end of a line; making it fences every earlier one.

    around: called before ("begun") and after ("committed") each commit, so that a test can raise there.
    """

    def __init__(self, line: VerdictLine, around: Callable[[str], None] = lambda moment: None) -> None:
        self._line, self._around = line, around
        self.aborted = 0
        line.owner = self

    def commit(self, verdicts: Sequence[tuple[bytes, bytes]], next_offset: int, audit: Sequence[bytes] = ()) -> None:
        self._around("begun")
        if self._line.owner is not self:
            raise Fenced("another matcher has taken over")
        self._line.verdicts += verdicts
        self._line.audit += audit
        self._line.committed = next_offset
        self._around("committed")


class ForgetfulStore(MemoryStore):
    """A store that a crash takes back to its last flush."""

    def __init__(self) -> None:
        super().__init__()
        self._durable = 0
        self._writes: list[Writes] = []

    def write(self, writes: Writes) -> None:
        super().write(writes)
        self._writes.append({family: dict(changes) for family, changes in writes.items()})

    def flush(self) -> None:
        super().flush()
        self._durable = len(self._writes)

    def crashed(self) -> "ForgetfulStore":
        """The store as the next process finds it."""
        found = ForgetfulStore()
        for writes in self._writes[: self._durable]:
            found.write(writes)
        found.flush()
        return found

    def rows(self) -> dict[Family, list[tuple[bytes, bytes]]]:
        """Everything in it, for comparisons."""
        return {family: list(self.scan(family)) for family in Family}
