"""Partitions that are added to `verdicts`, while the views run and while they do not, are followed."""

import signal
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from test_views import Worker, assert_alike, publish

from streams.config.settings import Topics
from streams.kafka import Admin, Connection
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

pytest.importorskip("faust", reason="faust-streaming is not installed")


@pytest.mark.slow
def test_partitions_added_to_verdicts_are_followed(broker: str, made: Topics, tmp_path: Path) -> None:
    verdicts, admin = random_verdicts(180, 6), Admin(Connection(broker))

    def tell(some: list[dict[str, Any]], partitions: int) -> None:
        """By a new producer, which knows of all partitions."""
        client = AdminClient({"bootstrap.servers": broker})
        if partitions > admin.topic(made.verdicts).partitions:
            client.create_partitions([NewPartitions(made.verdicts, partitions)])[made.verdicts].result(30)
            eventually(lambda: admin.topic(made.verdicts).partitions == partitions, "the partition")
        producer = Producer({"bootstrap.servers": broker, "transactional.id": made.verdicts})
        producer.init_transactions(60)
        publish(producer, made.verdicts, some, committed=True)
        assert all(admin.offsets(admin.topic(made.verdicts), "latest").values()), "each partition has some"

    tell(verdicts[:80], 2)
    worker = Worker(broker, made, tmp_path / "tables")
    try:
        worker.takes(80)
        tell(verdicts[80:140], 3)
        assert worker.process.wait(60) == 1
        assert f"topic {made.verdicts} has 3 partitions now, and these views consume 2" in worker.log()
        assert "restarting is safe" in worker.log()
        tell(verdicts[140:], 4)  # and once more while none of them runs
        worker = Worker(broker, made, tmp_path / "tables")
        worker.takes(len(verdicts))
        eventually(lambda: not worker("/overview.json")["behind"], "nothing behind")
        assert_alike(worker, verdicts)
    finally:
        print(worker.log())
        worker.end(signal.SIGKILL)
