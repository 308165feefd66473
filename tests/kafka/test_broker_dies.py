"""A broker that is killed under all kinds of clients, stays away, and comes back. It dies once for all of them: each
death costs two starts of Java."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka, kill_between_transactions
from line import Line, Make, story
from roles import freeze
from test_kafka_verdicts import batch, committed_values, sink, values_of

from streams.config.settings import Topics
from streams.errors import BrokerError, NoAnswer
from streams.kafka import Admin, Connection, KafkaLog, KafkaTopic, Writer, topics
from streams.kafka.topics import Sizes
from streams.kafka.verdict_transactions import NOWHERE
from streams.ports import Committed

pytestmark = pytest.mark.whole

#: What a client does until the broker dies, until it is back, and then.
Steps = Iterator[None]


def test_a_broker_dies_under_all_clients_and_comes_back(own_broker: Any, names: Topics, make: Make) -> None:
    connection, line = Connection(own_broker.bootstrap), make(bootstrap=own_broker.bootstrap)
    admin = Admin(connection)
    created = [f"{names.pages}.{number}" for number in range(3)]
    for topic in created:
        admin.create(topic, 1, 1, {})
    asked, given_up, written = created
    clients = [
        roles_in_a_transaction(line),
        a_commit(connection, names._replace(sketches=f"{names.sketches}.0", verdicts=f"{names.verdicts}.0")),
        an_admin(own_broker.bootstrap, asked),
        an_impatient_writer(connection, given_up),
        the_broker_itself(own_broker),
        a_writer(connection, written),
    ]
    for client in clients:
        next(client)
    kill_between_transactions(own_broker)
    for client in reversed(clients):  # the roles last: without a broker each takes most of a core
        next(client)
    own_broker.restart()
    for client in clients:
        assert next(client, "done") == "done"


def the_broker_itself(cluster: Any) -> Steps:
    address, identity = cluster.bootstrap, Admin(Connection(cluster.bootstrap)).cluster_id()
    yield
    yield
    assert cluster.bootstrap == address
    assert Admin(Connection(address)).cluster_id() == identity
    # Java goes on without a word when it cannot use them.
    assert str(kafka.keep_classes()) in Path(f"/proc/{cluster.nodes[0].pid}/maps").read_text()


class Counted:
    """Counts describe_topics requests."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.described = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_topics(self, *given: Any, **options: Any) -> Any:
        self.described += 1
        return self._client.describe_topics(*given, **options)


def an_admin(bootstrap: str, topic: str) -> Steps:
    """No request waits while the broker is known to be away: each one would take most of a core, see `Admin`."""
    admin = Admin(Connection(bootstrap, request_s=1.5))
    known = admin.topic(topic)
    counted = admin._client = Counted(admin._client)
    yield
    counted.described = 0
    for _ in range(2):
        with pytest.raises(NoAnswer):
            admin.topic(topic)
    assert counted.described == 1
    yield

    def answer() -> KafkaTopic | None:
        with suppress(NoAnswer):
            return admin.topic(topic)
        return None

    assert eventually(answer, "an answer") == known


def an_impatient_writer(connection: Connection, topic: str) -> Steps:
    writer = Writer(connection, topic, gapless=True, delivery_s=1.0)
    yield
    writer.send(b"x")
    with pytest.raises(BrokerError, match=r"no acknowledgement in 1 s for 1 record: .*last cause: _"):
        writer.flush()
    writer.close()
    assert writer.acknowledged == 0
    yield


def a_writer(connection: Connection, topic: str) -> Steps:
    """Nothing of it is lost or there twice."""
    writer = Writer(connection, topic, gapless=True)
    log = KafkaLog(connection, topic)
    log.follow(0)
    seen: list[tuple[int, bytes]] = []
    for number in range(1500):
        writer.send(b"%d" % number + b"x" * 1000)
    yield
    yield
    for number in range(1500, 3000):
        writer.send(b"%d" % number + b"x" * 1000)
    writer.flush()

    def all_read() -> bool:
        seen.extend(log.poll(5000, bytes_max=1 << 24, wait_s=1.0))
        return len(seen) >= 3000

    eventually(all_read, "all messages")
    assert [offset for offset, _ in seen] == list(range(3000))
    assert [value.rstrip(b"x") for _, value in seen] == [b"%d" % number for number in range(3000)]
    log.close()


def a_commit(connection: Connection, names: Topics) -> Steps:
    """The attempt ends while the broker is away; its outcome is known later."""
    topics.create(Admin(connection), names, Sizes(partitions=2))
    verdicts = sink(connection, names)
    verdicts.init()
    verdicts.commit(batch(0), 1)
    yield
    verdicts._deadline_s = 2.0
    with pytest.raises(BrokerError, match="not known after 2 s"):
        verdicts.commit(batch(1), 2)
    verdicts.close()
    yield
    after = sink(connection, names)
    after.init()
    done = after.committed()
    assert done in (Committed(1, NOWHERE), Committed(2, NOWHERE))
    if done == Committed(1, NOWHERE):
        after.commit(batch(1), 2)
    assert sorted(committed_values(connection, names)) == values_of(batch(0), batch(1))
    after.close()


def roles_in_a_transaction(line: Line) -> Steps:
    """A sketcher has sent half of its messages, a matcher has not committed: each page has its one right verdict."""
    line.publish(story(8))
    line.start("sketch")
    line.settle(judged=False)  # the one that is frozen may be so before the broker has any message of it
    line.stop()
    line.publish(story())
    sketcher = line.start("sketch", step="4 half sent", call=6, how=freeze)
    matcher = line.start("match", step="3 offsets sent", call=1, how=freeze)
    sketcher.frozen()
    matcher.frozen()
    yield
    matcher.thaw()
    sketcher.thaw()
    yield
    line.check()
