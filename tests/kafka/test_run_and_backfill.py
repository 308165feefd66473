"""`neardup run` and a backfill fail and go on as a sketcher and a matcher in processes of their own do."""

import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from broker import eventually, kafka
from confluent_kafka.admin import NewPartitions
from line import SOON, Line, Make, story
from roles import Role, full_disk
from test_backfill import beside
from test_recreated_topics import pages, say_again
from test_standby import follows, pair, started

from neardup.page import Page
from streams.formats.message import Decision
from streams.kafka import Writer
from streams.operate.operator_decisions import decide
from streams.state.checkpoint_store import CheckpointStore

pytestmark = pytest.mark.whole

#: Of the topic `pages`: partitions that are added are seen soon.
REFRESH = {"topic.metadata.refresh.interval.ms": "500"}
Start = Callable[..., Role]


def served(kind: str, line: Line) -> tuple[Line, Start]:
    """The generation that `run` or a backfill serves, and a function that starts the process."""
    if kind == "run":
        return line, partial(line.start, "run")
    other = beside(line)
    return other, partial(other.start, "backfill", read_pages=True)


both = pytest.mark.parametrize("kind", ["run", "backfill"])


@both
def test_a_recreated_topic_ends_run_and_backfill_and_their_advice_is_followed(make: Make, kind: str) -> None:
    line, start = served(kind, make())
    line.publish(pages(20))
    role = start()
    line.settle()
    line.recreate(line.names.pages)
    line.publish(pages(20, 20))
    assert "start again to read the new one" in role.refused()

    role = start()
    line.settle()
    line.recreate(line.names.verdicts)
    assert "start the matcher: it says what is gone and how to emit it again" in role.refused()
    error = start().refused()
    say_again(line, error)
    line.start("match", accept_lost_verdicts=True)
    line.settle()
    line.check()

    role = start()
    eventually(lambda: '"resumes"' in role.output() and line.members() == 1, "it is at work")
    line.recreate(line.names.sketches)
    assert "begin another generation" in role.refused()


@both
def test_retention_overtakes_run_and_backfill_and_their_advice_is_followed(make: Make, kind: str) -> None:
    line, start = served(kind, make(partitions=1))
    line.publish(story(6))
    role = start()
    line.settle()
    role.stop()
    lost = line.total()
    line.publish(story(6))
    line.delete_before(line.names.pages, 0, lost + 3)

    assert f"--reset-offsets --to-offset {lost + 3} --execute" in start().refused()
    line.reset("sketch", line.names.pages, lost + 3)
    error = start().refused()
    assert f"records {lost} to {lost + 2} are missing" in error
    decide(line.settings, Decision.ACCEPT_GAP, int(error.rpartition("accept it: neardup accept gap ")[2]))
    start()
    line.lose(lost, lost + 3)
    line.check()

    shutil.rmtree(line.settings.state)
    line.delete_before(line.names.sketches, 0, line.ends(line.names.sketches)[0] - 1)
    assert "retention has overtaken it; restore a checkpoint" in start().refused()


@pytest.mark.parametrize("kind", ["run", "backfill", "sketch and match", "standby"])
def test_partitions_that_are_added_are_used(make: Make, kind: str) -> None:
    """Of `pages` and of `verdicts`."""
    line = make(kafka_values={**SOON, **REFRESH})
    if kind in ("run", "backfill"):
        line, start = served(kind, line)
        start()
    else:
        line.start("sketch")
        line.start("match") if kind == "sketch and match" else started(line, "one")
    line.publish(story(8))
    line.settle()
    spare = started(line, "two")[1] if kind == "standby" else 0
    for topic in (line.names.pages, line.names.verdicts):
        line._client.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
        eventually(lambda topic=topic: line.admin.topic(topic).partitions == 3, "the third partition")
    line.publish(story(8), partition=2)
    line.settle()
    if kind == "standby":
        follows(line, spare)
        line._roles[1].kill()
    line.publish(story(12))
    line.check()


@both
def test_a_full_disk_ends_run_and_backfill_and_nothing_is_lost(make: Make, kind: str) -> None:
    line, start = served(kind, make(flush_ms=1))
    line.publish(story())
    role = start(step="match 5 about to flush", call=3, how=full_disk)

    assert "StateError: cannot write the index" in role.refused()
    start()
    line.check()


def test_a_full_disk_ends_a_standby_that_takes_over_and_nothing_is_lost(make: Make) -> None:
    line, live, other = pair(make)
    other.stop()
    where = {"state": str(line.folder / "two")}
    spare = line.start("match", step="5 about to flush", call=1, how=full_disk, settings=where, standby=True)
    live.kill()
    line.publish(pages(40))
    assert "StateError: cannot write the index" in spare.refused()
    started(line, "two")
    line.check()


class Bodies(BaseHTTPRequestHandler):
    """A store of bodies."""

    held: dict[str, bytes] = {}  # noqa: RUF012

    def do_GET(self) -> None:
        body = self.held[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@both
def test_run_and_backfill_go_on_while_their_stores_are_away(make: Make, tmp_path: Path, kind: str) -> None:
    """The store of bodies, and that of checkpoints."""
    (port,) = kafka.free_ports(1)
    kept, prefix = tmp_path / "kept", f"http://127.0.0.1:{port}/"
    line = make(partitions=1, body_ref_prefixes=(prefix,), checkpoints=str(kept), checkpoint_messages=1, flush_ms=1)
    line, start = served(kind, line)
    role = start()
    for _ in range(2):  # no checkpoint is made of what is there at the start
        line.publish(story(4))
        line.settle()
    eventually(lambda: any(CheckpointStore(str(kept)).usable()), "a checkpoint")
    while not kept.is_file():  # a role that is making a checkpoint makes the folder again
        shutil.rmtree(kept, ignore_errors=True)
        with suppress(IsADirectoryError):
            kept.write_text("no folder")
    line.publish(story(4))
    line.settle()
    eventually(lambda: "no checkpoint was made" in role.output(), "it notices")

    sent = Page(f"{prefix}page", b"<p>" + b"wool " * 60, "text/html", 7)
    Bodies.held["/body"] = sent.body or b""
    with closing(Writer(line.connection, line.names.pages)) as writer:
        headers = [("content-type", b"text/html"), ("body-ref", f"{prefix}body".encode()), ("fetched-at", b"7")]
        writer.send(b"", key=sent.url.encode(), headers=headers, partition=0)
        writer.flush()
    source = line.admin.topic(line.names.pages).id.hex()
    line.published[source, 0].append(sent)
    eventually(lambda: "waits for a body" in role.output(), "it waits")
    with ThreadingHTTPServer(("127.0.0.1", port), Bodies) as store:
        Thread(target=store.serve_forever, daemon=True).start()
        line.settle()
        kept.unlink()
        before = role.output().count("checkpoint made")
        line.publish(story(4))
        line.settle()
        eventually(lambda: role.output().count("checkpoint made") > before, "another checkpoint")
        line.check()
        store.shutdown()
