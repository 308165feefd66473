"""What goes wrong around the roles: each page has its one right verdict, or the line stops and says what to do."""

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from broker import LOOKS_MS, PATIENCE_SECONDS, eventually, kafka
from line import Make, story
from roles import freeze
from test_kafka_verdicts import batch, committed_values, sink, values_of

from streams.config.settings import Topics
from streams.errors import Fenced
from streams.kafka import Connection, TopicReader, topics
from streams.kafka.topics import Sizes

#: Of transactions that no client ends.
TIMEOUT_MS = 8_000

# Two at once.


def test_a_second_matcher_fences_the_first(make: Make, tmp_path: Path) -> None:
    line = make()
    line.publish(story())
    line.start("sketch")
    first = line.start("match", step="3 offsets sent", how=freeze)
    first.frozen()
    second = line.start("match", settings={"state": str(tmp_path / "elsewhere")})
    line.settle()
    first.thaw()

    assert "Fenced: another process has taken over" in first.refused()
    # The first one's index did not get ahead of the log: it can go on where the second one stops.
    second.stop()
    line.start("match")
    line.publish(story(5))
    line.check()


def test_one_directory_is_for_one_matcher(make: Make) -> None:
    line = make()
    first = line.start("match")
    eventually(lambda: "resumes" in first.output(), "the first one's start")

    assert f"is in use by process {first.pid}" in line.start("match").refused()


def test_a_zombie_sketcher_s_messages_arrive_late(make: Make) -> None:
    line = make()
    line.publish(story())
    # Frozen with sketches in hand. Its place in the group goes to a namesake at once.
    # Were its session to end by time instead, it would come back as a new member and take the place again.
    patient = {"kafka_values": {"sketch.session.timeout.ms": "300000"}}
    zombie = line.start("sketch", step="4 sends late", call=3, how=freeze, member="only", settings=patient)
    zombie.frozen()
    line.start("sketch", member="only")
    line.start("match")
    line.settle()
    before = len(list(line.messages()))
    zombie.thaw()

    assert "BrokerError" in zombie.refused()
    assert len(list(line.messages())) > before, "the zombie sent nothing: the test tests nothing"
    line.publish(story(3))
    line.check()


def test_sketchers_come_and_go(make: Make) -> None:
    line = make(batch_pages=1)
    line.publish(story())
    first = line.start("sketch")
    line.start("match")
    eventually(lambda: line.messages() and sum(1 for _ in line.messages()) > 3, "some sketches")
    second = line.start("sketch")
    line.publish(story(10))
    eventually(lambda: '"reads"' in second.output() or line.members() == 2, "two members")
    line.publish(story(4))
    first.stop()
    line.publish(story(5))

    line.check()


@pytest.mark.whole
def test_the_newer_protocol_of_groups(make: Make) -> None:
    newer = {"kafka_values": {"group.protocol": "consumer"}}
    line = make(batch_pages=1)
    line.publish(story())
    first = line.start("sketch", settings=newer)
    line.start("match", settings=newer)
    eventually(lambda: line.members() == 1, "its start")
    second = line.start("sketch", settings=newer)
    line.publish(story(10))
    eventually(lambda: line.members() == 2, "two members")
    line.publish(story(4))
    first.stop()
    line.publish(story(5))
    line.check()
    assert not second.running


# The broker.


@pytest.fixture
def looking_broker(tmp_path: Path) -> Iterator[str]:
    """A broker that soon gives up a transaction that has timed out."""
    with kafka.Cluster(tmp_path / "kafka", settings={LOOKS_MS: 200}) as cluster:
        yield cluster.bootstrap


@pytest.mark.whole
def test_transactions_outlive_their_timeout(looking_broker: str, make: Make, names: Topics) -> None:
    line = make(bootstrap=looking_broker)
    line.publish(story())
    line.start("sketch")
    # A client that writes by itself, beside the matcher.
    connection = Connection(looking_broker)
    own = names._replace(sketches=f"{names.sketches}.own", verdicts=f"{names.verdicts}.own")
    topics.create(line.admin, own, Sizes(partitions=2))
    verdicts = sink(connection, own, transaction_timeout_ms=TIMEOUT_MS)
    verdicts.init()
    verdicts.commit(batch(0), 1)
    producer = verdicts._producer
    producer.begin_transaction()
    producer.produce(own.verdicts, b"late")
    producer.flush(30)

    short = {"transaction_timeout_ms": TIMEOUT_MS}
    matcher = line.start("match", step="3 offsets sent", call=1, how=freeze, settings=short)
    matcher.frozen()
    assert line.in_transaction()
    eventually(lambda: not line.in_transaction(), "the broker gives the transaction up")
    matcher.thaw()

    # Fenced for good, or only this transaction aborted and tried again: that is up to broker and client.
    eventually(lambda: "aborted" in matcher.output() or not matcher.running, "its transaction failed")
    if not matcher.running:
        assert "Fenced" in matcher.refused()
    matcher.kill()  # on a busy machine its next transaction, too, could take longer
    line.start("match")
    line.check()

    # The broker has aborted the client's once a reader of committed records gets past it.
    reader = TopicReader(connection, own.verdicts, committed_only=True)
    everything = TopicReader(connection, own.verdicts, committed_only=False)
    eventually(lambda: reader.ends() == everything.ends(), "the broker's abort")
    with pytest.raises(Fenced):
        verdicts._call("commit", lambda: producer.commit_transaction(30))
    assert sorted(committed_values(connection, own)) == values_of(batch(0))


# Stopping.


def test_a_stop_finishes_the_batch(make: Make) -> None:
    line = make()
    line.publish(story())
    line.start("sketch")
    matcher = line.start("match", step="3 offsets sent", how=freeze)
    matcher.frozen()
    matcher.signal(signal.SIGTERM)
    matcher.thaw()
    matcher.stopped()

    line.start("match")
    line.check()


@pytest.mark.whole
def test_a_second_signal_does_not_wait(own_broker: Any, make: Make) -> None:
    line = make(bootstrap=own_broker.bootstrap)
    line.publish(story())
    sketcher = line.start("sketch")
    matcher = line.start("match", step="3 offsets sent", how=freeze)
    matcher.frozen()
    own_broker.pause()
    matcher.signal(signal.SIGTERM)
    matcher.thaw()
    eventually(lambda: not matcher.catches(signal.SIGTERM), "the first signal is heard")
    assert matcher.running, "it waits for the broker"
    matcher.signal(signal.SIGTERM)
    assert matcher.wait() == -signal.SIGTERM
    own_broker.resume()
    assert sketcher.running

    line.start("match")
    line.check()


def test_both_roles_in_one_process(make: Make) -> None:
    line = make()
    line.publish(story())
    role = line.start("run")
    line.settle()
    host = re.findall(r"http://[0-9.:]+", role.output())[0]
    metrics = urlopen(f"{host}/metrics", timeout=PATIENCE_SECONDS).read().decode()
    ready = json.load(urlopen(f"{host}/ready", timeout=PATIENCE_SECONDS))

    found = line.check()

    for name, count in Counter(verdict["verdict"] for verdict in found).items():
        assert f'neardup_verdicts_total{{verdict="{name}"}} {count}.0\n' in metrics
    pages = len(story())
    for wanted in ('pages_total{role="sketch"}', 'pages_total{role="match"}', "verdict_latency_seconds_count"):
        assert f"neardup_{wanted} {pages}.0\n" in metrics
    assert f"neardup_candidates_count {pages}.0\n" in metrics
    by_index = re.findall(r"neardup_candidates_found_total\{.*?\} (\S+)\n", metrics)
    assert f"neardup_candidates_sum {sum(map(float, by_index))}\n" in metrics
    assert ready["ok"]
    assert set(ready["roles"]) == {"sketch", "match"}
