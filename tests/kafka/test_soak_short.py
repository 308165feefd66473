"""A short soak: some kills and freezes; `make soak` (`soak.py`) goes on for minutes."""

import subprocess
import sys
from pathlib import Path

import pytest
from soak import __file__ as soak_program
from soak import soak


@pytest.mark.broker
@pytest.mark.whole
@pytest.mark.seeds(1, 2)
def test_a_line_under_fire_gives_each_page_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("soak.PAGES_MAX", 2_500)
    run = soak(tmp_path, seconds=25, seed=seed, actions=range(3, 5))

    # Less than this, and it would have tested nothing.
    assert run.done.total() >= 3
    assert len(run.watch.kinds) >= 8


@pytest.mark.whole
def test_the_program_starts_by_itself() -> None:
    """As `make soak` starts it: in an interpreter that has not imported the tests."""
    done = subprocess.run([sys.executable, soak_program, "--help"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "--minutes" in done.stdout) == (0, True), done.stderr
