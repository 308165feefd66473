"""A call that hangs ends its process, whether it lets other threads run or not."""

import subprocess
import sys

import pytest

from streams.process.watchdog import EXIT_CODE

HANGS = """
import ctypes, faulthandler, time
from streams.process.watchdog import Watchdog
{off}
watchdog = Watchdog(0.2)
with watchdog.watch("short"):
    pass
time.sleep(0.5)  # longer than either would wait
print("the short call is forgotten", flush=True)
with watchdog.watch("the long call"):
    {library}(None).usleep(30_000_000)
print("not reached")
"""


# ctypes lets other threads run during the calls of a CDLL, and not during those of a PyDLL. Thread and alarm are tried
# alone: on a busy machine either may be first.
@pytest.mark.parametrize(
    ("off", "library", "code", "expected"),
    [
        (
            *("faulthandler.dump_traceback_later = lambda *_, **__: None", "ctypes.CDLL", EXIT_CODE),
            "error: the long call has not ended in 0.2 s; ending the process",
        ),
        ("Watchdog._watch = lambda self: None", "ctypes.PyDLL", 1, "Timeout (0:00:00."),
    ],
    ids=["thread", "alarm"],
)
def test_a_call_that_hangs_ends_the_process(off: str, library: str, code: int, expected: str) -> None:
    command = [sys.executable, "-c", HANGS.format(off=off, library=library)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (code, "the short call is forgotten\n"), ended.stderr
    assert expected in ended.stderr
