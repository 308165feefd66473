"""A call that hangs ends its process, whether it lets other threads run or not."""

import subprocess
import sys

import pytest

from streams.process.watchdog import EXIT_CODE

HANGS = """
import ctypes, sys
from streams.process.watchdog import Watchdog
watchdog = Watchdog(0.2)
with watchdog.watch("short"):
    pass
with watchdog.watch("the long call"):
    {library}(None).usleep(30_000_000)
print("not reached")
"""


# ctypes lets other threads run during the calls of a CDLL, and not during those of a PyDLL.
@pytest.mark.parametrize(
    ("library", "code", "told"),
    [
        ("ctypes.CDLL", EXIT_CODE, "error: the long call has not ended in 0.2 s; ending the process"),
        ("ctypes.PyDLL", 1, "Timeout (0:00:00.300000)!"),
    ],
)
def test_a_call_that_hangs_ends_the_process(library: str, code: int, told: str) -> None:
    command = [sys.executable, "-c", HANGS.format(library=library)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    # A machine that is busy enough may let the alarm come first in either case: it ends what hangs all the same.
    assert ended.returncode in {code, 1}
    assert told in ended.stderr or "Timeout" in ended.stderr
    assert "not reached" not in ended.stdout
