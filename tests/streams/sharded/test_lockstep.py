"""Shards and a judge under any schedule say what the lockstep reference says, to the byte."""

import random
from dataclasses import replace
from itertools import product

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.index.memory import MemoryStore
from streams.pipeline.matcher import Matcher
from tests import whole
from tests.neardup.story import SMALL
from tests.streams.sharded.lockstep import Messages, lockstep, messages_of, rows_in, some_records
from tests.streams.sharded.world import World

#: The (V, E) of `make test`.
MET = (1, 1), (2, 4), (4, 16), (16, 1), (4, 4)
#: For each (V, E).
SCHEDULES = whole.count(1, 20)
HOT = replace(SMALL, postings_max=3, hot_postings_kept=2)


@pytest.mark.parametrize(("shards", "epoch"), whole.only(product([1, 2, 4, 16], [1, 4, 16]), *MET))
@settings(max_examples=SCHEDULES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_a_schedule_changes_nothing(shards: int, epoch: int, seed: int) -> None:
    rng = random.Random(seed)
    decider = replace(rng.choice([SMALL, SMALL, HOT]), shards=shards, epoch=epoch)
    messages = messages_of(some_records(seed, 80), rng, most=rng.choice([2, 6]))
    expected, world = lockstep(messages, decider), World(messages, decider, rng)
    world.run()
    assert world.verdicts == expected.verdicts
    assert world.effects == expected.effects
    assert rows_in(world.judge_process.rows) == rows_in(expected.rows)
    for number, answers in enumerate(world.answers):
        assert answers == {offset: every[number] for offset, every in enumerate(expected.answers)}


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.seeds(1, 20)
def test_an_epoch_longer_than_the_log_is_the_matcher_without_shards(shards: int, seed: int) -> None:
    messages = messages_of(some_records(seed, 200), random.Random(seed))
    sharded = lockstep(messages, replace(SMALL, shards=shards, epoch=len(messages)))
    assert [_plain(each) for each in sharded.verdicts] == [_plain(each) for each in alone(messages, SMALL)]


def alone(messages: Messages, decider: Decider) -> list[list[bytes]]:
    matcher, out = Matcher(MemoryStore(), decider), []
    for offset, data in enumerate(messages):
        prepared = matcher.prepare([(offset, data)])
        matcher.apply(prepared)
        out.append([verdict.to_json() for verdict in prepared.verdicts])
    return out


def _plain(verdicts: list[bytes]) -> list[dict[str, object]]:
    """Verdicts but for what names the decider, and for keys that turned hot: there each shard counts for itself."""
    out = []
    for line in verdicts:
        verdict = orjson.loads(line)
        del verdict["decider"]
        if evidence := verdict.get("evidence"):
            evidence.pop("turned_hot", None)
        out.append(verdict)
    return out
