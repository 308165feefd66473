"""Metrics and health of the views, for Prometheus and supervisors."""

import asyncio
import socket

import pytest

from neardup.errors import BadInput
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.views import monitoring
from streams.views.monitoring import Monitor
from tests.streams.scripted import ManualClock


def test_the_lag_of_all_partitions_is_reported_and_stands_while_the_broker_is_away(monkeypatch) -> None:
    monkeypatch.setattr(monitoring, "LAG_SECONDS", 0)
    clock, metrics = ManualClock(), Metrics()
    health = Health(clock.now_ms, stall_ms=10)
    watch = Monitor(metrics, health.role("views"), 10)
    answers = iter([{0: 3, 1: 4}, BrokerError("away"), asyncio.CancelledError()])

    async def lag() -> dict[int, int] | None:
        answer = next(answers)
        clock.ms += 20  # and it turns, whatever the broker says
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def run() -> None:
        starting = asyncio.ensure_future(watch.run(lag, object))
        await asyncio.sleep(0.01)
        starting.cancel()
        assert not health.ready()[0]
        assert "restored" in health.ready()[1]["roles"]["views"]["reason"]
        watch.ready()
        with pytest.raises(asyncio.CancelledError):
            await watch.run(lag, object)

    asyncio.run(run())
    assert metrics.registry.get_sample_value("neardup_lag_records", {"role": "views"}) == 7
    assert health.ready()[0]
    assert next(answers, None) is None
    assert not health.live()[0]
    health.role("views").turned()
    assert health.live()[0]


def test_stuck_views_worker_ends_while_verdicts_wait(monkeypatch) -> None:
    monkeypatch.setattr(monitoring, "LAG_SECONDS", 0)
    clock = ManualClock()
    health = Health(clock.now_ms, stall_ms=10)
    watch = Monitor(Metrics(), health.role("views"), 10)
    watch.ready()
    # Behind and at work, level and idle, away and idle: for as long as it likes. Behind and idle: for 10 ms.
    fine = [({0: 3}, number) for number in range(9)] + [({0: 0}, 9)] * 9 + [(BrokerError("away"), 9)] * 9
    answers = iter([*fine, *[({0: 0, 1: 2}, 9)] * 9])
    done, looks = [0], []

    async def lag() -> dict[int, int] | None:
        answer, done[0] = next(answers)
        clock.ms += 4
        looks.append(health.live()[0])
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with pytest.raises(BrokerError, match=r"2 verdicts wait, and none was applied for 0\.01 s"):
        asyncio.run(watch.run(lag, lambda: done[0]))
    assert len(looks) == len(fine) + 3
    assert all(looks[:-1])
    assert not health.live()[0]


def test_a_rebalance_without_end_ends_the_views(monkeypatch) -> None:
    """Without partitions there is no lag: the views would wait for ever, and look healthy."""
    monkeypatch.setattr(monitoring, "LAG_SECONDS", 0)
    clock = ManualClock()
    health = Health(clock.now_ms, stall_ms=10)
    watch = Monitor(Metrics(), health.role("views"), 10)
    watch.ready()
    rounds = 0

    async def lag() -> dict[int, int] | None:
        nonlocal rounds
        rounds += 1
        clock.ms += 4
        return {}

    # Rows are restored; then there is no rebalance; then there is one in which nothing goes on.
    with pytest.raises(BrokerError, match=r"^a rebalance of the group goes on for 0\.01 s; start again$"):
        asyncio.run(watch.run(lag, lambda: min(rounds, 9), lambda: rounds < 9 or rounds > 18))
    assert rounds == 18 + 3


def test_an_address_that_is_taken_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(BadInput, match="metrics"),
        monitoring.monitored(Settings(metrics_port=taken.getsockname()[1])),
    ):
        pass
