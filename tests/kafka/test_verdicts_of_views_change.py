"""The views when `verdicts` is recreated or trimmed, when their tables are gone, or their disk is full."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import alter, eventually
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from test_views import Worker, assert_alike, publish

from streams.config.settings import Topics
from streams.kafka import Admin, Connection, topics
from streams.kafka.topics import Sizes
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

pytest.importorskip("faust", reason="faust-streaming is not installed")


class Stage:
    """A topic of verdicts, and workers of the views."""

    def __init__(self, broker: str, names: Topics, folder: Path) -> None:
        self.broker, self.names, self.folder = broker, names, folder
        self.admin, self.client = Admin(Connection(broker)), AdminClient({"bootstrap.servers": broker})
        self.workers: list[Worker] = []

    def emit(self, verdicts: list[dict[str, Any]]) -> None:
        producer = Producer({"bootstrap.servers": self.broker, "transactional.id": self.names.verdicts})
        producer.init_transactions(60)
        publish(producer, self.names.verdicts, verdicts, committed=True)

    def start(self, *more: str, before: str = "") -> Worker:
        self.workers.append(Worker(self.broker, self.names, self.folder / "tables", *more, before=before))
        return self.workers[-1]

    def recreate(self) -> None:
        name = self.names.verdicts
        self.client.delete_topics([name])[name].result(30)
        eventually(lambda: not self.admin.topics([name]), "the topic's end")
        topics.create(self.admin, self.names, Sizes(partitions=2))
        alter(self.broker, name, "message.timestamp.type", "CreateTime")

    def trim(self) -> None:
        """As retention does: half of each partition."""
        ends = self.admin.offsets(self.admin.topic(self.names.verdicts), "latest")
        places = [TopicPartition(self.names.verdicts, each, end // 2) for each, end in ends.items()]
        for done in self.client.delete_records(places).values():
            done.result(30)


@pytest.fixture
def stage(broker: str, made: Topics, tmp_path: Path) -> Iterator[Stage]:
    it = Stage(broker, made, tmp_path)
    yield it
    for worker in it.workers:
        worker.kill()
    if it.workers:
        print(it.workers[0].log())


@pytest.mark.slow
def test_a_recreated_topic_ends_the_views_and_gets_new_tables(stage: Stage) -> None:
    old, new = random_verdicts(60, 6), random_verdicts(80, 7)
    stage.emit(old)
    worker = stage.start()
    worker.takes(len(old))
    stage.recreate()
    stage.emit(new)
    assert worker.process.wait(60) == 1
    assert f"topic {stage.names.verdicts} (id " in worker.log()
    assert "start the views again: they consume the new one, into new tables" in worker.log()
    worker = stage.start()
    worker.takes(len(new))
    assert_alike(worker, new)


@pytest.mark.slow
def test_views_resume_behind_trimmed_verdicts(stage: Stage) -> None:
    """While they run, all rows stay; new tables have the verdicts that are left."""
    verdicts = random_verdicts(120, 6)
    stage.emit(verdicts[:60])
    worker = stage.start()
    worker.takes(60)
    stage.trim()
    stage.emit(verdicts[60:])
    worker.takes(len(verdicts))
    eventually(lambda: not worker("/overview.json")["behind"], "nothing behind")
    assert_alike(worker, verdicts)
    assert worker.end(signal.SIGTERM) == 0
    worker = stage.start("--rebuild")
    eventually(lambda: not worker("/overview.json")["behind"], "nothing behind")
    assert 60 <= worker("/overview.json")["verdicts"] < len(verdicts)


@pytest.mark.slow
def test_tables_that_are_gone_are_restored(stage: Stage) -> None:
    verdicts = random_verdicts(120, 6)
    stage.emit(verdicts)
    worker = stage.start()
    worker.takes(len(verdicts))
    assert worker.end(signal.SIGTERM) == 0
    shutil.rmtree(stage.folder / "tables")
    worker = stage.start()
    worker.takes(len(verdicts))
    assert_alike(worker, verdicts)
