"""A client is replaced only if it has lost all brokers, and not because Kafka was silent."""

from collections.abc import Callable

import pytest
from broker import eventually
from confluent_kafka import KafkaError, KafkaException

from streams.config.settings import Topics
from streams.errors import NoAnswer
from streams.kafka import Admin, Connection, stranded, topics
from streams.kafka.leader import Leader
from streams.kafka.stranded import Stranded
from streams.kafka.topics import Sizes


class Client:
    """Answers the next requests for metadata, or not."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)

    def list_topics(self, topic: str = "", timeout: float = -1) -> None:
        if not self.answers.pop(0):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, wait_s: float) -> None:
        pass

    def close(self) -> None:
        pass


def silent() -> None:
    raise NoAnswer("silent")


@pytest.mark.parametrize(
    ("client", "kafka", "is_stranded"),
    [
        (Client(True), silent, False),
        (Client(False), silent, False),
        (Client(False, True), lambda: None, False),  # Kafka came back in between
        (Client(False, False), lambda: None, True),
    ],
)
def test_a_client_without_brokers(
    client: Client, kafka: Callable[[], None], is_stranded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = Stranded("topic", kafka)
    assert tested.reason(client) == ""  # not queried so soon
    monkeypatch.setattr(stranded, "_QUIET_SECONDS", -1.0)
    assert bool(tested.reason(client)) == is_stranded
    assert client.answers == []


def test_a_standby_that_has_lost_all_brokers_joins_again(
    connection: Connection, names: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.create(Admin(connection), names, Sizes())
    leader = Leader(connection, names.sketches, names.sketches)
    leader._consumer.close()
    leader._consumer = Client(False, False)  # type: ignore[assignment]
    monkeypatch.setattr(stranded, "_QUIET_SECONDS", -1.0)
    eventually(leader.look, "it leads")
    leader.close()
