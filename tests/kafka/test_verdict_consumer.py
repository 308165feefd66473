"""An indexer's side: verdicts are taken once, come what may; and the examples of the client's docstring."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from broker import eventually
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from published import read_pages

from neardup.errors import BadInput, CorruptRecord
from neardup.page import Page
from streams import client
from streams.client import LiveVerdicts, VerdictConsumer, duplicate_of
from streams.config.settings import Topics
from streams.errors import PositionLost, TopicError
from streams.kafka import Admin, Connection, KafkaVerdicts

LOG, OTHER_LOG = "1" * 32, "2" * 32


class Store:
    """Positions in memory, with what was taken."""

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}
        self.taken: list[tuple[int, int]] = []

    def load(self) -> Mapping[str, int]:
        return self.positions

    def take(self, batch: client.VerdictBatch) -> None:
        self.taken += [(verdict["page_id"], verdict["n"]) for verdict in batch.verdicts]
        self.positions.update(batch.positions)


def recreate(broker: str, admin: Admin, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": broker})
    client.delete_topics([topic])[topic].result(30)
    eventually(lambda: not admin.topics([topic]), "the topic's end")
    assert admin.create(topic, 2, 1, {})


class Matcher:
    """Writes verdicts as the matcher does."""

    def __init__(self, connection: Connection, names: Topics) -> None:
        self._out = KafkaVerdicts(
            connection, names.verdicts, log_topic=names.sketches, group=names.sketches, transactional_id=names.sketches
        )
        self._out.init()
        self._admin, self._topic = Admin(connection), names.verdicts
        self.emitted: list[tuple[int, int]] = []

    def say(self, *ids: int, **fields: Any) -> None:
        lines = []
        for page_id in ids:
            url = f"https://a.example/{page_id % 5}"
            verdict = {"version": 1, "verdict": "unique", "page_id": page_id, "n": 0, "url": url, "log": LOG, **fields}
            lines.append((verdict["url"].encode(), orjson.dumps(verdict)))
            self.emitted.append((page_id, 0))
        self._out.commit(lines, ids[-1] + 1)
        # A commit returns before its markers are written, and without them it is not seen.
        offsets = partial(self._admin.offsets, self._admin.topic(self._topic), "latest")
        eventually(lambda: offsets(committed_only=True) == offsets(), "the end of the transaction")


@pytest.fixture
def matcher(connection: Connection, made: Topics) -> Iterator[Matcher]:
    matcher = Matcher(connection, made)
    yield matcher
    matcher._out.close()


def take_all(broker: str, names: Topics, store: Store, **how: Any) -> None:
    with VerdictConsumer(broker, store, names.verdicts, **how) as consumer:
        for batch in consumer.batches(follow=False):
            store.take(batch)


def test_each_verdict_is_taken_once_over_restarts(broker: str, made: Topics, matcher: Matcher) -> None:
    store = Store()
    take_all(broker, made, store)
    assert store.taken == []
    for first in (0, 10, 20):
        matcher.say(*range(first, first + 10))
        take_all(broker, made, store)
        assert sorted(store.taken) == matcher.emitted
    take_all(broker, made, store)

    assert sorted(store.taken) == matcher.emitted
    for url in range(5):
        of_one_url = [page_id for page_id, _ in store.taken if page_id % 5 == url]
        assert of_one_url == sorted(of_one_url)


#: No file of this process may grow; what it prints goes into a pipe.
NO_DISK = """
import resource, sys
from streams.client import VerdictConsumer

class Store:
    def load(self):
        return {}

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with VerdictConsumer(sys.argv[1], Store(), sys.argv[2]) as consumer:
    print(sum(len(batch.verdicts) for batch in consumer.batches(follow=False)))
"""


def test_a_client_needs_no_disk(broker: str, made: Topics, matcher: Matcher, tmp_path: Path) -> None:
    matcher.say(*range(10))
    command = [sys.executable, "-c", NO_DISK, broker, made.verdicts]
    result = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert result.stdout.split() == [b"10"]
    assert list(tmp_path.iterdir()) == []


def test_a_batch_that_was_not_stored_comes_again(broker: str, made: Topics, matcher: Matcher) -> None:
    matcher.say(*range(20))
    store = Store()
    with VerdictConsumer(broker, store, made.verdicts) as consumer:
        batches = consumer.batches(count=4)
        store.take(next(batches))
        lost = next(batches)  # its user dies here
    take_all(broker, made, store)

    assert lost.verdicts
    assert sorted(store.taken) == matcher.emitted


def test_follower_gets_new_verdicts(broker: str, made: Topics, matcher: Matcher) -> None:
    store = Store()
    with VerdictConsumer(broker, store, made.verdicts) as consumer:
        batches = consumer.batches(wait_s=30)
        for page_id in range(3):
            matcher.say(page_id)
            store.take(next(batches))
        assert store.taken == [(0, 0), (1, 0), (2, 0)]
        assert list(consumer.batches(wait_s=0.0)) == []


def test_open_and_aborted_transactions_are_not_seen(broker: str, made: Topics, matcher: Matcher) -> None:
    matcher.say(0)
    other = Producer({"bootstrap.servers": broker, "transactional.id": f"{made.verdicts}.other"})
    other.init_transactions(30)
    other.begin_transaction()
    for partition in (0, 1):
        other.produce(made.verdicts, b"{}", partition=partition)
    other.flush(30)
    store = Store()
    take_all(broker, made, store)
    assert store.taken == [(0, 0)]
    other.abort_transaction(30)
    matcher.say(1)
    take_all(broker, made, store)

    assert store.taken == [(0, 0), (1, 0)]


def test_an_empty_store_may_begin_elsewhere(broker: str, made: Topics, matcher: Matcher) -> None:
    matcher.say(*range(10))
    late = Store()
    with VerdictConsumer(broker, late, made.verdicts, start="end") as consumer:
        late.positions.update(consumer.positions)
    matcher.say(10, 11)
    take_all(broker, made, late)
    assert sorted(late.taken) == [(10, 0), (11, 0)]

    # The one that follows cut-overs likewise; its first batch tells where it begins, although nothing is there.
    late, live = Store(), partial(LiveVerdicts, broker, topic=made.verdicts, group=made.verdicts, start="end")
    with live(late) as consumer:
        begins = consumer.positions
        (batch,) = consumer.batches(follow=False)
    assert (batch.verdicts, batch.complete, batch.positions) == ([], True, begins)
    assert len(begins) == 2
    late.take(batch)
    matcher.say(12)
    with live(late) as consumer:
        for batch in consumer.batches(follow=False):
            late.take(batch)
    assert late.taken == [(12, 0)]

    in_time = Store()
    take_all(broker, made, in_time, start=0)
    assert sorted(in_time.taken) == matcher.emitted
    too_late = Store()
    take_all(broker, made, too_late, start=4_000_000_000_000)
    assert too_late.taken == []


def test_work_can_be_shared_by_partition(broker: str, made: Topics, matcher: Matcher) -> None:
    matcher.say(*range(20))
    stores = [Store(), Store()]
    for partition, store in enumerate(stores):
        take_all(broker, made, store, partitions=[partition])

    assert all(store.taken for store in stores)
    assert sorted(stores[0].taken + stores[1].taken) == matcher.emitted
    with pytest.raises(BadInput, match="partitions 0 to 1 only"):
        take_all(broker, made, Store(), partitions=[2])


def test_partitions_that_are_added_are_read(
    broker: str, made: Topics, matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher.say(*range(5))
    store = Store()
    take_all(broker, made, store)
    admin = AdminClient({"bootstrap.servers": broker})
    monkeypatch.setattr(client, "PARTITIONS_SECONDS", 0.0)
    with VerdictConsumer(broker, store, made.verdicts) as consumer:
        admin.create_partitions([NewPartitions(made.verdicts, 4)])[made.verdicts].result(30)
        producer = Producer({"bootstrap.servers": broker})
        for partition in (0, 3):
            verdict = {"verdict": "unique", "page_id": 100 + partition, "n": 0, "url": "https://a.example/"}
            producer.produce(made.verdicts, orjson.dumps(verdict), partition=partition)
        assert producer.flush(30) == 0
        batches = consumer.batches(wait_s=30)
        while len(store.taken) < 7:
            store.take(next(batches))
    assert sorted(store.taken) == [*matcher.emitted, (100, 0), (103, 0)]
    assert len(store.positions) == 4

    # Also one that was added while no consumer ran.
    admin.create_partitions([NewPartitions(made.verdicts, 5)])[made.verdicts].result(30)
    eventually(lambda: Admin(Connection(broker)).topic(made.verdicts).partitions == 5, "the fifth partition")
    verdict = {"verdict": "unique", "page_id": 104, "n": 0, "url": "https://a.example/"}
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(made.verdicts, orjson.dumps(verdict), partition=4)
    assert producer.flush(30) == 0
    take_all(broker, made, store)
    assert store.taken[-1] == (104, 0)
    assert len(store.taken) == 8


def test_verdicts_that_retention_took_are_not_passed_over(broker: str, made: Topics, matcher: Matcher) -> None:
    matcher.say(*range(5))
    store = Store()
    take_all(broker, made, store)
    name, position = next(iter(store.positions.items()))
    partition = int(name.partition("/")[2])
    matcher.say(*range(10, 20))
    place = TopicPartition(made.verdicts, partition, position + 1)
    admin = AdminClient({"bootstrap.servers": broker})  # kept: without the client the answer never comes
    admin.delete_records([place])[place].result(30)
    with pytest.raises(PositionLost, match=rf"partition {partition}: offset {position} is to be read"):
        take_all(broker, made, store)


def test_positions_of_another_topic_are_refused(broker: str, made: Topics) -> None:
    store = Store()
    store.positions = {"0" * 32 + "/0": 5}
    with pytest.raises(TopicError, match=r"stored positions are of topic id 0+, .* made anew"):
        VerdictConsumer(broker, store, made.verdicts)
    identity = Admin(Connection(broker)).topic(made.verdicts).id.hex()
    store.positions = {f"{identity}/0": 5}
    with pytest.raises(PositionLost, match="offset 5 is to be read"):
        VerdictConsumer(broker, store, made.verdicts)
    with pytest.raises(TopicError, match="does not exist"):
        VerdictConsumer(broker, Store(), "no-such-topic")


def test_foreign_record_is_named(broker: str, made: Topics) -> None:
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(made.verdicts, b"{broken", partition=1)
    assert producer.flush(30) == 0
    with pytest.raises(CorruptRecord, match=rf"{made.verdicts}, partition 1, offset 0: no verdict of .* \(no JSON"):
        take_all(broker, made, Store())


def test_a_duplicate_names_the_page_to_show() -> None:
    other = {"page_id": 1, "url": "https://a.example/1"}
    standing = {"verdict": "exact_duplicate", "representative": other, "cluster": 1}

    assert duplicate_of({"verdict": "near_duplicate", "representative": other}) == "https://a.example/1"
    assert duplicate_of({"verdict": "unchanged", "standing": standing}) == "https://a.example/1"
    assert duplicate_of({"verdict": "unchanged", "standing": {"verdict": "unique", "representative": other}}) is None
    assert duplicate_of({"verdict": "same_content", "content_of": other}) is None
    assert duplicate_of({"verdict": "promoted", "representative": other}) is None
    assert duplicate_of({"verdict": "unique"}) is None
    assert duplicate_of({"verdict": "stale", "standing": {"verdict": "gone"}}) is None


def test_the_examples_run(
    broker: str,
    admin: Admin,
    made: Topics,
    matcher: Matcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", client.__doc__ or "", flags=re.MULTILINE)
    code = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if "import" in block]
    publishing, taking = (
        text.replace('"127.0.0.1:9092"', f'"{broker}"')
        .replace("PageProducer(", f"partial(PageProducer, topic={made.pages!r})(")
        .replace("LiveVerdicts(", f"partial(LiveVerdicts, topic={made.verdicts!r}, group={made.verdicts!r})(")
        for text in code
    )
    monkeypatch.chdir(tmp_path)
    start = "from functools import partial\n"

    exec(compile(start + publishing, "the first example", "exec"), {})
    found = read_pages(broker, made.pages, "raw")
    assert found["https://a.example/"] == [Page("https://a.example/", b"<p>Hello", "text/html", 1_767_225_600_000)]
    assert found["https://a.example/old.html"] == [Page("https://a.example/old.html", None)]

    def rows() -> list[Any]:
        with sqlite3.connect("index.db") as db:
            return db.execute("SELECT * FROM pages JOIN live USING (generation) ORDER BY url").fetchall()

    matcher.say(0, 1)
    exec(compile(start + taking, "the second example", "exec"), {})
    matcher.say(5, verdict="near_duplicate", representative={"url": "https://a.example/1"})
    exec(compile(start + taking, "the second example", "exec"), {})
    wanted = [
        ("", "https://a.example/0", "near_duplicate", "https://a.example/1", LOG, 5, 0, 0),
        ("", "https://a.example/1", "unique", None, LOG, 1, 0, 0),
    ]
    assert rows() == wanted

    with sqlite3.connect("index.db") as db:
        db.execute("DELETE FROM positions")
    exec(compile(start + taking, "the second example", "exec"), {})
    assert rows() == wanted

    # Another log: verdicts in a topic that was recreated, with page ids that begin anew.
    recreate(broker, admin, made.verdicts)
    matcher.say(0, log=OTHER_LOG)
    exec(compile(start + taking, "the second example", "exec"), {})
    assert rows() == [("", "https://a.example/0", "unique", None, OTHER_LOG, 0, 0, 0), wanted[1]]
