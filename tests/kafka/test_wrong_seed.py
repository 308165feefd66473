"""A matcher with another seed names the seed, and leaves nothing behind that keeps the right one from starting."""

import shutil
from pathlib import Path

import pytest
from line import Make, story
from test_backfill import live

pytestmark = pytest.mark.whole


def test_a_matcher_with_another_seed_names_the_seed_and_not_the_decider(make: Make) -> None:
    line = live(make, story(6))
    shutil.rmtree(line.settings.state)
    for lost in ("state", "state and offsets"):
        if lost != "state":
            line.forget("match")
        role = line.start("match", settings={"seed": 8})
        assert role.wait() == 1
        assert "WrongScheme: " in role.output()
        assert "set the seed" in role.output()
        assert "decider" not in role.output()
        assert not Path(line.settings.state).exists()
    line.start("match")
    line.start("sketch")
    line.publish(story(2))
    line.check()
