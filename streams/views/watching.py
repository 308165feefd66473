"""What the views tell of themselves: /metrics, /live and /ready, as the roles do."""

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
from streams.process.shutdown import SteadyClock

_log = logs.get("views")

#: Between two looks at the lag; less than the least `stall_ms` that makes sense.
LOOK_SECONDS = 5.0
RATE_SECONDS = 30


class Rate:
    """How many come a second, over the last RATE_SECONDS of whole seconds."""

    def __init__(self, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._steady_s, self._began = steady_s, int(steady_s())
        self._counts: dict[int, int] = {}

    def count(self, count: int) -> None:
        second = int(self._steady_s())
        self._counts = {at: n for at, n in self._counts.items() if at >= second - RATE_SECONDS}
        self._counts[second] = self._counts.get(second, 0) + count

    def now(self) -> float:
        second = int(self._steady_s())
        seconds = min(RATE_SECONDS, second - self._began)
        return sum(n for at, n in self._counts.items() if second - seconds <= at < second) / max(1, seconds)


class Watch:
    """What is told, kept up to date by `look`."""

    def __init__(self, metrics: Metrics, health: RoleHealth, stall_ms: int) -> None:
        self._metrics, self._health, self._stall_ms = metrics, health, stall_ms
        health.not_ready("the tables are being restored")
        self._caught_up = False

    def ready(self) -> None:
        """The tables are as disk and changelogs have them: pages can be served, and the lag asked for."""
        self._health.ready("serves")
        self._caught_up = True

    async def look(self, lag: Callable[[], Awaitable[Mapping[int, int] | None]], done: Callable[[], object]) -> None:
        """Never returns. A broker that is away leaves the last lag standing: the pages say what is wrong.

        done: something else whenever a verdict was taken in or a row restored. Raises BrokerError where verdicts wait
        and nothing was done for stall_ms: after some rebalances Faust reads no more, and says nothing of it.
        """
        before = object()
        while True:
            behind = 0
            if self._caught_up:
                try:
                    behind = sum((await lag() or {}).values())
                    self._metrics.lag["views"].set(behind)
                except NeardupError as error:
                    _log.warning("the lag is not known", reason=str(error))
            now = done()
            if not behind or now != before:
                self._health.turned()
            elif self._health.silent_ms() > self._stall_ms:
                raise BrokerError(f"{behind} verdicts wait, and none was taken in for {self._stall_ms / 1000:g} s")
            before = now
            await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def watched(settings: Settings) -> Iterator[Watch]:
    """Serves metrics and health while the views run. Raises BadInput if the address cannot be had."""
    metrics = Metrics()
    health = Health(SteadyClock(), settings.stall_ms, logs.Redactor(settings.secrets()))
    metrics.info(version=version("neardup"), role="views", generation=settings.generation)
    watch = Watch(metrics, health.role("views"), settings.stall_ms)
    with HealthServer(settings.metrics_host, settings.metrics_port, health, metrics) as server:
        host, port = server.address
        _log.info("started", role="views", metrics=f"http://{host}:{port}/metrics")
        yield watch
        _log.info("stopped", role="views")
