"""State, topics or settings changed under the roles: they go on rightly, or stop and say what to do."""

import re
import shutil
from pathlib import Path
from signal import SIGTERM

import pytest
from broker import eventually
from line import Make, story
from roles import full_disk

from streams.formats.message import Decision
from streams.operate.operator_decisions import decide

# The state directory.


@pytest.mark.whole
def test_a_full_disk(make: Make) -> None:
    line = make(flush_ms=1)
    line.publish(story())
    line.start("sketch")
    matcher = line.start("match", step="5 about to flush", call=3, how=full_disk)

    assert "StateError: cannot write the index" in matcher.refused()
    line.start("match")
    line.check()


@pytest.mark.whole
def test_a_sketcher_needs_no_disk(make: Make) -> None:
    """No file of it may grow, and its `state` is a path where no folder can be made."""
    line = make()
    line.publish(story())
    (line.folder / "file").touch()
    where = {"state": str(line.folder / "file" / "state")}
    sketcher = line.start("sketch", step="1 polled", call=1, how=full_disk, settings=where)
    line.start("match")
    line.settle()
    sketcher.signal(SIGTERM)
    sketcher.stopped()
    line.check()


def test_deleted_state_directory_is_rebuilt(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.publish(story(12))

    line.check()


@pytest.mark.whole
def test_a_directory_that_vanishes_under_a_matcher(make: Make) -> None:
    line = make(flush_ms=1)
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    Path(line.settings.state).rename(line.folder / "elsewhere")
    line.publish(story(8))

    error = matcher.refused()
    assert error.startswith(("StateError: cannot write the index ", "StateError: cannot find ")), error
    assert "its directory is gone" in error or "No such file or directory; mend that, then run" in error
    line.start("match")
    line.check()


@pytest.mark.whole
def test_an_expired_offset_is_found_by_the_verdicts(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    line.forget("match")
    shutil.rmtree(line.settings.state)
    line.start("match")
    line.publish(story(12))

    line.check()


@pytest.mark.whole
def test_index_ahead_of_the_committed_offset_is_refused(make: Make) -> None:
    line = make()
    line.judge(story(8))
    line.settle()
    line.stop()
    line.reset("match", line.names.sketches, 1)

    error = line.start("match").refused()

    assert "StateError" in error
    assert "verdicts are committed up to 1 only" in error


def test_another_decider_is_refused(make: Make, tmp_path: Path) -> None:
    line = make()
    line.judge(story(8))
    line.settle()
    line.stop()
    strict = {"decider_values": {"tape_min": 0.9}}

    error = line.start("match", settings=strict).refused()
    assert "is decided by rule verified" in error
    assert "(tape_min 0.74 -> 0.9); set the former one, or add --new-decider" in error
    # Not even with a new directory: what it would fold is not what the verdicts were made of.
    elsewhere = {**strict, "state": str(tmp_path / "elsewhere")}
    error = line.start("match", settings=elsewhere, new_decider=True).refused()
    assert "were committed with decider" in error
    assert "set the former one" in error
    # Nor where the index could not go on.
    error = line.start("match", settings={"decider_values": {"rule": "simhash"}}, new_decider=True).refused()
    assert "keeps other keys in the index than verified does: begin another generation" in error


@pytest.mark.whole
def test_new_decider_decides_from_its_control_record_on(make: Make, tmp_path: Path) -> None:
    line = make()
    line.publish(story(12))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    strict = {"decider_values": {"tape_min": 0.999, "two_sites_tape_min": 0.999}}
    # Its word is in the log when it dies, and is not written a second time.
    line.start("match", settings=strict, new_decider=True, step="1 polled", call=1).dead()
    line.publish(story(20))
    line.start("match", settings=strict, new_decider=True)
    line.settle()
    assert "add --new-decider" in line.start("match", settings={"state": str(tmp_path / "other")}).refused()

    verdicts = line.check()
    deciders = [verdict["decider"] for verdict in verdicts]
    assert len(set(deciders)) == 2
    change = deciders.index(deciders[-1])
    assert set(deciders[:change]) == {deciders[0]}
    for some in (verdicts[:change], verdicts[change:]):
        merged = {verdict["verdict"] for verdict in some}
        assert ("near_duplicate" in merged) == (some[0]["decider"] == deciders[0])

    # A new fold of the log finds both.
    shutil.rmtree(line.settings.state)
    line.publish(story(3))
    line.start("sketch")
    line.start("match", settings=strict)
    line.check()


# Topics.


@pytest.mark.whole
def test_a_recreated_pages_topic_is_another_source(make: Make) -> None:
    line = make()
    line.publish(story(8))
    sketcher = line.start("sketch")
    line.start("match")
    line.settle()
    line.recreate(line.names.pages)
    line.publish(story(8))

    assert "recreated" in sketcher.refused()
    line.start("sketch")
    line.check()


def test_a_recreated_sketch_log_is_refused(make: Make) -> None:
    line = make()
    line.judge(story(8))
    line.settle()
    line.stop()
    line.recreate(line.names.sketches)

    error = line.start("match").refused()

    assert "StateError" in error
    assert "topic id" in error
    assert "begin another generation" in error
    assert "directory" not in error


def test_retention_overtakes_the_matcher(make: Make) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    matcher.stop()
    line.publish(story(8))
    eventually(lambda: line.committed("sketch", line.names.pages, 2) == line.ends(line.names.pages), "all read")
    end = line.ends(line.names.sketches)[0]
    line.delete_before(line.names.sketches, 0, end - 1)

    error = line.start("match").refused()

    assert f"begins at offset {end - 1}" in error
    assert "retention has overtaken it; restore a checkpoint" in error


@pytest.mark.whole
def test_retention_overtakes_the_sketcher(make: Make) -> None:
    line = make(partitions=1)
    line.publish(story(6))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()
    lost = line.total()
    line.publish(story(6))
    line.delete_before(line.names.pages, 0, lost + 3)

    error = line.start("sketch").refused()
    assert f"offset {lost} is to be read" in error

    # The operator moves the group on, as advised; now the matcher needs a decision.
    moved = re.search(r"--group (\S+) --topic (\S+):(\d+) --reset-offsets --to-offset (\d+) --execute", error)
    assert moved is not None
    assert moved.groups() == (line.settings.group_of("sketch"), line.names.pages, "0", str(lost + 3))
    line.reset("sketch", line.names.pages, lost + 3)
    line.start("sketch")
    error = matcher.refused()
    assert f"records {lost} to {lost + 2} are missing" in error
    at = int(error.rpartition("accept it: neardup accept gap ")[2])
    assert f"SourceGap: the message at offset {at} " in error
    assert "SourceGap" in line.start("match").refused()
    decide(line.settings, Decision.ACCEPT_GAP, at)
    line.start("match")
    line.lose(lost, lost + 3)
    line.check()

    # A new fold of the log finds the control record again.
    shutil.rmtree(line.settings.state)
    line.judge(story(2))
    line.check()


@pytest.mark.whole
def test_a_message_larger_than_allowed(make: Make) -> None:
    line = make()
    sketcher = line.start("sketch")
    eventually(lambda: line.members() == 1, "its start")
    line.alter(line.names.sketches, "max.message.bytes", "600")
    line.publish(story())
    error = sketcher.refused()

    assert "BrokerError" in error
    assert "Message size too large" in error
    assert line.committed("sketch", line.names.pages, 2) == {0: 0, 1: 0}
    for role in ("sketch", "match"):
        error = line.start(role).refused()
        assert f"TopicError: topic {line.names.sketches}: max.message.bytes is 600, needed: 1000000 or more; " in error
    line.alter(line.names.sketches, "max.message.bytes", "1048588")
    line.start("sketch")
    line.start("match")
    line.check()


@pytest.mark.whole
def test_a_role_asks_only_about_its_own_topics(make: Make) -> None:
    line = make()
    line.alter(line.names.verdicts, "unclean.leader.election.enable", "true")
    sketcher = line.start("sketch")
    eventually(lambda: line.members() == 1, "its start")
    error = line.start("match").refused()
    assert f"TopicError: topic {line.names.verdicts}: unclean.leader.election.enable is true, needed: false; " in error
    line.alter(line.names.verdicts, "unclean.leader.election.enable", "false")
    line.publish(story(8))
    line.settle(judged=False)
    sketcher.stop()
    line.alter(line.names.pages, "message.timestamp.type", "CreateTime")
    assert "message.timestamp.type is CreateTime, needed: LogAppendTime" in line.start("sketch").refused()
    line.start("match")

    line.check()


@pytest.mark.whole
def test_a_quiet_month(make: Make) -> None:
    """Offsets have expired, and retention has emptied the topics: the index alone knows where it was."""
    line = make()
    line.publish(story(8))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()
    matcher.stop()
    emitted, total = len(line.verdicts()), line.total()
    line.forget("match")
    for topic in (line.names.sketches, line.names.verdicts, line.names.pages):
        for partition, end in line.ends(topic).items():
            line.delete_before(topic, partition, end)
    assert line.verdicts() == []
    assert emitted

    line.start("match")
    line.start("sketch")
    line.publish(story(12))
    line.settle()
    assert sum(verdict["verdict"] != "promoted" for verdict in line.verdicts()) == line.total() - total
