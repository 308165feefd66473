"""Shards and a judge in memory, under faults that seeds draw."""

import os

import pytest

from tests.streams.simulation.shards import simulate

#: More of them by hand.
SEEDS = int(os.environ.get("SHARD_SEEDS", "1000"))


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_any_schedule_says_what_a_lockstep_says(first: int) -> None:
    for seed in range(first, first + 100):
        try:
            simulate(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
