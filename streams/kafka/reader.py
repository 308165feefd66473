"""Reading topics: any partitions from given offsets, and the sketch log."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.errors import LOG_LOST, NEW_GENERATION, BrokerError, NoAnswer, PositionLost, TopicError
from streams.kafka.admin import Admin, Topic
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

#: Messages asked for at once: the bytes of a batch overshoot its limit by so many messages at most.
CHUNK = 64
#: A wait for records that are there: so long a signal may go unseen.
_WAIT_SECONDS = 0.5


class TopicClient:
    """A consumer of one topic: makes it, fills batches, and tells passing errors from those that must be seen.

    ANEW: what to do once the topic was deleted, and made anew; `_advice`: once a position is lost.
    """

    ANEW = "once it is there, start again to read the new one"

    def __init__(self, connection: Connection, topic: str, group: str, fixed: Mapping[str, Any]) -> None:
        """fixed: settings of the consumer beyond those of every one, and its callbacks."""
        self.bootstrap = connection.bootstrap
        self._admin = Admin(connection)
        self.topic = self._admin.topic(topic)
        self.cluster_id = self._admin.cluster_id()
        self._connection = connection
        self._committed_only = fixed["isolation.level"] == "read_committed"
        # Never a jump: a position that is gone is an error, and so is a group without one (`KafkaPages` gives it one).
        self._fixed = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error", **fixed}
        self._cause = Cause()
        self._consumer = self._make()
        self._stranded = Stranded(topic, lambda: self._same_topic(TRY_SECONDS_MAX))
        self._held: list[Message] = []

    def _make(self) -> Consumer:
        defaults: dict[str, Setting] = {
            # So long librdkafka waits before it fetches again after its queue was full; by default an idle second.
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 8 << 20,
            # A member that died is missed after 10 s instead of 45, and a rebalance is noticed after 1 s instead of 3.
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
            # By default a minute; a broker that is silent for longer than this has lost the member anyway.
            "socket.timeout.ms": 10_000,
        }
        return self._connection.make(Consumer, defaults, self._fixed, self._cause)

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        connection, what = self._connection, f"topic {self.topic.name} at {self.bootstrap}, {what}"
        return repeat(what, call, self._cause, connection.request_s, connection.go_on)

    def _at(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self.topic.name, partition, offset)

    def begins(self) -> dict[int, int]:
        """The first offset of each partition."""
        return self._admin.offsets(self.topic, "earliest")

    def ends(self, within_s: float | None = None) -> dict[int, int]:
        """The offset after the last of each partition; with committed records only, it stops at open transactions."""
        return self._admin.offsets(self.topic, "latest", committed_only=self._committed_only, within_s=within_s)

    def _must_hold(self, starts: Mapping[int, int]) -> None:
        begins, ends = self.begins(), self._admin.offsets(self.topic, "latest")
        for partition, start in starts.items():
            if not begins[partition] <= start <= ends[partition]:
                raise self._lost(partition, start)

    def _fill(self, count: int, bytes_max: int, linger_s: float, wait_s: float) -> list[Message]:
        """Waits `wait_s` for a first message, then takes more for `linger_s`, until `count` or `bytes_max`.

        Empty, too, where Kafka does not answer whether the topic is still the same: what was read is held back, and
        comes first when it does.
        """
        size = sum(map(len, self._held))
        waiting = not self._held
        deadline = time.monotonic() + wait_s
        while len(self._held) < count and size < bytes_max:
            chunk = 1 if waiting else min(CHUNK, count - len(self._held))
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
        if self._held:
            # librdkafka goes on at the old position of a topic that was deleted and recreated. Asked after the records
            # are here: an id that is still the same was so when they were read. It takes half a millisecond.
            try:
                self._same_topic(TRY_SECONDS_MAX)
            except NoAnswer as error:
                log.warning("waits to read on: %s", error)
                return []
        elif reason := self._stranded.reason(self._consumer):
            log.warning("consumer of %s has lost all brokers, and is replaced: %s", self.topic.name, reason)
            self._replace()
        held, self._held = self._held, []
        return held

    def _replace(self) -> None:
        """Goes on with a new consumer."""
        raise NotImplementedError

    def _places(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset to read next by partition, before what is held back; negative where it is not known."""
        places = {each.partition: each.offset for each in self._consumer.position(list(map(self._at, partitions)))}
        for message in reversed(self._held):
            if message.partition() in places:
                places[cast(int, message.partition())] = cast(int, message.offset())
        return places

    def now(self) -> Topic | None:
        """The topic as it is now, maybe with more partitions, or another of its name. Raises BrokerError soon."""
        return self._admin.topics([self.topic.name], TRY_SECONDS_MAX).get(self.topic.name)

    def check(self) -> None:
        """Raises TopicError if the topic was deleted or made anew since this reader began; BrokerError soon."""
        self._same_topic(TRY_SECONDS_MAX)

    def _same_topic(self, within_s: float | None = None) -> Topic:
        return same_topic(self._admin, self.topic, self.ANEW, within_s)

    def _trouble(self, error: KafkaError, partition: int | None) -> Exception:
        where = f"topic {self.topic.name}" + ("" if partition is None else f", partition {partition}")
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            return self._lost(partition, None)
        if error.code() in NO_TOPIC:
            return TopicError(f"{where} is gone ({error.str()}): {self.ANEW}")
        return BrokerError(f"{where} at {self.bootstrap}: {self._cause.explain(error)}")

    def _lost(self, partition: int, wanted: int | None) -> PositionLost:
        self._same_topic()
        wanted = self._next(partition) if wanted is None else wanted
        begin, end = self.begins()[partition], self._admin.offsets(self.topic, "latest")[partition]
        held = range(begin, end)
        return PositionLost.of(self.topic.name, partition, wanted, held, self._advice(partition, wanted, held))

    def _advice(self, partition: int, wanted: int, held: range) -> str:
        raise NotImplementedError

    def _next(self, partition: int) -> int:
        raise NotImplementedError

    def close(self) -> None:
        self._consumer.close()


def same_topic(admin: Admin, known: Topic, advice: str, within_s: float | None = None) -> Topic:
    """The topic as it is now, if it is the known one. Raises TopicError with the advice, BrokerError."""
    now = admin.topics([known.name], within_s).get(known.name)
    if now is None or now.id != known.id:
        raise TopicError.anew(known.name, known.id, now.id if now else None, advice)
    return now


class Reader(TopicClient):
    """Reads partitions from given offsets on, without a group. Nothing is read before `assign`.

    committed_only: leave out records of open and aborted transactions, and wait behind open ones.
    """

    def __init__(
        self, connection: Connection, topic: str, *, committed_only: bool, lost: str = "start again with what is left"
    ) -> None:
        """lost: what to do once a position is no longer held. Raises TopicError, BrokerError, BadInput."""
        isolation = "read_committed" if committed_only else "read_uncommitted"
        # There is no subscription and no commit; but librdkafka asks for the group's coordinator, and may be denied it:
        # so its name begins with the role's, as rights are given.
        group = f"{connection.settings.get('client.id', 'neardup')}.reader"
        super().__init__(connection, topic, group, {"isolation.level": isolation})
        self._starts: dict[int, int] = {}
        self._lost_advice = lost

    def _advice(self, partition: int, wanted: int, held: range) -> str:
        return self._lost_advice

    def at_time(self, when_ms: int) -> dict[int, int]:
        """By partition the first offset whose timestamp is `when_ms` or later; the end where there is none."""
        return self._admin.offsets(self.topic, when_ms, committed_only=self._committed_only)

    def assign(self, starts: Mapping[int, int]) -> None:
        """Reads these partitions from these offsets on, from now on. Raises PositionLost if an offset is not held."""
        self._must_hold(starts)
        if self._starts:
            # A consumer that is assigned a partition again tells its old position until a record comes.
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
        """Read nothing of these partitions, and on in all others, from now on."""
        self._consumer.resume([self._at(partition) for partition in self._starts if partition not in partitions])
        self._consumer.pause([self._at(partition) for partition in partitions])

    def read(self, count: int, *, bytes_max: int = 64 << 20, linger_s: float = 0.0, wait_s: float) -> list[Record]:
        """As `KafkaPages.read`; an empty list if nothing came. Raises PositionLost, TopicError, BrokerError."""
        return cast(list[Record], self._fill(count, bytes_max, linger_s, wait_s))

    def positions(self) -> dict[int, int]:
        """By partition the offset to read next; it passes control records, so it can exceed last offset + 1."""
        found = self._places(self._starts)
        return {partition: place if place >= 0 else self._starts[partition] for partition, place in found.items()}

    def to_end(self) -> Iterator[Record]:
        """All records, up to the end that each partition has now. Assigns anew."""
        ends = self.ends()
        self.assign(self.begins())
        yield from self.read_to(ends)

    def last(self, counts: Callable[[Record], bool] = lambda record: True) -> dict[int, Record]:
        """The newest record of each partition that has one. Assigns anew. counts: which records are looked at."""
        newest: dict[int, Record] = {}
        begins, ends = self.begins(), self.ends()
        back = 64
        open_ = {partition for partition, end in ends.items() if end > begins[partition]}
        while open_:
            starts = {partition: max(begins[partition], ends[partition] - back) for partition in open_}
            self.assign(starts)
            for record in self.read_to(ends):
                if counts(record):
                    newest[record.partition()] = record
            # Only markers, aborted records and such as do not count there: look further back.
            open_ = {each for each in open_ - newest.keys() if starts[each] > begins[each]}
            back *= 8
        return newest

    def read_to(self, ends: Mapping[int, int], *, bytes_max: int = 64 << 20) -> Iterator[Record]:
        """The records before these offsets, of the partitions that are assigned; waits for them as long as it takes.

        Raises Stopped, and as `read`.
        """
        while any(position < ends[partition] for partition, position in self.positions().items()):
            records = self.read(4096, bytes_max=bytes_max, wait_s=_WAIT_SECONDS)
            if not records:
                self._connection.go_on()
            for record in records:
                if record.offset() < ends[record.partition()]:
                    yield record

    def _next(self, partition: int) -> int:
        return self.positions().get(partition, 0)


class KafkaLog(Reader):
    """The sketch log: the one partition of its topic, in order of offsets.

    Uncommitted records are read too: nobody writes transactions here, so there are none, and a foreign one that is
    left open could otherwise stop the line. hear: is told the headers of each message that `poll` returns.
    """

    hear: Callable[[Sequence[tuple[str, bytes | None]] | None], None] | None = None

    ANEW = NEW_GENERATION

    def __init__(self, connection: Connection, topic: str, *, committed_only: bool = False) -> None:
        """committed_only: for effects, which have one partition, too. Raises TopicError if it has more than one."""
        super().__init__(connection, topic, committed_only=committed_only, lost=LOG_LOST)
        if self.topic.partitions != 1:
            raise TopicError(f"topic {topic} has {self.topic.partitions} partitions; it must have exactly one")

    def begin(self) -> int:
        return self.begins()[0]

    def end(self) -> int:
        return self.ends()[0]

    def follow(self, start: int) -> None:
        """`poll` goes on from here. Raises PositionLost if `start` is before the log's begin or after its end."""
        self.assign({0: start})

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        """(offset, message) in order. Raises PositionLost when the log was cut ahead of the reader."""
        records = self.read(count, bytes_max=bytes_max, linger_s=linger_s, wait_s=wait_s)
        if self.hear is not None:
            for record in records:
                self.hear(record.headers())
        return [(record.offset(), record.value() or b"") for record in records]

    def position(self) -> int:
        return self.positions()[0]

    def first(self) -> tuple[int, bytes] | None:
        """(offset, message) of the oldest message, None if there is none. Assigns anew."""
        begin, end = self.begin(), self.end()
        if begin == end:
            return None
        self.follow(begin)
        while self.position() < end:
            for found in self.poll(1, bytes_max=1, wait_s=TRY_SECONDS_MAX):
                return found
        return None

    def lag(self) -> int:
        """Messages behind the position, as far as the last fetch told; no request is made."""
        _, end = self._consumer.get_watermark_offsets(self._at(0), cached=True)
        return max(0, end - self.position())

    def messages(self, start: int) -> Iterator[tuple[int, bytes]]:
        """(offset, message) from `start` to the end that the log has now."""
        end = self.end()
        self.follow(start)
        for record in self.read_to({0: end}, bytes_max=16 << 20):
            yield record.offset(), record.value() or b""
