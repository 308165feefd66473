"""deploy/kafka/broker.py as a module, brokers to do anything to, and waiting."""

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

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
        """A `Cluster` of one node that serves."""
        try:
            if self._cluster is None:
                self._cluster = kafka.Cluster(self._folders(), settings={LOOKS_MS: 3_600_000})
                self._cluster.start()
            elif not self._cluster.running():
                self._cluster.restart()
        except kafka.BrokerFailed:
            self.end()
            raise
        return self._cluster

    def end(self) -> None:
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster = None


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
