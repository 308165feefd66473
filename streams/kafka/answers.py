"""Reads the topic `candidates`: the answers of all shards. Single partitions can be paused."""

from collections.abc import Collection, Mapping, Sequence

from streams.kafka.connection import Connection
from streams.kafka.reader import TopicReader
from streams.ports import Record

#: Limits of a read: records, and their bytes.
_RECORDS, _BYTES_MAX = 256, 32 << 20


class KafkaAnswers:
    """Reads all partitions of the topic, each from its own position.

    If the topic no longer has a position, reading begins at the start of the partition: shards write answers again, so
    the missing ones may follow the existing ones.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        # Answers are not written in transactions.
        self._reader = TopicReader(connection, topic, committed_only=False)
        self.topic = self._reader.topic
        self._paused: set[int] = set()

    def seek(self, starts: Mapping[int, int]) -> None:
        begins, ends = self._reader.first_offsets(), self._reader.ends()
        at = {**begins, **self._reader.positions(), **starts}
        held = {
            partition: at[partition] if begin <= at[partition] <= ends[partition] else begin
            for partition, begin in begins.items()
        }
        self._reader.assign(held)
        self._paused = set()

    def read(self, partitions: Collection[int], wait_s: float) -> Sequence[Record]:
        paused = set(range(self.topic.partitions)) - set(partitions)
        if paused != self._paused:
            self._reader.pause(paused)
            self._paused = paused
        return self._reader.read(_RECORDS, bytes_max=_BYTES_MAX, wait_s=wait_s)

    def name(self, partition: int) -> str:
        return f"topic {self.topic.name}, partition {partition}"

    def check(self) -> None:
        """Raises TopicError if the topic was recreated, BrokerError if that is unknown."""
        self._reader.check()

    def close(self) -> None:
        self._reader.close()
