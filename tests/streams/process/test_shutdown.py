"""A stop is noticed, and takes effect in time, also while the main thread is within a call that does not return."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from streams.process.shutdown import stopped_by_signals, stopped_within
from streams.process.watchdog import EXIT_CODE
from tests import processes

#: A mutex that its own thread locks twice: no signal ends that call.
HANGS = """
import ctypes, sys, threading
from streams.process.shutdown import stopped_by_signals, stopped_within

stop = threading.Event()
threading.Thread(target=lambda: stop.wait() and print("stop", flush=True), daemon=True).start()
with stopped_by_signals(stop), stopped_within(stop, float(sys.argv[1])):
    lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
    lock(mutex)
    print("hangs", flush=True)
    lock(mutex)
"""


def hanging(seconds_max: float) -> "subprocess.Popen[str]":
    """A process whose main thread hangs in a call of C."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = processes.start([sys.executable, "-c", HANGS, str(seconds_max)], **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "hangs\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_that_hangs_delays_no_stop(number: signal.Signals) -> None:
    process = hanging(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (EXIT_CODE, "stop\n"), err
    assert "error: still waits in <module> (<string>:11) 0.2 s after the stop" in err


#: `usleep` of a PyDLL holds the GIL.
HOLDS_THE_GIL = """
import ctypes, threading
from streams.process import shutdown
from streams.process.watchdog import Watchdog

shutdown._GRACE_SECONDS = 0.3
stop = threading.Event()
with shutdown.stopped_within(stop, 0.2):
    stop.set()
    with Watchdog(3_600.0).watch("another call"):
        threading.Event().wait(0.1)
    ctypes.PyDLL(None).usleep(100_000_000)
"""


def test_a_call_that_holds_the_gil_delays_no_stop() -> None:
    command = [sys.executable, "-c", HOLDS_THE_GIL]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "Timeout (0:00:00." in ended.stderr


def test_the_second_signal_ends_a_process_that_hangs() -> None:
    process = hanging(600)
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "stop\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (128 + signal.SIGTERM, -signal.SIGTERM)
    process.communicate()


def test_a_block_that_ends_in_time_ends_no_process() -> None:
    ended: list[str] = []
    stop = threading.Event()
    with stopped_within(stop, 0.1, ended.append):
        stop.set()
    with stopped_within(threading.Event(), 0.0, ended.append):
        pass
    assert ended == []


def test_a_signal_to_a_forked_child_stops_no_parent() -> None:
    stop = threading.Event()
    with stopped_by_signals(stop):
        child = os.fork()
        if not child:
            signal.raise_signal(signal.SIGTERM)
            os._exit(0)
        os.waitpid(child, 0)
    assert not stop.is_set()
