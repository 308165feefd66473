"""Exactly once on a real broker: each page has its one right verdict, undisturbed and with a role killed at every step.

This is the second of three levels. `tests/streams/roles/test_schedules.py` is the first, on scripted ports; the soak
(`soak.py`) is the third. `test_run_and_backfill.py` and `test_backfill.py` have the faults of the other processes.
"""

from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
from line import REPLACING, Make, story
from roles import STEPS

from neardup.errors import StateError
from streams.state.scan_directory import ScanDirectory


def test_pages_become_verdicts(make: Make) -> None:
    line = make()
    line.judge(story())

    verdicts = line.check()

    programs = [message.program for _, message in line.messages()]
    assert programs[0] == version("neardup")
    assert not any(programs[1:])
    kinds = Counter(verdict["verdict"] for verdict in verdicts)
    assert set(kinds) >= {"unique", "exact_duplicate", "near_duplicate", "unchanged", "edited", "gone", "rejected"}
    assert sum(verdict["n"] == 0 for verdict in verdicts) == len(story())


@pytest.mark.whole
def test_readers_of_a_scan_refuse_the_state_of_a_matcher(make: Make) -> None:
    line = make()
    line.judge(story())
    line.settle()
    line.stop()
    path = Path(line.settings.state)
    before = sorted(path.iterdir())

    with pytest.raises(StateError, match=r"belongs to `neardup match`.*neardup verdicts"):
        ScanDirectory.open(path)

    assert sorted(path.iterdir()) == before
    line.judge(story())
    line.check()


@pytest.mark.parametrize(("role", "step"), STEPS)
def test_killed_at_a_step(make: Make, role: str, step: str) -> None:
    line = make(flush_ms=1, kafka_values=REPLACING)
    line.publish(story())
    victim = line.start(role, step=step, member="only")
    line.start("match" if role == "sketch" else "sketch")
    victim.dead()
    line.start(role, member="only")

    line.check()
