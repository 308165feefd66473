"""A process that a watchdog ends starts again by itself, with the same id, and what it held is free."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streams.process import watchdog
from streams.process.restart import CALM_SECONDS, IN_A_ROW_MAX, Restarts, starts_again

#: Holds a port, a lock and an index; then a call hangs.
HANGS = """
import ctypes, os, sys, threading, time
from contextlib import ExitStack
from pathlib import Path
from neardup.index.rocks import RocksStore
from streams.process.health import Health, HealthServer
from streams.process.metrics import Metrics
from streams.process.restart import starts_again
from streams.process.shutdown import steady_ms
from streams.process.watchdog import Watchdog
from streams.state.directory import Directory

if __name__ == "__main__":
    folder, port, stopped = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "stopped"
    stop = threading.Event()
    with starts_again(stop) as (before, again), ExitStack() as held:
        Directory(folder, held)
        held.callback(RocksStore(folder / "index").close)
        held.enter_context(HealthServer("127.0.0.1", port, Health(steady_ms, 1000), Metrics()))
        print(os.getpid(), before.total, before.in_a_row, flush=True)
        if before.total == 2:
            os._exit(0)
        if stopped:
            stop.set()
        with Watchdog(0.2).watch("the call"):
            ctypes.CDLL(None).usleep(60_000_000)
"""


def run(tmp_path: Path, how: str) -> tuple[int, list[list[int]], str]:
    """Exit code, printed numbers, stderr."""
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(script), str(tmp_path / "state"), str(port), how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return ended.returncode, [list(map(int, line.split())) for line in ended.stdout.splitlines()], ended.stderr


def test_a_call_that_hangs_starts_the_process_again(tmp_path: Path) -> None:
    code, lines, errors = run(tmp_path, "runs")
    assert (code, errors.count("the call has not ended in 0.2 s")) == (0, 2), errors
    assert [line[1:3] for line in lines] == [[0, 0], [1, 1], [2, 2]]
    assert len({line[0] for line in lines}) == 1, "it has one process id"


def test_a_call_that_hangs_in_a_stopped_process_ends_it(tmp_path: Path) -> None:
    code, lines, _ = run(tmp_path, "stopped")
    assert (code, len(lines)) == (watchdog.EXIT_CODE, 1)


def test_restarts_in_a_row_wait_longer_and_end() -> None:
    waits, at = [], Restarts()
    for number in range(IN_A_ROW_MAX):
        at = at.next("silent", float(number))
        waits.append(at.wait_s)
    assert waits[:8] == [0, 1, 2, 4, 8, 16, 32, 60]
    assert max(waits) == 60
    calm = at.next("silent", at.at_s + CALM_SECONDS)
    assert (calm.total, calm.in_a_row, calm.wait_s) == (IN_A_ROW_MAX + 1, 1, 0)


def test_the_row_of_restarts_is_left_to_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_NEARDUP_RESTARTS", raising=False)
    executed: list[list[str]] = []
    for number in range(IN_A_ROW_MAX + 1):
        with starts_again(threading.Event(), lambda path, command: executed.append(command)) as (before, again):
            assert (before.total, before.in_a_row) == (number, number)
            assert "_NEARDUP_RESTARTS" not in os.environ
            again("silent")
    assert len(executed) == IN_A_ROW_MAX
    assert executed[0] == [sys.executable, *sys.orig_argv[1:]]


def test_a_variable_that_is_not_ours_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "7", "[]", '{"total": 1, "other": 2}', '{"at_s": "soon"}', '{"in_a_row": 1.5}', "\udcff"):
        monkeypatch.setenv("_NEARDUP_RESTARTS", text)
        assert Restarts.taken() == Restarts()
