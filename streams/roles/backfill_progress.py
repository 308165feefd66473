"""Progress of a backfill: on a terminal's bar, or from time to time in the log."""

import time
from collections.abc import Callable

from streams.process import logs

_log = logs.get("backfill")

#: Between two lines of the log.
LOG_SECONDS = 10.0

#: Shows what is counted, the number done, the total (0: unknown), and the number per second.
Shown = Callable[[str, int, int, float], None]


class BackfillProgress:
    """shown: updates a bar; None: progress is logged. Rate and remaining time are those of the current phase."""

    def __init__(self, shown: Shown | None, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._steady_s = shown, steady_s
        self._first: tuple[float, int, str] | None = None
        self._logged = steady_s()

    def report(self, what: str, done: int, total: int) -> None:
        now = self._steady_s()
        if self._first is None or self._first[2] != what:
            self._first = now, done, what
        seconds = now - self._first[0]
        per_s = (done - self._first[1]) / seconds if seconds else 0.0
        if self._shown is not None:
            self._shown(what, done, total, per_s)
        elif now - self._logged >= LOG_SECONDS:
            self._logged = now
            left = {"left_s": round((total - done) / per_s)} if per_s else {}
            _log.info("backfill", of=what, done=done, total=total, per_s=round(per_s), **left)

    def report_live(self) -> None:
        """Shows that the live topic is followed, which has no end."""
        if self._shown is not None:
            self._shown("caught up, follows the live topic", 0, 0, 0.0)
