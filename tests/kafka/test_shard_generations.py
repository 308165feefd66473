"""From one matcher to four shards and back, and from four to sixteen: backfills and cut-overs, as the pages say."""

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from broker import eventually, kafka
from line import Line, Make, story
from sharded_line import lockstep_of, messages_of
from test_backfill import beside, control, live
from test_cutover import Reader, ids

from neardup.errors import StateError
from streams.kafka import Stage
from streams.operate.cut_over import cut_over
from streams.operate.generations import removed
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream

pytestmark = pytest.mark.whole


def sharded(line: Line, name: str, shards: int, **settings: Any) -> Line:
    """A generation with shards that judges the sketches of the one without a name."""
    between = {"candidates_topic": f"{line.names.pages}.candidates", "effects_topic": f"{line.names.pages}.effects"}
    return beside(line, name, **{"shards": shards, "epoch": 2, "sketches_of": "", **between, **settings})


def whole(line: Line) -> list[dict[str, Any]]:
    """Its verdicts, which are those of a lockstep of the log."""
    found = line.verdicts()
    assert found == lockstep_of(line, messages_of(line))
    return found


def caught_up(line: Line, name: str) -> bool:
    known = control(line).read().known.get(name)
    return known is not None and known.stage is Stage.CAUGHT_UP


def test_one_matcher_to_four_shards_under_load_and_back(make: Make) -> None:
    line = live(make, story())
    for role in ("sketch", "match"):
        line.start(role)
    with reading(line) as reader:
        go_and_return(line, reader)


def lags(port: int) -> dict[str, float]:
    """What a process reports of its shards."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        found = re.findall(r'(?m)^neardup_shard_lag_records\{shard="(\d+)"\} (\S+)$', answer.read().decode())
    return {number: float(lag) for number, lag in found}


@contextmanager
def reading(line: Line) -> Iterator[Reader]:
    reader = Reader(line)
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()


def go_and_return(line: Line, reader: Reader) -> None:
    other = sharded(line, "second", 4)
    (port,) = kafka.free_ports(1)
    backfill = other.start("backfill", settings={"metrics_port": port}, shard_processes=2)
    line.publish(story())
    eventually(lambda: caught_up(line, "second"), "it has caught up")
    eventually(lambda: lags(port) == {"0": 0, "1": 0, "2": 0, "3": 0}, "the lag of each shard")
    assert cut_over(line.settings, "second") == ""
    backfill.stop()

    other.start("match")
    for numbers in ([0, 1], [2, 3]):
        other.start("shard", shards=numbers)
    line.publish(story())
    line.settle()
    all_read(line, other, reader)

    assert cut_over(line.settings, "", force=True) == "second"
    line.publish(story(4))
    line.settle()
    first = ids(line.verdicts())
    eventually(lambda: reader.of("") == first, "back, and on where it was")
    line.stop()


def test_four_shards_to_sixteen_under_load(make: Make) -> None:
    line = live(make, story())
    four, sixteen = sharded(line, "four", 4), sharded(line, "sixteen", 16)
    assert four.start("backfill", once=True, shard_processes=1).wait() == 0
    assert "was begun with decider" in four.start("backfill", settings={"shards": 8}, once=True).refused()
    assert cut_over(line.settings, "four", force=True) == ""
    line.start("sketch")
    former = [four.start("match"), *(four.start("shard", shards=numbers) for numbers in ([0, 1], [2, 3]))]
    with reading(line) as reader:
        backfill = sixteen.start("backfill", shard_processes=2)
        line.publish(story())
        eventually(lambda: caught_up(line, "sixteen"), "it has caught up")
        line.publish(story(8))
        eventually(lambda: reader.of("four"), "verdicts of the former generation")
        assert cut_over(line.settings, "sixteen") == "four"
        backfill.stop()
        sixteen.start("match")
        for numbers in (range(8), range(8, 16)):
            sixteen.start("shard", shards=numbers)
        line.publish(story(12))
        all_read(line, sixteen, reader)
        assert len(read := reader.of("four")) == len(set(read))

        former[0].stop()
        with pytest.raises(StateError, match=r"four is served by \S+\.shard\S* at .*: stop its roles first"):
            removed(four.settings, "four")
        for role in former[1:]:
            role.stop()
        assert set(read) <= set(ids(whole(four)))
        assert set(removed(four.settings, "four")) == {four.names.verdicts, four.names.candidates, four.names.effects}
        line.publish(story(4))
        all_read(line, sixteen, reader)
    line.stop()


def test_verdicts_that_retention_removed_are_replayed_before_the_cutover(make: Make) -> None:
    """As the refusal says; where the log is trimmed, too, it advises another backfill."""
    line = live(make, story())
    four = sharded(line, "four", 4)
    assert four.start("backfill", once=True, shard_processes=1).wait() == 0
    topic = four.names.verdicts
    verdicts = four.verdicts()
    line.delete_before(topic, 0, four.ends(topic)[0] // 2)
    assert four.verdicts() != verdicts
    with pytest.raises(StateError, match="Stop its judge; write all its verdicts again") as refused:
        cut_over(four.settings, "four")
    command = re.search(r"neardup replay (.*?)\)", str(refused.value))
    assert command is not None
    given = dict(re.findall(r"--(\S+) (\S+)", command[1]))
    assert given == {"generation": "four", "sketches-of": "''", "shards": "4", "to-topic": topic}
    own = replace(line.settings, generation="four", sketches_of="", shards=4, epoch=2, state=four.settings.state)
    replay_stream(own, Stretch(), topic=topic)
    assert four.verdicts() == verdicts
    line.delete_before(line.names.sketches, 0, 1)
    with pytest.raises(StateError, match=r"at offset 1: remove the generation \(neardup generation remove four"):
        cut_over(four.settings, "four")
    cut_over(four.settings, "four", force=True)


def all_read(line: Line, other: Line, reader: Reader) -> None:
    """Waits until the pages of `line` are judged in the generation of `other`, and its verdicts are read, each once."""
    line.settle(judged=False)
    log = other.names.sketches
    eventually(lambda: other.committed("match", log, 1) == other.ends(log), "all sketches judged")
    verdicts = ids(whole(other))
    eventually(lambda: reader.of(other.settings.generation) == verdicts, "all verdicts of shards and judge")
