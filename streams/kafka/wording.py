"""Errors of Kafka and of its client library in words: what is wrong, and what to do about it."""

from collections.abc import Mapping

from confluent_kafka import KafkaError

_AWAY = "no broker can be reached: check that Kafka runs, and that `bootstrap` names its address"
SILENT = "Kafka does not answer: check that its brokers run and are not overloaded, and the network between"
_NO_LEADER = "a partition has no leader at this moment: bring the brokers back that hold its replicas"
_NO_COORDINATOR = (
    "the coordinator of a group or transaction is not available: bring the brokers back that hold the replicas of "
    "__consumer_offsets and __transaction_state"
)
_NOT_ALLOWED = "this user has no right to it: grant it (see the rights of each role in deploy/README.md)"
_REPLICAS = "fewer replicas are in sync than min.insync.replicas asks for: bring the missing brokers back"
_CREDENTIALS = "the broker refuses the credentials: check user, password and mechanism (Kafka settings sasl.*)"
_CLOCKS = (
    "the clocks of this machine and of the broker differ by more than the topic's message.timestamp.after.max.ms or "
    "message.timestamp.before.max.ms allow: set both by NTP, and start again"
)
_FILES = "the process may not open more files: raise its limit (ulimit -n, LimitNOFILE), and start again"

_WORDS: Mapping[int, str] = {
    **dict.fromkeys((KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError.NETWORK_EXCEPTION), _AWAY),
    **dict.fromkeys((KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._MSG_TIMED_OUT), SILENT),
    KafkaError._RESOLVE: (
        "the name of a broker's host is not known here: check `bootstrap`, the brokers' advertised.listeners, and DNS"
    ),
    KafkaError._SSL: "TLS with the broker fails: check certificates and Kafka settings (security.protocol, ssl.*)",
    **dict.fromkeys((KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED), _CREDENTIALS),
    **dict.fromkeys(
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        _NOT_ALLOWED,
    ),
    **dict.fromkeys(
        (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._NOENT), _NO_LEADER
    ),
    **dict.fromkeys(
        (
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
            KafkaError.NOT_COORDINATOR,
            KafkaError._WAIT_COORD,
        ),
        _NO_COORDINATOR,
    ),
    **dict.fromkeys((KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND), _REPLICAS),
    KafkaError.KAFKA_STORAGE_ERROR: "a broker cannot use its disk: see its log, and make room or replace the disk",
    KafkaError.UNSTABLE_OFFSET_COMMIT: (
        "a transaction of another process holds the offset; the broker aborts it after transaction_timeout_ms"
    ),
    KafkaError.INVALID_TIMESTAMP: _CLOCKS,
}


def in_words(error: KafkaError, codes: str) -> str:
    """What an error means and what to do. codes: all that the client library has said."""
    if "Too many open files" in codes:
        return _FILES
    if error.code() in _WORDS:
        return _WORDS[error.code()]
    if error.code() < 0:  # the client's own
        return "the Kafka client cannot go on: start again, and report it where it comes back"
    return "Kafka refuses the request: see the broker's log for the reason"
