"""Reads `pages` as a member of a consumer group."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from neardup.errors import InvariantBroken
from streams.errors import NEW_GENERATION, BrokerError, NoAnswer, Stopped, TopicError, pages_lost
from streams.kafka.admin import KafkaTopic
from streams.kafka.connection import (
    PASSING,
    TRY_SECONDS_MAX,
    Connection,
    checked,
    committed_of,
    error_of,
    log,
)
from streams.kafka.positions import Positions
from streams.kafka.reader import TopicClient, same_topic
from streams.kafka.stranded import discard, leave
from streams.ports import Committed, PageBatch, Range, Record, TopicIds

#: Errors of a commit by a member whose partitions have just been assigned to another one.
_MOVED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
    }
)


class KafkaPages(TopicClient):
    """A member of the group that reads `pages`.

    A new group starts at the first offset of every partition, once; afterwards only committed offsets count. Not
    thread-safe: rebalances happen in `read`. Callbacks of a replaced consumer are ignored. rebalances: number of
    assignments so far; each restarts at the committed positions.
    """

    def __init__(self, connection: Connection, topic: str, group: str, sink: KafkaTopic | None = None) -> None:
        """sink: the sketch log, whose acknowledgements precede commits. Raises TopicError, BrokerError, BadInput."""
        fixed: dict[str, Any] = {
            "partition.assignment.strategy": "cooperative-sticky",
            "isolation.level": "read_committed",
        }
        if connection.settings.get("group.protocol") == "consumer":
            del fixed["partition.assignment.strategy"]
        super().__init__(connection, topic, group, fixed)
        self.group = group
        self._sink = sink
        self._commit_sent: float | None = None  # time of a commit that has no answer yet
        self._refused: KafkaError | None = None
        self._at_work = Positions(TopicIds(self.topic.id, sink.id if sink else bytes(16)), sink.name if sink else "")
        self._closing = False
        self._begin_group()
        self.rebalances = 0
        self._join()

    def _make(self) -> Consumer:
        def on_commit(error: KafkaError | None, places: list[TopicPartition]) -> None:
            if self._consumer is made:
                self._answered(error, places)

        self._fixed["on_commit"] = on_commit
        made = super()._make()
        return made

    def _join(self) -> None:
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self._consumer.subscribe([self.topic.name], **callbacks)

    def _replace(self) -> None:
        self._drop([self._at(partition) for partition in self.assigned()])
        self._commit_sent = None
        old, self._consumer = self._consumer, self._make()
        discard(lambda: leave(old))
        self._join()

    def _begin_group(self) -> None:
        everywhere = range(self.topic.partitions)
        if self._at_work.begun(self._committed(everywhere).values()):
            return
        firsts = self.first_offsets()
        try:
            places = self._places_of(firsts)
            self._ask("first commit", lambda: checked(self._consumer.commit(offsets=places, asynchronous=False)))
        except BrokerError:
            # A group with members takes no commits from outside: another process was faster.
            if not self._at_work.begun(self._committed(everywhere).values()):
                raise

    def _committed(self, partitions: Iterable[int]) -> dict[int, Committed | None]:
        ask, places = self._consumer.committed, [self._at(partition) for partition in partitions]
        found = self._ask(f"offsets of group {self.group}", lambda: checked(ask(places, timeout=TRY_SECONDS_MAX)))
        return {place.partition: committed_of(place) for place in found}

    def _places_of(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        note = {partition: Committed(offset, self._at_work.topic_ids).note for partition, offset in offsets.items()}
        return [TopicPartition(self.topic.name, each, offset, note[each]) for each, offset in offsets.items()]

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._closing or consumer is not self._consumer:
            # An assignment was under way. Its offsets are not available any more, and nothing will be read.
            return
        self.topic = self._same_topic()  # its number of partitions may have grown
        starts = self._at_work.starts(self._committed(each.partition for each in partitions))
        self.rebalances += 1
        self._must_hold(starts)
        self._at_work.assign(starts)
        consumer.incremental_assign([self._at(partition, offset) for partition, offset in starts.items()])

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if consumer is self._consumer:
            self._commit_due({each.partition for each in partitions})
            self._drop(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if consumer is self._consumer:
            self._drop(partitions)

    def _drop(self, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        self._at_work.drop(gone)
        self._held = [message for message in self._held if message.partition() not in gone]

    def check(self) -> None:
        """Raises TopicError if the topic or the sketch log was deleted or recreated; BrokerError within seconds."""
        super().check()
        self._check_sink()

    def _check_sink(self) -> None:
        if self._sink is not None:
            same_topic(self._admin, self._sink, NEW_GENERATION, TRY_SECONDS_MAX)

    def _advice(self, partition: int, required: int, held: range) -> str:
        return pages_lost(self.bootstrap, self.group, self.topic.name, partition, required, held)

    @property
    def topic_ids(self) -> TopicIds:
        """The ids of the topic and of the sketch log."""
        return self._at_work.topic_ids

    def assigned(self) -> list[int]:
        """The partitions that this member has now."""
        return self._at_work.assigned()

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
        for partition, offset in self._places(sorted(present)).items():
            if offset < 0:
                # Another process may have taken the name of this static member; the next poll reports it.
                raise BrokerError(
                    f"topic {self.topic.name}: the group has taken partition {partition} away{self._cause}; "
                    "start again, under a group.instance.id that no other process has"
                )
            ranges.append(self._at_work.read(partition, offset))
        spans = {span.partition: span for span in ranges}
        for message in records:
            span = spans[cast(int, message.partition())]
            if not span.start <= cast(int, message.offset()) < span.stop:
                raise InvariantBroken(f"offset {message.offset()} of {self.topic.name} is outside of {span}")
        return PageBatch(cast(list[Record], records), ranges)

    def commit(self, ranges: Sequence[Range]) -> None:
        """Commits the stops of ranges whose sketches are acknowledged. Skips partitions that were lost since.

        It does not wait for the answer, which a silent broker can delay by 90 s and more. `read` receives it. If a
        rebalance or a restarting broker prevents a commit, the next call repeats it. At worst the new owner of the
        partition reads the range again, and the matcher drops it. Raises TopicError if the sketch log was recreated: it
        does not hold the acknowledged sketches.
        """
        self._at_work.acknowledge(ranges)
        if self._commit_sent is None or time.monotonic() - self._commit_sent > TRY_SECONDS_MAX:
            self._commit_due(set(self._at_work.due))

    def _commit_due(self, partitions: set[int]) -> None:
        if self._refused is not None and not self._closing:
            raise self._trouble(self._refused, None)
        offsets = {partition: stop for partition, stop in self._at_work.due.items() if partition in partitions}
        if not offsets:
            return
        try:
            # Queried after the acknowledgements: if the log is still the same, it gave them.
            self._check_sink()
        except NoAnswer as silence:
            log.warning("commit of %s waits: %s", self.topic.name, silence)
            return
        except (TopicError, BrokerError, Stopped):
            if self._closing:
                return  # the range is read and sent again, or the next start reports the change
            raise
        try:
            self._commit_sent = time.monotonic()
            self._send_commit(self._places_of(offsets))
        except KafkaException as exception:
            self._not_committed(error_of(exception))

    def _send_commit(self, places: list[TopicPartition]) -> None:
        self._consumer.commit(offsets=places, asynchronous=True)

    def _answered(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        """Callback of the client, within `read` and `close`, with the outcome of a commit."""
        self._commit_sent = None
        due = self._at_work.due
        for each in places:
            failed = error or each.error
            if failed is not None:
                self._not_committed(failed)
            elif due.get(each.partition) == each.offset:
                del due[each.partition]

    def _not_committed(self, error: KafkaError) -> None:
        # After a rebalance that this member does not know yet: lost ranges are dropped, the others committed later.
        later = error.code() in _MOVED or error.code() in PASSING or error.code() == KafkaError.REBALANCE_IN_PROGRESS
        log.warning("commit of %s did not get through yet: %s", self.topic.name, self._cause.explain(error))
        if not later:
            self._refused = error

    def lag(self) -> dict[int, int]:
        """Records that are not read, by assigned partition, as of the last fetch; makes no request.

        Records of aborted transactions at the end count until the consumer has passed them: no range holds them.
        """
        lags = {}
        for partition in self.assigned():
            _, end = self._consumer.get_watermark_offsets(self._at(partition), cached=True)
            lags[partition] = max(0, end - self._place(partition))
        return lags

    def _place(self, partition: int) -> int:
        """The offset to read next from the broker."""
        return max(self._places([partition])[partition], self._at_work.next(partition))

    def _next(self, partition: int) -> int:
        return self._at_work.next(partition)

    def close(self) -> None:
        """Leaves the group. Other members take over at once, and read uncommitted ranges again."""
        self._closing = True
        leave(self._consumer)
