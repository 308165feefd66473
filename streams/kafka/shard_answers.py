"""Reads and writes the topic `candidates`: the answers of all shards."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.errors import ANSWERS_GONE, BrokerError
from streams.kafka.admin import KafkaTopic
from streams.kafka.connection import Cause, Connection, Headers, Setting, checked
from streams.kafka.reader import TopicReader
from streams.kafka.writer import Writer
from streams.ports import Record

#: Limits of a read: records, and their bytes.
_RECORDS, _BYTES_MAX = 256, 32 << 20


class AnswerWriter(Writer):
    """Writes the answers of one shard, to its partition."""

    def __init__(
        self, connection: Connection, topic: str, shard: int, check: Callable[[bool], None], *, message_bytes_max: int
    ) -> None:
        """check: raises TopicError if the topic was deleted or recreated; with False it may rely on a recent look."""
        super().__init__(connection, topic, message_bytes_max=message_bytes_max, gapless=True, linger_ms=0)
        self._shard, self._check = shard, check

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int = -1
    ) -> None:
        super().send(value, key=key, headers=headers, partition=self._shard)

    def poll(self, wait_s: float = 0.0) -> int:
        """Like `Writer.poll`. With a wait, or where a record failed, raises TopicError if the topic was recreated."""
        if wait_s:
            self._check(False)
        try:
            return super().poll(wait_s)
        except BrokerError:
            self._check(True)  # names the cause, if it is that
            raise


class Beat(NamedTuple):
    """answered_to: the offset of the log before which the shard has answered all messages that it will answer.

    mark: changes with each heartbeat.
    """

    answered_to: int
    mark: str


#: Longest wait for heartbeats and ends of partitions.
_BEAT_SECONDS_MAX = 2.0


def beats_of(group: str) -> str:
    """Return the group whose offsets are the heartbeats of shards. group: consumer group of the shards."""
    return f"{group}:beats"


class ShardBeats:
    """Heartbeats of shards, by which the judge distinguishes a shard that is slow from one that does not run, and from
    an answer that is lost.

    They are offsets of a group without members, on the partitions of `candidates`, with the id of that topic. They
    decide nothing: without them, for lack of rights for example, the judge only says less.
    """

    def __init__(self, connection: Connection, topic: KafkaTopic, group: str) -> None:
        """topic: the topic `candidates`. group: consumer group of the shards."""
        self._topic = topic
        fixed: dict[str, Setting] = {
            "group.id": beats_of(group),
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
        self._client: Consumer = connection.make(Consumer, {}, fixed, Cause())

    def send(self, answered_to: Mapping[int, int]) -> None:
        """Sends a heartbeat of each of these shards. Waits for no answer."""
        note = f"{self._topic.id.hex()} {time.monotonic_ns()}"
        places = [TopicPartition(self._topic.name, shard, at, note) for shard, at in answered_to.items()]
        if places:
            with suppress(KafkaException):
                self._client.commit(offsets=places, asynchronous=True)

    def read(self) -> dict[int, Beat] | None:
        """The last heartbeat of each shard that has sent one; None if Kafka does not say."""
        places = [TopicPartition(self._topic.name, shard) for shard in range(self._topic.partitions)]
        try:
            found = checked(self._client.committed(places, timeout=_BEAT_SECONDS_MAX))
        except KafkaException:
            return None
        beats = {}
        for place in found:
            name, _, mark = (place.metadata or "").partition(" ")
            if name == self._topic.id.hex():
                beats[place.partition] = Beat(place.offset, mark)
        return beats

    def close(self) -> None:
        self._client.close()


class KafkaAnswers:
    """Reads all partitions of the topic, each from its own position. Single partitions can be paused.

    If the topic no longer has a position, reading begins at the start of the partition: shards write answers again, so
    the missing ones may follow the existing ones.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        # Answers are not written in transactions. Those in a recreated topic are right, too; the judge names the
        # messages whose answers it lacks.
        self._reader = TopicReader(connection, topic, committed_only=False, gone=ANSWERS_GONE, checks_reads=False)
        self.topic = self._reader.topic
        self._paused: set[int] = set()

    def seek(self, starts: Mapping[int, int]) -> None:
        """Continues these partitions at these positions."""
        begins, ends = self._reader.first_offsets(), self._reader.ends()
        at = {**begins, **self._reader.positions(), **starts}
        held = {
            partition: at[partition] if begin <= at[partition] <= ends[partition] else begin
            for partition, begin in begins.items()
        }
        self._reader.assign(held)
        self._paused = set()

    def read(self, partitions: Collection[int], wait_s: float) -> Sequence[Record]:
        """The next records of these partitions, each partition's in order; none after `wait_s`.

        Records of other partitions may be among them.
        """
        paused = set(range(self.topic.partitions)) - set(partitions)
        if paused != self._paused:
            self._reader.pause(paused)
            self._paused = paused
        return self._reader.read(_RECORDS, bytes_max=_BYTES_MAX, wait_s=wait_s)

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition. Raises BrokerError."""
        return self._reader.ends(_BEAT_SECONDS_MAX)

    def name(self, partition: int) -> str:
        """Topic and partition, for messages."""
        return f"topic {self.topic.name}, partition {partition}"

    def check(self) -> None:
        """Raises TopicError if the topic was recreated, BrokerError if that is unknown."""
        self._reader.check()

    def close(self) -> None:
        self._reader.close()
