"""Reading `pages` as a member of a consumer group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from neardup.errors import InvariantBroken
from streams.errors import BrokerError
from streams.kafka.connection import (
    PASSING,
    TRY_SECONDS_MAX,
    Connection,
    checked,
    error_of,
    log,
)
from streams.kafka.reader import RawRecord, TopicClient
from streams.ports import Range

#: A commit by a member whose partitions have just gone to another one.
_MOVED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
    }
)


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Records in the order they came (each partition's by offset), and what they account for.

    ranges: one a partition with records here; `start` is the `stop` before it, `stop` a consumer position, so that
    a range covers control records and aborted ones too. source: the topic's id.
    """

    records: list[RawRecord]
    ranges: list[Range]


class KafkaPages(TopicClient):
    """A member of the group that reads `pages`.

    A new group starts at the first offset of every partition, once; after that only committed offsets count. Not
    thread-safe: rebalances happen inside `read`.
    """

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        """Raises TopicError, BrokerError, BadInput."""
        fixed = {"partition.assignment.strategy": "cooperative-sticky", "isolation.level": "read_committed"}
        if connection.settings.get("group.protocol") == "consumer":
            del fixed["partition.assignment.strategy"]
        super().__init__(connection, topic, group, fixed)
        self.group = group
        self._starts: dict[int, int] = {}  # assigned partition -> `stop` of its last range
        self._closing = False
        self._floors: dict[int, int] = {}  # assigned partition -> the offset below which nothing is to be committed
        self._due: dict[int, int] = {}  # acknowledged, but the commit did not get through yet
        self._begin_group()
        self.rebalances = 0
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def _begin_group(self) -> None:
        everywhere = [self._at(partition) for partition in range(self.topic.partitions)]
        if any(each.offset >= 0 for each in self._committed(everywhere)):
            return
        firsts = [self._at(partition, first) for partition, first in self.begins().items()]
        try:
            self._ask("first commit", lambda: checked(self._commit_now(firsts)))
        except BrokerError:
            # A group with members takes no commits from outside: somebody else was first.
            if not any(each.offset >= 0 for each in self._committed(everywhere)):
                raise

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        ask = self._consumer.committed
        return self._ask(f"offsets of group {self.group}", lambda: checked(ask(partitions, timeout=TRY_SECONDS_MAX)))

    def _commit_now(self, offsets: list[TopicPartition]) -> list[TopicPartition]:
        return self._consumer.commit(offsets=offsets, asynchronous=False)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._closing:
            # An assignment that was under way: its offsets are not to be had any more, and nobody will read.
            return
        self.topic = self._same_topic()  # it may have more partitions by now
        known = self._committed(partitions)
        for each in known:
            if each.offset < 0:
                # A partition added after the group began; from its first record on, if none has been lost.
                each.offset = 0
        starts = {each.partition: each.offset for each in known}
        self.rebalances += 1
        self._must_hold(starts)
        self._starts.update(starts)
        self._floors.update(starts)
        consumer.incremental_assign(known)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit_due({each.partition for each in partitions})
        self._drop(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop(partitions)

    def _drop(self, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        for partition in gone:
            self._starts.pop(partition, None)
            self._floors.pop(partition, None)
            self._due.pop(partition, None)
        self._held = [message for message in self._held if message.partition() not in gone]

    def assigned(self) -> list[int]:
        """The partitions that this member has now."""
        return sorted(self._starts)

    def read(self, count: int, *, bytes_max: int, linger_s: float, wait_s: float) -> PageBatch | None:
        """Waits `wait_s` for a first record, then `linger_s` for more; None if there was none.

        A batch ends at `count` records, or with the chunk that reaches `bytes_max`. Raises PositionLost when records
        were deleted unread, TopicError, BrokerError.
        """
        records = self._fill(count, bytes_max, linger_s, wait_s)
        if not records:
            return None
        present = {cast(int, message.partition()) for message in records}
        ranges = []
        for place in self._consumer.position([self._at(partition) for partition in sorted(present)]):
            start = self._starts[place.partition]
            if place.offset < 0:
                # A static member whose name another process has taken: it is told so only at the next poll.
                raise BrokerError(
                    f"topic {self.topic.name}: the group has taken partition {place.partition} away{self._cause}; "
                    "start again, under a group.instance.id that no other process has"
                )
            ranges.append(Range(self.topic.id, place.partition, start, place.offset))
            self._starts[place.partition] = place.offset
        spans = {span.partition: span for span in ranges}
        for message in records:
            span = spans[cast(int, message.partition())]
            if not span.start <= cast(int, message.offset()) < span.stop:
                raise InvariantBroken(f"offset {message.offset()} of {self.topic.name} is outside of {span}")
        return PageBatch(cast(list[RawRecord], records), ranges)

    def commit(self, ranges: Sequence[Range]) -> None:
        """Commits the stops of ranges whose sketches are acknowledged; ranges of partitions since lost are left out.

        A commit that a rebalance or a broker on its way back keeps from getting through goes with the next one, or
        with the partition: at worst its new owner reads the range again, and the matcher drops it.
        """
        for span in ranges:
            # Never back: a partition may have gone to another member, which went on, and come again meanwhile.
            if span.partition in self._floors and span.stop > self._floors[span.partition]:
                self._floors[span.partition] = self._due[span.partition] = span.stop
        self._commit_due(set(self._due))

    def _commit_due(self, partitions: set[int]) -> None:
        due = [self._at(partition, stop) for partition, stop in self._due.items() if partition in partitions]
        if not due:
            return
        try:
            for each in checked(self._commit_now(due)):
                self._due.pop(each.partition, None)
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() in _MOVED:
                self._due.clear()
            elif error.code() not in PASSING and error.code() != KafkaError.REBALANCE_IN_PROGRESS:
                raise self._trouble(error, None) from exception
            log.warning("commit of %s did not get through yet: %s", self.topic.name, error.str())

    def lag(self) -> dict[int, int]:
        """Records after the last range, by assigned partition, as far as the last fetch told; no request is made."""
        lags = {}
        for partition, start in self._starts.items():
            _, end = self._consumer.get_watermark_offsets(self._at(partition), cached=True)
            lags[partition] = max(0, end - start)
        return lags

    def _next(self, partition: int) -> int:
        return self._starts.get(partition, 0)

    def close(self) -> None:
        """Leaves the group; other members take over at once. What was not committed is read again by them."""
        self._closing = True
        super().close()
