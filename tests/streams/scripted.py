"""Scripted adapters of the ports, for tests of the roles: nothing waits, and nothing is random.

A `Broker` keeps topics and committed offsets by name, as Kafka does: writers of a deleted topic write to the recreated
one, which differs only by its id. Sketchers read `ScriptedPages` and write through `ScriptedWriter`s, whose records
arrive when `deliver` is called. A matcher follows a `ScriptedLog` and commits through `Transactions`, of which the
newest one fences all others.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from neardup.index.column_families import Family, Writes
from neardup.index.memory import MemoryStore
from streams.errors import (
    LOG_LOST,
    NEW_GENERATION,
    BrokerError,
    Fenced,
    PositionLost,
    TopicError,
    Unsettled,
    pages_lost,
    verdicts_gone,
)
from streams.kafka.positions import Positions
from streams.ports import Committed, Range, TopicIds


@dataclass(slots=True)
class ManualClock:
    """A clock that a test moves."""

    ms: int = 0

    def now_ms(self) -> int:
        return self.ms


@dataclass(frozen=True, slots=True)
class ScriptedRecord:
    """A record of the pages topic. at: (partition, offset). time_ms: the broker's timestamp."""

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
class ScriptedPartition:
    """records: by offset, None for a transaction's marker. begin: the first retained offset."""

    records: list[object] = field(default_factory=list)
    begin: int = 0

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def held(self) -> range:
        return range(self.begin, self.end)

    def append(self, record: object) -> int:
        self.records.append(record)
        return len(self.records) - 1


@dataclass(slots=True)
class ScriptedTopic:
    """One topic; its id does not survive a deletion."""

    name: str
    id: bytes
    partitions: list[ScriptedPartition]

    def publish(
        self,
        partition: int,
        url: bytes | None,
        body: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        time_ms: int = 0,
    ) -> ScriptedRecord:
        """Appends a record of the pages topic."""
        held = self.partitions[partition]
        record = ScriptedRecord((partition, held.end), url, body, tuple(headers), time_ms)
        held.append(record)
        return record

    def newest(self) -> dict[int, object]:
        """The last record of each partition that still holds one."""
        found: dict[int, object] = {}
        for number, held in enumerate(self.partitions):
            for offset in reversed(held.held):
                if held.records[offset] is not None:
                    found[number] = held.records[offset]
                    break
        return found


class Broker:
    """Topics by name, and the groups' committed offsets. deleted: former topics with their records."""

    def __init__(self) -> None:
        self.topics: dict[str, ScriptedTopic] = {}
        self.deleted: list[ScriptedTopic] = []
        self.offsets: dict[tuple[str, str, int], Committed] = {}
        self.owners: dict[str, object] = {}
        self._made = 0

    def create(self, name: str, partitions: int) -> ScriptedTopic:
        assert name not in self.topics
        self._made += 1
        topic = ScriptedTopic(name, self._made.to_bytes(16, "big"), [ScriptedPartition() for _ in range(partitions)])
        self.topics[name] = topic
        return topic

    def delete(self, name: str) -> None:
        """Its committed offsets go with it."""
        self.deleted.append(self.topics.pop(name))
        self.offsets = {place: at for place, at in self.offsets.items() if place[1] != name}

    def recreate(self, name: str) -> ScriptedTopic:
        partitions = len(self.topics[name].partitions)
        self.delete(name)
        return self.create(name, partitions)

    def topic(self, name: str) -> ScriptedTopic:
        """Raises TopicError."""
        if name not in self.topics:
            raise TopicError(f"topic {name} does not exist; create it: neardup topics create")
        return self.topics[name]

    def same(self, known: ScriptedTopic, advice: str) -> ScriptedTopic:
        """Raises TopicError unless the topic is the one that it was."""
        now = self.topics.get(known.name)
        if now is not known:
            raise TopicError.anew(known.name, known.id, now.id if now else None, advice)
        return known

    def commit(self, group: str, topic: str, partition: int, at: Committed) -> None:
        """Kafka knows the topic by its name."""
        if topic not in self.topics:
            raise BrokerError(f"topic {topic}: UNKNOWN_TOPIC_OR_PART")
        self.offsets[group, topic, partition] = at

    def committed(self, group: str, topic: str, partition: int) -> Committed | None:
        return self.offsets.get((group, topic, partition))

    def expire(self, group: str) -> None:
        """Expire the offsets of a group without members."""
        self.offsets = {place: at for place, at in self.offsets.items() if place[0] != group}


@dataclass(slots=True)
class _Batch:
    records: list[ScriptedRecord]
    ranges: list[Range]


class ScriptedPages:
    """One member of the group. `assign` is a rebalance, heard of at the next `read`.

    A member that is `cut_off` was taken for dead by the group: it reads on, but its commits do not get through. Nor do
    they while `deaf`, as when a broker comes back.
    """

    def __init__(
        self, broker: Broker, topic: str, group: str, sink: str, *, around: Callable[[str], None] = lambda moment: None
    ) -> None:
        """around: called right before what is acknowledged is committed ("commits")."""
        self._broker, self.group, self._around = broker, group, around
        self.topic, self._sink = broker.topic(topic), broker.topic(sink)
        self.cut_off = self.deaf = False
        self.rebalances = 0
        self._at_work = Positions(TopicIds(self.topic.id, self._sink.id), sink)
        self._coming: list[int] = []
        everywhere = range(len(self.topic.partitions))
        if not self._at_work.begun(self._committed(everywhere).values()):
            for partition in everywhere:
                first = self.topic.partitions[partition].begin
                broker.commit(group, topic, partition, Committed(first, self._at_work.topic_ids))

    @property
    def topic_ids(self) -> TopicIds:
        return self._at_work.topic_ids

    def _committed(self, partitions: Iterable[int]) -> dict[int, Committed | None]:
        return {each: self._broker.committed(self.group, self.topic.name, each) for each in partitions}

    def assign(self, partitions: Collection[int]) -> None:
        """Cooperative: partitions that stay keep their positions, those that go do so now, new ones come at `read`."""
        gone = set(self.assigned()) - set(partitions)
        self._commit(gone)
        self._at_work.drop(gone)
        self._coming = sorted(set(partitions) - set(self.assigned()))

    def _take(self) -> None:
        coming, self._coming = self._coming, []
        if not coming:
            return
        self._broker.same(self.topic, "once it is there, start again to read the new one")
        starts = self._at_work.starts(self._committed(coming))
        self.rebalances += 1
        for partition, start in starts.items():
            self._must_hold(partition, start)
        self._at_work.assign(starts)

    def _must_hold(self, partition: int, start: int) -> None:
        held = self.topic.partitions[partition].held
        if not held.start <= start <= held.stop:
            advice = pages_lost("broker", self.group, self.topic.name, partition, start, held)
            raise PositionLost.of(self.topic.name, partition, start, held, advice)

    def read(self, count: int, *, bytes_max: int, linger_s: float, wait_s: float) -> _Batch | None:
        """Up to `count` records, of each partition in turn."""
        self._take()
        batch = _Batch([], [])
        topic = self._broker.topics.get(self.topic.name)
        for partition in self.assigned():
            start = self._at_work.next(partition)
            # By name, as Kafka's client does: the new topic's records may be found at the old one's position.
            held = topic.partitions[partition] if topic else ScriptedPartition()
            if topic is self.topic:
                self._must_hold(partition, start)
            stop = min(held.end, start + count - len(batch.records))
            found = [record for record in held.records[start:stop] if isinstance(record, ScriptedRecord)]
            if found:
                batch.records += found
                batch.ranges.append(self._at_work.read(partition, stop))
        if batch.records:
            self._broker.same(self.topic, "once it is there, start again to read the new one")
        return batch if batch.records else None

    def commit(self, ranges: Sequence[Range]) -> None:
        self._at_work.acknowledge(ranges)
        if self._at_work.due:
            self._broker.same(self._sink, NEW_GENERATION)
            self._around("commits")
            self._commit(set(self._at_work.due))

    def _commit(self, partitions: Collection[int]) -> None:
        if self.cut_off or self.deaf:
            return
        for partition in sorted(partitions & self._at_work.due.keys()):
            at = Committed(self._at_work.due.pop(partition), self._at_work.topic_ids)
            self._broker.commit(self.group, self.topic.name, partition, at)

    def check(self) -> None:
        self._broker.same(self.topic, "once it is there, start again to read the new one")
        self._broker.same(self._sink, NEW_GENERATION)

    def assigned(self) -> list[int]:
        return self._at_work.assigned()

    def lag(self) -> dict[int, int]:
        return {p: max(0, self.topic.partitions[p].end - self._at_work.next(p)) for p in self.assigned()}


class ScriptedWriter:
    """A producer to one partition of a topic. Its records arrive, in order, when `deliver` is called, or when a caller
    waits for them; `acknowledge` is when it hears of it.

    at_once: they arrive as soon as they are sent.
    """

    def __init__(self, broker: Broker, topic: str, *, partition: int = 0, at_once: bool = False) -> None:
        self._broker, self._topic, self._partition, self._at_once = broker, topic, partition, at_once
        self.sent = self.arrived = self.acknowledged = 0
        self._under_way: list[bytes] = []
        self._failed = ""

    def send(self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        self._under_way.append(value or b"")
        self.sent += 1
        if self._at_once:
            self.deliver(1)

    def poll(self, wait_s: float = 0.0) -> int:
        if wait_s:
            self.deliver(1)
        if self._failed:
            raise BrokerError(f"topic {self._topic}: {self._failed}")
        return self.sent - self.acknowledged

    def deliver(self, count: int, *, acknowledged: bool = True) -> None:
        """The next `count` records arrive, in the topic that has the name now."""
        if self._failed:
            self._under_way = []  # what follows a record that failed does not arrive either
        arriving, self._under_way = self._under_way[:count], self._under_way[count:]
        topic = self._broker.topics.get(self._topic)
        for value in arriving:
            if topic is None:
                return self.lose()
            topic.partitions[self._partition].append(value)
            self.arrived += 1
        if acknowledged:
            self.acknowledged = self.arrived
        return None

    def lose(self) -> None:
        """What is under way never arrives."""
        if self._under_way or self.arrived < self.sent:
            self._failed = "a record was not written"
        self._under_way = []


class ScriptedLog:
    """The sketch log, for one matcher."""

    cluster_id = "scripted"

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self.topic = broker.topic(topic)
        self._at = 0

    @property
    def _held(self) -> ScriptedPartition:
        return self.topic.partitions[0]

    def first_offset(self) -> int:
        return self._held.begin

    def end(self) -> int:
        return self._held.end

    def messages(self, start: int) -> list[tuple[int, bytes]]:
        """From `start` to the end that the log has now."""
        return [(offset, value) for offset, value in self._from(start) if offset < self.end()]

    def _from(self, start: int) -> Iterator[tuple[int, bytes]]:
        for offset in range(start, self.end()):
            value = self._held.records[offset]
            assert isinstance(value, bytes)
            yield offset, value

    def follow(self, start: int) -> None:
        self._at = start
        self._must_hold()

    def _must_hold(self) -> None:
        if not self.first_offset() <= self._at <= self.end():
            raise PositionLost.of(self.topic.name, 0, self._at, self._held.held, LOG_LOST)

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        now = self._broker.topics.get(self.topic.name)
        if now is not self.topic:
            if now is not None and now.partitions[0].end != self._at:
                self.check()  # at its old position a client finds the new topic's records, or that there are none
            return []
        self._must_hold()
        found = list(self._from(self._at))[:count]
        self._at += len(found)
        return found

    def position(self) -> int:
        return self._at

    def lag(self) -> int:
        return self.end() - self._at

    def check(self) -> None:
        self._broker.same(self.topic, NEW_GENERATION)

    def close(self) -> None:
        pass


class Transactions:
    """One matcher's end of the verdicts; `init` fences every earlier one with its transactional id.

    around: called before ("begun"), within ("sent") and after ("committed") each commit: a test can raise there, or let
    others do something meanwhile.

    The verdicts of a commit that raised Unsettled are still on their way. They arrive with this object's next commit,
    as with Kafka; `init` of another object fences them.
    """

    def __init__(
        self,
        broker: Broker,
        log: str,
        verdicts: str,
        group: str,
        *,
        audit: str = "",
        around: Callable[[str], None] = lambda moment: None,
    ) -> None:
        self._broker, self._log, self._verdicts, self.group, self._audit = broker, log, verdicts, group, audit
        self._around = around
        self.topic_ids = TopicIds(broker.topic(log).id, broker.topic(verdicts).id)
        self.first = ""
        self._late: list[tuple[bytes, bytes]] = []

    def init(self) -> None:
        self._broker.owners[self.group] = self

    def committed(self) -> Committed | None:
        return self._broker.committed(self.group, self._log, 0)

    def commit(
        self,
        verdicts: Sequence[tuple[bytes, bytes]],
        next_offset: int,
        audit: Sequence[bytes] = (),
        headers: Mapping[int, Sequence[tuple[str, bytes]]] = MappingProxyType({}),
    ) -> None:
        self._around("begun")
        try:
            self._around("sent")
        except Unsettled:
            self._late += verdicts
            raise
        if self._broker.owners.get(self.group) is not self:
            raise Fenced(f"another process has taken over transactional id {self.group}")
        if verdicts := [*self._late, *verdicts]:
            if self._verdicts not in self._broker.topics:
                what = f"verdicts up to offset {next_offset} of {self._log}"
                raise Unsettled(f"{what}: topic {self._verdicts} is gone")
            self._append(self._broker.topics[self._verdicts], verdicts)
            self._late = []
        if audit:
            self._broker.topic(self._audit).partitions[0].records += audit
        self._broker.commit(self.group, self._log, 0, Committed(next_offset, self.topic_ids, self.first))
        self._around("committed")

    def _append(self, topic: ScriptedTopic, verdicts: Sequence[tuple[bytes, bytes]]) -> None:
        """Each touched partition also gets the transaction's end."""
        touched = set()
        for key, value in verdicts:
            partition = zlib.crc32(key) % len(topic.partitions)
            topic.partitions[partition].append((key, value))
            touched.add(partition)
        for partition in touched:
            topic.partitions[partition].append(None)

    def check(self) -> None:
        now = self._broker.topics.get(self._verdicts)
        if now is None or now.id != self.topic_ids.sink:
            raise verdicts_gone(self._verdicts, self.topic_ids.sink, now.id if now else None)


class ForgetfulStore(MemoryStore):
    """A store that a crash takes back to its last flush."""

    def __init__(self, rows: Mapping[Family, Mapping[bytes, bytes]] | None = None) -> None:
        super().__init__()
        self._durable: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}
        self._since: list[Writes] = []
        if rows:
            self.write(rows)
            self.flush()

    def write(self, writes: Writes) -> None:
        super().write(writes)
        self._since.append({family: dict(changes) for family, changes in writes.items()})

    def flush(self) -> None:
        super().flush()
        for writes in self._since:
            for family, changes in writes.items():
                rows = self._durable[family]
                for key, value in changes.items():
                    if value is None:
                        rows.pop(key, None)
                    else:
                        rows[key] = value
        self._since = []

    def crashed(self) -> "ForgetfulStore":
        """The store as the next process finds it."""
        return ForgetfulStore(self._durable)

    def rows(self) -> dict[Family, list[tuple[bytes, bytes]]]:
        """Everything in it, for comparisons."""
        return {family: list(self.scan(family)) for family in Family}
