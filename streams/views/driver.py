"""Faust's Kafka driver with three corrections: it consumes committed records only, commits only verdicts whose rows are
in the changelogs, and writes each row once.

Faust flushes its producer before it commits, but gives up if nothing was sent for .1 s, as on a loaded machine: a
worker killed then lost these rows for good, because their verdicts were not consumed again. Faust also counts as done
what it consumed before a partition was revoked and assigned again, even if the application skipped it; committing that
before the consumer seeks to the committed offset loses it as well.

A broker that was silent beyond its session answers NotLeaderForPartition to a produce request whose records it has
appended. The repeated request wrote them twice, and the views ended: hence the idempotent producer.
"""

from collections.abc import Awaitable, Callable, Mapping
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
