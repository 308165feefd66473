"""The connection to Kafka: its settings, its errors, and its log."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.config.settings import BROKERS, BROKERS_FORM
from streams.errors import BrokerError, NoAnswer, Stopped, WrongUsage
from streams.kafka.error_texts import IS_SILENT, in_words, plain_cause
from streams.ports import Committed

T = TypeVar("T")
Setting = str | int | float | bool
Headers = Sequence[tuple[str, bytes]]

#: Seconds of one try of a call that is repeated while its outcome is unknown.
TRY_SECONDS_MAX = 5.0
#: Seconds between two lines about refused connections; librdkafka logs one each second for each client.
REFUSED_SECONDS = 30.0

_INFORMATIVE = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})
FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
NO_TOPIC = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
#: Errors that pass without intervention, for example while a broker restarts. The request is repeated.
PASSING = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._NOENT,  # a request for offsets found no known leader
    }
)


#: Warnings about deliberate settings: one dictionary serves producers and consumers; `Writer` is gapless on purpose.
_KNOWN = (
    "property and will be ignored by this",
    "enable.gapless.guarantee is experimental",
    "Coordinator load in progress",  # a broker that has just started; the client repeats the request
)
#: Settings that the broker decides under the group protocol `consumer`; under it, the client refuses them.
_SET_BY_BROKER = frozenset({"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"})
_UNREACHABLE = ("Connect to ", "Disconnected", "brokers are down", "Connection refused", IS_SILENT)


class _LessNoise(logging.Filter):
    """Passes one line per REFUSED_SECONDS about an unreachable broker, and no warning about deliberate settings.

    It replaces librdkafka's guess about a broker that accepts connections and answers nothing, see `plain_cause`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if any(part in text for part in _KNOWN):
            return False
        if (plain := plain_cause(text)) != text:
            record.msg, record.args, text = plain, (), plain
        if not any(part in text for part in _UNREACHABLE):
            return True
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + REFUSED_SECONDS
        return True


log = logging.getLogger("neardup.kafka")
log.addFilter(_LessNoise())
#: Roles write these lines to their log. A command without a log says the same once, in its error.
log.addHandler(logging.NullHandler())


class Cause:
    """The last informative error of a connection. A timeout alone does not show its cause."""

    def __init__(self) -> None:
        self._error: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        if self._error is None or self._weight(error) >= self._weight(self._error):
            self._error = error

    def over(self) -> None:
        """Clears the cause, after a success."""
        self._error = None

    @staticmethod
    def _weight(error: KafkaError) -> int:
        return 2 if error.code() in _INFORMATIVE else 0 if error.code() == KafkaError._ALL_BROKERS_DOWN else 1

    def explain(self, error: KafkaError) -> str:
        """The problem and what to do about it, with the codes of the client library in brackets."""
        last = self._error
        informative = last if last is not None and self._weight(last) == 2 else error
        codes = f"{error.name()}: {plain_cause(error.str())}"
        if last is not None:
            codes += f"; last cause: {last.name()}: {plain_cause(last.str())}"
        return f"{in_words(informative, codes)} ({codes})"

    def __str__(self) -> str:
        return f" (last cause: {self._error.name()}: {plain_cause(self._error.str())})" if self._error else ""


@dataclass(frozen=True)
class Connection:
    """The address of Kafka, and librdkafka settings (TLS, SASL, tuning) of all clients that it makes.

    request_s: time limit of a request. A broker that is restarted, or silent for a minute, is back well before the
    default. stop: once it is set, no request is repeated. heartbeat: called between two tries of a request, with the
    error of the last one, to show that a process that waits for Kafka is alive. Raises WrongUsage for an address
    without a port.
    """

    bootstrap: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    request_s: float = 120.0
    stop: threading.Event | None = None
    heartbeat: Callable[[str], None] = lambda awaits: None

    def __post_init__(self) -> None:
        if re.fullmatch(BROKERS, self.bootstrap) is None:
            raise WrongUsage(f"bootstrap = {self.bootstrap[:200]!r}: must be {BROKERS_FORM}")

    def go_on(self, awaits: str = "") -> None:
        """Call it in every wait for Kafka. Raises Stopped if a stop of the process was requested.

        awaits: why the last request is repeated, if it failed.
        """
        self.heartbeat(awaits)
        if self.stop is not None and self.stop.is_set():
            raise Stopped(f"stopped while Kafka at {self.bootstrap} did not answer; nothing is lost")

    def make(
        self,
        kind: Callable[[dict[str, Any]], T],
        defaults: Mapping[str, Setting],
        fixed: Mapping[str, Setting],
        cause: Cause,
    ) -> T:
        """Makes a client. `settings` override `defaults`. Exactly-once depends on `fixed`, which cannot be overridden.

        Raises WrongUsage for a setting that librdkafka does not know or that contradicts `fixed`.
        """
        fixed = {"bootstrap.servers": self.bootstrap, **fixed}
        for name in fixed.keys() & self.settings.keys():
            if _plain(fixed[name]) != _plain(self.settings[name]):
                raise WrongUsage(f"Kafka setting {name} cannot be {self.settings[name]}: neardup needs {fixed[name]}")
        general: dict[str, Setting] = {
            "log.connection.close": False,
            "reconnect.backoff.max.ms": 1_000,  # by default the client notices a returned broker up to ten seconds late
            # A broker that has just lost its session names no broker in its metadata, itself included. The client then
            # drops all connections and finds no broker again until it starts over from `bootstrap`: by default after
            # five minutes.
            "metadata.recovery.rebootstrap.trigger.ms": 3_000,
            # A member of a group requests its topic's metadata before it joins. If the client drops the connection of
            # the request, as it does with that to `bootstrap`, librdkafka 2.15 does not repeat the request: the member
            # waits for the next refresh, by default for five minutes.
            "topic.metadata.refresh.interval.ms": 10_000,
            "metadata.max.age.ms": 900_000,  # the default; else three times the refresh
        }
        settings: dict[str, Any] = {**general, **defaults, **self.settings, **fixed}
        if settings.get("group.protocol") == "consumer":
            for name in _SET_BY_BROKER - self.settings.keys():
                settings.pop(name, None)
        try:
            return kind({**settings, "error_cb": cause, "logger": log})
        except KafkaException as error:
            raise WrongUsage(f"Kafka settings: {error_of(error).str()}") from error


def _plain(value: Setting) -> str:
    return str(value).lower()


def error_of(exception: KafkaException) -> KafkaError:
    return cast(KafkaError, exception.args[0])


def checked(partitions: list[TopicPartition]) -> list[TopicPartition]:
    for each in partitions:
        if each.error is not None:
            raise KafkaException(each.error)
    return partitions


def committed_of(place: TopicPartition) -> Committed | None:
    """The committed offset of a partition; None if there is none, or it has expired."""
    return Committed.read(place.offset, place.metadata or "") if place.offset >= 0 else None


def repeat(
    what: str, call: Callable[[], T], cause: Cause, seconds: float, go_on: Callable[[str], None] = lambda awaits: None
) -> T:
    """Returns the result of `call`, which is repeated after temporary errors for `seconds`.

    go_on: called before each further try, with the error; it may raise. Raises NoAnswer when the time is over,
    BrokerError for a permanent error.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            result = call()
            cause.over()
            return result
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() not in PASSING:
                raise BrokerError(f"{what}: {cause.explain(error)}") from exception
            text = f"{what}: {cause.explain(error)}"
            if time.monotonic() > deadline:
                raise NoAnswer(text) from exception
            go_on(text)
            time.sleep(0.05)
