"""What every role has around it: logging, metrics, health, a way to be stopped, connections."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version

from neardup.errors import CorruptRecord, NeardupError, StateError
from neardup.warm import ALL, Need, make_ready
from streams.config.settings import Role, Settings
from streams.errors import BrokerError, PositionLost, SourceGap, Stopped, TopicError, WrongScheme
from streams.kafka import Connection
from streams.process import logs
from streams.process.health import Health, HealthServer
from streams.process.metrics import Metrics
from streams.process.open_files import raise_open_files
from streams.process.shutdown import SteadyClock, stopped_by_signals, stopped_within
from streams.process.traces import Traces, traces_to

_log = logs.get("roles")

#: A role that is stopped waits so long for acknowledgements of what it has sent.
STOP_SECONDS_MAX = 8.0
#: The process of a stopped role ends after so long, whatever the broker does: before a supervisor kills it (30 s in
#: Kubernetes). At any moment that loses nothing: the next start goes on from what is committed.
END_SECONDS_MAX = 25.0
#: A person who calls a command hears so soon that nobody is there.
GREETING_SECONDS_MAX = 4.0
#: A wait for records: so long a signal may go unseen.
WAIT_SECONDS = 0.2


#: What a role does with sketches; others do both.
_NEEDS: Mapping[str, Sequence[Need]] = {"sketch": ("sketching",), "match": ("judging",)}

#: Errors that starting again does not mend, and what the metrics call them; the first that fits counts.
_CAUSES: Mapping[type[NeardupError], str] = {
    SourceGap: "source_gap",
    CorruptRecord: "corrupt_record",
    WrongScheme: "wrong_scheme",
    PositionLost: "position_lost",
    TopicError: "topic",
    StateError: "state",
}


@dataclass(frozen=True, slots=True)
class Runtime:
    """stop: set it, and the roles finish their batch and return. steady_s: a clock that nobody sets, in seconds.

    traces: None where nothing is traced.
    """

    settings: Settings
    metrics: Metrics
    health: Health
    stop: threading.Event
    steady_s: Callable[[], float] = time.monotonic
    traces: Traces | None = None

    @classmethod
    def quiet(cls, settings: Settings) -> "Runtime":
        """Without a server, signals or log configuration: for roles inside of another program, and tests."""
        return cls(settings, Metrics(), Health(SteadyClock(), settings.stall_ms), threading.Event())


class Silence:
    """Whether Kafka has left a question open: asked again later, and no reason to end. Logged when it begins and ends.

    reason: empty where it has answered.
    """

    def __init__(self, log: logs.Log) -> None:
        self._log = log
        self.reason = ""

    def begins(self, error: BrokerError) -> None:
        if not self.reason:
            self._log.warning("waits for Kafka", reason=str(error))
        self.reason = str(error)

    def ends(self) -> None:
        if self.reason:
            self._log.info("Kafka answers again")
        self.reason = ""


@contextmanager
def serving(settings: Settings, role: str) -> Iterator[Runtime]:
    """A runtime that logs to stderr, serves health and metrics, and is stopped by SIGTERM and SIGINT.

    role: for the metrics' labels. Raises BadInput if the address for metrics cannot be had, or too few files may be
    opened.
    """
    raise_open_files()
    secrets = settings.secrets()
    with logs.configured(settings.log_level, settings.log_format, secrets=secrets):
        metrics = Metrics()
        health = Health(SteadyClock(), settings.stall_ms, logs.Redactor(secrets))
        scheme = settings.scheme()
        metrics.info(
            version=version("neardup"),
            role=role,
            scheme=scheme.digest,
            decider=settings.decider(scheme).digest,
            generation=settings.generation,
        )
        stop = threading.Event()
        with (
            HealthServer(settings.metrics_host, settings.metrics_port, health, metrics) as server,
            stopped_by_signals(stop),
            stopped_within(stop, END_SECONDS_MAX),
        ):
            make_ready(_log.info, _NEEDS.get(role, ALL))
            host, port = server.address
            _log.info("started", role=role, metrics=f"http://{host}:{port}/metrics", scheme=scheme.digest)
            traces = traces_of(settings, role)
            runtime = Runtime(settings, metrics, health, stop, traces=traces)
            try:
                yield runtime
            except Stopped as error:
                _log.warning("did not finish what was under way", reason=str(error))
            except tuple(_CAUSES) as error:
                _hold(runtime, error)
                raise
            finally:
                if traces is not None:
                    traces.close()
            _log.info("stopped", role=role)


def _hold(runtime: Runtime, error: NeardupError) -> None:
    """Stays for `hold_ms`, or until it is told to stop: else whoever scrapes would rarely meet the process alive."""
    cause = next(name for kind, name in _CAUSES.items() if isinstance(error, kind))
    runtime.metrics.stopped[cause].set(1)
    until = time.monotonic() + runtime.settings.hold_ms / 1000
    if runtime.settings.hold_ms:
        _log.error("stopped for good", cause=cause, reason=str(error), ends_in_s=runtime.settings.hold_ms // 1000)
    while time.monotonic() < until and not runtime.stop.wait(WAIT_SECONDS):
        runtime.health.stopped(str(error))


def traces_of(settings: Settings, role: str) -> Traces | None:
    """None where `traces` names no address."""
    if not settings.traces:
        return None
    return traces_to(settings.traces, settings.trace_rate, f"{settings.group}.{role}")


def greet(settings: Settings, role: Role) -> None:
    """Nothing, where Kafka answers. Raises BrokerError within seconds where it does not: roles wait for a broker that
    comes back, a person wants to know.
    """
    from streams.kafka import Admin

    try:
        Admin(replace(connect(settings, role), request_s=GREETING_SECONDS_MAX)).cluster_id()
    except BrokerError as error:
        raise BrokerError(f"nobody answers; is the address right, and does Kafka run? {error}") from error


def connect(settings: Settings, role: Role, runtime: Runtime | None = None, *, reading: bool = False) -> Connection:
    """A role's connection.

    runtime: of the role that waits by it: told to stop, it makes no request again, and while it waits it is alive.
    reading: for its consumers, which fetch `buffer_bytes_max` ahead at most.
    """
    values: dict[str, str | int | float | bool] = dict(settings.kafka(role))
    # Given by each client for itself: limits differ by topic.
    del values["bootstrap.servers"], values["message.max.bytes"]
    if reading:
        values.setdefault("queued.max.messages.kbytes", max(1, settings.buffer_bytes_max >> 10))
    if runtime is None:
        return Connection(settings.bootstrap, values)
    return Connection(settings.bootstrap, values, stop=runtime.stop, beat=runtime.health.role(role).turned)
