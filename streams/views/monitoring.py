"""/metrics, /live and /ready of the views, as the roles have them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.errors import BrokerError
from streams.process import logs
from streams.process.health import Health, HealthServer, RoleHealth
from streams.process.metrics import Metrics
from streams.process.shutdown import steady_ms

_log = logs.get("views")

#: Between two measurements of the lag; shorter than any sensible `stall_ms`.
LAG_SECONDS = 5.0
RATE_SECONDS = 30


class Rate:
    """Events per second, over the last RATE_SECONDS whole seconds."""

    def __init__(self) -> None:
        self._began = int(time.monotonic())
        self._counts: dict[int, int] = {}

    def count(self, count: int) -> None:
        second = int(time.monotonic())
        self._counts = {then: n for then, n in self._counts.items() if then >= second - RATE_SECONDS}
        self._counts[second] = self._counts.get(second, 0) + count

    def now(self) -> float:
        second = int(time.monotonic())
        seconds = min(RATE_SECONDS, second - self._began)
        return sum(n for then, n in self._counts.items() if second - seconds <= then < second) / max(1, seconds)


class Monitor:
    """Metrics and health, kept up to date by `run`."""

    def __init__(self, metrics: Metrics, health: RoleHealth, stall_ms: int) -> None:
        self._metrics, self._health, self._stall_ms = metrics, health, stall_ms
        health.not_ready("the tables are being restored")
        self._caught_up = False

    def ready(self) -> None:
        """Report ready: the tables are restored."""
        self._health.ready("serves")
        self._caught_up = True

    async def run(
        self,
        lag: Callable[[], Awaitable[Mapping[int, int] | None]],
        progress: Callable[[], object],
        rebalances: Callable[[], bool] = lambda: False,
    ) -> None:
        """Measure the lag until cancelled. Without the broker the last lag stays; the pages show the problem.

        Raises BrokerError if, for stall_ms without progress, verdicts wait or a rebalance does not end. After some
        rebalances Faust silently stops consuming. After a silence of the broker that was longer than the session it may
        wait in a rebalance for ever, without partitions and so without lag.

        Args:
            progress: returns another value whenever a verdict was applied or a row restored.
            rebalances: whether partitions were revoked and not yet assigned again and restored.
        """
        before = object()
        while True:
            behind = 0
            if self._caught_up:
                try:
                    behind = sum((await lag() or {}).values())
                    self._metrics.lag["views"].set(behind)
                except NeardupError as error:
                    _log.warning("the lag is unknown", reason=str(error))
            now, moves = progress(), self._caught_up and rebalances()
            if not (behind or moves) or now != before:
                self._health.turned()
            elif self._health.silent_ms() > self._stall_ms:
                what = f"{behind} verdicts wait, and none was applied" if behind else "a rebalance of the group goes on"
                raise BrokerError(f"{what} for {self._stall_ms / 1000:g} s; start again")
            before = now
            await asyncio.sleep(LAG_SECONDS)


@contextmanager
def monitored(settings: Settings) -> Iterator[Monitor]:
    """Serve metrics and health while the views run. Raises BadInput if the address is unavailable."""
    metrics = Metrics()
    health = Health(steady_ms, settings.stall_ms, logs.Redactor(settings.secrets()))
    metrics.info(version=version("neardup"), role="views", generation=settings.generation)
    monitor = Monitor(metrics, health.role("views"), settings.stall_ms)
    with HealthServer(settings.metrics_host, settings.metrics_port, health, metrics) as server:
        host, port = server.address
        _log.info("started", role="views", metrics=f"http://{host}:{port}/metrics")
        yield monitor
        _log.info("stopped", role="views")
