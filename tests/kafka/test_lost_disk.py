"""A matcher whose disk is lost, and whose log no longer begins where it began, goes on from its newest checkpoint."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from broker import eventually
from line import REPLACING, Line, Make, story
from test_backfill import beside, in_log, merged

from streams.roles.match_start import run_matcher
from streams.state.checkpoint_restore import restore_directory
from streams.state.checkpoint_store import CheckpointStore
from tests import whole
from tests.quiet import quiet_runtime


@pytest.fixture
def line(make: Make, tmp_path: Path) -> Line:
    """Judged, with checkpoints after every other message, and at rest."""
    made: Line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2, flush_ms=1)
    made.judge(story())
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
    assert later & {"unchanged", "stale"}, "it knows the verdicts from before"
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
    assert "torn or changed" in role.output()
    assert "begin another generation: neardup backfill" in role.output()
    assert line.verdicts() == before
    # As it says; without --read-pages it finds that the log is incomplete.
    other = beside(line, checkpoints="")
    assert other.start("backfill", once=True).wait() == 0
    assert in_log(other) == merged(line)


@pytest.mark.whole
def test_a_restored_checkpoint_that_retention_has_overtaken(line: Line) -> None:
    """An old one, by hand: a newer one takes its place. Where none is set the error names `checkpoint restore`."""
    line.stop()
    wanted, store = line.expected(), CheckpointStore(line.settings.checkpoints)
    oldest, newest = list(store.usable())[-1], next(store.usable())
    assert oldest.manifest.offset < newest.manifest.offset
    shutil.rmtree(line.settings.state)
    restore_directory(Path(line.settings.state), store, name=oldest.name, seed=7)
    line.delete_before(line.names.sketches, 0, newest.manifest.offset)
    error = line.start("match", settings={"checkpoints": ""}).refused()
    assert "restore a checkpoint that the log still covers into a new `state` folder" in error
    other = line.folder / "new"
    assert restore_directory(other, store, seed=7).name == newest.name  # as it says
    line.start("match", settings={"checkpoints": "", "state": str(other)}).stop()
    # With `checkpoints` set nothing has to be done.
    matcher = line.start("match")
    line.publish(story(6))
    line.start("sketch")
    line.settle()
    line.stop()
    assert '"replaced": true' in matcher.output()
    found = line.verdicts()
    assert found[: len(wanted)] == wanted
    assert len({(verdict["page_id"], verdict["n"]) for verdict in found}) == len(found)


@pytest.mark.whole
def test_an_index_with_flipped_bits_is_set_aside(line: Line) -> None:
    """As the error says; the next start takes a checkpoint, and no verdict is another one."""
    line.stop()
    index = Path(line.settings.state, "index")
    for table in index.glob("*.sst"):
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 4
        table.write_bytes(data)
    line.publish(story(6))
    line.start("sketch")
    error = line.start("match").refused()
    assert "it is damaged, or not of this version; set it aside: it comes from a checkpoint" in error
    index.rename(index.with_name("index.damaged"))
    line.start("match")
    line.check()


@pytest.mark.whole
def test_messages_behind_the_newest_checkpoint_are_reported_over_restarts(make: Make, tmp_path: Path) -> None:
    """In intervals: an alert on more than two fires although a matcher that begins again has made none itself."""
    line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, flush_ms=1)
    line.judge(story())
    line.settle()
    line.stop()
    messages = max(offset for offset, _ in line.messages()) + 1
    newest = next(CheckpointStore(line.settings.checkpoints).usable()).manifest.offset

    def output(every: int, where: str) -> float:
        """After a start that has nothing left to judge."""
        runtime = quiet_runtime(replace(line.settings, checkpoint_messages=every, checkpoints=where))
        running = threading.Thread(target=run_matcher, args=(runtime.settings, runtime), daemon=True)
        running.start()
        try:
            ready = runtime.health.ready
            eventually(lambda: ready()[0], "it judges")
        finally:
            runtime.stop.set()
            running.join(60)
        return runtime.metrics.registry.get_sample_value("neardup_checkpoint_behind_ratio") or 0.0

    # The last of the messages may be a transaction's marker.
    assert output(1000, line.settings.checkpoints) == pytest.approx((messages - newest) / 1000, abs=0.0021)
    assert output(2, str(tmp_path / "never")) == pytest.approx(messages / 2, abs=1.01)
    assert output(2, "") == 0


@pytest.mark.parametrize("step", whole.first(["3 offsets sent", "4 written"], 1))
def test_killed_beside_a_checkpoint(make: Make, tmp_path: Path, step: str) -> None:
    checkpoints = {"checkpoints": str(tmp_path / "kept"), "checkpoint_messages": 1, "checkpoints_kept": 2}
    line = make(**checkpoints, flush_ms=1, kafka_values=REPLACING)
    line.publish(story())
    line.start("sketch")
    line.start("match", step=step, call=4).dead()
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.check()
