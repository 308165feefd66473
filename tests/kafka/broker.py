"""deploy/kafka/broker.py as a module, and waiting."""

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")

#: For what takes seconds on a quiet machine: one that is busy with all else may take a minute, and nothing is wrong.
PATIENCE_SECONDS = 180.0

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


def eventually(look: Callable[[], T], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """The first result of `look` that is true; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
