"""Clocks, and the shutdown of the process on a signal."""

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType

from streams.process.watchdog import alarm, end_process

_LOOK_SECONDS = 0.5
#: Seconds from the deadline of a stop until the alarm ends a process whose GIL is held.
_GRACE_SECONDS = 2.0
#: Set at the first signal; a role that ends by itself sets only its `stop`.
signalled = threading.Event()

# A signal to a forked child must not reach the parent through the shared pipe.
os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))


def now_ms() -> int:
    """The time in ms since the epoch. No order of records may depend on it."""
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Monotonic time in ms. Its zero has no meaning."""
    return time.monotonic_ns() // 1_000_000


def stop_event() -> asyncio.Event:
    """Returns an event of the running loop that SIGINT and SIGTERM set; outside the main thread they do not."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def completed(work: Awaitable[object], stop: asyncio.Event) -> bool:
    """Returns whether `work` was done before `stop` was set; else cancels it. Raises what `work` raises."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        await working
        return True
    finally:
        for each in (working, stopping):
            each.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Sets `stop` at SIGINT or SIGTERM. The second signal ends the process at once. Only in the main thread.

    Python runs signal handlers in the main thread between two instructions, so never during a call into the Kafka
    client that does not return. But Python writes the number of the signal to a pipe at once, and a thread reads that
    pipe.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    signalled.clear()

    def handle(number: int, frame: FrameType | None) -> None:
        signalled.set()
        stop.set()
        for each in numbers:
            # Replaces Python's handler of SIGINT, which would wait until a call into the Kafka client returns.
            signal.signal(each, signal.SIG_DFL)

    def listen() -> None:
        seen = 0
        for (number,) in iter(lambda: os.read(reading, 1), b"\0"):
            if number in numbers:
                signalled.set()
                stop.set()
                seen += 1
            if seen > 1:
                os._exit(128 + number)

    wakeup = signal.set_wakeup_fd(writing)
    listener = threading.Thread(target=listen, name="signals", daemon=True)
    listener.start()
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.write(writing, b"\0")
        listener.join()
        os.close(reading)
        os.close(writing)


@contextmanager
def stopped_within(
    stop: threading.Event, seconds_max: float, end: Callable[[str], None] = end_process
) -> Iterator[None]:
    """Ends the process if the block is still running `seconds_max` after `stop` was set.

    If a call holds the GIL, `alarm` ends the process a little later.
    end: receives a line with the place where the calling thread waits; by default it ends the process.
    """
    over, caller = threading.Event(), threading.get_ident()

    def watch() -> None:
        while not stop.wait(_LOOK_SECONDS):
            if over.is_set():
                return
        with alarm(seconds_max + _GRACE_SECONDS) if end is end_process else nullcontext():
            if over.wait(seconds_max):
                return
        frame = sys._current_frames().get(caller)
        where = traceback.extract_stack(frame)[-1] if frame else None
        at = f" in {where.name} ({where.filename}:{where.lineno})" if where else ""
        end(f"still waits{at} {seconds_max:g} s after the stop; ending the process, the next start goes on")

    watcher = threading.Thread(target=watch, name="stop deadline", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        if stop.is_set():
            watcher.join()
