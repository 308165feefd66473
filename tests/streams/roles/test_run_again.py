"""`neardup run` starts again after a silence of Kafka, and ends for what a restart would not repair."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from neardup.errors import InvariantBroken, NeardupError, StateError
from streams.config.settings import Settings
from streams.errors import NoAnswer, SourceGap, Unsettled
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.process.restart import Restarts
from streams.process.shutdown import signalled, steady_ms
from streams.roles import single_process
from streams.roles.runtime import Runtime


class Played:
    """A start whose roles end with an error."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        error: NeardupError,
        before: Restarts,
        *,
        reached: bool,
        stop: threading.Event | None = None,
    ) -> None:
        self.again: list[str] = []
        self.options: dict[str, Any] = {}
        self.reasons: list[str] = []
        settings, metrics = Settings(seed=1), Metrics()
        self.runtime = Runtime(
            settings, metrics, Health(steady_ms, settings.stall_ms), stop or threading.Event(), steady_s=self._clock
        )
        self._now_s = 0.0

        def run(settings: Settings, runtime: Runtime, **options: Any) -> None:
            self.options = options
            if reached:
                runtime.health.facts = {"live": ""}
            runtime.stop.set()  # as the role does that ends
            raise error

        @contextmanager
        def starts(stop: threading.Event) -> Iterator[tuple[Restarts, Callable[[str], None]]]:
            yield before, lambda reason: self.again.append(f"{reason}, stopped: {stop.is_set()}")

        patch.setattr(single_process, "run_single_process", run)
        patch.setattr(single_process, "starts_again", starts)
        patch.setattr(single_process, "WAIT_SECONDS", 0.0)
        with pytest.raises(type(error)):
            single_process.run_and_start_again(settings, self.runtime, new_decider=True, accept_lost_verdicts=True)

    def _clock(self) -> float:
        self._now_s += 0.5
        self.reasons += [self.runtime.health.role("match").state()[1]]
        return self._now_s


@pytest.mark.parametrize("error", [NoAnswer("silent"), Unsettled("unknown")])
def test_run_starts_again_after_a_silence(monkeypatch: pytest.MonkeyPatch, error: NeardupError) -> None:
    played = Played(monkeypatch, error, Restarts(), reached=True)
    assert played.again == [f"{error}, stopped: False"]
    assert played.options == {"new_decider": True, "accept_lost_verdicts": True}


@pytest.mark.parametrize("error", [StateError("disk"), SourceGap("gap"), InvariantBroken("bug")])
def test_run_ends_for_errors_that_a_restart_does_not_repair(
    monkeypatch: pytest.MonkeyPatch, error: NeardupError
) -> None:
    assert not Played(monkeypatch, error, Restarts(), reached=True).again


def test_run_ends_if_kafka_has_never_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Played(monkeypatch, NoAnswer("wrong address"), Restarts(), reached=False).again


def test_run_ends_after_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled.set()
    try:
        assert not Played(monkeypatch, NoAnswer("silent"), Restarts(), reached=True).again
    finally:
        signalled.clear()


def test_run_ends_after_a_signal_that_comes_as_the_restart_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(threading.Event):
        def clear(self) -> None:
            signalled.set()  # as the handler does: first this, then `stop`
            self.set()
            super().clear()

    try:
        assert not Played(monkeypatch, NoAnswer("silent"), Restarts(), reached=True, stop=Stop()).again
    finally:
        signalled.clear()


def test_a_restart_waits_and_drops_decisions_for_one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, NoAnswer("silent"), Restarts(7, 4, 0.0, "a call hangs"), reached=True)
    assert "starts again in 2 s, because the last start ended: a call hangs" in played.reasons
    assert (played.options["new_decider"], played.options["accept_lost_verdicts"]) == (False, False)
    value = played.runtime.metrics.registry.get_sample_value
    assert value("neardup_restarts_total", {"role": "run", "cause": "watchdog"}) == 7
