"""Settings pass through, except those that verdicts stand on; and a failure says what is behind it."""

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka
from confluent_kafka import Producer

from streams.client import PageProducer
from streams.errors import BrokerError, NoAnswer, WrongUsage
from streams.kafka import Admin, Connection, KafkaLog, KafkaPages, KafkaVerdicts, Writer, stranded
from streams.kafka.connection import log


def test_unknown_settings_are_named() -> None:
    with pytest.raises(WrongUsage, match=r'No such configuration property: "no.such.setting"'):
        Admin(Connection("127.0.0.1:1", {"no.such.setting": 1}))
    with pytest.raises(WrongUsage, match=r'Invalid value "pkzip"'):
        Writer(Connection("127.0.0.1:1", {"compression.type": "pkzip"}), "pages")


def test_settings_that_verdicts_stand_on_cannot_be_changed(broker: str) -> None:
    with pytest.raises(WrongUsage, match=r"enable.idempotence cannot be False: neardup needs True"):
        Writer(Connection(broker, {"enable.idempotence": False}), "pages")
    with pytest.raises(WrongUsage, match=r"transactional.id cannot be mine: neardup needs t"):
        verdicts(Connection(broker, {"transactional.id": "mine"}))
    Admin(Connection(broker)).create("connection.pages", 1, 1, {})
    for name, value in {"enable.auto.commit": True, "auto.offset.reset": "latest", "group.id": "other"}.items():
        with pytest.raises(WrongUsage, match=f"{name} cannot be {value}"):
            KafkaPages(Connection(broker, {name: value}), "connection.pages", "g")
    # Said again, they do no harm.
    Writer(Connection(broker, {"enable.idempotence": True}), "pages")


def verdicts(connection: Connection, **changes: float) -> KafkaVerdicts:
    return KafkaVerdicts(connection, "v", log_topic="l", group="g", transactional_id="t", **changes)  # type: ignore[arg-type]


def assert_reported(cause: str, call: Callable[[float], object]) -> None:
    """`call` raises, given the seconds that it may take, and says why: once it had time enough to learn it."""
    for seconds in (0.5, 5.0, 60.0):
        with pytest.raises(BrokerError) as raised:
            call(seconds)
        if cause in str(raised.value).partition("last cause: ")[2]:
            return
    raise AssertionError(f"no {cause} in: {raised.value}")


@pytest.mark.slow
def test_a_broker_that_is_not_there_is_reported_with_the_cause() -> None:
    nowhere = "127.0.0.1:1"

    assert_reported("_TRANSPORT", lambda seconds: Admin(Connection(nowhere, request_s=seconds)).cluster_id())
    assert_reported("_TRANSPORT", lambda seconds: verdicts(Connection(nowhere), deadline_s=seconds).init())


@pytest.mark.parametrize("what", ["committed", "acknowledgement"])
def test_silence_of_kafka_is_no_answer_for_matcher_and_writer(what: str) -> None:
    """`neardup run` starts again after it, as a start settles what became of a transaction."""
    (port,) = kafka.free_ports(1)
    connection = Connection(f"127.0.0.1:{port}")
    if what == "committed":
        group = {"group": "g", "transactional_id": "t", "deadline_s": 0.2}
        verdicts = KafkaVerdicts(connection, "verdicts", log_topic="sketches", **group)  # type: ignore[arg-type]
        with pytest.raises(NoAnswer, match=r"a transaction may hang there: look with kafka-transactions\.sh"):
            verdicts.committed()
        return
    writer = Writer(connection, "sketches", gapless=True, delivery_s=0.2)
    writer.send(b"sketch")
    with pytest.raises(NoAnswer, match=r"topic sketches: no acknowledgement in 0\.2 s for 1 record"):
        eventually(lambda: not writer.poll(0.1), "an acknowledgement")


def test_a_failed_handshake_is_reported_as_such(broker: str) -> None:
    """The call itself only times out. A broker that speaks no TLS may answer or just hang up."""
    settings = {"security.protocol": "SSL"}

    assert_reported("SSL", lambda seconds: Admin(Connection(broker, settings, request_s=seconds)).cluster_id())
    assert_reported("SSL", lambda seconds: verdicts(Connection(broker, settings), deadline_s=seconds).init())


@pytest.mark.whole
@pytest.mark.slow
def test_consumers_go_on_after_metadata_without_any_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker whose session has expired names none, itself included; here for half a second out of two."""
    monkeypatch.setattr(stranded, "_QUIET_SECONDS", 1.0)
    sessions = {"broker.heartbeat.interval.ms": 2_000, "broker.session.timeout.ms": 1_500}
    with kafka.Cluster(tmp_path, settings=sessions) as cluster, ExitStack() as held:
        connection = Connection(cluster.bootstrap)
        eventually(lambda: Admin(connection).create("log", 1, 1, {}), "the topic")
        logs = [held.enter_context(closing(KafkaLog(connection, "log"))) for _ in range(4)]
        for log in logs:
            log.follow(0)
        found = [0] * len(logs)
        for sent in range(1, 4):
            expired = sessions_expired(cluster)
            eventually(lambda expired=expired: sessions_expired(cluster) > expired, "a session has expired")
            eventually(lambda: _sent(cluster), "a message")

            def read(sent: int = sent) -> bool:
                for number, log in enumerate(logs):
                    found[number] += len(log.poll(10, bytes_max=1 << 20, wait_s=0.1))
                return min(found) >= sent

            eventually(read, f"{sent} messages by each of {len(logs)}")
        held.pop_all()  # their consumers may not know a broker to leave


def _sent(cluster: Any) -> bool:
    """Whether a new producer has written a message in time; maybe twice."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce("log", b"message")
    return producer.flush(5) == 0


def sessions_expired(cluster: Any) -> int:
    return len(kafka.FENCED.findall((cluster.folder / "1" / "broker.log").read_bytes()))


def test_a_broker_that_is_down_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    refused = "FAIL [rdkafka#producer-1] [thrd:x]: x: Connect to ipv4#127.0.0.1:1 failed: Connection refused"
    with caplog.at_level(logging.INFO, log.name):
        for _ in range(5):
            log.error(refused)
            log.error("something else")

    assert sum("refused" in record.message for record in caplog.records) <= 1
    assert sum("something else" in record.message for record in caplog.records) == 5


@pytest.mark.parametrize("bootstrap", ["localhost", "localhost:", "a:9092,b", ":9092", "", "http://a:9092", "a:9092:1"])
def test_an_address_without_a_port_gets_a_sentence(bootstrap: str) -> None:
    for make in (Connection, PageProducer):
        with pytest.raises(WrongUsage, match="must be host:port, or several with commas"):
            make(bootstrap)
    Connection("[::1]:9092, a-b.example:9093")
