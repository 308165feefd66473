"""Shards and a judge on a real broker: killed at every step, their verdicts are those of a lockstep.

`make test` runs the tests of shards that find most; `make test-shards` runs all.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from line import story
from roles import SHARD_STEPS, STEPS
from sharded_line import EPOCH, SHARDS, ShardedLine

from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.sketch.takedown_hashes import of_url
from streams.operate.operator_decisions import forget
from streams.roles.shard_process import shard_state


@pytest.fixture
def line(make_sharded: Callable[..., ShardedLine]) -> ShardedLine:
    return make_sharded()


#: (steps of shards 0 and 1, step of the judge) where they die in one story.
STORIES = [
    pytest.param("1 read", "2 half sent", "0 fenced the others", marks=pytest.mark.whole),
    pytest.param("2 sent", "3 acknowledged", "3 offsets sent"),
    pytest.param("4 applied", "5 flushed", "3 committed", marks=pytest.mark.whole),
]
#: Each step alone, by hand: EACH_STEP=1.
if os.environ.get("EACH_STEP"):
    STORIES += [pytest.param(step, "", "") for _, step in SHARD_STEPS]
    STORIES += [pytest.param("", "", step) for role, step in STEPS if role == "match"]


@pytest.mark.whole
def test_shards_and_judge_emit_the_verdicts_of_a_lockstep(line: ShardedLine) -> None:
    """Shards move between processes meanwhile."""
    line.publish(story())
    line.start("sketch")
    line.start("match")
    first = line.start("shard", shards=[0, 2])
    line.start("shard", shards=[1])
    eventually(lambda: line.verdicts(), "some verdicts")
    first.stop()
    line.start("shard", shards=[2])
    line.start("shard", shards=[0])

    verdicts = line.check()

    assert {verdict["verdict"] for verdict in verdicts} >= {"unique", "exact_duplicate", "near_duplicate", "edited"}


@pytest.mark.parametrize(("one", "other", "judge"), STORIES)
def test_killed_at_steps(line: ShardedLine, one: str, other: str, judge: str) -> None:
    line.publish(story())
    line.start("sketch")
    line.start("shard", shards=[2])
    roles: list[tuple[str, str, dict[str, Any]]] = [
        ("shard", one, {"shards": [0]}),
        ("shard", other, {"shards": [1]}),
        ("match", judge, {}),
    ]
    started = [line.start(role, step=step, **options) for role, step, options in roles]
    for (role, step, options), victim in zip(roles, started, strict=True):
        if step:
            victim.dead()
            line.start(role, **options)

    line.check()


@pytest.mark.whole
def test_a_shard_that_lost_its_disk(line: ShardedLine) -> None:
    """It answers from the log's start on; the judge has these answers, and uses those that are new."""
    line.publish(story())
    line.start("sketch")
    line.start_shards(1)
    line.start("match")
    first = line.start("shard", shards=[1])
    line.settle()
    first.stop()
    state = shard_state(line.settings, 1)
    (state / "index").rename(state.with_name("lost"))
    line.start("shard", shards=[1])
    line.publish(story())

    line.check()


@pytest.mark.whole
def test_a_takedown_reaches_the_shards(line: ShardedLine) -> None:
    line.publish(story())
    line.start("sketch")
    line.start_shards()
    line.start("match")
    line.settle()
    url = next(verdict["url"] for verdict in line.verdicts() if verdict["verdict"] == "unique")
    ids = {verdict["page_id"] for verdict in line.verdicts() if verdict["url"] == url}
    forget(line.settings, of_url(url))
    line.publish(story())  # effects reach the rows two epochs later
    line.publish(story())

    line.check()

    for number in range(SHARDS):
        with closing(RocksStore(shard_state(line.settings, number) / "index")) as store:
            kept = {int.from_bytes(key) for key, _ in store.scan(Family.SKETCHES)}
            assert kept
            assert not kept & ids


@pytest.mark.whole
@pytest.mark.parametrize("lost", [False, True], ids=["disks are there", "a shard's disk is lost"])
def test_lost_effects_are_written_again(line: ShardedLine, lost: bool) -> None:
    """The judge keeps those that shards on its level need. A shard that needs earlier ones says what to do."""
    line.publish(story())
    line.start("sketch")
    line.start_shards()
    line.start("match")
    line.settle()
    line.stop()
    line.recreate(line.names.effects)
    if lost:
        shutil.rmtree(shard_state(line.settings, 1))
    judge = line.start("match")
    line.start("sketch")
    line.publish(story())
    if lost:
        eventually(lambda: '"writes lost effects again"' in judge.output(), "effects are there")
        error = line.start("shard", shards=[1]).refused()
        assert "delete their topic and create it again" in error
        assert "move the judge's index folder away" in error
        line.stop()
        line.recreate(line.names.effects)
        state = Path(line.settings.state)
        (state / "index").rename(state.with_name("away"))
        line.start("match")
        line.start("sketch")
    line.start_shards()

    line.check()


@pytest.mark.whole
def test_another_decider_is_refused(line: ShardedLine) -> None:
    line.publish(story(8))
    line.start("sketch")
    line.start_shards()
    line.start("match")
    line.settle()
    line.stop()

    for numbers, reason in (
        ({"decider_values": {"tape_min": 0.9}}, "each shard keeps the decider that its index was built with"),
        ({"epoch": EPOCH + 1}, "3 shards with an epoch of 2 messages built the index, and 3 shards with an epoch of 3"),
    ):
        error = line.start("match", settings=numbers, new_decider=True).refused()
        assert reason in error
        assert "set the former one, or" in error
