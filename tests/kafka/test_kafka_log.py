"""The sketch log: one order, no holes, and no reader that jumps."""

import contextlib
import itertools
import time
from types import SimpleNamespace

import pytest
from broker import eventually
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.config.settings import Topics
from streams.errors import BrokerError, PositionLost, RecordTooLarge, TopicError
from streams.kafka import Admin, Connection, KafkaLog, Writer, topics
from streams.kafka.topics import Sizes


@pytest.fixture
def sketches(admin: Admin, names: Topics) -> str:
    topics.create(admin, names, Sizes(partitions=2))
    return names.sketches


def poll(log: KafkaLog, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []

    def more() -> bool:
        found.extend(log.poll(count - len(found), bytes_max=1 << 24, wait_s=1.0))
        return len(found) == count

    eventually(more, f"{count} messages")
    return found


def test_messages_come_back_in_order_from_any_offset(connection: Connection, sketches: str) -> None:
    writer = Writer(connection, sketches, gapless=True)
    for number in range(1000):
        writer.send(b"%d" % number)
    writer.flush()
    log = KafkaLog(connection, sketches)

    assert (writer.sent, writer.acknowledged, writer.outstanding, writer.last_offset) == (1000, 1000, 0, 999)
    assert (log.first_offset(), log.end()) == (0, 1000)
    assert list(log.messages(0)) == [(number, b"%d" % number) for number in range(1000)]
    assert list(log.messages(990)) == [(number, b"%d" % number) for number in range(990, 1000)]
    assert list(log.messages(1000)) == []
    log.close()


def test_follower_reads_appended_messages(connection: Connection, sketches: str) -> None:
    log = KafkaLog(connection, sketches)
    log.follow(0)
    assert log.poll(10, bytes_max=1 << 20, wait_s=0.0) == []
    assert log.position() == 0
    writer = Writer(connection, sketches, gapless=True, linger_ms=0)

    for number in range(3):
        writer.send(b"%d" % number)
        assert poll(log, 1) == [(number, b"%d" % number)]

    assert log.position() == 3
    log.close()


def test_a_full_message_fits(connection: Connection, sketches: str) -> None:
    writer = Writer(connection, sketches, gapless=True)
    full = bytes(itertools.islice(itertools.cycle(range(251)), 950_000))
    writer.send(full)
    writer.flush()
    log = KafkaLog(connection, sketches)

    assert list(log.messages(0)) == [(0, full)]
    log.close()


def test_neither_a_cut_log_nor_a_short_one_is_read(broker: str, connection: Connection, sketches: str) -> None:
    writer = Writer(connection, sketches, gapless=True)
    for _ in range(10):
        writer.send(b"x")
    writer.flush()
    log = KafkaLog(connection, sketches)
    client = AdminClient({"bootstrap.servers": broker})
    for future in client.delete_records([TopicPartition(sketches, 0, 4)]).values():
        future.result(30)

    assert (log.first_offset(), log.end()) == (4, 10)
    with pytest.raises(PositionLost, match=r"offset 3 is to be read, .* holds 4 to 9: records 3 to 3 were deleted"):
        log.follow(3)
    with pytest.raises(PositionLost, match=r"offset 11 is to be read, .* holds 4 to 9: it ends before that"):
        log.follow(11)
    assert [offset for offset, _ in log.messages(4)] == [4, 5, 6, 7, 8, 9]
    log.close()


def test_a_log_that_is_cut_under_its_reader_stops_it(broker: str, connection: Connection, sketches: str) -> None:
    writer = Writer(connection, sketches, gapless=True)
    for _ in range(5):
        writer.send(b"x" * 100_000)
        writer.flush()
    log = KafkaLog(connection, sketches)
    log.follow(0)
    log._consumer.pause([TopicPartition(sketches, 0)])  # nothing is fetched ahead
    client = AdminClient({"bootstrap.servers": broker})
    for future in client.delete_records([TopicPartition(sketches, 0, 3)]).values():
        future.result(30)
    log._consumer.resume([TopicPartition(sketches, 0)])

    with pytest.raises(PositionLost, match=r"partition 0: offset 0 is to be read, .* holds 3 to 4"):
        poll(log, 5)
    log.close()


def test_recreated_log_is_another_log(broker: str, connection: Connection, admin: Admin, sketches: str) -> None:
    writer = Writer(connection, sketches, gapless=True)
    writer.send(b"old")
    writer.flush()
    log = KafkaLog(connection, sketches)
    log.follow(1)
    client = AdminClient({"bootstrap.servers": broker})
    client.delete_topics([sketches])[sketches].result(30)
    eventually(lambda: not admin.topics([sketches]), "the topic's end")
    admin.create(sketches, 1, 1, {})
    writer = Writer(connection, sketches, gapless=True)
    for _ in range(3):
        writer.send(b"new")
    writer.flush()

    with pytest.raises(TopicError, match=r"was deleted and recreated .*: begin another generation"):
        poll(log, 2)
    again = KafkaLog(connection, sketches)
    assert again.topic.id != log.topic.id
    assert again.cluster_id == log.cluster_id == admin.cluster_id()
    log.close()
    again.close()


def test_a_foreign_open_transaction_does_not_stop_the_line(broker: str, connection: Connection, sketches: str) -> None:
    producer = Producer({"bootstrap.servers": broker, "transactional.id": sketches})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(sketches, b"foreign")
    producer.flush(30)
    writer = Writer(connection, sketches, gapless=True)
    writer.send(b"ours")
    writer.flush()
    log = KafkaLog(connection, sketches)

    assert log.end() == 2
    assert list(log.messages(0)) == [(0, b"foreign"), (1, b"ours")]

    # Its marker takes an offset: a position passes it, and the end is still found.
    producer.abort_transaction(30)
    eventually(lambda: log.end() == 3, "the marker")
    assert [offset for offset, _ in log.messages(0)] == [0, 1]
    assert log.position() == 3
    log.close()


def test_the_log_has_one_partition(connection: Connection, admin: Admin, names: Topics) -> None:
    admin.create(names.sketches, 2, 1, {})

    with pytest.raises(TopicError, match="has 2 partitions; it must have exactly one"):
        KafkaLog(connection, names.sketches)
    with pytest.raises(TopicError, match=f"topic {names.pages} does not exist"):
        KafkaLog(connection, names.pages)


def test_a_record_over_the_client_s_limit_is_named_and_left_out(
    connection: Connection, names: Topics, admin: Admin
) -> None:
    topics.create(admin, names, Sizes(partitions=1))
    writer = Writer(connection, names.pages, message_bytes_max=2000)

    with pytest.raises(RecordTooLarge, match=r"http://a.test/large has 3000 bytes"):
        writer.send(b"x" * 3000, key=b"http://a.test/large")
    writer.send(b"x", key=b"http://a.test/small")
    writer.flush()

    assert writer.acknowledged == 1


def test_after_a_refused_message_the_log_holds_nothing_of_its_writer(
    connection: Connection, admin: Admin, names: Topics
) -> None:
    admin.create(names.sketches, 1, 1, {"max.message.bytes": "2000"})
    # One record a request: the broker would take those after the refused one.
    plain = Connection(connection.bootstrap, {"compression.type": "none", "batch.num.messages": 1})
    writer = Writer(plain, names.sketches, gapless=True, linger_ms=0)
    writer.send(b"before")
    writer.flush()

    def send_more() -> None:
        writer.send(b"x" * 3000, key=b"large")
        for _ in range(1000):
            writer.send(b"after")
        writer.flush()

    with pytest.raises(BrokerError, match=r"too large"):
        send_more()
    with pytest.raises(BrokerError, match=r"too large"):
        writer.flush()

    # However slowly the process ends: a writer with gaps is through with everything in a fraction of this.
    deadline = time.monotonic() + 3
    while len(writer._producer) and time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):
            writer._producer.poll(0.1)

    log = KafkaLog(connection, names.sketches)
    assert list(log.messages(0)) == [(0, b"before")]
    log.close()


def test_a_flush_waits_for_nothing_where_no_record_is_outstanding() -> None:
    waits: list[float] = []
    producer = SimpleNamespace(poll=waits.append)
    writer = Writer(SimpleNamespace(make=lambda *_: producer), "topic")  # type: ignore[arg-type]

    writer.flush()

    assert waits == [0.0]
