"""Reads topics: any partitions from given offsets, and the sketch log."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.errors import LOG_LOST, NEW_GENERATION, BrokerError, NoAnswer, PositionLost, TopicError
from streams.kafka.admin import Admin, KafkaTopic
from streams.kafka.connection import (
    NO_TOPIC,
    PASSING,
    TRY_SECONDS_MAX,
    Cause,
    Connection,
    Setting,
    T,
    error_of,
    log,
    repeat,
)
from streams.kafka.stranded import Stranded, discard
from streams.ports import Record

#: Messages per request: the bytes of a batch exceed its limit by so many messages, at most.
CHUNK = 64
#: Advice where a topic was deleted or recreated, and its reader may begin anew.
READ_THE_NEW = "once it is there, start again to read the new one"
#: Seconds of a wait for existing records: a signal may be delayed by so much.
_WAIT_SECONDS = 0.5
#: A page of the views waits for the end of a topic.
_BEHIND_SECONDS_MAX = 5.0


class TopicClient:
    """A consumer of one topic: makes the client, fills batches, and separates temporary errors from permanent ones.

    `_advice`: advice if a position is lost.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        fixed: Mapping[str, Any],
        gone: str = READ_THE_NEW,
        checks_reads: bool = True,
    ) -> None:
        """fixed: settings of this consumer beyond those of all consumers, and its callbacks. gone: advice if the topic
        was deleted or recreated. checks_reads: each read makes sure that it was not; otherwise only `check` does.
        """
        self._gone = gone
        self._checks_reads = checks_reads
        self.bootstrap = connection.bootstrap
        self._admin = Admin(connection)
        self.topic = self._admin.topic(topic)
        self.cluster_id = self._admin.cluster_id()
        self._connection = connection
        self._committed_only = fixed["isolation.level"] == "read_committed"
        # Never reset: a position that is gone is an error, and so is a group without one (`KafkaPages` sets it).
        self._fixed = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error", **fixed}
        self._cause = Cause()
        self._consumer = self._make()
        self._stranded = Stranded(topic, lambda: self._same_topic(TRY_SECONDS_MAX))
        self._held: list[Message] = []

    def _make(self) -> Consumer:
        defaults: dict[str, Setting] = {
            # Time that librdkafka waits before it fetches again after its queue was full; by default one second.
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 8 << 20,
            # A dead member is noticed after 10 s instead of 45, and a rebalance after 1 s instead of 3.
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
            # By default a minute. A broker that is silent for longer than this has dropped the member anyway.
            "socket.timeout.ms": 10_000,
        }
        return self._connection.make(Consumer, defaults, self._fixed, self._cause)

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        connection, what = self._connection, f"topic {self.topic.name} at {self.bootstrap}, {what}"
        return repeat(what, call, self._cause, connection.request_s, connection.go_on)

    def _at(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self.topic.name, partition, offset)

    def first_offsets(self) -> dict[int, int]:
        """The first offset of each partition."""
        return self._admin.offsets(self.topic, "earliest")

    def ends(self, within_s: float | None = None) -> dict[int, int]:
        """The offset after the last of each partition; with committed records only, it stops at open transactions."""
        return self._admin.offsets(self.topic, "latest", committed_only=self._committed_only, within_s=within_s)

    def _must_hold(self, starts: Mapping[int, int]) -> None:
        begins, ends = self.first_offsets(), self._admin.offsets(self.topic, "latest")
        for partition, start in starts.items():
            if not begins[partition] <= start <= ends[partition]:
                raise self._lost(partition, start)

    def _fill(self, count: int, bytes_max: int, linger_s: float, wait_s: float) -> list[Message]:
        """Waits `wait_s` for a first message, then reads more for `linger_s`, until `count` or `bytes_max`.

        Also empty if Kafka does not answer whether the topic is still the same. The messages that were read are then
        returned by a later call.
        """
        size = sum(map(len, self._held))
        waiting = not self._held
        deadline = time.monotonic() + wait_s
        while len(self._held) < count and size < bytes_max:
            chunk = 1 if waiting else self._chunk(count, size, bytes_max)
            try:
                got = self._consumer.consume(chunk, max(0.0, deadline - time.monotonic()))
            except KafkaException as exception:
                raise self._trouble(error_of(exception), None) from exception
            if got:
                self._stranded.heard()
            for message in got:
                error = message.error()
                if error is None:
                    self._held.append(message)
                    size += len(message)
                elif error.code() not in PASSING or error.fatal():
                    raise self._trouble(error, message.partition())
            if waiting and self._held:
                waiting = False
                deadline = time.monotonic() + linger_s
            elif len(got) < chunk and time.monotonic() >= deadline:
                break
        if self._held and self._checks_reads:
            # librdkafka continues at the old position of a topic that was deleted and recreated. The query follows the
            # read: if the id is the same now, it was so when the records were read. It takes half a millisecond.
            try:
                self._same_topic(TRY_SECONDS_MAX)
            except NoAnswer as error:
                log.warning("waits to read on: %s", error)
                return []
        elif not self._held and (reason := self._stranded.reason(self._consumer)):
            log.warning("consumer of %s has lost all brokers, and is replaced: %s", self.topic.name, reason)
            self._replace()
        held, self._held = self._held, []
        return held

    def _chunk(self, count: int, size: int, bytes_max: int) -> int:
        """The number of messages to read next, if they are as long as those read so far. size: bytes of these."""
        fitting = (bytes_max - size) * len(self._held) // max(1, size)
        return max(1, min(CHUNK, count - len(self._held), fitting))

    def _replace(self) -> None:
        """Replaces the consumer by a new one."""
        raise NotImplementedError

    def _places(self, partitions: Iterable[int]) -> dict[int, int]:
        """By partition, the offset to read next, before messages that are held back; negative if unknown."""
        places = {each.partition: each.offset for each in self._consumer.position(list(map(self._at, partitions)))}
        for message in reversed(self._held):
            if message.partition() in places:
                places[cast(int, message.partition())] = cast(int, message.offset())
        return places

    def now(self) -> KafkaTopic | None:
        """The topic of this name now: it may have more partitions, or be another one.

        Raises BrokerError within seconds.
        """
        return self._admin.topics([self.topic.name], TRY_SECONDS_MAX).get(self.topic.name)

    def check(self) -> None:
        """Raises TopicError if the topic was deleted or recreated since the start; BrokerError within seconds."""
        self._same_topic(TRY_SECONDS_MAX)

    def _same_topic(self, within_s: float | None = None) -> KafkaTopic:
        return same_topic(self._admin, self.topic, self._gone, within_s)

    def _trouble(self, error: KafkaError, partition: int | None) -> Exception:
        where = f"topic {self.topic.name}" + ("" if partition is None else f", partition {partition}")
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            return self._lost(partition, None)
        if error.code() in NO_TOPIC:
            return TopicError(f"{where} is gone ({error.str()}): {self._gone}")
        return BrokerError(f"{where} at {self.bootstrap}: {self._cause.explain(error)}")

    def _lost(self, partition: int, required: int | None) -> PositionLost:
        self._same_topic()
        required = self._next(partition) if required is None else required
        begin, end = self.first_offsets()[partition], self._admin.offsets(self.topic, "latest")[partition]
        held = range(begin, end)
        return PositionLost.of(self.topic.name, partition, required, held, self._advice(partition, required, held))

    def _advice(self, partition: int, required: int, held: range) -> str:
        raise NotImplementedError

    def _next(self, partition: int) -> int:
        raise NotImplementedError

    def close(self) -> None:
        self._consumer.close()


def same_topic(admin: Admin, known: KafkaTopic, advice: str, within_s: float | None = None) -> KafkaTopic:
    """The topic as it is now. Raises TopicError with the advice if it is not the known one, BrokerError."""
    now = admin.topics([known.name], within_s).get(known.name)
    if now is None or now.id != known.id:
        raise TopicError.anew(known.name, known.id, now.id if now else None, advice)
    return now


class TopicReader(TopicClient):
    """Reads partitions from given offsets on, without a group. Nothing is read before `assign`.

    committed_only: leave out records of aborted transactions, and wait before open ones.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        committed_only: bool,
        gone: str = READ_THE_NEW,
        lost: str = "start again with what is left",
        checks_reads: bool = True,
    ) -> None:
        """gone, lost: advice if the topic was deleted or recreated, and if a position is no longer in it. checks_reads:
        as for `TopicClient`. Raises TopicError, BrokerError, BadInput.
        """
        isolation = "read_committed" if committed_only else "read_uncommitted"
        # There is no subscription and no commit, but librdkafka requests the group's coordinator, which needs a right.
        # So the group's name begins with the role's, as rights do.
        group = f"{connection.settings.get('client.id', 'neardup')}.reader"
        super().__init__(connection, topic, group, {"isolation.level": isolation}, gone, checks_reads)
        self._starts: dict[int, int] = {}
        self._lost_advice = lost

    def _advice(self, partition: int, required: int, held: range) -> str:
        return self._lost_advice

    def at_time(self, when_ms: int) -> dict[int, int]:
        """By partition, the first offset with a timestamp of `when_ms` or later; the end if there is none."""
        return self._admin.offsets(self.topic, when_ms, committed_only=self._committed_only)

    def assign(self, starts: Mapping[int, int]) -> None:
        """Reads these partitions from these offsets on. Raises PositionLost if the topic does not have an offset."""
        self._must_hold(starts)
        if self._starts:
            # A consumer to which a partition is assigned again reports its old position until a record comes.
            self._consumer.close()
            self._consumer = self._make()
        self._begin(starts)

    def _begin(self, starts: Mapping[int, int]) -> None:
        self._starts, self._held = dict(starts), []
        self._consumer.assign([self._at(partition, start) for partition, start in starts.items()])

    def _replace(self) -> None:
        starts = self.positions()
        old, self._consumer = self._consumer, self._make()
        discard(old.close)
        self._begin(starts)

    def pause(self, partitions: Collection[int]) -> None:
        """Pauses these partitions, and resumes all others."""
        self._consumer.resume([self._at(partition) for partition in self._starts if partition not in partitions])
        self._consumer.pause([self._at(partition) for partition in partitions])

    def read(self, count: int, *, bytes_max: int = 64 << 20, linger_s: float = 0.0, wait_s: float) -> list[Record]:
        """Read records, as `KafkaPages.read` does; an empty list if nothing came.

        Raises PositionLost, TopicError, BrokerError.
        """
        return cast(list[Record], self._fill(count, bytes_max, linger_s, wait_s))

    def positions(self) -> dict[int, int]:
        """By partition, the offset to read next. It skips control records, so it can exceed last offset + 1."""
        found = self._places(self._starts)
        return {partition: place if place >= 0 else self._starts[partition] for partition, place in found.items()}

    def to_end(self) -> Iterator[Record]:
        """All records up to the present end of each partition. Replaces the assignment."""
        ends = self.ends()
        self.assign(self.first_offsets())
        yield from self.read_to(ends)

    def last(
        self,
        counts: Callable[[Record], bool] = lambda record: True,
        *,
        begins: Mapping[int, int] | None = None,
        back: int = 64,
        within_s: float = math.inf,
    ) -> dict[int, Record]:
        """The newest record of each partition that has one. Replaces the assignment.

        Args:
            counts: function that selects records.
            begins: offset of the first record that may be returned, by partition; by default all partitions.
            back: number of offsets to read at first.
            within_s: seconds after which the call raises NoAnswer.
        """
        newest: dict[int, Record] = {}
        begins, ends = self.first_offsets() if begins is None else begins, self.ends()
        until = time.monotonic() + within_s
        open_ = {partition for partition, begin in begins.items() if ends[partition] > begin}
        while open_:
            starts = {partition: max(begins[partition], ends[partition] - back) for partition in open_}
            self.assign(starts)
            for record in self.read_to(ends, within_s=until - time.monotonic()):
                if counts(record):
                    newest[record.partition()] = record
            # Only markers, aborted records and records that do not count were there: read further back.
            open_ = {each for each in open_ - newest.keys() if starts[each] > begins[each]}
            back *= 8
        return newest

    def read_to(
        self, ends: Mapping[int, int], *, bytes_max: int = 64 << 20, within_s: float = math.inf
    ) -> Iterator[Record]:
        """The records before these offsets, of the assigned partitions.

        within_s: raises NoAnswer after this time; by default waits without limit. Raises Stopped, and like `read`.
        """
        until = time.monotonic() + within_s
        while any(position < ends[partition] for partition, position in self.positions().items()):
            records = self.read(4096, bytes_max=bytes_max, wait_s=_WAIT_SECONDS)
            if not records:
                self._connection.go_on()
            if time.monotonic() > until:
                raise NoAnswer(f"topic {self.topic.name} at {self.bootstrap}: its end was not read in time")
            for record in records:
                if record.offset() < ends[record.partition()]:
                    yield record

    def _next(self, partition: int) -> int:
        return self.positions().get(partition, 0)


def behind(admin: Admin, group: str, topic: KafkaTopic) -> dict[int, int]:
    """By partition, the offsets between a group's position and the last record that it can get.

    A group that never committed can get all records. Records of aborted transactions at the end count as nothing: no
    commit ever passes them. They do count if this user may not read the topic, or reading takes too long. Raises
    BrokerError, TopicError.
    """
    begins = admin.offsets(topic, "earliest")
    ends = admin.offsets(topic, "latest", committed_only=True)
    committed = admin.all_committed(group, topic.name, ends)
    nexts = {each: max(begins[each], known.offset if known else 0) for each, known in committed.items()}
    left = {each: max(0, end - nexts[each]) for each, end in ends.items()}
    late = {each: nexts[each] for each, count in left.items() if count}
    if not late:
        return left
    try:
        with closing(TopicReader(admin.connection, topic.name, committed_only=True)) as reader:
            newest = reader.last(begins=late, back=1, within_s=_BEHIND_SECONDS_MAX)
    except BrokerError as error:
        log.debug("topic %s: the end of its records is unknown: %s", topic.name, error)
        return left
    return left | {each: newest[each].offset() + 1 - late[each] if each in newest else 0 for each in late}


class KafkaLog(TopicReader):
    """The sketch log: the one partition of its topic, in order of offsets.

    Uncommitted records are read, too: no process of neardup writes transactions here, and an open transaction of a
    foreign program could otherwise stop the stream. hear: called with the headers of each message that `poll` returns.
    """

    hear: Callable[[Sequence[tuple[str, bytes | None]] | None], None] | None = None

    def __init__(self, connection: Connection, topic: str) -> None:
        """Raises TopicError if the topic has more than one partition."""
        super().__init__(connection, topic, committed_only=False, gone=NEW_GENERATION, lost=LOG_LOST)
        if self.topic.partitions != 1:
            raise TopicError(f"topic {topic} has {self.topic.partitions} partitions; it must have exactly one")

    def first_offset(self) -> int:
        return self.first_offsets()[0]

    def end(self) -> int:
        return self.ends()[0]

    def follow(self, start: int) -> None:
        """Lets `poll` continue at `start`. Raises PositionLost if that is before the log's start or after its end."""
        self.assign({0: start})

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        """(offset, message) in order. Raises PositionLost if retention removed messages before they were read."""
        records = self.read(count, bytes_max=bytes_max, linger_s=linger_s, wait_s=wait_s)
        if self.hear is not None:
            for record in records:
                self.hear(record.headers())
        return [(record.offset(), record.value() or b"") for record in records]

    def position(self) -> int:
        return self.positions()[0]

    def first(self) -> tuple[int, bytes] | None:
        """(offset, message) of the oldest message, None if there is none. Replaces the assignment."""
        begin, end = self.first_offset(), self.end()
        if begin == end:
            return None
        self.follow(begin)
        while self.position() < end:
            for found in self.poll(1, bytes_max=1, wait_s=TRY_SECONDS_MAX):
                return found
        return None

    def lag(self) -> int:
        """Messages after the position, as of the last fetch; makes no request."""
        _, end = self._consumer.get_watermark_offsets(self._at(0), cached=True)
        return max(0, end - self.position())

    def messages(self, start: int) -> Iterator[tuple[int, bytes]]:
        """(offset, message) from `start` to the present end of the log."""
        end = self.end()
        self.follow(start)
        for record in self.read_to({0: end}, bytes_max=16 << 20):
            yield record.offset(), record.value() or b""
