"""A matcher whose disk is lost, and whose log no longer begins where it began, goes on from its newest checkpoint."""

import shutil
from pathlib import Path

import pytest
from broker import eventually
from line import Line, Make, story

from streams.state.checkpoints import CheckpointStore


@pytest.fixture
def line(make: Make, tmp_path: Path) -> Line:
    """Judged, with checkpoints after every other message, and at rest."""
    made: Line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2, flush_ms=1)
    made.publish(story())
    made.start("sketch")
    made.start("match")
    made.settle()
    store = CheckpointStore(made.settings.checkpoints)
    eventually(lambda: any(one.manifest.offset > 3 for one in store.usable()), "a checkpoint")
    return made


def test_a_lost_disk(line: Line) -> None:
    line.stop()
    newest = next(CheckpointStore(line.settings.checkpoints).usable()).manifest.offset
    expected = line.expected()  # while the log is whole
    shutil.rmtree(line.settings.state)
    line.delete_before(line.names.sketches, 0, newest - 1)  # nothing but a checkpoint can help
    line.start("match")
    line.publish(story(6))
    line.start("sketch")
    line.settle()
    line.stop()
    found = line.verdicts()
    assert found[: len(expected)] == expected
    later = {verdict["verdict"] for verdict in found[len(expected) :]}
    assert later & {"unchanged", "stale"}, "it knows what it was told before"
    assert len({(verdict["page_id"], verdict["n"]) for verdict in found}) == len(found)


def test_a_lost_disk_without_a_good_checkpoint_is_refused_and_nothing_is_judged(line: Line) -> None:
    line.stop()
    newest = next(CheckpointStore(line.settings.checkpoints).usable()).manifest.offset
    before = line.verdicts()
    shutil.rmtree(line.settings.state)
    for file in Path(line.settings.checkpoints, "files").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    line.delete_before(line.names.sketches, 0, newest)
    role = line.start("match")
    assert role.wait() == 1
    assert "torn or changed" in role.said()
    assert "begin another generation" in role.said()
    assert line.verdicts() == before


@pytest.mark.parametrize("step", ["3 offsets sent", "4 written"])
def test_killed_beside_a_checkpoint(make: Make, tmp_path: Path, step: str) -> None:
    line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=1, checkpoints_kept=2, flush_ms=1)
    line.publish(story())
    line.start("sketch")
    line.start("match", step=step, call=4).dead()
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.check()
