"""Starts `neardup run` again after a watchdog has ended it.

A call of the Kafka client that hangs cannot be ended; only the end of its process helps. The other roles leave the
restart to their supervisor. `neardup run` often has none, so it replaces itself by `execv`, with the same arguments:

* The process id stays, so a shell, a service manager and a container runtime see one process, and signals reach it.
* The kernel ends all threads, also one in a hanging call, and closes all files and sockets, which are close-on-exec in
  Python, RocksDB and librdkafka. So the locks of the state directory and the port of the metrics are free at once. A
  static member of a consumer group (`group.instance.id`) comes back under its id.
* A supervising parent process would need memory for a second interpreter, would have to forward signals, and its child
  would have to end with it.

What one start leaves to the next one is in the environment: metrics count on, and the waits grow. A hanging call that
keeps the GIL is ended by `streams.process.watchdog.alarm` without any Python code; then the process stays ended.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import asdict

from neardup.typed_json import decode
from streams.process.watchdog import instead_of_end

#: Environment variable that a start leaves to the next one. Without the prefix of settings.
_VARIABLE = "_NEARDUP_RESTARTS"
#: Restarts in a row; then the process ends. A start that ran for CALM_SECONDS ends the row.
IN_A_ROW_MAX = 20
CALM_SECONDS = 600.0
#: The wait before the second restart in a row is a second, and doubles with each further one up to this.
_WAIT_SECONDS_MAX = 60.0
_REASON_CHARS_MAX = 500


class Restarts(Struct, frozen=True, forbid_unknown_fields=True):
    """Restarts of this process so far.

    in_a_row: number of recent restarts; 0 if the last restart was long ago.
    at_s: monotonic time of the last restart, seconds. reason: reason of the last restart.
    """

    total: int = 0
    in_a_row: int = 0
    at_s: float = 0.0
    reason: str = ""

    @classmethod
    def taken(cls) -> "Restarts":
        """Those that the former start left, which are removed from the environment."""
        try:
            return decode(os.fsencode(os.environ.pop(_VARIABLE, "{}")), cls)
        except ValueError:  # set by hand
            return cls()

    def next(self, reason: str, now_s: float) -> "Restarts":
        row = self.in_a_row if now_s - self.at_s < CALM_SECONDS else 0
        return Restarts(self.total + 1, row + 1, now_s, reason[:_REASON_CHARS_MAX])

    @property
    def wait_s(self) -> float:
        """Seconds to wait before this start begins its work."""
        return min(_WAIT_SECONDS_MAX, 2.0 ** (self.in_a_row - 2)) if self.in_a_row > 1 else 0.0


@contextmanager
def starts_again(
    stop: threading.Event, execute: Callable[[str, list[str]], object] = os.execv
) -> Iterator[tuple[Restarts, Callable[[str], None]]]:
    """Lets a watchdog replace the process by a new start of the same command, unless `stop` is set.

    Yields the restarts before this start, and a function that begins the next one for a given reason; it returns if
    there may be none.
    """
    before = Restarts.taken()

    def again(reason: str) -> None:
        following = before.next(reason, time.monotonic())
        if stop.is_set() or following.in_a_row > IN_A_ROW_MAX:
            return
        if stop.is_set():  # by a signal meanwhile, which the next start would not know
            return
        os.environ[_VARIABLE] = json.dumps(asdict(following))
        execute(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    with instead_of_end(again):
        yield before, again
