"""A scan that was killed and started again ends like one that was not."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["steps", "random", "shards"])
def test_killed_and_resumed_is_as_if_uninterrupted(tmp_path: Path, mode: str) -> None:
    seed = os.environ.get("CRASH_SEED") or str(int.from_bytes(os.urandom(3), "big"))
    command = [sys.executable, "-m", "tests.crash.driver", mode, seed, str(tmp_path)]
    # A session of its own: a driver that hangs is ended with all its children.
    driver = processes.start(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = driver.communicate(timeout=240)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    print(output)
    assert driver.returncode == 0, f"run again with CRASH_SEED={seed}"
    # Less than this, and it would have tested nothing.
    assert sum(map(int, re.findall(r"^round .* (\d+) kills$", output, re.MULTILINE))) >= 5
