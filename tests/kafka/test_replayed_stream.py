"""Replays of the stream from the log, byte for byte, to a file and to a topic."""

import io
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from broker import eventually
from line import Line, Make, story
from test_backfill import beside

from neardup.errors import StateError
from neardup.limits import PLACE_BITS
from streams.errors import PositionLost, TopicError
from streams.formats.message import NewDecider
from streams.kafka.reader import TopicReader
from streams.state.checkpoint_manifest import Checkpoint
from streams.state.checkpoint_store import CheckpointStore
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream


@pytest.fixture
def line(make: Make) -> Line:
    """Judged, and at rest."""
    made: Line = make()
    made.judge(story())
    made.settle()
    made.stop()
    return made


def checkpoints(line: Line) -> list[Checkpoint]:
    """The newest first."""
    return list(CheckpointStore(line.settings.checkpoints).usable())


def kept(line: Line) -> list[bytes]:
    """Every committed verdict as its bytes, in the log's order."""
    with closing(TopicReader(line.connection, line.names.verdicts, committed_only=True)) as reader:
        found, ends = [], reader.ends()
        reader.assign(reader.first_offsets())
        while any(position < ends[partition] for partition, position in reader.positions().items()):
            found += [record.value() or b"" for record in reader.read(4096, wait_s=1.0)]

    def place(text: bytes) -> tuple[int, int]:
        verdict = json.loads(text)
        return verdict["page_id"], verdict["n"]

    return sorted(found, key=place)


def test_a_stretch_is_replayed_to_a_file_and_to_a_topic(line: Line) -> None:
    with pytest.raises(TopicError, match="create it first: neardup topics create --verdicts-topic nowhere"):
        replay_stream(line.settings, Stretch(), topic="nowhere")
    emitted, end = kept(line), line.ends(line.names.sketches)[0]
    for stretch in (Stretch(), Stretch(3, end - 2)):
        out = io.BytesIO()
        done = replay_stream(line.settings, stretch, out=out)
        stop = end if stretch.stop is None else stretch.stop
        wanted = [text for text in emitted if stretch.start <= json.loads(text)["page_id"] >> PLACE_BITS < stop]
        assert out.getvalue().splitlines() == wanted
        assert done.verdicts == len(wanted) > 10
    topic = line.names.verdicts + ".again"
    line.admin.create(topic, 2, 1, {})
    replay_stream(line.settings, Stretch(), topic=topic)
    line.names = line.names._replace(verdicts=topic)
    assert kept(line) == emitted


@pytest.mark.whole
def test_replay_of_a_trimmed_log_is_refused_with_the_held_offsets(line: Line) -> None:
    line.delete_before(line.names.sketches, 0, 4)
    with pytest.raises(PositionLost, match=rf"{line.names.sketches}.*offset 0 is to be read, and the topic holds 4 to"):
        replay_stream(line.settings, Stretch(5), out=io.BytesIO())


@pytest.mark.whole
def test_replay_uses_the_decider_of_the_index_and_refuses_another(line: Line, tmp_path: Path) -> None:
    other = replace(line.settings, decider_values={"tape_min": 0.5})
    out = io.BytesIO()
    replay_stream(other, Stretch(), out=out)
    assert out.getvalue().splitlines() == kept(line)
    # Where the directory is not at hand, it is what is set.
    with pytest.raises(StateError, match=r"set the former one: a replay repeats the committed verdicts"):
        replay_stream(replace(other, state=str(tmp_path / "none")), Stretch(), out=io.BytesIO())


@pytest.mark.whole
def test_another_log_of_the_name_has_no_past_verdicts(line: Line) -> None:
    line.recreate(line.names.sketches)
    with pytest.raises(StateError, match="was deleted and recreated, and holds none of their pages"):
        replay_stream(line.settings, Stretch(), out=io.BytesIO())


@pytest.mark.whole
def test_trimmed_log_is_replayed_from_a_checkpoint(make: Make, tmp_path: Path) -> None:
    line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=1, checkpoints_kept=9, flush_ms=1)
    line.start("sketch")
    line.start("match")
    pages = story()
    for wanted, part in ((1, pages[:15]), (2, pages[15:-1]), (0, pages[-1:])):
        line.publish(part)
        line.settle()
        eventually(lambda wanted=wanted: len(checkpoints(line)) >= wanted, "a checkpoint of it")
    line.stop()
    verdicts, end = kept(line), line.ends(line.names.sketches)[0]
    before_the_end = [one for one in checkpoints(line) if one.manifest.offset < end]
    newest, oldest = before_the_end[0].manifest, before_the_end[-1]
    assert 0 < oldest.manifest.offset < newest.offset
    line.delete_before(line.names.sketches, 0, oldest.manifest.offset)
    for start in (oldest.manifest.offset, newest.offset):
        out = io.BytesIO()
        replay_stream(line.settings, Stretch(start), out=out)
        again = [text for text in verdicts if json.loads(text)["page_id"] >> PLACE_BITS >= start]
        assert out.getvalue().splitlines() == again != []
    serves = f"checkpoint {oldest.name} serves for stretches from offset {oldest.manifest.offset} on"
    with pytest.raises(PositionLost, match=serves):
        replay_stream(line.settings, Stretch(oldest.manifest.offset - 1), out=io.BytesIO())
    line.delete_before(line.names.sketches, 0, end - 1)
    with pytest.raises(PositionLost, match="and no checkpoint at"):
        replay_stream(line.settings, Stretch(), out=io.BytesIO())
    assert Stretch(5, since_ms=100).begins_behind(9, 99)
    assert not Stretch(5, since_ms=100).begins_behind(9, 100)


STRICT = {"decider_values": {"tape_min": 0.999}}


def with_another_decider(line: Line) -> None:
    """Judged by two deciders, the second from a control record on, with a checkpoint before and behind that."""
    line.start("sketch")
    line.start("match")
    line.publish(story(12))
    line.settle()
    line.stop()
    strict = replace(line.settings, **STRICT)
    line.settings = strict
    line.start("sketch")
    line.start("match", new_decider=True)
    for part in (story(20)[:10], story(20)[10:]):
        line.publish(part)
        line.settle()
        if line.settings.checkpoints:
            end = line.ends(line.names.sketches)[0]
            eventually(lambda end=end: checkpoints(line)[0].manifest.offset >= end, "a checkpoint")
    line.stop()


@pytest.mark.whole
def test_replay_behind_a_removed_record_of_a_new_decider(make: Make, tmp_path: Path) -> None:
    line = make(checkpoints=str(tmp_path / "kept"), checkpoint_messages=1, checkpoints_kept=99, flush_ms=1)
    with_another_decider(line)
    verdicts, end = kept(line), line.ends(line.names.sketches)[0]
    (word,) = [offset for offset, entry in line._entries() if isinstance(entry, NewDecider)]
    behind = min(one.manifest.offset for one in checkpoints(line) if word < one.manifest.offset)
    assert behind < end
    line.delete_before(line.names.sketches, 0, behind)
    for state in (line.settings.state, str(tmp_path / "none")):
        out = io.BytesIO()
        replay_stream(replace(line.settings, state=state), Stretch(behind), out=out)
        again = [text for text in verdicts if json.loads(text)["page_id"] >> PLACE_BITS >= behind]
        assert out.getvalue().splitlines() == again != []
    with pytest.raises(PositionLost, match="is to be read, and the topic holds"):
        replay_stream(replace(line.settings, checkpoints=""), Stretch(behind), out=io.BytesIO())


@pytest.mark.whole
def test_replay_of_a_generation_that_judges_a_log_with_a_new_decider(make: Make) -> None:
    """By one decider, here the first one of that log; whose sketches it judges is in the control topic."""
    line = make(flush_ms=1)
    with_another_decider(line)
    second = beside(line, "second", decider_values={})
    assert second.start("backfill", once=True).wait() == 0
    out = io.BytesIO()
    replay_stream(replace(second.settings, sketches_of=None), Stretch(), out=out)
    assert out.getvalue().splitlines() == kept(second) != []
