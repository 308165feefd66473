"""A short soak: some kills and freezes with the seed that is printed; `make soak` goes on for minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from soak import __file__ as soak_program
from soak import soak

from tests.short import count


@pytest.mark.broker
@pytest.mark.slow
def test_a_line_under_fire_gives_each_page_its_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soak.PAGES_MAX", count(1_000, 2_500))
    seed = int(os.environ.get("SOAK_SEED") or int.from_bytes(os.urandom(3), "big"))
    print(f"run again with SOAK_SEED={seed}")

    run = soak(tmp_path, seconds=25, seed=seed, actions=range(3, 5))

    # Less than this, and it would have tested nothing.
    assert run.done.total() >= 3
    assert len(run.watch.kinds) >= 8


def test_the_program_starts_by_itself() -> None:
    """As `make soak` starts it: in an interpreter that has not imported the tests."""
    done = subprocess.run([sys.executable, soak_program, "--help"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "--minutes" in done.stdout) == (0, True), done.stderr
