"""Sketcher and matcher in one process: for trying the stream, and for small deployments.

With shards, the matcher is their judge, and processes of their own run the shards.
"""

import threading
from collections.abc import Callable, Mapping

from streams.config.settings import Settings
from streams.errors import Stopped
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, serving
from streams.roles.shard_processes import shards_beside
from streams.roles.wiring import run_matcher, run_sketcher


def run_single_process(
    settings: Settings,
    runtime: Runtime | None = None,
    *,
    sketcher: Callable[[Settings, Runtime], None] = run_sketcher,
    shard_processes: int | None = None,
    **options: bool,
) -> None:
    """Runs both roles until they are stopped or one fails. Raises its error once both have ended.

    sketcher: runs in a thread beside the matcher. shard_processes: see `shards_beside`. options: those of run_matcher.
    """
    if runtime is None:
        with serving(settings, "run") as made:
            run_single_process(settings, made, sketcher=sketcher, shard_processes=shard_processes, **options)
        return
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
