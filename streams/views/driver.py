"""Faust's Kafka driver with three corrections: it consumes committed records only, commits only verdicts whose rows are
in the changelogs, and writes each row once.

Faust flushes its producer before it commits, but gives up if nothing was sent for .1 s, as on a loaded machine: a
worker killed then lost these rows for good, because their verdicts were not consumed again. Faust also counts as done
what it consumed before a partition was revoked and assigned again, even if the application skipped it; committing that
before the consumer seeks to the committed offset loses it as well.

A broker that was silent beyond its session answers NotLeaderForPartition to a produce request whose records it has
appended. The repeated request wrote them twice, and the views ended: hence the idempotent producer.

Verdicts are applied in the order of their partition: a row that has one applies no older one. When partitions are
reassigned, consumed verdicts must be skipped (`PartitionProgress`); the new owner consumes them again from the
committed offset. Until then no later verdict may be applied, and no later offset committed.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport
from faust.types import TP

#: Scheme of broker addresses that selects this driver.
SCHEME = "committed"


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # The consumer passes it to its fetcher at its start, which comes later.
        assert not hasattr(consumer, "_fetcher") or consumer._fetcher is None
        consumer._isolation_level = "read_committed"
        return consumer


class CommittedConsumer(Consumer):
    """rows_kept: waits until all changed rows are in the changelogs; returns the applied offset of each partition.

    None: the rows will never arrive.
    """

    rows_kept: Callable[[], Awaitable[Mapping[TP, int] | None]]

    async def _commit_offsets(self, offsets: Mapping[Any, int], start_new_transaction: bool = True) -> bool:
        kept = await self.rows_kept()
        if kept is None:
            return False
        done = {partition: min(offset, kept[partition]) for partition, offset in offsets.items() if partition in kept}
        return bool(await super()._commit_offsets(done, start_new_transaction))

    async def wait_empty(self) -> None:
        """Wait before a revocation or a stop, but not for messages that will never be acknowledged."""
        if await self.rows_kept() is not None:
            await super().wait_empty()

    def _new_consumer_thread(self) -> Any:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class IdempotentProducer(Producer):
    """Repeats a request without writing its records twice."""

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class CommittedTransport(Transport):
    """Transport of CommittedConsumer and IdempotentProducer."""

    Consumer = CommittedConsumer
    Producer = IdempotentProducer


TRANSPORTS.aliases[SCHEME] = f"{__name__}:CommittedTransport"


_NEVER = -1


class PartitionProgress:
    """State of one worker. In a new generation of the consumer group, partitions are consumed from their commits."""

    def __init__(self) -> None:
        self._applied: dict[TP, tuple[int, int]] = {}
        self._skipped: dict[TP, tuple[int, int]] = {}

    def accepts(self, message: Any, mine: Collection[TP], generation: int) -> bool:
        """Return whether to apply a verdict; otherwise it is skipped. mine: the worker's present partitions."""
        partition, of = TP(message.topic, message.partition), message.generation_id
        if partition in mine and of == generation and of > self._skipped.get(partition, (_NEVER, 0))[0]:
            return True
        self.skipped(partition, of, message.offset)
        return False

    def skipped(self, partition: TP, generation: int, offset: int) -> None:
        """Note that the verdict at an offset was consumed in a generation and not applied."""
        if generation > self._skipped.get(partition, (_NEVER, 0))[0]:
            self._skipped[partition] = generation, offset

    def applied(self, partition: TP, generation: int, end: int) -> None:
        """Note that all verdicts before the offset `end` are applied and their rows handed to the changelogs."""
        self._applied[partition] = generation, end

    def ends(self, generation: int) -> Mapping[TP, int]:
        """Return the offset up to which each partition may be committed; only partitions with applied verdicts."""
        return {partition: end for partition, (of, end) in self._applied.items() if of == generation}

    def waiting(self, partition: TP, generation: int) -> int | None:
        """Return the first offset that was skipped and not consumed again yet."""
        of, offset = self._skipped.get(partition, (_NEVER, 0))
        return offset if of == generation else None
