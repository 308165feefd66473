"""Commands over the state of shards and a judge: they work, or say in a sentence what to do; and a judge's standby."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest
from broker import eventually
from line import story
from sharded_line import ShardedLine

from neardup.errors import StateError
from neardup.index.column_families import Family
from streams.ask.answers import IndexSnapshot
from streams.roles.shard_process import shard_checkpoints, shard_state
from streams.state.checkpoint_make import make
from streams.state.checkpoint_restore import restore_directory
from streams.state.checkpoint_store import CheckpointStore
from streams.state.index_rows import open_index, overview, sketch_of
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream
from tests.streams import contradictions

pytestmark = pytest.mark.whole

ADVICE = "judge the same sketches by one matcher in another generation"


def test_commands_on_the_state_of_shards(make_sharded: Callable[..., ShardedLine], tmp_path: Path) -> None:
    line = make_sharded(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2)
    line.publish(story())
    line.start("sketch")
    line.start_shards()
    line.start("match")
    line.settle()
    line.stop()
    judge, shard = Path(line.settings.state), shard_state(line.settings, 1)

    out = tmp_path / "replayed.jsonl"
    with out.open("wb") as file:
        replay_stream(line.settings, Stretch(), out=file)
    assert list(map(orjson.loads, out.read_bytes().splitlines())) == line.verdicts()
    with pytest.raises(StateError, match="belongs to `neardup match`"):
        ScanDirectory.open(judge)
    for state in (judge, shard):
        with pytest.raises(StateError, match=ADVICE):
            IndexSnapshot(state)
        with ExitStack() as held:
            opened = open_index(state, held)
            search = contradictions.inspect_shard if state == shard else contradictions.inspect
            assert not search(opened.store).wrong_total
            _, values = overview(opened, lambda rows: None)
            assert values.get("owner", "")[:8] == ("shard 1 " if state == shard else "")
            key, _ = next(iter(opened.store.scan(Family.SKETCHES)))
            assert sketch_of(opened, int.from_bytes(key))["tokens"]
    assert make(judge, CheckpointStore(str(tmp_path / "copies")), keep=1).bytes
    with pytest.raises(StateError, match="has the index of shard 1 of 3, epoch 2"):
        make(shard, CheckpointStore(str(tmp_path / "copies-1")), keep=1)

    # The command `restore`, for a shard; it goes on from there.
    moved = tmp_path / "moved.shards"
    restore_directory(moved / "1", CheckpointStore(shard_checkpoints(line.settings, 1)), seed=7)
    line.start_shards(1)
    line.start("shard", shards=[1], settings={"state": str(tmp_path / "moved")})
    line.start("match")
    line.start("sketch")
    line.publish(story())
    line.check()


def test_a_standby_of_the_judge_takes_over(make_sharded: Callable[..., ShardedLine], tmp_path: Path) -> None:
    line = make_sharded()
    line.publish(story())
    line.start("sketch")
    line.start_shards()
    first = line.start("match", standby=True)
    eventually(lambda: '"resumes"' in first.output(), "the first judge is at work")
    line.start("match", standby=True, settings={"state": str(tmp_path / "spare")})
    line.settle()
    first.kill()
    line.publish(story())

    line.check()


def test_one_command_runs_a_sketcher_shards_and_their_judge(make_sharded: Callable[..., ShardedLine]) -> None:
    line = make_sharded()
    line.publish(story())
    first = line.start("run", shard_processes=2)
    eventually(lambda: line.verdicts(), "some verdicts")
    first.kill()
    line.start("run", shard_processes=1)
    line.publish(story())

    line.check()
