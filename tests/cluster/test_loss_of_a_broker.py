"""One of three brokers is killed in the middle of the work: nothing is lost, twice or different."""

import uuid
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from confluent_kafka.admin import AdminClient
from corpus import Corpus
from line import Line
from roles import freeze
from supervised import Keeper, Publisher, Watch, check, judged_all

from streams.config.settings import Topics
from streams.kafka import Admin, Connection, topics
from streams.kafka.topics import Sizes

pytestmark = pytest.mark.whole

PAGES = 1_500


class Place:
    """Leaders of partitions in the cluster. Nodes are numbered from 1."""

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def _topics(self) -> dict[str, Any]:
        return dict(self._client.list_topics(timeout=30).topics)

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(self._topics()[topic].partitions[partition].leader)

    def group_coordinator(self, group: str) -> int:
        described = self._client.describe_consumer_groups([group])[group].result(30)
        return int(described.coordinator.id)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The leader of the partition that the id's hash names, as Kafka has it (Java's String.hashCode)."""
        number = 0
        for char in transactional_id:
            number = (31 * number + ord(char)) & 0xFFFFFFFF
        partitions = self._topics()["__transaction_state"].partitions
        return int(partitions[(number & 0x7FFFFFFF) % len(partitions)].leader)

    def whole(self) -> bool:
        """Whether each partition of each topic has all its replicas in sync again."""
        described = [each for topic in self._topics().values() for each in topic.partitions.values()]
        return all(len(each.isrs) == 3 and each.leader > 0 for each in described)


VICTIMS: dict[str, Callable[[Place, Line], int]] = {
    "the leader of the sketch log": lambda place, line: place.leader(line.names.sketches),
    "the leader of a partition of verdicts": lambda place, line: place.leader(line.names.verdicts, 1),
    "the coordinator of transactions": lambda place, line: place.transaction_coordinator(
        line.settings.transactional_id
    ),
    "the coordinator of sketchers": lambda place, line: place.group_coordinator(line.settings.group_of("sketch")),
    "the coordinator of the matcher's offset": lambda place, line: place.group_coordinator(
        line.settings.group_of("match")
    ),
}


class Work:
    """A publisher, roles that are restarted, and a consumer of their verdicts."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.keeper, self.publisher, self.watch = Keeper(line), Publisher(line), Watch(line)
        corpus = Corpus(int.from_bytes(uuid.uuid4().bytes[:3], "big"))
        self._events = map(corpus.event, count())

    def publish(self, pages: int) -> None:
        for _ in range(pages):
            self.publisher.send(next(self._events))

    def judged(self, pages: int) -> None:
        """Waits until so many pages have verdicts."""

        def enough() -> bool:
            self.keeper.look()
            self.watch.alive()
            return self.watch.pages >= pages

        eventually(enough, f"{pages} verdicts")

    def check(self) -> None:
        """All that was published is judged, once, as a fold in memory does it."""
        self.publisher.flush()
        judged_all(self.keeper, self.publisher, self.watch)
        self.keeper.end()
        self.watch.close()
        print(check(self.line, self.publisher, self.watch), "ended by themselves:", self.keeper.ended)


@pytest.fixture
def work(brokers: Any, tmp_path: Path) -> Iterator[Work]:
    prefix = uuid.uuid4().hex[:12]
    names = Topics(f"{prefix}.pages", f"{prefix}.rejected", f"{prefix}.sketches", f"{prefix}.verdicts")
    topics.create(Admin(Connection(brokers.bootstrap)), names, Sizes(partitions=3, replicas=3))
    settings = {"batch_pages": 32, "match_messages": 4, "flush_ms": 500, "transaction_deadline_ms": 20_000}
    made = Work(Line(brokers.bootstrap, names, tmp_path, partitions=3, **settings))
    yield made
    made.keeper.kill_all()
    made.line.close()


def test_topics_are_replicated(brokers: Any, work: Work) -> None:
    admin = Admin(Connection(brokers.bootstrap))
    for name in ("pages", "rejected", "sketches", "verdicts"):
        topic = getattr(work.line.names, name)
        assert admin.topic(topic).replicas == 3
        assert admin.settings(topic)["min.insync.replicas"] == "2"


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_broker_is_lost_in_the_middle_of_a_transaction(brokers: Any, work: Work, victim: str) -> None:
    place = Place(brokers.bootstrap)
    eventually(place.whole, "all replicas in sync")
    work.keeper.start("sketch-1")
    work.keeper.start("sketch-2", member="static")
    matcher = work.keeper.start("match", step="3 offsets sent", how=freeze)
    work.publish(PAGES)
    matcher.frozen()
    node = VICTIMS[victim](place, work.line)
    brokers.kill(node)
    matcher.thaw()
    work.publish(PAGES)
    work.judged(PAGES)  # two of three are enough
    brokers.restart(node)
    work.publish(PAGES)

    work.check()


def test_each_broker_is_lost_in_turn(brokers: Any, work: Work) -> None:
    place = Place(brokers.bootstrap)
    work.keeper.start("sketch-1")
    work.keeper.start("sketch-2")
    work.keeper.start("match")
    for node in (1, 2, 3):
        eventually(place.whole, "all replicas in sync")
        work.publish(PAGES)
        work.judged(work.publisher.pages - PAGES // 2)
        brokers.kill(node)
        work.publish(PAGES)
        work.judged(work.publisher.pages - PAGES // 2)
        brokers.restart(node)

    work.check()


def test_roles_die_with_a_broker(brokers: Any, work: Work) -> None:
    place = Place(brokers.bootstrap)
    eventually(place.whole, "all replicas in sync")
    work.keeper.start("sketch-1", member="static")
    work.keeper.start("match")
    work.publish(PAGES)
    work.judged(PAGES // 3)
    node = place.leader(work.line.names.sketches)
    brokers.kill(node)
    work.keeper.kill("sketch-1")
    work.keeper.kill("match")
    work.publish(PAGES)
    work.judged(PAGES)
    brokers.restart(node)

    work.check()
