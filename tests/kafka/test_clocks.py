"""Clocks of the roles' machines jump by hours: no role ends, and no verdict is another one."""

import signal
import time
from pathlib import Path

import pytest
from broker import eventually
from line import Line, Make, story
from roles import How, clock_ahead, clock_back
from test_backfill import beside
from test_cutover import Reader
from test_views import Worker

from streams.kafka import TopicReader as TopicReader
from tests import whole

pytestmark = pytest.mark.whole

HOURS = pytest.mark.parametrize("jump", whole.first([clock_ahead, clock_back], 1))
#: Of the views: the clock jumps once a file is there, before any module has read it.
JUMPING = """
import time
from pathlib import Path
real, flag = time.time, Path({flag!r})
time.time = lambda: real() + {seconds} * flag.exists()
"""
SECONDS = 2 * 3_600


def stamped_by_the_broker(line: Line) -> None:
    """The times of all records of the log and of the verdicts lie between now and a little before."""
    for topic in (line.names.sketches, line.names.verdicts):
        reader = TopicReader(line.connection, topic, committed_only=True)
        times = [record.timestamp()[1] / 1000 for record in reader.to_end()]
        reader.close()
        assert times
        assert max(times) < time.time() + SECONDS / 2
        assert min(times) > time.time() - SECONDS / 2


@HOURS
def test_clocks_of_sketcher_matcher_standby_and_backfill_jump(make: Make, jump: How) -> None:
    line = make()
    line.publish(story(8))
    line.start("sketch", step="3 sketched", how=jump)
    active = line.start("match", standby=True, step="2 judged", how=jump)
    eventually(lambda: '"resumes"' in active.output(), "it is active")
    where = {"state": str(line.folder / "two")}
    line.start("match", step="2 judged", call=1, how=jump, settings=where, standby=True)
    line.settle()
    other = beside(line)
    other.start("backfill", read_pages=True, step="sketch 3 sketched", how=jump)
    line.publish(story(12))
    line.settle()
    active.kill()
    line.publish(story(8))
    line.settle()
    other.settle()
    stamped_by_the_broker(line)
    line.check()
    assert other.verdicts() == other.expected()


@HOURS
def test_the_clock_of_one_process_jumps(make: Make, jump: How) -> None:
    line = make()
    line.publish(story(8))
    line.start("run", step="match 2 judged", how=jump)
    line.settle()
    line.publish(story(12))
    line.settle()
    stamped_by_the_broker(line)
    line.check()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", whole.first([SECONDS, -SECONDS], 1))
def test_clocks_of_views_and_client_jump(
    make: Make, tmp_path: Path, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faust", reason="faust-streaming is not installed")
    line, flag, client = make(), tmp_path / "flag", None
    line.judge(story(8))
    line.settle()
    client = Reader(line)
    client.start()
    before = JUMPING.format(flag=str(flag), seconds=seconds)
    worker = Worker(line.bootstrap, line.names, tmp_path / "views", before=before)
    try:
        worker.takes(len(line.verdicts()))
        flag.touch()
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        line.publish(story(12))
        line.settle()
        emitted = [("", verdict["page_id"], verdict["n"]) for verdict in line.verdicts()]
        worker.takes(len(emitted))
        eventually(lambda: len(client.seen) >= len(emitted), "the client has them all")
        assert sorted(client.seen) == emitted
        assert worker.end(signal.SIGTERM) == 0
    finally:
        client.stop()
        worker.kill()
        print(worker.log())
    monkeypatch.undo()
    line.check()
