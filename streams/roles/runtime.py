"""Logging, metrics, health, shutdown and connections of a role."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from neardup.errors import CorruptRecord, NeardupError, StateError
from streams.config.settings import FETCHED_KB_MAX, Role, Settings
from streams.errors import BrokerError, PositionLost, SourceGap, Stopped, TopicError, WrongScheme
from streams.formats.message import own_version
from streams.kafka import Connection, KafkaLog, Writer
from streams.process import logs
from streams.process.health import Health, HealthServer
from streams.process.metrics import Metrics
from streams.process.resource_limits import memory_limits, raise_open_files
from streams.process.shutdown import steady_ms, stopped_by_signals, stopped_within
from streams.process.traces import Traces, traces_to
from streams.state.checkpoint_store import CheckpointStore

if TYPE_CHECKING:
    from neardup.warm import Need

_log = logs.get("roles")

#: Longest wait of a stopped role for acknowledgements.
STOP_SECONDS_MAX = 8.0
#: The process of a stopped role ends after this time, whatever the broker does, before a supervisor kills it (30 s in
#: Kubernetes). That loses nothing: the next start continues from the committed offset.
END_SECONDS_MAX = 25.0
#: Longest wait of a command for a first answer of Kafka.
GREETING_SECONDS_MAX = 4.0
#: Longest wait for records; a signal is noticed after it.
WAIT_SECONDS = 0.2
#: A wait for Kafka is logged after this time: most end at once, for example while a coordinator is chosen.
LOGGED_WAIT_SECONDS = 5.0
#: A failed request this long after the last one begins another wait. A request itself fails within 10 s.
NEW_WAIT_SECONDS = 30.0


#: Kernels that a role needs; others need all.
_NEEDS: "Mapping[str, Sequence[Need]]" = {"sketch": ("sketching",), "match": ("judging", "comparing")}

#: Errors that a restart does not repair, with their label in the metrics. The first class that fits counts.
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
    """stop: when set, the roles finish their batch and return. steady_s: a monotonic clock, in seconds. traces: None if
    tracing is off.
    """

    settings: Settings
    metrics: Metrics
    health: Health
    stop: threading.Event
    steady_s: Callable[[], float] = time.monotonic
    traces: Traces | None = None


class Silence:
    """Whether Kafka leaves requests unanswered. They are repeated; the role does not end. Begin and end are logged.

    reason: "" if Kafka answers.
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

    def check(self, *checks: Callable[[], None]) -> None:
        """Check that topics were not recreated, and note whether Kafka answers. Raises TopicError."""
        try:
            for check in checks:
                check()
        except BrokerError as error:
            self.begins(error)
        else:
            self.ends()


@contextmanager
def serving(settings: Settings, role: str) -> Iterator[Runtime]:
    """A runtime that logs to stderr, serves health and metrics, and is stopped by SIGTERM and SIGINT.

    role: label of the metrics. Raises BadInput if the address for metrics is not available, the limit of open files is
    too low, or no installed file system opens the URL of the checkpoints.
    """
    raise_open_files()
    if settings.checkpoints and role != "sketch":
        CheckpointStore(settings.checkpoints)  # a file system that is not installed is found now, not at a lost disk
    secrets = settings.secrets()
    with logs.configured(settings.log_level, settings.log_format, secrets=secrets):
        metrics = Metrics()
        health = Health(steady_ms, settings.stall_ms, logs.Redactor(secrets))
        scheme = settings.scheme()
        metrics.info(
            version=own_version(),
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
            # Here, as commands that connect and judge nothing would wait for the import of all kernels.
            from neardup.warm import SCANNING, make_ready

            needs = _NEEDS.get(role, SCANNING)
            make_ready(_log.info, needs)
            host, port = server.address
            address = f"http://{host}:{port}/metrics"
            _log.info("started", role=role, metrics=address, scheme=scheme.digest, memory=memory_limits())
            traces = traces_of(settings, role)
            runtime = Runtime(settings, metrics, health, stop, traces=traces)
            try:
                yield runtime
            except Stopped as error:
                _log.warning("stopped in the middle of its work", reason=str(error))
            except tuple(_CAUSES) as error:
                _hold(runtime, error)
                raise
            finally:
                if traces is not None:
                    traces.close()
            _log.info("stopped", role=role)


def _hold(runtime: Runtime, error: NeardupError) -> None:
    """Keeps the process for `hold_ms`, or until a signal, so that metrics are scraped before it ends."""
    cause = next(name for kind, name in _CAUSES.items() if isinstance(error, kind))
    runtime.metrics.stopped[cause].set(1)
    until = time.monotonic() + runtime.settings.hold_ms / 1000
    if runtime.settings.hold_ms:
        _log.error("stopped for good", cause=cause, reason=str(error), ends_in_s=runtime.settings.hold_ms // 1000)
    while time.monotonic() < until and not runtime.stop.wait(WAIT_SECONDS):
        runtime.health.stopped(str(error))


def traces_of(settings: Settings, role: str) -> Traces | None:
    """None if tracing is off."""
    if not settings.traces:
        return None
    return traces_to(settings.traces, settings.trace_rate, f"{settings.group}.{role}")


def greet(settings: Settings, role: Role) -> None:
    """Raises BrokerError within seconds if Kafka does not answer. For commands that a person waits for; roles wait for
    the broker instead.
    """
    from streams.kafka import Admin

    Admin(replace(connect(settings, role), request_s=GREETING_SECONDS_MAX)).cluster_id()


def connect(settings: Settings, role: Role, runtime: Runtime | None = None, *, reading: bool = False) -> Connection:
    """A role's connection.

    runtime: a stopped role repeats no request; a role that waits for Kafka counts as alive. reading: limits of what
    consumers fetch in advance.
    """
    values: dict[str, str | int | float | bool] = dict(settings.kafka(role))
    # Each client sets these itself: limits differ by topic.
    del values["bootstrap.servers"], values["message.max.bytes"]
    if reading:
        values.setdefault("queued.max.messages.kbytes", FETCHED_KB_MAX)
    if runtime is None:
        return Connection(settings.bootstrap, values)
    heartbeat = _Heartbeat(runtime.health.role(role).turned, runtime.steady_s)
    return Connection(settings.bootstrap, values, stop=runtime.stop, heartbeat=heartbeat)


def connect_before(settings: Settings, role: Role, runtime: Runtime) -> Connection:
    """A connection for what precedes a role. It waits for Kafka as roles do; health does not expect turns of it."""
    return replace(
        connect(settings, role), stop=runtime.stop, heartbeat=_Heartbeat(lambda awaits: None, runtime.steady_s)
    )


def messages_from(settings: Settings, start: int, runtime: Runtime | None = None) -> Iterable[tuple[int, bytes]]:
    """Yields the log's messages from an offset to its present end."""
    with closing(KafkaLog(connect(settings, "match", runtime, reading=True), settings.topics.sketches)) as log:
        if start < log.end():
            yield from log.messages(start)


def write_control(settings: Settings, topic: str, records: Sequence[bytes]) -> int:
    """Appends control records to a log. Returns the offset of the last one. Raises BrokerError, TopicError."""
    with closing(Writer(connect(settings, "match"), topic)) as writer:
        for record in records:
            writer.send(record)
        writer.flush()
        return writer.last_offset


class _Heartbeat:
    """Shows that a role is alive, and what its requests wait for: in its health, and once a wait in its log."""

    def __init__(self, turned: Callable[[str], None], steady_s: Callable[[], float]) -> None:
        self._turned, self._steady_s = turned, steady_s
        self._began = self._last = -math.inf
        self._logged = False

    def __call__(self, awaits: str) -> None:
        self._turned(f"waits for Kafka: {awaits}" if awaits else "")
        if not awaits:
            return
        now = self._steady_s()
        if now - self._last > NEW_WAIT_SECONDS:
            self._began, self._logged = now, False
        self._last = now
        if not self._logged and now - self._began > LOGGED_WAIT_SECONDS:
            _log.warning("waits for Kafka", reason=awaits)
            self._logged = True
