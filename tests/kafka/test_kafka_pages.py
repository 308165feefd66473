"""Reading `pages`: every position is accounted for once, and none is jumped over in silence."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from broker import PATIENCE_SECONDS, eventually
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.config.settings import Topics
from streams.errors import PositionLost, TopicError
from streams.kafka import Admin, Connection, KafkaPages, Writer, topics
from streams.kafka.reader import behind
from streams.kafka.topics import Sizes
from streams.ports import PageBatch, Range


@pytest.fixture
def connection(broker: str) -> Connection:
    """With rebalances noticed at the next heartbeat."""
    return Connection(broker, {"heartbeat.interval.ms": 100})


@pytest.fixture
def pages(admin: Admin, names: Topics) -> str:
    """A topic of two partitions."""
    topics.create(admin, names, Sizes(partitions=2))
    return names.pages


def put(connection: Connection, topic: str, count: int, *, partition: int = 0, start: int = 0) -> None:
    writer = Writer(connection, topic)
    for number in range(start, start + count):
        writer.send(b"%d" % number, key=b"http://a.test/%d" % number, partition=partition)
    writer.flush()


def transact(broker: str, topic: str, count: int, *, commit: bool) -> None:
    """A transaction of `count` records on partition 0; its end takes one more offset."""
    producer = Producer({"bootstrap.servers": broker, "transactional.id": f"{topic}.foreign"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, b"T%d" % number, b"key", 0)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def read(reader: KafkaPages, count: int | None = None, *, bytes_max: int | None = None) -> PageBatch:
    """The next batch, once there is one: of exactly `count` records or `bytes_max` bytes, if they are given."""
    linger_s = PATIENCE_SECONDS if count or bytes_max else 0.2
    batch = eventually(
        lambda: reader.read(count or 1000, bytes_max=bytes_max or 1 << 20, linger_s=linger_s, wait_s=1.0),
        f"records of {reader.topic.name}",
    )
    assert batch is not None
    return batch


def read_all(reader: KafkaPages, total: int) -> tuple[list[bytes | None], list[Range]]:
    values: list[bytes | None] = []
    ranges: list[Range] = []
    while len(values) < total:
        batch = read(reader)
        values += [record.value() for record in batch.records]
        ranges += batch.ranges
    return values, ranges


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


def test_ranges_run_over_the_gaps_that_transactions_leave(broker: str, connection: Connection, pages: str) -> None:
    put(connection, pages, 3)  # offsets 0 to 2
    transact(broker, pages, 2, commit=True)  # 3, 4, marker 5
    transact(broker, pages, 4, commit=False)  # 6 to 9 never seen, marker 10
    put(connection, pages, 2, start=3)  # 11, 12
    reader = KafkaPages(connection, pages, f"{pages}.group")

    values, ranges = read_all(reader, 7)

    assert values == [*numbers(0, 3), b"T0", b"T1", b"3", b"4"]
    assert [(span.start, span.stop) for span in joined(ranges)] == [(0, 13)]
    assert {span.source for span in ranges} == {reader.topic.id}
    reader.close()


def joined(ranges: list[Range]) -> list[Range]:
    """Ranges of one partition, each beginning where the one before it ended, as one."""
    whole: list[Range] = []
    for span in ranges:
        if whole and whole[-1].stop == span.start:
            whole[-1] = Range(span.source, span.partition, whole[-1].start, span.stop)
        else:
            whole.append(span)
    return whole


def test_lag_ends_at_the_last_record_that_a_reader_can_get(
    broker: str, connection: Connection, admin: Admin, pages: str
) -> None:
    """Aborted records at the end of a topic are no lag, neither of the member nor of its group."""
    group, topic = f"{pages}.group", admin.topic(pages)
    put(connection, pages, 3)
    transact(broker, pages, 70, commit=False)
    assert behind(admin, group, topic) == {0: 3, 1: 0}
    reader = KafkaPages(connection, pages, group)
    reader.commit(read(reader, 3).ranges)

    def lag() -> int:
        assert reader.read(1, bytes_max=1, linger_s=0, wait_s=0.01) is None
        return sum(reader.lag().values())

    eventually(lambda: lag() == 0 and not reader._at_work.due, "no lag")
    assert admin.offsets(topic, "latest") == {0: 74, 1: 0}
    assert behind(admin, group, topic) == {0: 0, 1: 0}
    put(connection, pages, 2, start=3)
    transact(broker, pages, 1, commit=False)
    assert behind(admin, group, topic)[0] == 74 + 2 - admin.committed(group, pages, 0).offset  # type: ignore[union-attr]
    reader.close()


def test_a_gap_at_the_end_goes_to_the_next_range(broker: str, connection: Connection, pages: str) -> None:
    put(connection, pages, 1)
    transact(broker, pages, 1, commit=False)  # 1, marker 2
    reader = KafkaPages(connection, pages, f"{pages}.group")
    first = read(reader)
    reader.commit(first.ranges)
    reader.close()
    put(connection, pages, 1, start=1)  # 3

    reader = KafkaPages(connection, pages, f"{pages}.group")
    second = read(reader)

    assert first.ranges[0].start == 0
    assert first.ranges[0].stop == second.ranges[0].start
    assert second.ranges[0].stop == 4
    assert [record.value() for record in second.records] == [b"1"]
    reader.close()


def test_an_open_transaction_holds_later_records_back(broker: str, connection: Connection, pages: str) -> None:
    producer = Producer({"bootstrap.servers": broker, "transactional.id": f"{pages}.foreign"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(pages, b"T", b"key", 0)
    producer.flush(30)
    put(connection, pages, 1)
    put(connection, pages, 1, partition=1, start=1)
    reader = KafkaPages(connection, pages, f"{pages}.group")

    assert [record.value() for record in read(reader).records] == [b"1"]

    producer.commit_transaction(30)
    assert [record.value() for record in read(reader).records] == [b"T", b"0"]
    reader.close()


def test_a_commit_never_goes_back(connection: Connection, pages: str) -> None:
    put(connection, pages, 10)
    reader = KafkaPages(connection, pages, f"{pages}.group")
    early, late = read(reader, 4), read(reader, 3)
    reader.commit(late.ranges)
    reader.commit(early.ranges)  # of an assignment before, acknowledged late
    reader.close()

    reader = KafkaPages(connection, pages, f"{pages}.group")
    _, ranges = read_all(reader, 3)
    assert ranges[0].start == late.ranges[0].stop
    reader.close()


def test_uncommitted_records_are_read_again_with_the_same_start(connection: Connection, pages: str) -> None:
    put(connection, pages, 10)
    reader = KafkaPages(connection, pages, f"{pages}.group")
    done = read(reader, 4)
    reader.commit(done.ranges)
    lost = read(reader, 3)
    reader.close()

    reader = KafkaPages(connection, pages, f"{pages}.group")
    values, ranges = read_all(reader, 6)

    assert done.ranges[0].stop == lost.ranges[0].start == ranges[0].start == 4
    assert values == numbers(4, 10)
    reader.close()


def test_records_come_whole_with_the_broker_s_time(connection: Connection, pages: str) -> None:
    writer = Writer(connection, pages)
    writer.send(b"<p>", key=b"http://a.test/", headers=[("content-type", b"text/html")], partition=0)
    writer.send(None, key=b"http://a.test/gone", partition=0)
    writer.flush()
    reader = KafkaPages(connection, pages, f"{pages}.group")

    page, tombstone = read(reader).records

    assert (page.key(), page.value(), page.headers()) == (b"http://a.test/", b"<p>", [("content-type", b"text/html")])
    assert page.timestamp()[0] == 2  # LogAppendTime
    assert (tombstone.key(), tombstone.value(), tombstone.headers()) == (b"http://a.test/gone", None, None)
    reader.close()


def test_a_batch_ends_by_count_and_by_bytes(connection: Connection, pages: str) -> None:
    writer = Writer(connection, pages)
    for _ in range(300):
        writer.send(b"x" * 1000, partition=0)
    writer.flush()
    reader = KafkaPages(connection, pages, f"{pages}.group")

    assert len(read(reader, 10).records) == 10
    # The first record alone, then chunks of at most 64 that fit if all records have one length.
    assert len(read(reader, bytes_max=100_000).records) == 100
    reader.close()


def test_new_group_begins_at_the_first_held_offset(broker: str, connection: Connection, pages: str) -> None:
    put(connection, pages, 5)
    delete_before(broker, pages, 3)
    reader = KafkaPages(connection, pages, f"{pages}.group")

    batch = read(reader)

    assert batch.ranges == [Range(reader.topic.id, 0, 3, 5)]
    reader.close()


def delete_before(broker: str, topic: str, offset: int) -> None:
    client = AdminClient({"bootstrap.servers": broker})
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def test_a_group_does_not_jump_over_deleted_records(broker: str, connection: Connection, pages: str) -> None:
    put(connection, pages, 5)
    reader = KafkaPages(connection, pages, f"{pages}.group")
    reader.commit(read(reader, 2).ranges)
    reader.close()
    delete_before(broker, pages, 4)

    reader = KafkaPages(connection, pages, f"{pages}.group")
    with pytest.raises(PositionLost, match=r"partition 0: offset 2 is to be read, .* holds 4 to 4: records 2 to 3"):
        read(reader)
    reader.close()


def test_a_reader_that_runs_does_not_go_on_into_another_topic(broker: str, connection: Connection, pages: str) -> None:
    # A queue of one message: the second one has not been fetched when it is deleted.
    slow = Connection(
        broker, {"queued.min.messages": 1, "fetch.message.max.bytes": 1000, "queued.max.messages.kbytes": 1}
    )
    writer = Writer(connection, pages)
    for _ in range(50):
        writer.send(b"x" * 2000, partition=0)
        writer.flush()  # so that each is a batch of its own, and is fetched on its own
    reader = KafkaPages(slow, pages, f"{pages}.group")
    seen = read(reader, 1)
    delete_before(broker, pages, 49)

    def read_on() -> None:
        stop = seen.ranges[0].stop
        while stop < 49:
            stop = read(reader, 1).ranges[0].stop

    with pytest.raises(PositionLost, match=r"partition 0: offset \d+ is to be read, .* holds 49 to 49"):
        read_on()
    reader.close()


def test_a_recreated_topic_is_another_source(broker: str, connection: Connection, admin: Admin, pages: str) -> None:
    put(connection, pages, 5)
    old = KafkaPages(connection, pages, f"{pages}.group")
    before = read(old)
    old.commit(before.ranges)
    pause = [TopicPartition(pages, 0)]
    old._consumer.pause(pause)  # so that offset 5 is asked for when the new topic has one, too
    recreate(broker, admin, pages)
    put(connection, pages, 7)
    old._consumer.resume(pause)

    # A running reader notices, and does not take the new topic's records for those of the old one.
    with pytest.raises(TopicError, match=r"was deleted and recreated .* start again to read the new one"):
        eventually(lambda: old.read(10, bytes_max=1000, linger_s=0, wait_s=0.5), "an error")
    old.close()

    new = KafkaPages(connection, pages, f"{pages}.group")
    values, ranges = read_all(new, 7)
    assert values == numbers(0, 7)
    assert new.topic.id != before.ranges[0].source
    assert joined(ranges) == [Range(new.topic.id, 0, 0, 7)]
    new.close()


def recreate(broker: str, admin: Admin, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": broker})
    client.delete_topics([topic])[topic].result(30)
    eventually(lambda: not admin.topics([topic]), "the topic's end")
    assert admin.create(topic, 2, 1, {})


def test_members_share_partitions_and_resume_at_committed_offsets(connection: Connection, pages: str) -> None:
    for partition in (0, 1):
        put(connection, pages, 10, partition=partition)
    group = f"{pages}.group"
    first = KafkaPages(connection, pages, group)
    spans: dict[int, list[Range]] = {0: [], 1: []}

    def take(reader: KafkaPages, count: int) -> bool:
        batch = reader.read(count, bytes_max=1 << 20, linger_s=0, wait_s=0.05)
        if batch is not None:
            reader.commit(batch.ranges)
            for span in batch.ranges:
                spans[span.partition].append(span)
        return batch is not None

    eventually(lambda: take(first, 3), "the first records")
    second = KafkaPages(connection, pages, group)

    def shared() -> bool:
        # Each reads one record at a time, so that something is left to share when the second one arrives.
        take(first, 1)
        take(second, 1)
        return len(first.assigned()) == len(second.assigned()) == 1

    eventually(shared, "one partition each")
    assert first.assigned() != second.assigned()
    for partition in (0, 1):
        put(connection, pages, 5, partition=partition, start=10)
    eventually(
        lambda: [take(first, 9), take(second, 9), all(spans[p] and spans[p][-1].stop == 15 for p in spans)][-1],
        "everything read",
    )

    for partition in (0, 1):
        # Committed after each batch: not a record twice, none left out.
        assert [(span.start, span.stop) for span in joined(spans[partition])] == [(0, 15)]
    second.close()
    eventually(lambda: [take(first, 1), len(first.assigned()) == 2][-1], "both partitions back")
    first.close()


def test_a_partition_that_is_taken_away_takes_its_records_along(connection: Connection, pages: str) -> None:
    for partition in (0, 1):
        put(connection, pages, 3, partition=partition)
    first = KafkaPages(connection, pages, f"{pages}.group")
    held = read(first)
    while {span.partition for span in held.ranges} != {0, 1}:
        more = read(first)
        held = PageBatch([*held.records, *more.records], [*held.ranges, *more.ranges])
    second = KafkaPages(connection, pages, f"{pages}.group")

    def rebalanced() -> bool:
        first.read(1, bytes_max=1, linger_s=0, wait_s=0.05)
        batch = second.read(1000, bytes_max=1 << 20, linger_s=0.2, wait_s=0.05)
        if batch is not None:
            again.append(batch)
        return bool(again)

    again: list[PageBatch] = []
    eventually(rebalanced, "the second member's records")
    (moved,) = second.assigned()

    # Nothing was committed: the new owner begins where the group began, whatever the old one had in hand.
    assert [(span.partition, span.start) for span in again[0].ranges] == [(moved, 0)]
    first.commit(held.ranges)  # the moved partition is left out
    assert offsets(connection, pages)[moved] == 0
    assert offsets(connection, pages)[1 - moved] == 3
    first.close()
    second.close()


def test_a_commit_from_before_a_rebalance_is_made_again(
    connection: Connection, pages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group has moved on, and this member has not heard of it yet; its partitions stay with it."""
    put(connection, pages, 4)
    reader = KafkaPages(connection, pages, f"{pages}.group")
    batch = read(reader, 4)
    commit, refused = reader._send_commit, [KafkaError.ILLEGAL_GENERATION, KafkaError.STALE_MEMBER_EPOCH]

    def sometimes(places: list[TopicPartition]) -> None:
        if refused:
            reader._answered(KafkaError(refused.pop()), places)
        else:
            commit(places)

    monkeypatch.setattr(reader, "_send_commit", sometimes)
    reader.commit(batch.ranges)
    assert offsets(connection, pages)[0] == 0
    reader.commit([])
    assert not refused
    reader.commit([])
    eventually(lambda: offsets(connection, pages)[0] == 4, "the third commit")
    reader.close()


@pytest.mark.whole
def test_a_commit_waits_for_no_answer(own_broker: Any, names: Topics) -> None:
    """The client has none as long as the broker is silent, and a role must notice a stop meanwhile."""
    connection = Connection(own_broker.bootstrap)
    Admin(connection).create(names.pages, 2, 1, {})
    put(connection, names.pages, 4)
    reader = KafkaPages(connection, names.pages, f"{names.pages}.group")
    batch = read(reader, 4)
    send = reader._send_commit

    def silent(places: list[TopicPartition]) -> None:
        own_broker.pause()
        send(places)

    reader._send_commit = silent  # type: ignore[method-assign]
    returned = threading.Event()
    threading.Thread(target=lambda: (reader.commit(batch.ranges), returned.set()), daemon=True).start()
    assert returned.wait(60)
    reader._send_commit = send  # type: ignore[method-assign]
    own_broker.resume()

    def committed() -> bool:
        reader.read(1, bytes_max=1000, linger_s=0, wait_s=0.1)
        reader.commit([])
        return offsets(connection, names.pages)[0] == 4

    eventually(committed, "the commit")
    reader.close()


def test_a_late_commit_to_the_topic_of_the_same_name_is_void(
    broker: str, connection: Connection, admin: Admin, pages: str
) -> None:
    put(connection, pages, 5)
    old = KafkaPages(connection, pages, f"{pages}.group")
    batch = read(old, 5)
    recreate(broker, admin, pages)
    put(connection, pages, 7)
    old.commit(batch.ranges)  # before it has heard of anything
    assert offsets(connection, pages)[0] == 5, "it came too late: the test tests nothing"
    old.close()

    new = KafkaPages(connection, pages, f"{pages}.group")
    values, _ = read_all(new, 7)
    assert values == numbers(0, 7)
    new.close()


def offsets(connection: Connection, pages: str) -> dict[int, int]:
    asker = Consumer({"bootstrap.servers": connection.bootstrap, "group.id": f"{pages}.group"})
    found = asker.committed([TopicPartition(pages, partition) for partition in (0, 1)], 30)
    asker.close()
    return {each.partition: each.offset for each in found}


def test_a_second_first_start_does_not_take_a_group_back(connection: Connection, pages: str) -> None:
    put(connection, pages, 5)
    first = KafkaPages(connection, pages, f"{pages}.group")
    first.commit(read(first).ranges)
    eventually(lambda: offsets(connection, pages)[0] == 5, "the commit")

    # As if the other one had asked before the group began, and commits the beginnings only now.
    late = Consumer({"bootstrap.servers": connection.bootstrap, "group.id": f"{pages}.group"})
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        late.commit(offsets=[TopicPartition(pages, 0, 0)], asynchronous=False)

    assert offsets(connection, pages)[0] == 5
    first.close()


def test_members_may_start_at_the_same_time(connection: Connection, pages: str) -> None:
    made: list[KafkaPages] = []
    failed: list[BaseException] = []

    def start() -> None:
        try:
            made.append(KafkaPages(connection, pages, f"{pages}.group"))
        except Exception as error:
            failed.append(error)
            raise

    run_together([start] * 2)

    assert failed == []
    assert len(made) == 2
    for reader in made:
        reader.close()


def run_together(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_a_replaced_consumer_reads_on_from_the_committed_offsets(connection: Connection, pages: str) -> None:
    put(connection, pages, 4)
    reader = KafkaPages(connection, pages, f"{pages}.group")
    _, ranges = read_all(reader, 4)
    reader.commit(ranges)
    eventually(lambda: reader.read(1, bytes_max=1, linger_s=0, wait_s=0.1) or not reader._at_work.due, "the commit")
    put(connection, pages, 3, start=4)
    assert [record.value() for record in read(reader, 2).records] == numbers(4, 6)

    reader._replace()

    assert reader.assigned() == []
    values, _ = read_all(reader, 3)
    assert values == numbers(4, 7)
    reader.close()
