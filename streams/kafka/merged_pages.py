"""Reads `pages` from the start, with its partitions merged by fetch time: the order does not depend on reading speed.

The next page is the one with the smallest fetch time among the first unread pages of all partitions. If fetch times are
equal, the smaller partition comes first. Each partition is merged up to the end that it had when the merge began. Until
then the merge waits for its next record, also while the group assigns the partition to another member. So the order
does not depend on which partition answers first, and a merge that restarts at committed positions continues in the same
order.

Bound: pages of one partition keep its order. A page that follows a younger page of its own partition comes right after
that page, so it is late by as much as its partition is out of order. Across partitions no page is late.

A fetch time after the broker's timestamp is replaced by the timestamp, so a date in the future cannot hold back a
partition.

Once all ends are reached and little is left, the topic is followed in the order of arrival.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import cast

from confluent_kafka import TopicPartition

from streams.kafka.admin import KafkaTopic
from streams.kafka.connection import Connection
from streams.kafka.pages import KafkaPages
from streams.ports import PageBatch, Range, Record

#: If more new records than this lie after the ends, they are merged, too. Fewer are read in the order of arrival.
FOLLOW_RECORDS = 1_000
#: Limits of waiting records: number per partition, beyond which it is paused, and bytes of all partitions.
_QUEUE_RECORDS_MAX = 1_024
_QUEUE_BYTES_MAX = 64 << 20
_TAKE_BYTES = 8 << 20
#: Seconds of a limited rate that may be read at once after a pause.
_BURST_SECONDS = 0.5


class MergedPages(KafkaPages):
    """A reader of `pages` for a backfill.

    merge_ends: offset of each partition up to which the reader merges.
    done, total: numbers of records up to these offsets, read and in all.
    reached: whether all of these records are read. Then the reader follows the topic, or, with `once`, reads no more.
    stops: end of the last range of each partition that was returned when the ends were reached; None before. Once the
        stops are committed, all pages up to the ends are sketched. A stop may lie before the end, because control and
        aborted records after the last page are in no range.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        sink: KafkaTopic,
        *,
        time_of: Callable[[Record], int | None],
        rate: float = 0.0,
        once: bool = False,
    ) -> None:
        """time_of: fetch time of a record in ms since the epoch, None if it has none. rate: pages per second, at
        most; 0: no limit. once: read nothing after the present ends. Raises like KafkaPages.
        """
        self._queues: dict[int, deque[tuple[int, Record]]] = {}  # with the fetch time by which it is merged
        self._sizes: dict[int, int] = {}
        self._paused: set[int] = set()
        self._taken: list[Record] = []
        self._time_of = time_of
        self._once = once
        self._pace = Pace(rate)
        self.reached = False
        self.stops: dict[int, int] | None = None
        self.done = 0
        super().__init__(connection, topic, group, sink)
        self._begins, self.merge_ends = self.first_offsets(), self.ends()
        self.total = sum(self.merge_ends.values()) - sum(self._begins.values())

    def read(self, count: int, *, bytes_max: int, linger_s: float, wait_s: float) -> PageBatch | None:
        """Read records in the order of the merge, as KafkaPages.read does."""
        count = self._pace.allowed(count, wait_s)
        self._taken, size = [], 0
        deadline = time.monotonic() + wait_s
        self._take_in(0.0)
        while len(self._taken) < count and size < bytes_max:
            partition = self._first()
            if partition is not None:
                record = self._pop(partition)
                self._taken.append(record)
                size += len(record.value() or b"")
            elif self._at_ends() or time.monotonic() >= deadline:
                break
            else:
                left = deadline - time.monotonic()
                self._take_in(max(0.0, min(linger_s, left) if self._taken else left))
                deadline = min(deadline, time.monotonic() + linger_s) if self._taken else deadline
        if self.reached and self._once and not self._taken:
            self._take_in(wait_s)  # the caller comes again at once until all else is done
        taken, self._taken = self._taken, []
        self._pace.took(len(taken))
        ranges = self._ranges(taken)
        if self.reached and self.stops is None:
            self.stops = {partition: self._at_work.next(partition) for partition in self.assigned()}
        self._count()
        return PageBatch(taken, ranges) if taken else None

    def _first(self) -> int | None:
        """The partition of the next record; None if it is not known yet."""
        if not self._all_assigned():
            return None
        found: tuple[int, int] | None = None
        for partition in self.assigned():
            queue = self._queues.get(partition)
            if not queue:
                if not self._done_with(partition):
                    return None  # its next record may be older than all others
            elif not self._done_with(partition):
                key = (queue[0][0], partition)
                found = key if found is None else min(found, key)
        return None if found is None else found[1]

    def _all_assigned(self) -> bool:
        """Returns whether all partitions that must be assigned to this member are assigned.

        While the group still counts a killed process as a member, it assigns only some of them. Once the topic is
        followed, any will do.
        """
        return len(self.assigned()) == self.topic.partitions or (self.reached and not self._once)

    def _done_with(self, partition: int) -> bool:
        """Whether the partition is finished: the merge neither waits for it nor takes records of it."""
        queue, end = self._queues.get(partition), self.merge_ends.get(partition, 0)
        if self.reached and not self._once:
            return not queue
        return (queue[0][1].offset() if queue else self._place(partition)) >= end

    def lag(self) -> dict[int, int]:
        """Count the records that are not read yet, as KafkaPages.lag does; records in queues count."""
        lags = super().lag()
        for partition, queue in self._queues.items():
            if queue and partition in lags:
                lags[partition] += max(0, self._place(partition) - queue[0][1].offset())
        return lags

    def _at_ends(self) -> bool:
        """Returns whether no more records will be read.

        Once all ends are reached, it sets newer ends if the topic has grown by more than FOLLOW_RECORDS; otherwise the
        topic is followed from then on.
        """
        if not self.reached and self._all_assigned() and all(map(self._done_with, self.assigned())):
            ends = self.ends()
            left = sum(end - self.merge_ends.get(partition, 0) for partition, end in ends.items())
            if self._once or left <= FOLLOW_RECORDS:
                self.reached = True
            else:
                self.merge_ends = ends
        return self.reached and self._once

    def _take_in(self, wait_s: float) -> None:
        """Moves new records to the queues, and pauses partitions whose queues are full."""
        room = _QUEUE_BYTES_MAX - sum(self._sizes.values())
        records = self._fill(_QUEUE_RECORDS_MAX, max(1, min(_TAKE_BYTES, room)), 0.0, wait_s)
        for record in cast(list[Record], records):
            partition, stamp, fetched = record.partition(), record.timestamp()[1], self._time_of(record)
            key = stamp if fetched is None else min(fetched, stamp)
            self._queues.setdefault(partition, deque()).append((key, record))
            self._sizes[partition] = self._sizes.get(partition, 0) + len(record.value() or b"")
        share = _QUEUE_BYTES_MAX // max(1, len(self._queues))
        full = {
            partition
            for partition, queue in self._queues.items()
            if len(queue) >= _QUEUE_RECORDS_MAX or self._sizes[partition] >= share
        }
        if full - self._paused:
            self._consumer.pause([self._at(partition) for partition in full - self._paused])
            self._paused |= full

    def _pop(self, partition: int) -> Record:
        queue = self._queues[partition]
        _, record = queue.popleft()
        self._sizes[partition] -= len(record.value() or b"")
        if partition in self._paused and not queue:
            self._paused.remove(partition)
            self._consumer.resume([self._at(partition)])
        return record

    def _ranges(self, taken: Iterable[Record]) -> list[Range]:
        stops = {record.partition(): record.offset() + 1 for record in taken}
        for partition in stops:
            if not self._queues.get(partition):  # control records behind it belong to it
                stops[partition] = max(stops[partition], self._place(partition))
        return [self._at_work.read(partition, stop) for partition, stop in sorted(stops.items())]

    def _count(self) -> None:
        """Updates the counts that other threads read."""
        self.done = sum(
            max(0, self._at_work.next(each) - self._begins.get(each, 0)) for each in self._at_work.assigned()
        )
        self.total = max(self.done, sum(self.merge_ends.values()) - sum(self._begins.values()))

    def _drop(self, partitions: list[TopicPartition]) -> None:
        super()._drop(partitions)
        gone = {each.partition for each in partitions}
        self._taken = [record for record in self._taken if record.partition() not in gone]
        for partition in gone:
            self._queues.pop(partition, None)
            self._sizes.pop(partition, None)
        self._paused -= gone


class Pace:
    """Limits a reader to a rate in pages per second; 0: no limit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._saved = 0.0
        self._looked = time.monotonic()

    def allowed(self, count: int, wait_s: float) -> int:
        """The number of pages, at most `count`, that may be read now. Waits up to `wait_s` for the first one."""
        if not self._rate:
            return count
        if self._earned() < 1:
            time.sleep(min(wait_s, self.wait_s))
        return min(count, int(self._earned()))

    @property
    def wait_s(self) -> float:
        """Seconds until the next page is allowed."""
        return max(0.0, 1 - self._saved) / self._rate if self._rate else 0.0

    def took(self, count: int) -> None:
        self._saved -= count

    def _earned(self) -> float:
        now = time.monotonic()
        self._saved = min(self._saved + (now - self._looked) * self._rate, max(1.0, self._rate * _BURST_SECONDS))
        self._looked = now
        return self._saved
