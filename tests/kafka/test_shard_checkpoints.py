"""Shards and a judge whose disks are lost, after retention has removed the log's start: they restore checkpoints."""

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from line import story
from sharded_line import EPOCH, SHARDS, ShardedLine

from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.sharded.epochs import Sharding
from neardup.sketch.takedown_hashes import of_url
from streams.operate.operator_decisions import forget
from streams.pipeline.matcher import folded_to
from streams.roles.shard_process import shard_checkpoints, shard_state
from streams.state.checkpoint_restore import restore_directory
from streams.state.checkpoint_store import CheckpointStore


def offsets(url: str) -> list[int]:
    """Of the checkpoints, newest first."""
    return [one.manifest.offset for one in CheckpointStore(url).usable()]


@pytest.fixture
def line(make_sharded: Callable[..., ShardedLine], tmp_path: Path) -> ShardedLine:
    """Judged, with checkpoints of all shards and the judge."""
    made = make_sharded(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2)
    made.publish(story())
    made.start("sketch")
    made.start_shards()
    made.judge = made.start("match")
    made.settle()
    for number in range(SHARDS):
        eventually(lambda number=number: offsets(shard_checkpoints(made.settings, number)), "a checkpoint of a shard")
    eventually(lambda: offsets(made.settings.checkpoints), "a checkpoint of the judge")
    return made


def lose(line: ShardedLine, *shards: int, judge: bool = False) -> None:
    """These disks, and all of the log that their newest checkpoints do not need."""
    urls = [shard_checkpoints(line.settings, number) for number in shards]
    states = [shard_state(line.settings, number) for number in shards]
    if judge:
        urls, states = [*urls, line.settings.checkpoints], [*states, Path(line.settings.state)]
    for state in states:
        shutil.rmtree(state)
    # A shard continues from its own position, and a judge also needs its window.
    begin = min(offsets(url)[0] for url in urls) - judge * 2 * EPOCH
    assert begin > 0
    line.trim(begin)


def test_a_shard_restores_its_checkpoint_while_the_others_go_on(line: ShardedLine) -> None:
    line.stop()
    lose(line, 1)
    line.start_shards(1)
    line.start("match")
    line.start("sketch")
    line.publish(story())
    restored = line.start("shard", shards=[1])

    line.check()

    assert '"index restored"' in restored.output()


@pytest.mark.whole
def test_all_disks_are_lost(line: ShardedLine) -> None:
    line.stop()
    lose(line, *range(SHARDS), judge=True)
    line.publish(story())
    line.start_shards()
    line.start("match")
    line.start("sketch")

    line.check()


@pytest.mark.whole
def test_effects_are_lost_and_the_log_is_trimmed(line: ShardedLine) -> None:
    """A shard with a checkpoint of its own needs effects that the judge no longer keeps: as its error says, the judge
    starts from an earlier checkpoint.
    """
    line.stop()
    without: dict[str, Any] = {"settings": {"checkpoints": ""}}
    line.start("sketch")
    line.start("match", **without)
    line.start("shard", shards=range(SHARDS), **without)
    line.publish(story())
    line.settle()
    line.stop()
    shard = offsets(shard_checkpoints(line.settings, 1))[0]
    assert shard < line.committed("match", line.names.sketches, 1)[0] - 2 * EPOCH
    kept = CheckpointStore(line.settings.checkpoints)
    earlier = next(one for one in kept.usable() if one.manifest.offset <= shard)
    line.trim(max(1, earlier.manifest.offset - 2 * EPOCH))
    line.recreate(line.names.effects)
    shutil.rmtree(shard_state(line.settings, 1))
    judge = line.start("match")
    line.start("sketch")
    line.publish(story())
    eventually(lambda: '"writes lost effects again"' in judge.output(), "effects are there")
    error = line.start("shard", shards=[1]).refused()
    assert f"restore for it the newest checkpoint that ends at message {shard} or before" in error
    line.stop()
    line.recreate(line.names.effects)
    state = Path(line.settings.state)
    (state / "index").rename(state.with_name("away"))
    restore_directory(state, kept, name=earlier.name)
    line.start_shards()
    line.start("match")
    line.start("sketch")

    line.check()


@pytest.mark.whole
def test_the_log_lacks_the_window_of_a_judge(line: ShardedLine) -> None:
    """As the error says, the judge continues from a checkpoint that the log covers, in another folder."""
    line.stop()
    state, kept = Path(line.settings.state), line.settings.checkpoints
    shutil.copytree(state, old := state.with_name("old"))
    with closing(RocksStore(old / "index")) as index:
        ended = folded_to(index)
    line.start("sketch")
    line.start_shards()
    line.start("match")
    line.publish(story())
    line.settle()
    eventually(lambda: offsets(kept)[0] >= ended + 2 * EPOCH, "a checkpoint that the log will cover")
    line.stop()
    line.trim(ended)

    error = line.start("match", settings={"state": str(old), "checkpoints": ""}).refused()
    needed = Sharding(SHARDS, EPOCH).stable_to(ended)
    assert f"begins at offset {ended}, and the index in {old} needs {needed}: " in error
    lost = {"state": str(line.folder / "new"), "checkpoints": str(line.folder / "none")}
    error = line.start("match", settings=lost).refused()
    assert f"can continue: one that ends at offset {ended + 2 * EPOCH} or later" in error
    restore_directory(line.folder / "restored", CheckpointStore(kept), seed=7)
    line.start("match", settings={"state": str(line.folder / "restored")})
    line.start_shards()
    line.start("sketch")
    line.publish(story(4))

    line.check()


@pytest.mark.whole
def test_answers_and_effects_are_trimmed(line: ShardedLine) -> None:
    """A shard comes back with an index that needs effects which are gone: without checkpoints it says what to do. The
    judge has not read all answers of another one.
    """
    line.stop()
    state = shard_state(line.settings, 1)
    shutil.copytree(state, line.folder / "old.shards" / "1")
    line.start("sketch")
    line.start_shards()
    line.judge = line.start("match")
    line.publish(story())
    line.settle()
    line.judge.stop()
    judged = line.committed("match", line.names.sketches, 1)[0]
    line.publish(story(8))
    eventually(lambda: min(line.answered()) > judged, "answers ahead of the judge")
    line.stop()
    stable = Sharding(SHARDS, EPOCH).stable_to(judged)
    begin = next(offset for offset in offsets(shard_checkpoints(line.settings, 2)) if offset <= stable)
    line.trim_pieces(line.names.effects, 0, begin)
    line.delete_before(line.names.candidates, 2, line.answers()[2])

    old = {"state": str(line.folder / "old")}
    error = line.start("shard", shards=[1], settings={**old, "checkpoints": ""}).refused()
    assert f"begins with the effects of message {begin}" in error
    assert "restore a newer checkpoint of this shard" in error
    restored = line.start("shard", shards=[1], settings=old)  # where checkpoints are set, its start does so
    other = line.start("shard", shards=[2])
    line.start("shard", shards=[0])
    judge = line.start("match")
    line.start("sketch")
    lost = f"message {judged} of shard 2; shard 2 runs and has passed that message"
    eventually(lambda: lost in judge.output(), "what the judge waits for")
    assert f"--answer-from {judged}" in judge.output()
    other.stop()
    line.start("shard", shards=[2], answer_from=judged)

    line.check()

    assert '"index restored"' in restored.output()


@pytest.mark.whole
def test_no_checkpoint_serves(line: ShardedLine) -> None:
    """The shard names the topic, and writes nothing."""
    line.stop()
    lose(line, 2)
    error = line.start("shard", shards=[2], settings={"checkpoints": str(line.folder / "none")}).refused()
    assert f"state.shards/2 has no index that topic {line.names.sketches} can continue" in error
    assert "no checkpoint at" in error
    error = line.start("shard", shards=[2], settings={"checkpoints": ""}).refused()
    assert f"topic {line.names.sketches}, partition 0: offset 0 is to be read, and the topic holds" in error


@pytest.mark.whole
def test_checkpoints_of_shards_lose_a_page_that_is_taken_down(line: ShardedLine) -> None:
    url = next(verdict["url"] for verdict in line.verdicts() if verdict["verdict"] == "unique")
    ids = {verdict["page_id"] for verdict in line.verdicts() if verdict["url"] == url}
    at = forget(line.settings, of_url(url))
    line.publish(story())  # its effects reach the rows two epochs later
    line.publish(story())
    line.settle()

    for number in range(SHARDS):
        kept = shard_checkpoints(line.settings, number)
        eventually(lambda kept=kept: min(offsets(kept), default=0) > at, "no checkpoint before the takedown")
        folder = line.folder / f"restored-{number}"
        store = CheckpointStore(kept)
        store.restore(next(store.usable()), folder)
        with closing(RocksStore(folder / "index")) as index:
            held = {int.from_bytes(key) for key, _ in index.scan(Family.SKETCHES)}
        assert held
        assert not held & ids
    line.check()


@pytest.mark.whole
@pytest.mark.parametrize("whole", [True, False], ids=["whole log", "trimmed log"])
def test_lost_answers_are_given_again(line: ShardedLine, whole: bool) -> None:
    """The judge names message and shards; as it says, they start again, from a checkpoint or from the log's start.

    A later start with the same option has no effect: the answers are there.
    """
    line.judge.stop()
    judged = line.committed("match", line.names.sketches, 1)[0]
    line.publish(story())  # shards go on for as long as they have effects, and their indexes become too new
    eventually(lambda: min(line.answered()) > judged, "answers ahead of the judge")
    line.stop()
    settings = {"checkpoints": ""} if whole else {}
    if not whole:
        line.trim(min(offsets(shard_checkpoints(line.settings, number))[-1] for number in range(SHARDS)))
    line.recreate(line.names.candidates)
    line.start("sketch")
    judge = line.start("match", settings=settings)
    shards = [line.start("shard", shards=[number], settings=settings) for number in range(SHARDS)]
    eventually(lambda: "--answer-from" in judge.output(), "what the judge waits for")
    (message,) = set(re.findall(r"--answer-from ([0-9]+)", judge.output()))
    assert int(message) == judged
    for number, shard in enumerate(shards):
        shard.stop()
        shards[number] = line.start("shard", shards=[number], answer_from=judged, settings=settings)
    line.settle()
    assert not any("has no effect" in shard.output() for shard in shards)
    assert all('"index restored"' in shard.output() or "builds it from the log" in shard.output() for shard in shards)
    for number, shard in enumerate(shards):
        shard.stop()
        shards[number] = line.start("shard", shards=[number], answer_from=judged, settings=settings)
    line.publish(story(4))

    line.check()
    for shard in shards:
        assert "--answer-from has no effect" in shard.output()
        assert '"index restored"' not in shard.output()
        assert "builds it from the log" not in shard.output()
