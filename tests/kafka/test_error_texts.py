"""Errors of Kafka as an operator reads them: a cause and what to do, then the codes of the client library."""

import time
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from streams.config.settings import Topics
from streams.errors import BrokerError
from streams.kafka import Admin, Connection, Writer
from streams.kafka.connection import PASSING, Cause
from streams.kafka.connection import log as kafka_log
from streams.kafka.error_texts import in_words, plain_cause

#: Codes whose words must name the cause, and what the words must contain.
CODES = {
    "_TRANSPORT": "bootstrap",
    "_ALL_BROKERS_DOWN": "bootstrap",
    "NETWORK_EXCEPTION": "bootstrap",
    "_TIMED_OUT": "does not answer",
    "REQUEST_TIMED_OUT": "does not answer",
    "_MSG_TIMED_OUT": "does not answer",
    "_RESOLVE": "DNS",
    "_SSL": "certificates",
    "_AUTHENTICATION": "password",
    "SASL_AUTHENTICATION_FAILED": "password",
    "UNSUPPORTED_SASL_MECHANISM": "mechanism",
    "ILLEGAL_SASL_STATE": "mechanism",
    "TOPIC_AUTHORIZATION_FAILED": "right",
    "GROUP_AUTHORIZATION_FAILED": "right",
    "CLUSTER_AUTHORIZATION_FAILED": "right",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "right",
    "LEADER_NOT_AVAILABLE": "leader",
    "NOT_LEADER_FOR_PARTITION": "leader",
    "_NOENT": "leader",
    "COORDINATOR_NOT_AVAILABLE": "__transaction_state",
    "COORDINATOR_LOAD_IN_PROGRESS": "__consumer_offsets",
    "NOT_COORDINATOR": "coordinator",
    "_WAIT_COORD": "coordinator",
    "NOT_ENOUGH_REPLICAS": "min.insync.replicas",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "min.insync.replicas",
    "KAFKA_STORAGE_ERROR": "disk",
    "UNSTABLE_OFFSET_COMMIT": "transaction_timeout_ms",
    "INVALID_TIMESTAMP": "clocks",
    "UNKNOWN_TOPIC_OR_PART": "neardup topics create",
    "_UNKNOWN_TOPIC": "neardup topics create",
    "_UNKNOWN_PARTITION": "neardup topics create",
    "MSG_SIZE_TOO_LARGE": "max.message.bytes",
    "INVALID_REPLICATION_FACTOR": "brokers",
    "FENCED_LEADER_EPOCH": "leader",
    "UNKNOWN_LEADER_EPOCH": "leader",
    "_MAX_POLL_EXCEEDED": "max.poll.interval.ms",
    # Codes without words of their own.
    "_FATAL": "client",
    "_QUEUE_FULL": "client",
    "POLICY_VIOLATION": "refuses",
    "INVALID_CONFIG": "refuses",
}
ADVICE = ("bring", "check", "create", "give", "grant", "raise", "see", "set", "start", "wait")
SECRET = "hunter2-of-the-operator"
#: The broker's and the clients' clocks differ by so much. Milliseconds.
AHEAD_MS = 2 * 3_600_000


def error_of(name: str) -> KafkaError:
    return KafkaError(getattr(KafkaError, name), f"failed: sasl.password={SECRET}")


@pytest.mark.parametrize("name", CODES)
def test_a_code_becomes_a_cause_and_an_advice(name: str) -> None:
    error = error_of(name)
    words = in_words(error, f"{error.name()}: {error.str()}")
    cause, _, advice = words.partition(": ")
    assert CODES[name] in words
    assert cause
    assert advice.split()[0].rstrip(",") in ADVICE, words
    assert name not in words
    assert SECRET not in words
    explained = Cause().explain(error)
    assert explained.startswith(f"{words} ({error.name()}: ")
    assert explained.endswith(")")


def test_awaited_error_codes_have_texts_of_their_own() -> None:
    """Roles repeat these requests for minutes, so that operators read them most."""
    without = {"the Kafka client cannot go on", "Kafka refuses the request"}
    names = {code: in_words(KafkaError(code), "").partition(": ")[0] for code in PASSING}
    assert not [KafkaError(code).name() for code, cause in names.items() if cause in without]


def test_the_telling_cause_is_the_one_that_is_explained() -> None:
    cause = Cause()
    cause(error_of("_AUTHENTICATION"))
    cause(error_of("_ALL_BROKERS_DOWN"))
    assert "password" in cause.explain(error_of("_TIMED_OUT")).partition("(_")[0]


def test_open_file_limit_is_named_for_any_error_code() -> None:
    codes = "_TRANSPORT: Failed to create socket: Too many open files"
    assert "ulimit -n" in in_words(KafkaError(KafkaError._TRANSPORT), codes)


class Ahead(Producer):
    """A producer on a machine whose clock is ahead."""

    def produce(self, *given: Any, **more: Any) -> None:
        super().produce(*given, **more, timestamp=int(time.time() * 1000) + AHEAD_MS)


@pytest.mark.parametrize("gapless", [False, True])  # the sketch log's writer is
def test_a_clock_that_is_ahead_is_named(
    broker: str, names: Topics, monkeypatch: pytest.MonkeyPatch, gapless: bool
) -> None:
    connection = Connection(broker)
    limits = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "3600000"}
    Admin(connection).create(names.sketches, 1, 1, limits)
    monkeypatch.setattr("streams.kafka.writer.Producer", Ahead)
    with closing(Writer(connection, names.sketches, gapless=gapless)) as writer:
        writer.send(b"x")
        with pytest.raises(BrokerError, match=r"the clocks of this machine and of the broker differ by more .*NTP"):
            writer.flush()
    assert writer.acknowledged == 0


#: What librdkafka 2.15 says of a broker that accepts a connection and answers nothing, and what is said instead.
SILENT_TEXTS = {
    "127.0.0.1:9092/1: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 (see "
    "api.version.request configuration) (after 10008ms in state APIVERSION_QUERY)": "does not answer",
    "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration "
    "(connecting to a SSL listener?) or broker version is < 0.10 (see api.version.request)": "a SSL listener?)",
    "Disconnected while requesting ApiVersion: might be caused by broker version < 0.10 (see "
    "api.version.request)": "while requesting ApiVersion",
}


@pytest.mark.parametrize(("text", "said"), SILENT_TEXTS.items())
def test_no_error_or_log_line_blames_the_version_of_a_silent_broker(
    text: str, said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (noise,) = [each for each in kafka_log.filters if hasattr(each, "_next")]
    monkeypatch.setattr(noise, "_next", 0.0)
    cause = Cause()
    cause(KafkaError(KafkaError._TRANSPORT, text))
    kafka_log.error("FAIL [thrd:%s]: %s", "1", text)
    explained = cause.explain(KafkaError(KafkaError._TRANSPORT, text))
    for found in (plain_cause(text), explained, str(cause), caplog.messages[-1]):
        assert said in found
        assert "version < 0.10" not in found
        assert "version is < 0.10" not in found
    assert explained.startswith("Kafka does not answer" if said == "does not answer" else "no broker can be reached")
