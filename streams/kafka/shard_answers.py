"""Reads and writes the topic `candidates`: the answers of all shards."""

from collections.abc import Callable, Collection, Mapping, Sequence

from streams.errors import ANSWERS_GONE, BrokerError
from streams.kafka.connection import Connection, Headers
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

    def name(self, partition: int) -> str:
        """Topic and partition, for messages."""
        return f"topic {self.topic.name}, partition {partition}"

    def check(self) -> None:
        """Raises TopicError if the topic was recreated, BrokerError if that is unknown."""
        self._reader.check()

    def close(self) -> None:
        self._reader.close()
