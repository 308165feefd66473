"""Faust's Kafka driver, reading committed records only: it has no setting for that, and reads uncommitted ones."""

from typing import Any

from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

#: The scheme of broker addresses that this driver takes.
SCHEME = "committed"


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Given on to the fetcher when the consumer starts, which it has not yet.
        assert not hasattr(consumer, "_fetcher") or consumer._fetcher is None
        consumer._isolation_level = "read_committed"
        return consumer


class _CommittedConsumer(Consumer):
    def _new_consumer_thread(self) -> Any:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class CommittedTransport(Transport):
    """As its base, with committed records only."""

    Consumer = _CommittedConsumer


TRANSPORTS.aliases[SCHEME] = f"{__name__}:CommittedTransport"
