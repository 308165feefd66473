"""A role that stopped for good stays a while, so that what watches it can say why."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from neardup.errors import CorruptRecord, NeardupError, StateError
from streams.config.settings import Settings
from streams.errors import BrokerError, PositionLost, SourceGap, TopicError, WrongScheme
from streams.process.metrics import STOPS
from streams.roles.runtime import Runtime, serving


@pytest.fixture
def port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        found: int = held.getsockname()[1]
    return found


def ask(port: int, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def stopped(text: str) -> dict[str, float]:
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {sample.labels["cause"]: sample.value for sample in samples if sample.name == "neardup_stopped"}


class Role:
    """`serving` in a thread of its own, with an error inside. raised: what came out of it."""

    def __init__(self, settings: Settings, error: NeardupError) -> None:
        self._settings, self._error = settings, error
        self.runtime: Runtime | None = None
        self.raised: BaseException | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            with serving(self._settings, "match") as runtime:
                self.runtime = runtime
                runtime.health.role("match").ready()
                raise self._error
        except NeardupError as error:
            self.raised = error


ERRORS: list[tuple[str, NeardupError]] = [
    ("source_gap", SourceGap("the message at offset 7 leaves out 3 pages")),
    ("corrupt_record", CorruptRecord("offset 3 is no message")),
    ("wrong_scheme", WrongScheme("another seed")),
    ("position_lost", PositionLost("retention was faster")),
    ("topic", TopicError("no topic")),
    ("state", StateError("another log")),
]


@pytest.mark.parametrize(("cause", "error"), ERRORS)
def test_hold_reports_a_permanent_error_until_stopped(port: int, cause: str, error: NeardupError) -> None:
    role = Role(Settings(seed=1, metrics_port=port, hold_ms=3_600_000), error)
    deadline = time.monotonic() + 60
    while role.runtime is None or role.runtime.health.standing().get("match", True):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    status, text = ask(port, "/ready")
    assert (status, json.loads(text)["roles"]["match"]["reason"]) == (503, str(error))
    assert ask(port, "/live")[0] == 200, "starting it again would not help"
    answer = ask(port, "/metrics")[1]
    assert stopped(answer) == {name: float(name == cause) for name in STOPS}
    assert 'neardup_ready{role="match"} 0.0' in answer
    role.runtime.stop.set()
    role.thread.join(60)
    assert role.raised is error


@pytest.mark.parametrize("error", [BrokerError("no broker"), SourceGap("without hold_ms")])
def test_other_errors_end_without_a_hold(port: int, error: NeardupError) -> None:
    """An outage: a supervisor restarts the process, which solves it. On a terminal it does not wait."""
    hold_ms = 3_600_000 if isinstance(error, BrokerError) else 0
    role = Role(Settings(seed=1, metrics_port=port, hold_ms=hold_ms), error)
    role.thread.join(60)
    assert role.raised is error


def test_each_cause_has_its_error() -> None:
    assert {cause for cause, _ in ERRORS} == set(STOPS)


def test_a_process_says_of_its_own_roles_alone_whether_they_are_ready(port: int) -> None:
    """A sketcher has no metrics of a matcher, which would never be ready."""
    with serving(Settings(seed=1, metrics_port=port), "sketch") as runtime:
        runtime.health.role("sketch").ready()
        answer = ask(port, "/metrics")[1]
    assert [line for line in answer.splitlines() if line.startswith("neardup_ready")] == [
        'neardup_ready{role="sketch"} 1.0'
    ]
