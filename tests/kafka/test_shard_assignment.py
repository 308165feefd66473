"""Processes that share all shards by Kafka's assignment: killed, frozen, joined and restarted one after another."""

from collections.abc import Callable
from typing import Any

import pytest
from broker import eventually
from line import story
from roles import Role, freeze
from sharded_line import SHARDS, ShardedLine

from streams.roles.shard_process import shard_checkpoints
from streams.state.checkpoint_store import CheckpointStore

pytestmark = pytest.mark.whole

Make = Callable[..., ShardedLine]


def process(line: ShardedLine, name: str, **more: Any) -> Role:
    """With a disk of its own."""
    return line.start("shard", settings={"state": str(line.folder / name)}, **more)


def starts(role: Role, number: int) -> int:
    """How often the process has started this shard."""
    return role.output().count(f'"shard": {number}, "of": {SHARDS}')


def runs_something(role: Role) -> bool:
    return any(starts(role, number) for number in range(SHARDS))


@pytest.fixture
def line(make_sharded: Make, tmp_path: Any) -> ShardedLine:
    """Three processes with disks of their own, one shard each, and checkpoints."""
    made = make_sharded(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2)
    made.publish(story())
    made.start("sketch")
    made.judge = made.start("match")
    made.processes = {name: process(made, name) for name in "abc"}
    eventually(lambda: all(map(runs_something, made.processes.values())), "a shard in each process")
    made.settle()
    return made


def test_shards_of_a_killed_process_go_on_at_the_others(line: ShardedLine) -> None:
    """From checkpoints, within seconds; the others' shards are not disturbed."""
    for number in range(SHARDS):
        kept = CheckpointStore(shard_checkpoints(line.settings, number))
        eventually(lambda kept=kept: list(kept.usable()), "a checkpoint of each shard")
    before = {name: [starts(one, number) for number in range(SHARDS)] for name, one in line.processes.items()}
    victim = line.processes.pop("a")
    victim.kill()
    line.publish(story())

    line.check()

    after = {name: [starts(one, number) for number in range(SHARDS)] for name, one in line.processes.items()}
    moved = [sum(after[name]) - sum(before[name]) for name in after]
    assert sum(moved) >= 1
    assert any('"index restored"' in one.output() for one in line.processes.values())


def test_a_frozen_process_comes_back_without_its_shards(line: ShardedLine) -> None:
    """What it sends late is what its successors have sent; then it gets shards again."""
    for role in line.processes.values():
        role.stop()
    zombie = process(line, "a", step="2 half sent", how=freeze)
    others = [process(line, name) for name in "bc"]
    line.publish(story())
    zombie.frozen()
    line.settle()
    zombie.thaw()
    line.publish(story())
    eventually(lambda: "shard is assigned to another process" in zombie.output(), "it knows")
    assert all(one.running for one in others)

    line.check()


def test_the_index_that_a_moved_shard_leaves_is_removed(make_sharded: Make, tmp_path: Any) -> None:
    """Once its successor has made a checkpoint that would replace it. The shard comes back all the same."""
    line = make_sharded(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2)
    line.publish(story())
    line.start("sketch")
    line.start("match")
    first = process(line, "a")
    eventually(lambda: all(starts(first, number) for number in range(SHARDS)), "all shards at work")
    line.settle()
    second = process(line, "b")
    eventually(lambda: runs_something(second), "a shard is moved")
    moved = [number for number in range(SHARDS) if starts(second, number)]
    left = [tmp_path / "a.shards" / str(number) / "index" for number in moved]
    eventually(
        lambda: all(f'"folder": "{index.parent}"' in first.output() for index in left), "the log names the folder"
    )
    assert all(index.exists() for index in left)

    def removed() -> bool:
        line.publish(story(2))
        line.settle()
        return not any(index.exists() for index in left)

    eventually(removed, "it is of no use any more")
    second.kill()
    line.publish(story())

    line.check()

    assert all(starts(first, number) == 2 for number in moved)
    assert all(index.exists() for index in left)


def test_processes_of_one_machine_share_a_disk(make_sharded: Make) -> None:
    """Without checkpoints: a shard's folder is opened once the killed process has left it."""
    line = make_sharded()
    line.publish(story())
    line.start("sketch")
    line.start("match")
    first = line.start("shard")
    eventually(lambda: runs_something(first), "a shard at work")
    second = line.start("shard")
    eventually(lambda: runs_something(second), "a shard is moved")
    line.settle()
    first.kill()
    line.publish(story())

    line.check()

    assert all(starts(second, number) for number in range(SHARDS))


def test_all_roles_restart_one_after_another_under_load(line: ShardedLine) -> None:
    line.judge.stop()
    judge = line.start("match", standby=True)
    eventually(lambda: '"resumes"' in judge.output(), "the judge is at work")
    spare = line.start("match", standby=True, settings={"state": str(line.folder / "spare")})
    for name, role in line.processes.items():
        line.publish(story(6))
        role.stop()
        line.publish(story(6))
        process(line, name)
    eventually(lambda: '"stands by"' in spare.output(), "a standby")
    line.publish(story(6))
    judge.stop()
    line.publish(story(6))
    line.start("match", standby=True)
    line.start("sketch")
    line.publish(story(6))

    line.check()
