"""The tables of `deploy/plan-capacity.md` are what `neardup plan` prints; `deploy/README.md` names files that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
sys.path.insert(0, str(DEPLOY))  # a folder of programs, no package

import guide  # noqa: E402


@pytest.mark.slow
def test_its_tables_are_what_the_command_prints() -> None:
    result = subprocess.run([sys.executable, DEPLOY / "guide.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_table_that_was_changed_by_hand_is_found() -> None:
    text = guide.GUIDE.read_text()
    pages = re.findall(r"^pages in the index +([0-9,]+)", text, re.MULTILINE)
    assert pages == ["1,000,000", "100,000,000", "1,000,000,000"]
    changed = text.replace("100,000,000 ", "100,000,001 ", 1)
    assert changed != text
    assert guide.written(changed) == guide.written(text)


def test_files_that_it_names_are_there() -> None:
    text = (DEPLOY / "README.md").read_text()
    for name in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", name):
            assert (DEPLOY / path).exists(), path
