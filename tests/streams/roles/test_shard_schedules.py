"""Shards and a judge in memory, under faults that seeds draw."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from neardup.errors import CorruptRecord, StateError
from neardup.sharded.epochs import Sharding
from neardup.sharded.shard import applied_to
from tests.streams.simulation.shards import EFFECTS, World, made_up, simulate

#: Schedules of one seed of a test: `make test` has 300, and `make test-all` 10,000.
CHUNK = 100


@pytest.mark.seeds(3, 100)
def test_any_schedule_equals_a_lockstep(seed: int) -> None:
    for number in range(seed * CHUNK, (seed + 1) * CHUNK):
        try:
            simulate(number)
        except Exception as error:
            raise AssertionError(f"schedule {number}: {error}") from error


def test_answers_lost_after_effects_and_without_a_checkpoint_are_made_from_nothing() -> None:
    assert simulate(17785).happened["a shard starts from nothing"]


def test_a_shard_that_retention_and_lost_effects_have_overtaken_comes_back() -> None:
    assert simulate(1046).happened["judge restored for effects"]


def world_of_two_shards() -> World:
    """With four messages, all of which are answered, and a judge that takes eight of them in one round."""
    world = next(
        world
        for world in map(World, range(1000))
        if world.sharding == Sharding(2, 8) and world.runtime.settings.match_messages == 8
    )
    while len(world.log) < 4:
        world.publish()
    for _ in range(8):
        world.round_of_a_shard(0)
        world.round_of_a_shard(1)
    return world


def test_a_judge_commits_all_answered_messages_in_one_transaction() -> None:
    with made_up():
        world = world_of_two_shards()
        commits: list[str] = []
        world.around = lambda moment: commits.append(moment) if moment == "committed" else None  # type: ignore[method-assign]
        judge = world.judge = world.begin()
        commits.clear()
        while judge.round():
            pass
        assert judge.matcher.next_offset == len(world.log)
        assert len(commits) == 1, commits
        world.check()


def test_messages_before_one_that_cannot_be_judged_are_committed() -> None:
    with made_up(), pytest.MonkeyPatch.context() as patch:
        world = world_of_two_shards()
        judge = world.judge = world.begin()
        prepare = judge.matcher.prepare

        def failing(messages: Sequence[tuple[int, bytes]], **given: Any) -> Any:
            if messages[0][0] == 2:
                raise CorruptRecord("the message at offset 2")
            return prepare(messages, **given)

        patch.setattr(judge.matcher, "prepare", failing)
        judge.round()
        assert judge.matcher.next_offset == 2
        with pytest.raises(CorruptRecord, match="offset 2"):
            judge.round()
        world.crash_judge()
        patch.undo()
        world.settle()
        world.check()


def test_the_judge_names_the_shards_that_it_awaits_for_long() -> None:
    """In /ready, and in a metric that an alert reads."""
    now = [0.0]
    with made_up():
        world = next(world for world in map(World, range(100)) if world.sharding.shards == 2)
        world.runtime = replace(world.runtime, steady_s=lambda: now[0])
        world.publish()

        def awaited() -> list[float | None]:
            world.round_of_the_judge()
            value = world.runtime.metrics.registry.get_sample_value
            return [value("neardup_answers_awaited", {"shard": str(number)}) for number in range(2)]

        world.round_of_a_shard(0)
        assert 1 not in awaited(), "it has not waited yet"
        now[0] = 60.0
        assert awaited() == [0, 1]
        assert "of shard 1" in world.runtime.health.role("match").state()[1]
        world.settle()
        assert awaited() == [0, 0]


def test_a_judge_names_effects_that_were_lost_while_it_ran() -> None:
    """Before it noticed that their topic was recreated, it wrote effects of later messages into it."""
    with made_up():
        world = next(
            world
            for world in map(World, range(1000))
            if world.sharding == Sharding(2, 3) and world.runtime.settings.match_messages == 1
        )
        world.settle()
        while world.broker.topic(EFFECTS).partitions[0].end < 3 * world.sharding.epoch:
            world.publish()
            world.settle()
        for _ in range(3):
            world.publish()
        for number in 2 * [0, 1]:
            world.round_of_a_shard(number)
        world.broker.recreate(EFFECTS)
        assert world.judge is not None
        assert world.judge.round()
        world.crash_judge()

        with pytest.raises(StateError, match="was deleted and recreated while the judge ran: it begins with the eff"):
            world.begin()
        world.round_of_the_judge()  # the operator does what the error says
        world.settle()
        world.check()
        assert not world.happened["judge restored for effects"]


def test_effects_are_applied_before_the_next_epoch_begins() -> None:
    """So that its first message need not wait for them."""
    with made_up():
        world = next(world for world in map(World, range(1000)) if world.sharding == Sharding(2, 8))
        epoch = world.sharding.epoch
        while len(world.log) < 2 * epoch or len(world.log) % epoch:
            world.publish()
        world.settle()
        for number in range(2):
            world.round_of_a_shard(number)
            assert applied_to(world.folders[number]) == len(world.log) - epoch
