"""Ends the process when a call does not come back: for calls that have been seen to hang past their own timeout."""

import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from streams.process import logs

#: EX_TEMPFAIL of sysexits.h: whoever supervises the process starts it again, and that repairs what hung.
EXIT_CODE = 75


#: Past the deadline, in shares of the limit, until Python's own watchdog ends a process whose GIL is held.
_GRACE = 0.5


def _end(text: str) -> None:
    # No cleaning up: it would wait for the very thing that hangs.
    os.write(sys.stderr.fileno(), logs.last_words("watchdog", text))
    os._exit(EXIT_CODE)


class Watchdog:
    """One thread that looks, every `limit / 20` seconds, whether the call under way is over its deadline.

    It needs the GIL for that. A call that hangs without releasing it is ended by `faulthandler`, whose thread needs
    none, a little later, with exit code 1 and where the threads stood: that cannot say what hung, nor end with
    EXIT_CODE, or it would do for all. There is one such alarm in a process. end: what to do with the line that says
    what hung; the default writes it to stderr and ends the process with EXIT_CODE, and it alone has such an alarm.
    """

    def __init__(
        self,
        limit_s: float,
        end: Callable[[str], None] = _end,
        *,
        stop: threading.Event | None = None,
        stop_s: float = 0.0,
    ) -> None:
        """stop: once it is set, a call may go on for `stop_s` more: it would outlast what a supervisor waits."""
        self._limit_s = limit_s
        self._end = end
        self._stop, self._stop_s = stop, stop_s
        self._stopped: float | None = None
        self._call: tuple[str, float] | None = None  # one assignment, so no lock
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """The block must be left within `limit_s`. Blocks do not nest."""
        self._call = (what, time.monotonic() + self._limit_s)
        if self._end is _end:
            faulthandler.dump_traceback_later(self._limit_s * (1 + _GRACE), exit=True, file=sys.__stderr__ or 2)
        try:
            yield
        finally:
            if self._end is _end:
                faulthandler.cancel_dump_traceback_later()
            self._call = None

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        step_s = self._limit_s / 20 if self._stop is None else min(self._limit_s, self._stop_s) / 20
        while not self._closed.wait(step_s):
            call, now = self._call, time.monotonic()
            if self._stopped is None and self._stop is not None and self._stop.is_set():
                self._stopped = now
            if call is not None and self._stopped is not None and now > self._stopped + self._stop_s:
                self._end(f"{call[0]} does not end, and the process was told to stop; the next start goes on")
                return
            if call is not None and now > call[1]:
                self._end(f"{call[0]} has not ended in {self._limit_s:g} s; ending the process, start it again")
                return
