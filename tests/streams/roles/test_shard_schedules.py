"""Shards and a judge in memory, under faults that seeds draw."""

import os
from dataclasses import replace

import pytest

from tests.streams.simulation.shards import World, made_up, simulate

#: More of them by hand.
SEEDS = int(os.environ.get("SHARD_SEEDS", "1000"))


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_any_schedule_says_what_a_lockstep_says(first: int) -> None:
    for seed in range(first, first + 100):
        try:
            simulate(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


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
