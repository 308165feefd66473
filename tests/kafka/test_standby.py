"""A warm standby: it follows the one at work in silence, and takes over when that one dies, or is too slow."""

import shutil
import time
from pathlib import Path
from signal import Signals
from typing import Any

import pytest
from broker import eventually, kafka
from line import Line, Make, story
from roles import Role, readiness, standing
from test_recreated_topics import say_again

from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.page import Page
from streams.state.checkpoint_store import CheckpointStore

#: As every matcher with a standby, each in a directory of its own.
STANDBY = {"standby": True}


def started(line: Line, name: str, **settings: Any) -> tuple[Role, int]:
    (port,) = kafka.free_ports(1)
    where = {"state": str(line.folder / name), "metrics_port": port, **settings}
    return line.start("match", settings=where, **STANDBY), port


def pair(make: Make, **settings: Any) -> tuple[Line, Role, Role]:
    """An active matcher that has judged a story, and a standby that has followed it to the end."""
    line = make(flush_ms=1, **settings)
    line.publish(story())
    line.start("sketch")
    live, port = started(line, "one")
    eventually(lambda: readiness("match", port) == "judges", "the first is at work")
    other, spare = started(line, "two")
    line.settle()
    follows(line, spare)
    assert readiness("match", port) == "judges"
    return line, live, other


def follows(line: Line, port: int) -> None:
    """Waits until a standby has folded all messages, and is ready."""
    end = line.ends(line.names.sketches)[0]  # retention may have removed all of them
    eventually(lambda: readiness("match", port) == f"stands by: folded to offset {end}", "the standby has followed")


def page(name: str) -> Page:
    return Page(f"http://new.example/{name}", f"<title>{name}</title> {name} alone".encode(), "text/html")


def is_told(line: Line, name: str) -> bool:
    return any(verdict["url"] == page(name).url for verdict in line.verdicts())


def contents(path: Path) -> list[list[tuple[bytes, bytes]]]:
    store = RocksStore(path / "index")
    try:
        return [list(store.scan(family)) for family in Family]
    finally:
        store.close()


def test_standby_takes_over_from_a_killed_matcher(make: Make) -> None:
    line, live, _ = pair(make)
    live.kill()
    began = time.monotonic()
    line.publish([page("after"), *story(6)])
    eventually(lambda: is_told(line, "after"), "the standby tells")
    print(f"taken over after {time.monotonic() - began:.1f} s")
    third, port = started(line, "one")  # the killed one is the standby now
    line.settle()
    follows(line, port)
    line.check()
    assert third.wait() == 0
    assert contents(line.folder / "one")[1:] == contents(line.folder / "two")[1:]


def test_a_slow_matcher_is_fenced_and_becomes_the_standby(make: Make) -> None:
    line, live, _ = pair(make)
    live.signal(Signals.SIGSTOP)
    line.publish([page("meanwhile")])
    eventually(lambda: is_told(line, "meanwhile"), "the standby tells")
    live.signal(Signals.SIGCONT)
    eventually(lambda: '"starts again"' in live.output(), "it has stepped back")
    line.publish([page("later")])
    line.check()
    assert live.wait() == 0


def test_standby_takes_over_at_once_from_a_stopped_matcher(make: Make) -> None:
    line, live, other = pair(make)
    live.stop()
    line.publish([page("after")])
    line.check()
    assert other.wait() == 0


# What a standby could not begin with.


@pytest.mark.whole
def test_a_standby_with_the_former_decider_is_not_ready(make: Make) -> None:
    line, _, _ = pair(make)
    line.stop()
    strict = {"decider_values": {"tape_min": 0.999}}
    (port,) = kafka.free_ports(1)
    where = {"state": str(line.folder / "one"), "metrics_port": port, **strict}
    live = line.start("match", settings=where, new_decider=True, **STANDBY)
    eventually(lambda: readiness("match", port) == "judges", "it decides by the new one")
    line.publish([page("after"), *story(6)])
    line.start("sketch")
    line.settle()
    other, spare = started(line, "two")
    (ready, why) = eventually(lambda: "decided by" in (found := standing("match", spare))[1] and found, "it says why")
    assert not ready
    assert "(tape_min 0.999 -> 0.74); set the former one, or add --new-decider" in why
    other.stop()  # as it says
    other, spare = started(line, "two", **strict)
    follows(line, spare)
    live.kill()
    line.publish([page("last")])
    line.check()
    assert other.wait() == 0


@pytest.mark.whole
def test_the_same_replay_named_by_two_standbys_is_run_twice(make: Make) -> None:
    line, live, other = pair(make)
    emitted = line.verdicts()
    line.recreate(line.names.verdicts)
    live.refused()
    assert "was deleted and recreated" in other.refused()
    # Restarted, one leads and names the replay; the other one leads when that has ended, and names the same.
    error = [started(line, name)[0].refused() for name in ("one", "two")]
    for text in error:
        say_again(line, text)
    assert line.verdicts() == emitted
    (port,) = kafka.free_ports(1)
    where = {"state": str(line.folder / "one"), "metrics_port": port}
    line.start("match", settings=where, accept_lost_verdicts=True, **STANDBY)
    eventually(lambda: readiness("match", port) == "judges", "it goes on")
    _, spare = started(line, "two")
    follows(line, spare)
    line.publish([page("after")])
    line.start("sketch")
    line.check()


# What retention has taken meanwhile.


def newest(line: Line) -> int:
    """Offset of the newest checkpoint; 0 if there is none."""
    return next((one.manifest.offset for one in CheckpointStore(line.settings.checkpoints).usable()), 0)


def retained(line: Line, offset: int) -> list[dict[str, Any]]:
    """Retention removes the log's messages before an offset; what their verdicts must be."""
    wanted = line.expected()
    line.delete_before(line.names.sketches, 0, offset)
    return wanted


def taken_over(line: Line, live: Role, other: Role, wanted: list[dict[str, Any]]) -> None:
    """The standby goes on where the active one was killed: no verdict is lost or emitted twice."""
    live.kill()
    line.publish([page("last")])
    eventually(lambda: is_told(line, "last"), "the standby tells")
    line.settle()
    line.stop()
    found = line.verdicts()
    assert found[: len(wanted)] == wanted
    assert len(found) == len(wanted) + 1
    assert other.wait() == 0


@pytest.mark.whole
def test_a_standby_that_was_off_longer_than_retention(make: Make, tmp_path: Path) -> None:
    line, live, other = pair(make, checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2)
    other.stop()
    before = newest(line)
    line.publish(story(12))
    line.settle()
    eventually(lambda: newest(line) > before + 2, "a newer checkpoint")
    wanted = retained(line, newest(line))
    other, spare = started(line, "two")
    follows(line, spare)
    assert "index restored" in other.output()
    assert "generation" not in other.output().replace('"generation": ""', "")
    taken_over(line, live, other, wanted)


@pytest.mark.whole
def test_a_standby_waits_for_a_checkpoint_that_it_can_use(make: Make, tmp_path: Path) -> None:
    line, live, other = pair(make, checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2)
    other.stop()
    shutil.rmtree(line.folder / "two")
    shutil.rmtree(line.settings.checkpoints)
    retained(line, max(offset for offset, _ in line.messages()) + 1)
    other, spare = started(line, "two")
    lacks = "no checkpoint at"
    (ready, why) = eventually(lambda: lacks in (found := standing("match", spare))[1] and found, "it waits")
    assert not ready
    assert "waits for the next one of the active matcher" in why
    line.publish(story(12))
    line.settle()
    follows(line, spare)
    assert other.running
    live.kill()
    line.publish([page("last")])
    eventually(lambda: is_told(line, "last"), "the standby tells")
    emitted = [(verdict["page_id"], verdict["n"]) for verdict in line.verdicts()]
    assert len(set(emitted)) == len(emitted)


@pytest.mark.whole
def test_a_standby_without_checkpoints_asks_for_them(make: Make) -> None:
    line, live, other = pair(make)
    other.stop()
    shutil.rmtree(line.folder / "two")
    retained(line, max(offset for offset, _ in line.messages()) + 1)
    error = started(line, "two")[0].refused()
    assert "begin another generation" not in error
    assert "set the same `checkpoints` for all matchers" in error
    # Its other way: the folder of the stopped one at work.
    live.stop()
    shutil.copytree(line.folder / "one", line.folder / "two", dirs_exist_ok=True)
    _, spare = started(line, "two")
    eventually(lambda: readiness("match", spare) == "judges", "it goes on")
