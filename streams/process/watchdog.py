"""Ends the process if a call does not return, for calls that were seen to hang beyond their own time limit."""

import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from streams.process import logs

#: EX_TEMPFAIL of sysexits.h. A supervisor restarts the process, which solves the hang.
EXIT_CODE = 75


#: Called before the process ends, with the reason; it may replace the process (`streams.process.restart`).
_instead: Callable[[str], None] | None = None


def end_process(text: str) -> None:
    """Writes the line to stderr and ends the process with EXIT_CODE, without any cleanup: that could hang, too."""
    os.write(sys.stderr.fileno(), logs.last_words("watchdog", text))
    if _instead is not None:
        with contextlib.suppress(Exception):  # no error may keep the process from ending
            _instead(text)
    os._exit(EXIT_CODE)


@contextlib.contextmanager
def instead_of_end(call: Callable[[str], None]) -> Iterator[None]:
    """Lets `end_process` call a function before it ends the process. The process ends if the function returns."""
    global _instead
    _instead = call
    try:
        yield
    finally:
        _instead = None


#: Time from a watchdog's deadline until the alarm ends a process whose GIL is held, as a share of the limit.
_GRACE = 0.5
#: A call that takes longer is reported as one that the role waits for.
LATE_SECONDS = 5.0
#: Deadlines of the open blocks of `alarm`, by block.
_deadlines: dict[object, float] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def alarm(limit_s: float) -> Iterator[None]:
    """Ends the process if the block does not end in time, even if a call holds the GIL all the time.

    The thread of `faulthandler` needs no GIL: it writes a traceback and ends the process with exit code 1. A process
    has one such thread. It waits for the nearest deadline of all open blocks, which may be of several threads.
    """
    block = object()
    with _lock:
        _deadlines[block] = time.monotonic() + limit_s
        _set_alarm()
    try:
        yield
    finally:
        with _lock:
            del _deadlines[block]
            _set_alarm()


def _set_alarm() -> None:
    if not _deadlines:
        faulthandler.cancel_dump_traceback_later()
        return
    left_s = min(_deadlines.values()) - time.monotonic()
    faulthandler.dump_traceback_later(max(0.001, left_s), exit=True, file=sys.__stderr__ or 2)


class Watchdog:
    """A thread that checks, every `limit_s / 20` seconds, whether the call under way has passed its deadline.

    It needs the GIL. A call that hangs and holds the GIL is ended a little later by `alarm`, without the name of the
    call.

    end: receives the line that names the call; only the default, `end_process`, also sets the alarm.
    late: receives, at each check, a text that names a call which has not returned for LATE_SECONDS.
    """

    def __init__(
        self,
        limit_s: float,
        end: Callable[[str], None] = end_process,
        late: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._limit_s = limit_s
        self._end, self._late = end, late
        self._call: tuple[str, float] | None = None  # one assignment, so no lock
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """Watches a block, which must end within `limit_s`. Blocks do not nest."""
        self._call = (what, time.monotonic() + self._limit_s)
        try:
            with alarm(self._limit_s * (1 + _GRACE)) if self._end is end_process else contextlib.nullcontext():
                yield
        finally:
            self._call = None

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(self._limit_s / 20):
            call = self._call
            if call is not None and time.monotonic() > call[1]:
                self._end(f"{call[0]} has not ended in {self._limit_s:g} s; ending the process, start it again")
                return
            if call is not None and (ends_s := call[1] - time.monotonic()) < self._limit_s - LATE_SECONDS:
                self._late(
                    f"{call[0]}: a call of the Kafka client has not returned for {self._limit_s - ends_s:.0f} s; the "
                    f"process ends itself in {ends_s:.0f} s if it does not return"
                )
