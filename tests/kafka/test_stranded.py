"""A client is replaced only if it has lost all brokers, and not because Kafka was silent."""

from collections.abc import Callable

import pytest
from broker import eventually
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.config.settings import Topics
from streams.errors import NoAnswer
from streams.kafka import Admin, Connection, stranded, topics
from streams.kafka.assignment import Assignment
from streams.kafka.stranded import Stranded, leave
from streams.kafka.topics import Sizes

pytestmark = pytest.mark.whole


class Client:
    """Answers the next requests for metadata, or not."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)

    def list_topics(self, topic: str = "", timeout: float = -1) -> None:
        if not self.answers.pop(0):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, wait_s: float) -> None:
        pass

    def unsubscribe(self) -> None:
        pass

    def assignment(self) -> list[TopicPartition]:
        return []

    def close(self) -> None:
        pass


class Member:
    """A consumer whose assignment, then its revocation, is queued: each poll delivers one of them."""

    def __init__(self) -> None:
        self.queued, self.left, self.closed = ["assign"], False, False

    def unsubscribe(self) -> None:
        self.left = True

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("topic", 0)] if self.queued == ["revoke"] else []

    def poll(self, wait_s: float) -> None:
        if self.queued:
            event = self.queued.pop()
            if event == "assign":
                self.queued.append("revoke")

    def close(self) -> None:
        assert self.left
        assert not self.queued, "librdkafka would wait for ever"
        self.closed = True


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
    leader = Assignment(connection, names.sketches, names.sketches)
    leader._consumer.close()
    leader._consumer = Client(False, False)  # type: ignore[assignment]
    monkeypatch.setattr(stranded, "_QUIET_SECONDS", -1.0)
    eventually(leader.look, "it leads")
    leader.close()


def test_a_member_takes_its_assignment_before_it_closes() -> None:
    member = Member()
    leave(member)  # type: ignore[arg-type]
    assert member.closed


def test_a_fenced_member_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fenced() -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    member = Member()
    member.queued, member.left = [], True
    monkeypatch.setattr(member, "unsubscribe", fenced)
    leave(member)  # type: ignore[arg-type]
    assert member.closed
