"""Sketcher and matcher in one process, for `neardup run`: for trying the stream, and for small deployments.

`neardup run` needs no supervisor for what Kafka does: it starts again by itself after a watchdog has ended a hanging
call, or Kafka has not answered for too long (`streams.process.restart` explains how). It ends for every other error,
which a restart would not repair.
"""

import threading
from collections.abc import Callable

from streams.config.settings import Settings
from streams.errors import NoAnswer, Stopped, Unsettled
from streams.process import logs
from streams.process.restart import Restarts, starts_again
from streams.process.shutdown import signalled
from streams.roles.match_start import run_matcher
from streams.roles.runtime import STOP_SECONDS_MAX, WAIT_SECONDS, Runtime
from streams.roles.sketch_role import run_sketcher

_log = logs.get("run")


def run_and_start_again(
    settings: Settings,
    runtime: Runtime,
    *,
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
    _log.warning(
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
    **options: bool,
) -> None:
    """Runs both roles until they are stopped or one fails. Raises its error once both have ended.

    sketcher: runs in a thread beside the matcher. options: those of run_matcher.
    """
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
