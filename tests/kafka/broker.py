"""deploy/kafka/broker.py as a module, brokers to do anything to, and waiting."""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from streams.errors import TopicError
from streams.kafka import Admin, Connection, TopicReader

T = TypeVar("T")

#: For what takes seconds on a quiet machine: one that is busy with all else may take a minute, and nothing is wrong.
PATIENCE_SECONDS = 180.0

_PAUSE_MAX = 0.2

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "kafka" / "broker.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("neardup_kafka_broker", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


kafka = _load()

#: How often a broker looks for transactions that have timed out; by default each 10 s.
LOOKS_MS = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


class Own:
    """One broker after another that a single test at a time may do anything to. Each serves until it is spoilt."""

    def __init__(self, folders: Callable[[], Path]) -> None:
        self._folders = folders
        self._cluster: Any = None

    def get(self) -> Any:
        """A `Cluster` of one node that serves. One that a test has left dead is replaced: it would start twice."""
        if self._cluster is not None and not self._cluster.running():
            self.end()
        if self._cluster is None:
            self._cluster = kafka.Cluster(self._folders(), settings={LOOKS_MS: 3_600_000})
            try:
                self._cluster.start()
            except kafka.BrokerFailed:
                self.end()
                raise
        return self._cluster

    def end(self) -> None:
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster = None


def kill_between_transactions(cluster: Any) -> None:
    """Kills the only broker of a cluster, once it has ended every transaction whose outcome is decided.

    Kafka 4.3 may leave a transaction open for ever if its only broker dies between the decision and the markers
    (KAFKA-20734). A test that waits for this matcher's verdicts behind such a kill would wait as long.
    """
    eventually(lambda: not _decided(cluster.bootstrap), "the markers of all transactions")
    cluster.kill()


def _decided(bootstrap: str) -> set[bytes]:
    """Transactional ids whose newest record in the coordinator's log is "prepare commit" or "prepare abort"."""
    newest: dict[bytes, int] = {}
    try:
        log = TopicReader(Connection(bootstrap), "__transaction_state", committed_only=False)
    except TopicError:
        return set()  # no transaction was ever begun
    with contextlib.closing(log):
        for record in log.to_end():
            value = record.value()  # version int16, producer id int64, epoch int16, timeout int32, state int8, ...
            newest[record.key() or b""] = value[16] if value else 0
    return {name for name, state in newest.items() if state in (2, 3)}


def eventually(look: Callable[[], T], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """The first result of `look` that is true; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(pause)
        pause = min(1.5 * pause, _PAUSE_MAX)  # looks ask the broker, and what is waited for needs the processor, too


def alter(bootstrap: str, topic: str, setting: str, value: str) -> None:
    """Sets a topic's setting."""
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.incremental_alter_configs([resource])[resource].result(30)
    admin = Admin(Connection(bootstrap))
    eventually(lambda: admin.settings(topic)[setting] == value, "the setting")
