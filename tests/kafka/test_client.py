"""The clients as their users use them: pages arrive as they were given, and verdicts are taken once, come what may."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from broker import eventually
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from neardup.errors import BadInput, CorruptRecord
from neardup.page import Page
from streams import client, topics
from streams.bodies import Bodies
from streams.client import NotDelivered, PageProducer, VerdictConsumer, duplicate_of
from streams.codecs import Codec
from streams.errors import PositionLost, RecordTooLarge, TopicError
from streams.kafka import Admin, Connection, KafkaVerdicts, Reader
from streams.outgoing import BodyFolder, encode_page
from streams.topics import Names, Sizes

CODECS = ("raw", "json", "warc")
URL = "https://a.example/ä?b=c"


@pytest.fixture
def made(admin: Admin, names: Names) -> Names:
    topics.create(admin, names, Sizes(partitions=2))
    return names


def read_pages(bootstrap: str, topic: str, codec: str, *prefixes: str) -> dict[str, list[Page]]:
    """What a sketcher would read, by URL."""
    decode = Codec(codec, Bodies(prefixes, 10_000_000), 10_000_000)
    reader = Reader(Connection(bootstrap), topic, committed_only=True)
    ends = reader.ends()
    reader.assign(reader.begins())
    found: dict[str, list[Page]] = {}
    while any(position < ends[partition] for partition, position in reader.positions().items()):
        for record in reader.read(1000, wait_s=1.0):
            page = decode.page(record)
            found.setdefault(page.url, []).append(page)
    reader.close()
    return found


class Record:
    """An encoded page, as a codec sees it."""

    def __init__(self, page: Page, codec: str, reference: str = "") -> None:
        self._record = encode_page(page, codec, reference=reference)

    def key(self) -> bytes:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def headers(self) -> list[tuple[str, bytes | None]]:
        return list(self._record.headers)


# ---- records ---------------------------------------------------------------------------------------------------------

PAGES = [
    Page(URL, b"<p>plain", "text/html; charset=utf-8", 1_700_000_000_123),
    Page(URL, "<p>grün".encode(), "text/html", None),
    Page(URL, b"\xff\xfe\x00binary\r\n\r\n" + bytes(range(256)), "image/png", 0),
    Page(URL, b"", "", 1),
    Page(URL, b"\xef\xbb\xbfmark", "text/plain", 1_700_000_000_000),
    Page(URL, b"oops", "text/html", 1_700_000_000_000, 203),
    Page(URL, None),
    Page(URL, None, fetched_at=1_700_000_000_123, status=404),
    Page(URL, None, fetched_at=1_700_000_000_123, status=410),
    Page(URL, None, status=410),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page", PAGES, ids=range(len(PAGES)))
def test_a_page_comes_back_from_its_record(codec: str, page: Page) -> None:
    found = Codec(codec, Bodies((), 10_000_000), 10_000_000).page(Record(page, codec))

    assert found == page


@pytest.mark.parametrize("codec", CODECS)
def test_a_dead_page_is_told_without_its_error_page(codec: str) -> None:
    dead = Page(URL, b"<h1>Not found", "text/html", 1_700_000_000_000, 404)
    read = Codec(codec, Bodies((), 10_000_000), 10_000_000)

    assert read.page(Record(dead, codec)) == Page(URL, None, fetched_at=1_700_000_000_000, status=404)
    gone_since = Page(URL, None, fetched_at=1_700_000_000_000)
    assert read.page(Record(gone_since, codec)).body is None
    assert read.page(Record(gone_since, codec)).fetched_at == 1_700_000_000_000


@pytest.mark.parametrize("codec", ["raw", "json"])
def test_a_body_beside_its_record_is_read_from_there(codec: str, tmp_path: Path) -> None:
    folder = BodyFolder(tmp_path / "bod ies")
    page = Page(URL, b"large" * 1000, "text/html", 1_700_000_000_000)
    record = Record(page, codec, folder.put(b"large" * 1000))

    assert Codec(codec, Bodies((folder.url,), 10_000_000), 10_000_000).page(record) == page
    assert len(record.value() or b"") < 500
    assert folder.put(b"large" * 1000) == folder.put(b"large" * 1000)
    assert sum(path.is_file() for path in folder.folder.rglob("*")) == 1


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(BadInput, match="without a URL"):
        encode_page(Page("", b""), "raw")
    with pytest.raises(BadInput, match="codec 'avro': there is raw, json, warc"):
        encode_page(Page(URL, b""), "avro")
    with pytest.raises(BadInput, match="a WARC date cannot be -1 ms"):
        encode_page(Page(URL, b"", fetched_at=-1), "warc")
    with pytest.raises(BadInput, match="control character"):
        encode_page(Page("https://a.example/\r\nX: y", b""), "warc")
    with pytest.raises(BadInput, match="no references to bodies"):
        encode_page(Page(URL, b""), "warc", reference="file:///x")
    with pytest.raises(BadInput, match="not to s3://pages/"):
        BodyFolder("s3://pages/")


# ---- publishing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_published_pages_arrive(broker: str, made: Names, codec: str) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    with PageProducer(broker, made.pages, codec=codec) as pages:
        pages.publish(URL, b"<p>1", content_type="text/html", fetched_at=1_700_000_000_000)
        pages.publish(URL, b"<p>2", fetched_at=noon)
        pages.gone(URL)
        pages.publish("https://b.example/", b"<p>3", status=404, fetched_at=1_700_000_000_000)

    assert (pages.sent, pages.acknowledged) == (4, 4)
    assert read_pages(broker, made.pages, codec) == {
        URL: [
            Page(URL, b"<p>1", "text/html", 1_700_000_000_000),
            Page(URL, b"<p>2", fetched_at=int(datetime(2026, 1, 1, 11, tzinfo=UTC).timestamp() * 1000)),
            Page(URL, None),
        ],
        "https://b.example/": [Page("https://b.example/", None, fetched_at=1_700_000_000_000, status=404)],
    }


def test_a_page_over_the_topic_s_limit_is_refused_by_name(broker: str, admin: Admin, names: Names) -> None:
    admin.create(names.pages, 1, 1, {"max.message.bytes": "100000"})
    with PageProducer(broker, names.pages, kafka={"compression.type": "none"}) as pages:
        with pytest.raises(RecordTooLarge, match=r"https://a.example/large: a record of 101,\d+ bytes.* takes 100,000"):
            pages.publish("https://a.example/large", b"x" * 100_000)
        largest = 100_000 - encode_page(Page("https://a.example/fits", b""), "raw").size
        pages.publish("https://a.example/fits", b"x" * largest)
        with pytest.raises(RecordTooLarge):
            pages.publish("https://a.example/fits", b"x" * (largest + 1))

    assert read_pages(broker, names.pages, "raw").keys() == {"https://a.example/fits"}


def test_a_page_over_the_limit_travels_beside_kafka(broker: str, admin: Admin, names: Names, tmp_path: Path) -> None:
    admin.create(names.pages, 1, 1, {"max.message.bytes": "100000"})
    body = b"<p>" + b"x" * 200_000
    with PageProducer(broker, names.pages, bodies=tmp_path) as pages:
        pages.publish(URL, body, content_type="text/html")
        pages.publish("https://a.example/small", b"<p>small")

    found = read_pages(broker, names.pages, "raw", f"file://{tmp_path}/")
    assert found == {
        URL: [Page(URL, body, "text/html")],
        "https://a.example/small": [Page("https://a.example/small", b"<p>small")],
    }
    assert len(list(tmp_path.iterdir())) == 1


def test_bad_arguments_are_told_before_anything_is_sent(broker: str, made: Names) -> None:
    with PageProducer(broker, made.pages) as pages:
        for wrong in (1_700_000_000, 1.7e12, datetime(2026, 1, 1)):
            with pytest.raises(BadInput, match="fetched_at"):
                pages.publish(URL, b"", fetched_at=wrong)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="without a URL"):
            pages.publish("", b"")
        assert pages.sent == 0
    with pytest.raises(TopicError, match="does not exist"):
        PageProducer(broker, "no-such-topic")
    with pytest.raises(BadInput, match="codec 'xml'"):
        PageProducer(broker, made.pages, codec="xml")


def unreachable(**changes: Any) -> PageProducer:
    """Nobody listens there: what is published fails after a second."""
    return PageProducer("127.0.0.1:1", record_bytes_max=1_000_000, delivery_s=1.0, **changes)


def test_pages_that_were_not_delivered_are_named() -> None:
    pages = unreachable()
    for number in range(5):
        pages.publish(f"https://a.example/{number}", b"")
    with pytest.raises(
        NotDelivered, match=r"^5 pages not written to topic pages: .*a.example/0: .* and 2 more$"
    ) as told:
        pages.flush()

    assert [url for url, _ in told.value.failures] == [f"https://a.example/{number}" for number in range(5)]
    assert all("_MSG_TIMED_OUT" in reason for _, reason in told.value.failures)
    assert pages.acknowledged == 0
    pages.flush()  # told once
    pages.close()


def test_a_later_call_tells_of_an_earlier_page() -> None:
    pages = unreachable()
    pages.publish("https://a.example/lost", b"")

    def tell() -> str:
        try:
            pages.poll()
        except NotDelivered as error:
            return str(error)
        return ""

    assert "1 page not written to topic pages: https://a.example/lost" in eventually(tell, "the failure")
    pages.close()


def test_failures_may_go_to_a_callback() -> None:
    told: list[str] = []
    with unreachable(on_error=lambda url, reason: told.append(url)) as pages:
        pages.publish("https://a.example/1", b"")
        pages.publish("https://a.example/2", b"")

    assert told == ["https://a.example/1", "https://a.example/2"]


def test_leaving_the_block_with_an_error_keeps_that_error() -> None:
    def crawl() -> None:
        with unreachable() as pages:
            pages.publish("https://a.example/lost", b"")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as told:
        crawl()

    (note,) = told.value.__notes__
    assert "https://a.example/lost" in note


def test_memory_is_bounded_and_offering_never_waits() -> None:
    pages = PageProducer("127.0.0.1:1", record_bytes_max=1_000_000, buffer_bytes=1 << 20)
    taken = sum(pages.offer(Page(f"https://a.example/{number}", b"x" * 100_000)) for number in range(100))

    assert 8 <= taken <= 11
    assert pages.sent == taken
    pages.close()


# ---- verdicts --------------------------------------------------------------------------------------------------------


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


class Matcher:
    """Writes verdicts as the matcher does."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self._out = KafkaVerdicts(
            connection, names.verdicts, log_topic=names.sketches, group=names.sketches, transactional_id=names.sketches
        )
        self._out.init()
        self._admin, self._topic = Admin(connection), names.verdicts
        self.said: list[tuple[int, int]] = []

    def say(self, *ids: int, **fields: Any) -> None:
        lines = []
        for page_id in ids:
            url = f"https://a.example/{page_id % 5}"
            verdict = {"version": 1, "verdict": "unique", "page_id": page_id, "n": 0, "url": url, **fields}
            lines.append((verdict["url"].encode(), orjson.dumps(verdict)))
            self.said.append((page_id, 0))
        self._out.commit(lines, ids[-1] + 1)
        # A commit returns before its markers are written, and without them it is not seen.
        offsets = partial(self._admin.offsets, self._admin.topic(self._topic), "latest")
        eventually(lambda: offsets(committed_only=True) == offsets(), "the end of the transaction")


@pytest.fixture
def matcher(connection: Connection, made: Names) -> Iterator[Matcher]:
    matcher = Matcher(connection, made)
    yield matcher
    matcher._out.close()


def take_all(broker: str, names: Names, store: Store, **how: Any) -> None:
    with VerdictConsumer(broker, store, names.verdicts, **how) as consumer:
        for batch in consumer.batches(follow=False):
            store.take(batch)


def test_each_verdict_is_taken_once_over_restarts(broker: str, made: Names, matcher: Matcher) -> None:
    store = Store()
    take_all(broker, made, store)
    assert store.taken == []
    for first in (0, 10, 20):
        matcher.say(*range(first, first + 10))
        take_all(broker, made, store)
        assert sorted(store.taken) == matcher.said
    take_all(broker, made, store)

    assert sorted(store.taken) == matcher.said
    for url in range(5):
        of_one_url = [page_id for page_id, _ in store.taken if page_id % 5 == url]
        assert of_one_url == sorted(of_one_url)


def test_a_batch_that_was_not_stored_comes_again(broker: str, made: Names, matcher: Matcher) -> None:
    matcher.say(*range(20))
    store = Store()
    with VerdictConsumer(broker, store, made.verdicts) as consumer:
        batches = consumer.batches(count=4)
        store.take(next(batches))
        lost = next(batches)  # its user dies here
    take_all(broker, made, store)

    assert lost.verdicts
    assert sorted(store.taken) == matcher.said


def test_a_follower_gets_what_comes(broker: str, made: Names, matcher: Matcher) -> None:
    store = Store()
    with VerdictConsumer(broker, store, made.verdicts) as consumer:
        batches = consumer.batches(wait_s=30)
        for page_id in range(3):
            matcher.say(page_id)
            store.take(next(batches))
        assert store.taken == [(0, 0), (1, 0), (2, 0)]
        assert list(consumer.batches(wait_s=0.0)) == []


def test_open_and_aborted_transactions_are_not_seen(broker: str, made: Names, matcher: Matcher) -> None:
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


def test_an_empty_store_may_begin_elsewhere(broker: str, made: Names, matcher: Matcher) -> None:
    matcher.say(*range(10))
    late = Store()
    with VerdictConsumer(broker, late, made.verdicts, start="end") as consumer:
        late.positions.update(consumer.positions)
    matcher.say(10, 11)
    take_all(broker, made, late)
    assert sorted(late.taken) == [(10, 0), (11, 0)]

    in_time = Store()
    take_all(broker, made, in_time, start=0)
    assert sorted(in_time.taken) == matcher.said
    too_late = Store()
    take_all(broker, made, too_late, start=4_000_000_000_000)
    assert too_late.taken == []


def test_work_can_be_shared_by_partition(broker: str, made: Names, matcher: Matcher) -> None:
    matcher.say(*range(20))
    stores = [Store(), Store()]
    for partition, store in enumerate(stores):
        take_all(broker, made, store, partitions=[partition])

    assert all(store.taken for store in stores)
    assert sorted(stores[0].taken + stores[1].taken) == matcher.said
    with pytest.raises(BadInput, match="partitions 0 to 1 only"):
        take_all(broker, made, Store(), partitions=[2])


def test_partitions_that_are_added_are_read(
    broker: str, made: Names, matcher: Matcher, monkeypatch: pytest.MonkeyPatch
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
    assert sorted(store.taken) == [*matcher.said, (100, 0), (103, 0)]
    assert len(store.positions) == 4

    # One that was added while nobody was reading, too.
    admin.create_partitions([NewPartitions(made.verdicts, 5)])[made.verdicts].result(30)
    eventually(lambda: Admin(Connection(broker)).topic(made.verdicts).partitions == 5, "the fifth partition")
    verdict = {"verdict": "unique", "page_id": 104, "n": 0, "url": "https://a.example/"}
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(made.verdicts, orjson.dumps(verdict), partition=4)
    assert producer.flush(30) == 0
    take_all(broker, made, store)
    assert store.taken[-1] == (104, 0)
    assert len(store.taken) == 8


def test_positions_of_another_topic_are_refused(broker: str, made: Names) -> None:
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


def test_what_is_no_verdict_is_named(broker: str, made: Names) -> None:
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(made.verdicts, b"{broken", partition=1)
    assert producer.flush(30) == 0
    with pytest.raises(CorruptRecord, match="offset 0 of partition 1 of the verdicts is no JSON"):
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


# ---- the examples ----------------------------------------------------------------------------------------------------


def test_the_examples_run(
    broker: str,
    admin: Admin,
    made: Names,
    matcher: Matcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", client.__doc__ or "", flags=re.MULTILINE)
    code = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if "import" in block]
    publishing, taking = (
        text.replace('"127.0.0.1:9092"', f'"{broker}"')
        .replace("PageProducer(", f"partial(PageProducer, topic={made.pages!r})(")
        .replace("VerdictConsumer(", f"partial(VerdictConsumer, topic={made.verdicts!r})(")
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
            return db.execute("SELECT * FROM pages ORDER BY url").fetchall()

    matcher.say(0, 1)
    exec(compile(start + taking, "the second example", "exec"), {})
    matcher.say(5, verdict="near_duplicate", representative={"url": "https://a.example/1"})
    exec(compile(start + taking, "the second example", "exec"), {})
    wanted = [
        ("https://a.example/0", "near_duplicate", "https://a.example/1", 5, 0),
        ("https://a.example/1", "unique", None, 1, 0),
    ]
    assert rows() == wanted

    with sqlite3.connect("index.db") as db:
        db.execute("DELETE FROM positions")
    exec(compile(start + taking, "the second example", "exec"), {})
    assert rows() == wanted
