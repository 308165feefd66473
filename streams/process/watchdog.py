"""Ends the process when a call does not come back: for calls that have been seen to hang past their own timeout."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

#: EX_TEMPFAIL of sysexits.h: whoever supervises the process starts it again, and that repairs what hung.
EXIT_CODE = 75


def _end(text: str) -> None:
    # No cleaning up: it would wait for the very thing that hangs.
    os.write(sys.stderr.fileno(), text.encode())
    os._exit(EXIT_CODE)


class Watchdog:
    """One thread that looks, every `limit / 20` seconds, whether the call under way is over its deadline.

    It needs the GIL for that, so it guards calls that release it. end: what to do with the line that says what hung;
    the default writes it to stderr and ends the process with EXIT_CODE.
    """

    def __init__(self, limit_s: float, end: Callable[[str], None] = _end) -> None:
        self._limit_s = limit_s
        self._end = end
        self._call: tuple[str, float] | None = None  # one assignment, so no lock
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """The block must be left within `limit_s`. Blocks do not nest."""
        self._call = (what, time.monotonic() + self._limit_s)
        try:
            yield
        finally:
            self._call = None

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(self._limit_s / 20):
            call = self._call
            if call is not None and time.monotonic() > call[1]:
                self._end(
                    f"error: {call[0]} has not ended in {self._limit_s:g} s; ending the process, start it again\n"
                )
                return
