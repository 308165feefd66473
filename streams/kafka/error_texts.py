"""Texts for errors of Kafka and of its client library: the problem, and what to do about it."""

import re
from collections.abc import Mapping

from confluent_kafka import KafkaError

_AWAY = "no broker can be reached: check that Kafka runs, and that `bootstrap` names its address"
SILENT = "Kafka does not answer: check that its brokers run and are not overloaded, and the network between"
_NO_LEADER = "a partition has no leader at this moment: bring the brokers back that hold its replicas"
_NO_COORDINATOR = (
    "the coordinator of a group or transaction is not available: bring the brokers back that hold the replicas of "
    "__consumer_offsets and __transaction_state"
)
_NOT_ALLOWED = "this user has no right to it: grant it (see the rights of each role in deploy/secure.md)"
_REPLICAS = "fewer replicas are in sync than min.insync.replicas asks for: bring the missing brokers back"
_CREDENTIALS = "the broker refuses the credentials: check user, password and mechanism (Kafka settings sasl.*)"
_CLOCKS = (
    "the clocks of this machine and of the broker differ by more than the topic's message.timestamp.after.max.ms or "
    "message.timestamp.before.max.ms allow: set both by NTP, and start again"
)
_FILES = "the process may not open more files: raise its limit (ulimit -n, LimitNOFILE), and start again"
_NO_TOPIC = "the topic or partition does not exist: create it (`neardup topics create`), and check the topics' names"

_WORDS: Mapping[int, str] = {
    KafkaError._TRANSPORT: _AWAY,
    KafkaError._ALL_BROKERS_DOWN: _AWAY,
    KafkaError.NETWORK_EXCEPTION: _AWAY,
    KafkaError._TIMED_OUT: SILENT,
    KafkaError.REQUEST_TIMED_OUT: SILENT,
    KafkaError._MSG_TIMED_OUT: SILENT,
    KafkaError._RESOLVE: (
        "the name of a broker's host is not known here: check `bootstrap`, the brokers' advertised.listeners, and DNS"
    ),
    KafkaError._SSL: "TLS with the broker fails: check certificates and Kafka settings (security.protocol, ssl.*)",
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    KafkaError.ILLEGAL_SASL_STATE: _CREDENTIALS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.LEADER_NOT_AVAILABLE: _NO_LEADER,
    KafkaError.NOT_LEADER_FOR_PARTITION: _NO_LEADER,
    KafkaError.FENCED_LEADER_EPOCH: _NO_LEADER,
    KafkaError.UNKNOWN_LEADER_EPOCH: _NO_LEADER,
    KafkaError._NOENT: _NO_LEADER,
    KafkaError.COORDINATOR_NOT_AVAILABLE: _NO_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: _NO_COORDINATOR,
    KafkaError.NOT_COORDINATOR: _NO_COORDINATOR,
    KafkaError._WAIT_COORD: _NO_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS: _REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _REPLICAS,
    KafkaError.KAFKA_STORAGE_ERROR: "a broker cannot use its disk: see its log, and make room or replace the disk",
    KafkaError.UNSTABLE_OFFSET_COMMIT: (
        "a transaction of another process holds the offset: wait, the broker aborts it after transaction_timeout_ms"
    ),
    KafkaError.INVALID_TIMESTAMP: _CLOCKS,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError._UNKNOWN_PARTITION: _NO_TOPIC,
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "a record is larger than the topic allows: raise the topic's max.message.bytes (`neardup topics check`)"
    ),
    KafkaError.INVALID_REPLICATION_FACTOR: (
        "fewer brokers run than the replication asks for: bring the missing brokers back, or ask for less"
    ),
    KafkaError._MAX_POLL_EXCEEDED: (
        "the process stood still for longer than max.poll.interval.ms: give it more processor time, or raise that"
    ),
}


IS_SILENT = "the broker accepts the connection and does not answer"
#: What librdkafka says of a broker that accepts a connection and answers nothing. No broker is so old.
_OLD = re.compile(
    r"(?P<silent>: probably due to broker version < 0\.10 \(see api\.version\.request[^)]*\))"
    r"|,? or broker version is < 0\.10 \(see api\.version\.request[^)]*\)"
    r"|: might be caused by broker version < 0\.10 \(see api\.version\.request[^)]*\)"
)


def plain_cause(text: str) -> str:
    """A text of librdkafka without its guess that the broker is older than 0.10: such a broker is silent."""
    return _OLD.sub(lambda guess: f": {IS_SILENT}" if guess["silent"] else "", text)


def in_words(error: KafkaError, codes: str) -> str:
    """The problem behind an error, and what to do. codes: all error codes of the client library so far, without the
    guess that `plain_cause` removes.
    """
    if "Too many open files" in codes:
        return _FILES
    code = error.code()
    if _WORDS.get(code) == _AWAY and IS_SILENT in codes:
        return SILENT
    if code == KafkaError._GAPLESS_GUARANTEE:  # any refusal ends a gapless producer; the text alone has the broker's
        code = next((each for each in _WORDS if KafkaError(each).str() in error.str()), code)
    if code in _WORDS:
        return _WORDS[code]
    if code < 0:  # the client's own
        return "the Kafka client cannot go on: start again, and report it where it comes back"
    return "Kafka refuses the request: see the broker's log for the reason"
