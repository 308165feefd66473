"""Shards and a judge fail: topics between them are recreated, a disk is full, a frozen shard comes back."""

import re
import threading
from collections.abc import Callable
from contextlib import closing
from signal import SIGSTOP
from typing import Any

import pytest
from broker import eventually, kafka
from line import story
from roles import freeze, full_disk, standing
from sharded_line import EPOCH, SHARDS, ShardedLine

from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.limits import DAY_MS, PLACE_BITS
from neardup.page import Page
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.formats.message import Message, encode_message
from streams.pipeline.batch_fold import PAGES_BETWEEN
from streams.ports import Range
from streams.roles.shard_process import shard_state

pytestmark = pytest.mark.whole

Make = Callable[..., ShardedLine]


def stand_still(*_: Any) -> None:
    """The loop of the process makes no turn any more; its other threads go on."""
    threading.Event().wait()


def running(make_sharded: Make, **settings: Any) -> ShardedLine:
    """A line with pages to judge, whose sketcher runs."""
    line = make_sharded(**settings)
    line.publish(story())
    line.start("sketch")
    line.settle(judged=False)
    return line


def test_a_shard_without_room_on_its_disk_stops_and_goes_on(make_sharded: Make) -> None:
    line = running(make_sharded)
    line.start_shards(1)
    line.start("match")
    full = line.start("shard", shards=[1], step="3 acknowledged", how=full_disk)
    assert re.search("make room|File too large|no room", full.refused())
    line.start("shard", shards=[1])

    line.check()


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


def test_a_silent_broker_ends_no_judge_and_no_shard(own_broker: Any, make_sharded: Make) -> None:
    line = running(make_sharded, bootstrap=own_broker.bootstrap)
    judge = line.start("match")
    shards = [line.start("shard", shards=[number]) for number in range(SHARDS)]
    line.settle()
    once = line.answers()
    assigned = line.start("shard", settings={"state": str(line.folder / "other")})
    eventually(lambda: line.answers() == [2 * count for count in once], "all messages are answered again")
    own_broker.pause()  # else a role ends that waits for an acknowledgement for 120 s
    for role in (judge, assigned, *shards):
        eventually(lambda role=role: "waits for Kafka" in role.output(), "each role waits")
        assert role.running
    own_broker.resume()
    line.publish(story())

    line.check()


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


def test_several_shards_freeze_at_once_and_the_judge_names_them(make_sharded: Make) -> None:
    line = running(make_sharded)
    (port,) = kafka.free_ports(1)
    line.start("match", settings={"metrics_port": port})
    shards = [line.start("shard", shards=[number]) for number in range(SHARDS)]
    line.settle()
    for shard in shards[:2]:
        shard.signal(SIGSTOP)
    line.publish(story())
    eventually(lambda: "of shard 0, 1;" in standing("match", port)[1], "the judge is not ready, and names them")
    shards[0].thaw()
    eventually(lambda: "of shard 1; shard 1 does not run" in standing("match", port)[1], "one goes on")
    shards[1].kill()
    line.start("shard", shards=[1])

    line.check()


def test_the_judge_lets_a_slow_shard_run(make_sharded: Make) -> None:
    """It lives, and is at the message that the judge waits for: no answer is lost."""
    line = running(make_sharded)
    (port,) = kafka.free_ports(1)
    line.start_shards(1)
    slow = line.start("shard", shards=[1], step="1 read", how=stand_still)
    judge = line.start("match", settings={"metrics_port": port})
    runs = r"of shard 1; shard 1 runs and is at message \d+: leave it running"
    eventually(lambda: re.search(runs, standing("match", port)[1]), "it is alive")
    assert "--answer-from" not in judge.output()
    slow.kill()
    eventually(lambda: "shard 1 does not run: start it again" in standing("match", port)[1], "it is dead")
    line.start("shard", shards=[1])

    line.check()


def test_the_broker_is_killed_in_a_transaction_of_the_judge(own_broker: Any, make_sharded: Make) -> None:
    line = running(make_sharded, bootstrap=own_broker.bootstrap)
    judge = line.start("match", step="3 offsets sent", call=1, how=freeze)
    shard = line.start("shard", shards=[1])
    line.start_shards(1)
    judge.frozen()
    shard.signal(SIGSTOP)
    own_broker.kill()
    judge.thaw()
    shard.thaw()
    own_broker.restart()
    line.publish(story())

    line.check()


def test_a_shard_with_other_settings_is_named_by_the_judge_or_refused(make_sharded: Make) -> None:
    """A shard without an index answers the first messages before it has read any effects."""
    line = running(make_sharded)
    others: list[dict[str, Any]] = [{"decider_values": {"tape_min": 0.9}}, {"epoch": EPOCH + 2}]
    for other in others:
        wrong = line.start("shard", shards=[1], settings=other)
        eventually(lambda: line.answered()[1] >= 0, "an answer")
        wrong.stop()
    line.start_shards(1)
    judge = line.start("match")
    eventually(lambda: "shard 1 answers by other settings than the judge's" in judge.output(), "what it waits for")
    line.start("shard", shards=[1])
    line.settle()
    line.stop()

    refused = [
        (others[0], f"the index of shard 1 of {SHARDS}, epoch {EPOCH}"),
        (others[1], "go on with the settings that it was made with"),
        ({**others[1], "state": str(line.folder / "new")}, f"the judge has {SHARDS} shards with an epoch of {EPOCH}"),
        ({"shards": SHARDS + 1}, "each virtual shard has a partition of its own"),
        ({"seed": 8}, "holds sketches of scheme"),
    ]
    for settings, reason in refused:
        assert reason in line.start("shard", shards=[1], settings=settings).refused()
    line.start_shards()
    line.start("match")
    line.start("sketch")
    line.publish(story(4))

    line.check()


def test_expired_pages_leave_the_shards(make_sharded: Make) -> None:
    """By effects, at the same messages as in a lockstep. The sketches of some days are written into the log by hand."""
    line = make_sharded(decider_values={"expiry_days": 3})
    scheme, source = line.settings.scheme(), bytes(16)
    half = PAGES_BETWEEN // 2 + 1
    start = 0
    for day, count, most in ((0, half, 200), (9, half, 200), (10, 60, 5)):
        pages = [Page(f"http://a{n % 9}.example/{day}/{n}", b"<p>%d " % n * 30, "text/html") for n in range(count)]
        places = [Coordinates(source.hex(), 0, start + n) for n in range(count)]
        sketches = sketch_pages(pages, scheme, coordinates=places, log_times=[day * DAY_MS] * count)
        for first in range(0, count, most):
            some = tuple(sketches[first : first + most])
            span = Range(source, 0, start + first, start + first + len(some))
            line.append(encode_message(Message(bytes.fromhex(scheme.digest), (span,), some)))
        start += count
    judge = line.start("match")
    line.start_shards()
    log = line.names.sketches
    eventually(lambda: line.committed("match", log, 1) == line.ends(log), "all judged")
    line.stop()

    assert "dropped expired pages" in judge.output()
    assert line.verdicts() == line.expected()
    for number in range(SHARDS):
        with closing(RocksStore(shard_state(line.settings, number) / "index")) as store:
            kept = [int.from_bytes(key) >> PLACE_BITS for key, _ in store.scan(Family.SKETCHES)]
        assert min(kept) >= half // 200
