"""Verdicts and the log's offset appear together, once, whichever process dies, for readers of committed records."""

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from broker import PATIENCE_SECONDS, eventually
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from neardup.errors import NeardupError
from streams.config.settings import Topics
from streams.errors import BrokerError, Fenced, RecordTooLarge, Unsettled
from streams.kafka import Admin, Connection, KafkaVerdicts, TopicReader, topics
from streams.kafka.topics import Sizes
from streams.kafka.verdict_transactions import NOWHERE
from streams.ports import Committed
from streams.process.watchdog import EXIT_CODE, Watchdog
from tests import processes
from tests.whole import count

HERE = Path(__file__).parent


def sink(connection: Connection, names: Topics, **changes: Any) -> KafkaVerdicts:
    settings: dict[str, Any] = {
        "log_topic": names.sketches,
        "group": names.sketches,
        "transactional_id": names.sketches,
    }
    return KafkaVerdicts(connection, names.verdicts, **{**settings, **changes})


def again(failed: KafkaVerdicts, connection: Connection, names: Topics) -> KafkaVerdicts:
    """What follows a commit that failed."""
    failed.close()
    verdicts = sink(connection, names)
    verdicts.init()
    return verdicts


def batch(number: int, size: int = 3) -> list[tuple[bytes, bytes]]:
    return [(b"http://a.test/%d" % place, b"%d.%d" % (number, place)) for place in range(size)]


def committed_values(connection: Connection, names: Topics) -> list[bytes]:
    """All verdicts that a consumer of committed records gets, in order within each partition."""
    reader = TopicReader(connection, names.verdicts, committed_only=True)
    # A commit returns before its markers are written, and the end of what is committed stands before open transactions.
    ends = Admin(connection).offsets(reader.topic, "latest")
    eventually(lambda: reader.ends() == ends, "the end of all transactions")
    reader.assign(reader.first_offsets())
    values: list[bytes] = []

    def read_on() -> bool:
        values.extend(record.value() or b"" for record in reader.read(1000, wait_s=0.2))
        return all(position >= ends[partition] for partition, position in reader.positions().items())

    eventually(read_on, "the end of the verdicts")
    reader.close()
    return values


def written(connection: Connection, names: Topics) -> list[tuple[int | None, bytes | None]]:
    """Offset and value of each record of one partition, of aborted transactions, too."""
    with closing(TopicReader(connection, names.verdicts, committed_only=False)) as reader:
        return [(record.offset(), record.value()) for record in reader.to_end()]


def values_of(*batches: list[tuple[bytes, bytes]]) -> list[bytes]:
    return sorted(value for each in batches for _, value in each)


def test_verdicts_and_offset_are_committed_together(connection: Connection, made: Topics) -> None:
    verdicts = sink(connection, made)
    verdicts.init()
    assert verdicts.committed() is None

    for number in range(5):
        verdicts.commit(batch(number), number + 1)
        assert verdicts.committed() == Committed(number + 1, NOWHERE)
    verdicts.commit([], 6)

    assert verdicts.committed() == Committed(6, NOWHERE)
    assert sorted(committed_values(connection, made)) == values_of(*(batch(number) for number in range(5)))
    verdicts.close()


def test_one_url_s_verdicts_stay_in_order(connection: Connection, made: Topics) -> None:
    verdicts = sink(connection, made)
    verdicts.init()
    for number in range(20):
        verdicts.commit([(b"http://a.test/", b"%d" % number)], number + 1)

    assert committed_values(connection, made) == [b"%d" % number for number in range(20)]
    verdicts.close()


def test_the_newest_verdicts_are_found_behind_markers_and_aborted_ones(
    broker: str, connection: Connection, made: Topics
) -> None:
    verdicts = sink(connection, made)
    verdicts.init()
    verdicts.commit([(b"a", b"old a"), (b"b", b"old b")], 1)
    verdicts.commit([(b"a", b"new a"), (b"b", b"new b")], 2)
    foreign = Producer({"bootstrap.servers": broker, "transactional.id": f"{made.verdicts}.foreign"})
    foreign.init_transactions(30)
    foreign.begin_transaction()
    for partition in (0, 1):
        for _ in range(500):
            foreign.produce(made.verdicts, b"aborted", partition=partition)
    foreign.flush(30)
    foreign.abort_transaction(30)
    reader = TopicReader(connection, made.verdicts, committed_only=True)
    # The abort is acknowledged before its markers are there: two commits, 1000 aborted records, and all markers.
    used = {_partition(connection, made, value) for value in (b"new a", b"new b")}
    eventually(lambda: sum(reader.ends().values()) == 4 + 2 * len(used) + 1000 + 2, "the markers")

    newest = reader.last()

    assert newest.keys() == used
    assert {record.value() for record in newest.values()} <= {b"new a", b"new b"}
    reader.close()
    verdicts.close()


def _partition(connection: Connection, names: Topics, wanted: bytes) -> int:
    reader = TopicReader(connection, names.verdicts, committed_only=False)
    reader.assign(reader.first_offsets())
    found: list[int] = []

    def look() -> bool:
        records = reader.read(2000, wait_s=0.2)
        found.extend(record.partition() for record in records if record.value() == wanted)
        return bool(found)

    eventually(look, wanted.decode())
    reader.close()
    return found[0]


def test_a_second_matcher_fences_the_first(connection: Connection, made: Topics) -> None:
    first = sink(connection, made)
    first.init()
    first.commit(batch(0), 1)
    second = sink(connection, made)
    second.init()

    assert second.committed() == Committed(1, NOWHERE)
    with pytest.raises(Fenced, match=f"taken over transactional id {made.sketches}"):
        first.commit([(b"http://a.test/", b"zombie")], 2)
    with pytest.raises(Fenced):
        first.commit([], 2)
    second.commit(batch(1), 2)

    assert second.committed() == Committed(2, NOWHERE)
    assert sorted(committed_values(connection, made)) == values_of(batch(0), batch(1))
    first.close()
    second.close()


@contextmanager
def killed_in_a_transaction(broker: str, names: Topics) -> Iterator[None]:
    """Another process of the same transactional id has written verdicts, has not committed, and is dead."""
    command = [sys.executable, str(HERE / "transaction.py"), broker, names.verdicts, names.sketches]
    process = processes.start(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        yield
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_a_killed_matcher_s_open_transaction_is_never_read(broker: str, connection: Connection, made: Topics) -> None:
    before = sink(connection, made)
    before.init()
    before.commit(batch(0), 1)
    with killed_in_a_transaction(broker, made):
        after = sink(connection, made)
        after.init()

        assert after.committed() == Committed(1, NOWHERE)
        after.commit(batch(1), 2)

    assert sorted(committed_values(connection, made)) == values_of(batch(0), batch(1))
    before.close()
    after.close()


def test_the_offset_waits_for_an_open_transaction(broker: str, connection: Connection, made: Topics) -> None:
    """A matcher that has not fenced its zombie gets no committed offset as final."""
    foreign = Producer({"bootstrap.servers": broker, "transactional.id": made.sketches})
    group = Consumer({"bootstrap.servers": broker, "group.id": made.sketches})
    foreign.init_transactions(30)
    foreign.begin_transaction()
    foreign.send_offsets_to_transaction([TopicPartition(made.sketches, 0, 7)], group.consumer_group_metadata(), 30)
    verdicts = sink(connection, made)
    verdicts._deadline_s = 1.0
    with pytest.raises(BrokerError, match="offset of"):
        verdicts.committed()

    verdicts._deadline_s = 60.0
    verdicts.init()
    assert verdicts.committed() is None
    with pytest.raises(Exception, match="_FENCED"):
        foreign.commit_transaction(30)
    group.close()
    verdicts.close()


def test_a_refused_verdict_leaves_nothing_behind(connection: Connection, admin: Admin, names: Topics) -> None:
    admin.create(names.verdicts, 1, 1, {"max.message.bytes": "2000"})
    admin.create(names.sketches, 1, 1, {})
    plain = Connection(connection.bootstrap, {"compression.type": "none"})
    verdicts = sink(plain, names)
    verdicts.init()
    verdicts.commit(batch(0), 1)

    with pytest.raises(RecordTooLarge):
        verdicts.commit([*batch(1), (b"large", b"x" * 3000)], 2)
    verdicts = again(verdicts, plain, names)

    assert verdicts.committed() == Committed(1, NOWHERE)
    verdicts.commit(batch(2), 3)
    assert verdicts.committed() == Committed(3, NOWHERE)
    assert committed_values(connection, names) == [value for each in (batch(0), batch(2)) for _, value in each]
    verdicts.close()


def test_a_verdict_over_the_client_s_limit_leaves_nothing_behind(connection: Connection, made: Topics) -> None:
    verdicts = sink(connection, made, message_bytes_max=2000)
    verdicts.init()

    with pytest.raises(RecordTooLarge):
        verdicts.commit([*batch(0), (b"large", b"x" * 3000)], 1)
    verdicts = again(verdicts, connection, made)

    assert verdicts.committed() is None
    verdicts.commit(batch(1), 1)
    assert sorted(committed_values(connection, made)) == values_of(batch(1))
    verdicts.close()


def test_more_verdicts_than_the_queue_holds(broker: str, made: Topics) -> None:
    connection = Connection(broker, {"queue.buffering.max.messages": 100})
    verdicts = sink(connection, made)
    verdicts.init()

    verdicts.commit(batch(0, 5000), 1)

    # The markers of a commit may come after the answer to it.
    eventually(lambda: sorted(committed_values(connection, made)) == values_of(batch(0, 5000)), "the verdicts")
    verdicts.close()


def test_more_verdicts_than_the_deadline_allows_are_committed_as_advised(broker: str, made: Topics) -> None:
    """Those of the takedown of a large site; without the advice each start would end so."""
    connection = Connection(broker, {"queue.buffering.max.messages": 100})
    hasty = sink(connection, made, deadline_s=0.0)
    hasty.init()
    with pytest.raises(Unsettled, match=r"5000 records .* set transaction_deadline_ms and transaction_timeout_ms"):
        hasty.commit(batch(0, 5000), 1)

    patient = again(hasty, connection, made)  # with the default deadline

    patient.commit(batch(0, 5000), 1)
    eventually(lambda: sorted(committed_values(connection, made)) == values_of(batch(0, 5000)), "the verdicts")
    patient.close()


@pytest.mark.whole
def test_a_broker_killed_again_and_again_loses_and_repeats_nothing(
    own_broker: Any, names: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies within open transactions, behind their records and offsets, and comes back while the client commits."""
    connection = Connection(own_broker.bootstrap)
    topics.create(Admin(connection), names, Sizes(partitions=2))
    verdicts = sink(connection, names)
    verdicts.init()
    number, total, kills = 0, count(200, 300), [100, 200][: count(1, 2)]
    call, restarts = KafkaVerdicts._call, []

    def killed(self: KafkaVerdicts, what: str, do: Callable[[], None]) -> None:
        if what == "commit" and number in kills:
            kills.remove(number)
            own_broker.kill()
            restarts.append(threading.Thread(target=own_broker.restart))
            restarts[-1].start()
        call(self, what, do)

    monkeypatch.setattr(KafkaVerdicts, "_call", killed)
    while number < total:
        try:
            verdicts.commit(batch(number, 20), number + 1)
            number += 1
        except Unsettled:
            verdicts = again(verdicts, connection, names)
            number = done.offset if (done := verdicts.committed()) else 0
    for restart in restarts:
        restart.join(PATIENCE_SECONDS)

    assert kills == []
    assert verdicts.committed() == Committed(total, NOWHERE)
    found = Counter(committed_values(connection, names))
    assert found == Counter(value for number in range(total) for _, value in batch(number, 20))
    verdicts.close()


@pytest.mark.parametrize("repeated", ["offsets", "commit"])
def test_a_producer_that_has_repeated_a_request_begins_no_other_transaction(
    connection: Connection, made: Topics, repeated: str
) -> None:
    """The first request may arrive within the next transaction: it would move the offset back, or commit too early."""
    verdicts = sink(connection, made)
    verdicts.init()
    verdicts.commit(batch(0), 1)
    call, lost = verdicts._call, [repeated]

    def times_out(what: str, do: Callable[[], None]) -> None:
        def once() -> None:
            if what in lost:
                lost.remove(what)
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", False, True))  # retriable
            do()

        call(what, once)

    verdicts._call = times_out  # type: ignore[method-assign]
    verdicts.commit(batch(1), 2)
    with pytest.raises(Unsettled, match=f"needs a new producer: {repeated} was repeated") as refused:
        verdicts.commit(batch(2), 3)
    assert refused.value.commits == 2

    after = again(verdicts, connection, made)
    assert after.committed() == Committed(2, NOWHERE)
    after.commit(batch(2), 3)
    assert sorted(committed_values(connection, made)) == values_of(batch(0), batch(1), batch(2))
    after.close()


def test_records_that_arrive_late_are_no_part_of_a_later_transaction(own_broker: Any, names: Topics) -> None:
    connection = Connection(own_broker.bootstrap, {"socket.timeout.ms": 1000, "message.timeout.ms": 2000})
    topics.create(Admin(connection), names, Sizes(partitions=1))
    verdicts = sink(connection, names)
    verdicts.init()
    verdicts.commit(batch(0), 1)
    produce = verdicts._produce

    def silent(records: Any) -> None:
        produce(records[:1])
        assert verdicts._producer.flush(30) == 0  # the partition is part of the transaction
        own_broker.pause()
        produce(records[1:])

    verdicts._produce = silent  # type: ignore[method-assign]
    with pytest.raises(Unsettled, match="the transaction failed"):
        verdicts.commit(batch(1), 2)
    verdicts._produce = produce  # type: ignore[method-assign]
    own_broker.resume()
    with pytest.raises(NeardupError):  # no other transaction by the same producer
        verdicts.commit(batch(1), 2)

    after = again(verdicts, Connection(own_broker.bootstrap), names)
    assert after.committed() == Committed(1, NOWHERE)
    after.commit(batch(1), 2)
    found = committed_values(connection, names)
    assert sorted(found) == values_of(batch(0), batch(1)), f"of the written records {written(connection, names)}"
    after.close()


HUNG = """
import sys
from streams.kafka import Connection, KafkaVerdicts
from streams.process.watchdog import Watchdog

bootstrap, topic, log = sys.argv[1:]
verdicts = KafkaVerdicts(Connection(bootstrap), topic, log_topic=log, group=log, transactional_id=log)
verdicts.init()
verdicts.commit([(b"a", b"before")], 1)
print("ready", flush=True)
sys.stdin.readline()
verdicts._watchdog = Watchdog(2.0)
verdicts.commit([(b"a", b"hung")], 2)
print("not reached", flush=True)
"""


def test_a_transaction_that_hangs_ends_the_process(own_broker: Any, names: Topics) -> None:
    connection = Connection(own_broker.bootstrap)
    topics.create(Admin(connection), names, Sizes(partitions=2))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = processes.start(
        [sys.executable, "-c", HUNG, own_broker.bootstrap, names.verdicts, names.sketches], **pipes
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        own_broker.pause()
        out, err = process.communicate("go\n", timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.communicate()
        own_broker.resume()

    assert process.returncode == EXIT_CODE
    assert "not reached" not in out
    log = names.sketches
    assert f"error: the transaction up to offset 2 of {log} ({log}) has not ended in 2 s" in err
    # The broker has answered a commit before it writes its markers, and may have been paused between.
    eventually(lambda: committed_values(connection, names), "the end of the first transaction")
    assert committed_values(connection, names) == [b"before"]


@pytest.mark.slow
def test_the_watchdog_is_quiet_until_a_deadline_is_over() -> None:
    reported: list[str] = []
    bitten = threading.Event()

    def end(text: str) -> None:
        reported.append(text)
        bitten.set()

    watchdog = Watchdog(0.2, end)
    assert not bitten.wait(0.6)  # nothing is under way: it may not bite however long it takes
    with watchdog.watch("the long call"):
        assert bitten.wait(PATIENCE_SECONDS)
    assert reported == ["the long call has not ended in 0.2 s; ending the process, start it again"]

    bitten.clear()
    again = Watchdog(1.0, end)
    with again.watch("short"):
        pass
    assert not bitten.wait(1.5)
