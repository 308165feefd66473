"""Sketcher and matcher in one process, for `neardup run`: for trying the stream, and for small deployments.

With shards, the matcher is their judge, and the shards run in processes of their own beside it; so they do beside the
judge of a backfill.

`neardup run` needs no supervisor for what Kafka does: it starts again by itself after a watchdog has ended a hanging
call, or Kafka has not answered for too long (`streams.process.restart` explains how). It ends for every other error,
which a restart would not repair.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection

from neardup.errors import NeardupError, StateError
from streams.config.settings import Settings
from streams.errors import NoAnswer, Stopped, Unsettled
from streams.process import logs
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.process.restart import Restarts, starts_again
from streams.process.shutdown import signalled, steady_ms
from streams.roles.match_start import run_matcher
from streams.roles.runtime import END_SECONDS_MAX, STOP_SECONDS_MAX, WAIT_SECONDS, Runtime
from streams.roles.shard_process import run_shards
from streams.roles.sketch_role import run_sketcher

_log = logs.get("shard")
_run_log = logs.get("run")

#: Seconds between two reports of a process's health; as often it checks the pipe for the end.
_REPORT_SECONDS = 0.5


@contextmanager
def shards_beside(settings: Settings, runtime: Runtime, processes: int | None) -> Iterator[None]:
    """Runs all shards of the generation in processes of their own, until the block ends or the runtime is stopped.

    If a process fails, the runtime is stopped, and the error of the process is raised at the end. The processes end
    when this one ends, even if it is killed.

    Args:
        processes: number of processes, at most one per shard; by default the number of cores less one. 0: shards run
            elsewhere. Ignored in a generation without shards.
    """
    if processes is None:
        processes = max(1, len(os.sched_getaffinity(0)) - 1)
    count = min(processes, settings.shards)
    if not count:
        yield
        return
    each = [_Shards(settings, runtime, range(first, settings.shards, count)) for first in range(count)]
    stopped: Stopped | None = None
    try:
        yield
    except Stopped as error:  # perhaps because shards failed
        stopped = error
    finally:
        runtime.stop.set()
        for one in each:
            one.end()
    for failed in (*(one.failed for one in each), stopped):
        if failed is not None:
            raise failed


class _Shards:
    """One process with some shards, and the thread that copies its health to the runtime."""

    def __init__(self, settings: Settings, runtime: Runtime, numbers: Sequence[int]) -> None:
        self.failed: NeardupError | None = None
        self._runtime, self._numbers = runtime, numbers
        self._health = runtime.health.role("shard")
        context = get_context("spawn")  # a fork would copy threads of Kafka's clients and locks of RocksDB
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, _plain(settings), tuple(numbers)), daemon=True)
        self._process.start()
        there.close()
        self._thread = threading.Thread(target=self._watch, name="neardup-shards", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Lets the process finish its batch, and kills it after STOP_SECONDS_MAX; a kill loses nothing."""
        with contextlib.suppress(OSError):
            self._pipe.send("end")
        self._process.join(STOP_SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._thread.join()
        self._pipe.close()

    def _watch(self) -> None:
        metrics = self._runtime.metrics
        try:
            while True:
                what = self._pipe.recv()
                if isinstance(what, NeardupError):
                    self.failed = what
                    break
                is_ready, reason, lags = what
                self._health.turned()
                (self._health.ready if is_ready else self._health.not_ready)(reason)
                for number, lag in zip(self._numbers, lags, strict=True):
                    metrics.shard_lag.labels(str(number)).set(lag)
                metrics.lag["shard"].set(max(lags))
        except (EOFError, OSError):
            if not self._runtime.stop.is_set():
                self._process.join(STOP_SECONDS_MAX)
                numbers = ", ".join(map(str, self._numbers))
                self.failed = StateError(
                    f"the process of shards {numbers} ended (exit code {self._process.exitcode}), perhaps for lack of "
                    "memory; nothing is lost: start this again"
                )
        if self.failed is not None:
            self._runtime.stop.set()


def _plain(settings: Settings) -> Settings:
    """The settings with plain dicts, because views of mappings cannot be pickled."""
    return replace(
        settings,
        decider_values=dict(settings.decider_values),
        kafka_values=dict(settings.kafka_values),
        origins=dict(settings.origins),
    )


def _serve(pipe: Connection, settings: Settings, numbers: Sequence[int]) -> None:
    """Main function of a process: runs its shards until the pipe ends."""
    for one in (signal.SIGINT, signal.SIGTERM):  # the judge's process handles them, and then ends this one
        signal.signal(one, signal.SIG_IGN)
    secrets, stop = settings.secrets(), threading.Event()
    health, metrics = Health(steady_ms, settings.stall_ms, logs.Redactor(secrets)), Metrics()
    watch = threading.Thread(target=_report, args=(pipe, settings, numbers, stop, health, metrics), daemon=True)
    with logs.configured(settings.log_level, settings.log_format, secrets=secrets):
        watch.start()
        failed: NeardupError | None = None
        try:
            run_shards(settings, Runtime(settings, metrics, health, stop), shards=numbers)
        except Stopped as error:
            _log.warning("stopped in the middle of its work", reason=str(error))
        except NeardupError as error:
            failed = error
    stop.set()
    watch.join()
    with contextlib.suppress(OSError):
        if failed is not None:
            pipe.send(failed)
    pipe.close()


def _report(
    pipe: Connection,
    settings: Settings,
    numbers: Sequence[int],
    stop: threading.Event,
    health: Health,
    metrics: Metrics,
) -> None:
    """Reports health while the shards' loop turns; stops the shards if the judge's process sends "end", or ends."""
    role = health.role("shard")
    shards = [{"shard": str(number)} for number in numbers]
    try:
        while not stop.is_set():
            is_ready, reason = role.state()
            if role.silent_ms() <= settings.stall_ms:
                lags = [metrics.registry.get_sample_value("neardup_shard_lag_records", shard) or 0 for shard in shards]
                pipe.send((is_ready, reason, lags))
            if pipe.poll(_REPORT_SECONDS):
                pipe.recv()
                break
    except (EOFError, OSError):  # the judge's process was killed
        late = threading.Timer(END_SECONDS_MAX, os._exit, (1,))
        late.daemon = True
        late.start()
    stop.set()


def run_and_start_again(
    settings: Settings,
    runtime: Runtime,
    *,
    shard_processes: int | None = None,
    new_decider: bool = False,
    accept_lost_verdicts: bool = False,
) -> None:
    """Runs both roles as `run_single_process`; the process starts again after a watchdog, or a silence of Kafka.

    If Kafka has never answered, its silence is an error: its address may be wrong.
    """
    with starts_again(runtime.stop) as (before, again):
        if before.in_a_row:
            _await_restart(runtime, before)
            new_decider = accept_lost_verdicts = False  # an operator's decision is for one start
        try:
            run_single_process(
                settings,
                runtime,
                shard_processes=shard_processes,
                new_decider=new_decider,
                accept_lost_verdicts=accept_lost_verdicts,
            )
        except (NoAnswer, Unsettled) as error:
            if runtime.health.facts:  # Kafka has named the live generation
                # The roles set `stop` as they ended. A signal sets `signalled` and then `stop`: one that comes before
                # this line is seen by the next one, a later one by `again`.
                runtime.stop.clear()
                if not signalled.is_set():
                    again(str(error))
            raise


def _await_restart(runtime: Runtime, before: Restarts) -> None:
    """Reports a restart, and waits so that restarts in a row become rarer."""
    runtime.metrics.restarts["run", "watchdog"].inc(before.total)
    _run_log.warning(
        "starts again", reason=before.reason, restarts=before.total, in_a_row=before.in_a_row, waits_s=before.wait_s
    )
    roles = [runtime.health.role(name) for name in ("sketch", "match")]
    until = runtime.steady_s() + before.wait_s
    while runtime.steady_s() < until and not runtime.stop.wait(WAIT_SECONDS):
        for role in roles:
            left_s = until - runtime.steady_s()
            role.turned(f"starts again in {left_s:.0f} s, because the last start ended: {before.reason}")


def run_single_process(
    settings: Settings,
    runtime: Runtime,
    *,
    sketcher: Callable[[Settings, Runtime], None] = run_sketcher,
    shard_processes: int | None = None,
    **options: bool,
) -> None:
    """Runs both roles until they are stopped or one fails. Raises its error once both have ended.

    sketcher: runs in a thread beside the matcher. shard_processes: see `shards_beside`. options: those of run_matcher.
    """
    with shards_beside(settings, runtime, shard_processes):
        _run(settings, runtime, sketcher, options)


def _run(
    settings: Settings, runtime: Runtime, sketcher: Callable[[Settings, Runtime], None], options: Mapping[str, bool]
) -> None:
    failed: list[BaseException] = []

    def sketch() -> None:
        try:
            sketcher(settings, runtime)
        except BaseException as error:  # noqa: BLE001 - raised again by the calling thread
            failed.append(error)
        finally:
            runtime.stop.set()

    thread = threading.Thread(target=sketch, name="neardup-sketcher", daemon=True)
    thread.start()
    try:
        run_matcher(settings, runtime, **options)
    except Stopped:
        if not failed:  # else the sketcher's error is the cause
            raise
    finally:
        runtime.stop.set()
        thread.join(STOP_SECONDS_MAX)
    if failed:
        raise failed[0]
