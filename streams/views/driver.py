"""Faust's Kafka driver, where it falls short: it reads uncommitted records, and has no setting for that; and it commits
offsets of verdicts whose rows are not in the changelogs.

Faust flushes what it has to send before it commits, but gives up the flush where nothing was sent for .1 s, as on a
crowded machine: a worker killed then had lost these rows for good, since nobody read their verdicts again. And what was
read before its partition went, and came back, it counts as done, whoever left it out: where that is committed before
the consumer seeks to what was committed last, nobody reads it again either.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

#: The scheme of broker addresses that this driver takes.
SCHEME = "committed"


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Given on to the fetcher when the consumer starts, which it has not yet.
        assert not hasattr(consumer, "_fetcher") or consumer._fetcher is None
        consumer._isolation_level = "read_committed"
        return consumer


class CommittedConsumer(Consumer):
    """rows_kept: waits until all rows changed so far are in the changelogs; then the offsets up to which partitions are
    taken in, of those that have any. None: the rows will never be there.
    """

    rows_kept: Callable[[], Awaitable[Mapping[TP, int] | None]]

    async def _commit_offsets(self, offsets: Mapping[Any, int], start_new_transaction: bool = True) -> bool:
        kept = await self.rows_kept()
        if kept is None:
            return False
        done = {place: min(offset, kept[place]) for place, offset in offsets.items() if place in kept}
        return bool(await super()._commit_offsets(done, start_new_transaction))

    async def wait_empty(self) -> None:
        """Before partitions go, or all stops: not for what will never be acknowledged."""
        if await self.rows_kept() is not None:
            await super().wait_empty()

    def _new_consumer_thread(self) -> Any:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class CommittedTransport(Transport):
    """As its base, with committed records only."""

    Consumer = CommittedConsumer


TRANSPORTS.aliases[SCHEME] = f"{__name__}:CommittedTransport"
