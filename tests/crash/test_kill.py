"""A scan that was killed and started again ends like one that was not."""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests import forked

forked.preload("tests.crash.driver")
forked.preload("tests.warmed")

#: A session of its own: a driver that hangs is ended with all its children.
DRIVE = """
import os, sys
from pathlib import Path
from tests.crash.driver import main

os.setsid()
main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
raise SystemExit
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["steps", "random"])
@pytest.mark.seeds(1, 5)
def test_killed_and_resumed_is_as_if_uninterrupted(tmp_path: Path, mode: str, seed: int) -> None:
    log = tmp_path / "log"
    driver = forked.Command([mode, str(seed), str(tmp_path)], log, before=DRIVE)
    try:
        code = driver.wait(240)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        output = log.read_text()
        print(output)
    assert code == 0
    # Less than this, and it would have tested nothing.
    assert sum(map(int, re.findall(r"^round .* (\d+) kills$", output, re.MULTILINE))) >= 5
