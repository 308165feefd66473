"""Shards and a judge fail: topics between them are recreated, a disk is full, a frozen shard comes back."""

import re
from collections.abc import Callable
from typing import Any

from broker import eventually
from line import story
from roles import freeze, full_disk
from sharded_line import SHARDS, ShardedLine, long

Make = Callable[..., ShardedLine]


def running(make_sharded: Make, **settings: Any) -> ShardedLine:
    """A line with pages to judge, whose sketcher runs."""
    line = make_sharded(**settings)
    line.publish(story())
    line.start("sketch")
    line.settle(judged=False)
    return line


@long
def test_effects_are_recreated_while_all_run_and_the_advice_is_followed(make_sharded: Make) -> None:
    line = running(make_sharded)
    judge = line.start("match")
    shards = [line.start("shard", shards=[number]) for number in range(SHARDS)]
    line.settle()
    line.recreate(line.names.effects)
    assert "start the judge: it says what is gone" in judge.refused()
    for shard in shards:
        assert f"topic {line.names.effects}" in shard.refused()
    line.start_shards()
    line.start("match")
    line.publish(story())

    line.check()


@long
def test_answers_are_recreated_while_all_run_and_the_advice_is_followed(make_sharded: Make) -> None:
    line = running(make_sharded)
    judge = line.start("match")
    line.start_shards()
    line.settle()
    line.recreate(line.names.candidates)
    assert f"topic {line.names.candidates}" in judge.refused()
    line.stop()
    line.start("sketch")
    line.start("match")
    line.start_shards()
    line.publish(story())

    line.check()


@long
def test_a_shard_without_room_on_its_disk_stops_and_goes_on(make_sharded: Make) -> None:
    line = running(make_sharded)
    line.start_shards(1)
    line.start("match")
    full = line.start("shard", shards=[1], step="3 acknowledged", how=full_disk)
    assert re.search("make room|File too large|no room", full.refused())
    line.start("shard", shards=[1])

    line.check()


@long
def test_a_frozen_judge_is_fenced_by_its_successor(make_sharded: Make) -> None:
    """In the middle of a transaction, and with effects that the successor writes, too: nothing is emitted twice."""
    line = running(make_sharded)
    line.start_shards()
    zombie = line.start("match", step="3 offsets sent", how=freeze)
    zombie.frozen()
    line.start("match", settings={"state": str(line.folder / "other")})
    line.settle()
    zombie.thaw()
    line.publish(story())
    assert "another process has taken over" in zombie.refused()

    line.check()


@long
def test_a_silent_broker_ends_no_judge_and_no_shard(own_broker: Any, make_sharded: Make) -> None:
    line = running(make_sharded, bootstrap=own_broker.bootstrap)
    judge = line.start("match")
    shards = [line.start("shard", shards=[number]) for number in range(SHARDS)]
    assigned = line.start("shard", settings={"state": str(line.folder / "other")})
    line.settle()
    own_broker.pause()
    for role in (judge, assigned, *shards):
        eventually(lambda role=role: "waits for Kafka" in role.output(), "each role waits")
        assert role.running
    own_broker.resume()
    line.publish(story())

    line.check()


@long
def test_a_frozen_shard_comes_back_beside_its_successor(make_sharded: Make) -> None:
    """It has a disk of its own; what it sends late is what the successor has sent."""
    line = running(make_sharded)
    line.start_shards(1)
    line.start("match")
    zombie = line.start("shard", shards=[1], step="2 half sent", how=freeze)
    zombie.frozen()
    line.start("shard", shards=[1], settings={"state": str(line.folder / "other")})
    line.settle()
    zombie.thaw()
    line.publish(story())
    eventually(lambda: min(line.answered()) > 13, "answers to later messages")

    line.check()
