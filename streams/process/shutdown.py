"""This process: its clocks, and how it is told to stop."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class SystemClock:
    """The wall clock; it only keeps dates of the future out of the log time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SteadyClock:
    """A clock that nobody sets back; its zero means nothing."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`; the second one ends the process at once. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()
        for each in numbers:
            # Not Python's own handler for SIGINT: it would wait for a call into the Kafka client to return.
            signal.signal(each, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
