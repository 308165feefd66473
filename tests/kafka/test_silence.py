"""A broker that is silent, and comes back: no role ends, and all verdicts are right.

`make test` freezes the broker once, under all roles at once, until they have noticed. `make silence` does it for 5, 20
and 60 s, under idle roles and busy ones, in `make test-all`.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka, kill_between_transactions
from line import Line, Make, story
from roles import Role
from test_backfill import beside
from test_connection import sessions_expired
from test_cutover import Reader
from test_standby import started
from test_views import Worker

from streams.config.settings import Topics
from streams.errors import BrokerError
from streams.kafka import Admin, Connection, KafkaPages, Writer, topics
from streams.kafka.assignment import Assignment
from streams.kafka.topics import Sizes
from streams.ports import Range
from streams.process.watchdog import EXIT_CODE
from tests import whole

pytestmark = pytest.mark.whole

SECONDS = (5.0, 20.0, 60.0)
#: Longer than each timeout of a role: sessions, transactions, requests.
HANGS_SECONDS = 200.0
#: The shortest session that brokers allow by default.
SESSION_SECONDS = 6.0
#: What a role logs that has noticed; a matcher may lose its group's partition before a request of it fails.
NOTICED = ('"waits for Kafka"', '"starts again"')


class Everything:
    """Every role: a sketcher, a matcher with a standby, a backfill that serves, views, a client, and beside them a line
    of one process."""

    def __init__(self, broker: Any, line: Line, names: Topics, folder: Path) -> None:
        self.line = line
        other = Topics(*(f"b{name}" if name else "" for name in names))
        (folder / "run").mkdir()
        self.single = Line(broker.bootstrap, other, folder / "run")
        for each in (line, self.single):
            each.publish(story(12))
        self.sketcher = line.start("sketch")
        self.active, _ = started(line, "one")
        eventually(lambda: '"resumes"' in self.active.output(), "the first matcher is at work")
        self.standby, _ = started(line, "two")
        self.run = self.single.start("run")
        line.settle()
        self.backfill = beside(line).start("backfill", read_pages=True)
        eventually(lambda: "caught up" in self.backfill.output(), "the backfill serves")
        self.views = Worker(broker.bootstrap, line.names, folder / "views")
        self.client = Reader(line)
        self.client.start()
        self.single.settle()
        self.roles: list[Role] = [self.sketcher, self.active, self.standby, self.run, self.backfill]
        self.folder = folder
        self.starts: list[Callable[[], Role]] = [
            lambda: line.start("sketch"),
            lambda: started(line, "one")[0],
            lambda: started(line, "two")[0],
            lambda: self.single.start("run"),
            lambda: beside(line).start("backfill", read_pages=True),
        ]

    def look(self, *, supervised: bool = False) -> None:
        """Checks that no role has ended.

        supervised: what may end under a busy stream is started again: a role whose call of the client hangs, by its
        watchdog; views that find records of another worker, or whose rebalance does not end.
        """
        for place, role in enumerate(self.roles):
            if supervised and not role.running and has_hung(role):
                self.roles[place] = self.starts[place]()
            else:
                assert role.running, role.output()
        if supervised and self.views.process.poll() is not None:
            ended = ("are another worker's, or duplicates", "a rebalance of the group goes on")
            assert any(why in self.views.log() for why in ended), self.views.log()
            self.views = Worker(self.line.bootstrap, self.line.names, self.folder / "views")
        assert self.views.process.poll() is None, self.views.log()
        assert self.client.failed == []

    def have_noticed(self) -> None:
        for role in (self.sketcher, self.active, self.run):
            eventually(lambda role=role: any(map(role.output().count, NOTICED)) or not role.running, "it has noticed")

    def start_ended(self) -> None:
        """A supervisor: starts again all that have ended, each with its cause."""
        for place, role in enumerate(self.roles):
            if not role.running:
                assert role.wait() in (1, EXIT_CODE), role.output()
                self.roles[place] = self.starts[place]()
        if self.views.process.poll() is not None:
            self.views = Worker(self.line.bootstrap, self.line.names, self.folder / "views")
        if self.client.failed:
            assert all(isinstance(error, BrokerError) for error in self.client.failed)
            self.client.failed.clear()
            self.client.start()

    def publish(self, count: int) -> None:
        for each in (self.line, self.single):
            each.publish(story(count))

    def check(self, *, supervised: bool = False) -> None:
        """All go on, and have what they should have. supervised: as for `look`."""
        second = beside(self.line)
        for each in (self.line, self.single, second):
            each.settle(look=lambda: self.look(supervised=supervised))
        self.look()
        count = len(self.line.verdicts())
        eventually(lambda: self._views_have(count), f"{count} verdicts applied")
        emitted = [("", verdict["page_id"], verdict["n"]) for verdict in self.line.verdicts()]
        eventually(lambda: len(self.client.seen) >= len(emitted), "the client has them all")
        assert sorted(self.client.seen) == sorted(emitted)
        self.look()
        self.line.check()
        self.single.check()
        assert second.verdicts() == second.expected()

    def _views_have(self, count: int) -> bool:
        """Whether the views have applied so many verdicts. A supervisor: starts views that ended in a rebalance."""
        if self.views.process.poll() is not None:
            assert "a rebalance of the group goes on" in self.views.log()
            self.views = Worker(self.line.bootstrap, self.line.names, self.folder / "views")
        try:
            return bool(self.views("/overview.json")["verdicts"] >= count)
        except OSError:  # it ends at this moment
            return False

    def close(self) -> None:
        self.single.close()
        self.views.kill()
        print(self.views.log())
        self.client.stop()


def has_hung(role: Role) -> bool:
    """Whether a watchdog has ended it: with its own line, or with a traceback if the call held the GIL."""
    code, values = role.wait(), role.output()
    return (code == EXIT_CODE and "ending the process" in values) or (code == 1 and "Timeout (" in values)


@pytest.fixture
def everything(own_broker: Any, make: Make, names: Topics, tmp_path: Path) -> Iterator[Everything]:
    made = Everything(own_broker, make(bootstrap=own_broker.bootstrap), names, tmp_path)
    yield made
    own_broker.resume()
    made.close()


@pytest.mark.whole
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("seconds", SECONDS)
def test_roles_go_on_after_a_long_silence_of_the_broker(
    own_broker: Any, everything: Everything, seconds: float, busy: bool
) -> None:
    if busy:
        before = len(everything.line.verdicts())
        everything.publish(150)
        eventually(lambda: len(everything.line.verdicts()) > before, "they are at work")
    own_broker.pause()
    until = time.monotonic() + seconds
    look = partial(everything.look, supervised=busy)  # librdkafka may never return from a call of a transaction
    eventually(lambda: look() or time.monotonic() > until, "the time is over", seconds + 60)
    own_broker.resume()
    everything.publish(5)
    everything.check(supervised=busy)


@pytest.mark.whole
@pytest.mark.parametrize("seconds", [120.0, 240.0])
def test_the_broker_may_be_away_for_minutes(own_broker: Any, everything: Everything, seconds: float) -> None:
    """After 120 s without an answer roles end with the cause; a supervisor starts them until Kafka is back."""
    kill_between_transactions(own_broker)
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until, "the time is over", seconds + 60)
    own_broker.restart()
    everything.start_ended()
    everything.publish(5)
    everything.check()


@pytest.mark.whole
def test_roles_that_hang_for_minutes_go_on_or_are_started_again(everything: Everything) -> None:
    for role in everything.roles:
        role.signal(signal.SIGSTOP)
    everything.publish(5)
    until = time.monotonic() + HANGS_SECONDS
    eventually(lambda: time.monotonic() > until, "the time is over", HANGS_SECONDS + 60)
    for role in everything.roles:
        role.thaw()
    everything.publish(5)

    def supervised() -> bool:
        everything.start_ended()
        return len(everything.line.verdicts()) >= everything.line.total()

    eventually(supervised, "a verdict of each page")
    everything.check()


@pytest.fixture
def forgetful_broker(own_broker: Any) -> Any:
    """Forgets the offsets of a group after a minute, which is the least that Kafka allows."""
    own_broker.stop()
    own_broker.set(**{"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000})
    own_broker.start()
    return own_broker


@pytest.mark.whole
def test_committed_offsets_expire(forgetful_broker: Any, everything: Everything) -> None:
    """First those of matchers, which are no members of their group, under idle roles; then all, while no role runs."""
    lines = [everything.line, everything.single, beside(everything.line)]

    def gone(role: str, topic: Callable[[Topics], str], partitions: int) -> bool:
        return all(set(each.committed(role, topic(each.names), partitions).values()) == {-1} for each in lines)

    def sketches_gone() -> bool:
        everything.look()
        return gone("match", lambda names: names.sketches, 1)

    eventually(sketches_gone, "the offsets of the matchers have expired")
    everything.publish(5)
    everything.check()  # which stops them
    eventually(lambda: gone("match", lambda names: names.sketches, 1), "the offsets of the matchers have expired")
    eventually(lambda: gone("sketch", lambda names: names.pages, 2), "the offsets of the sketchers have expired")
    everything.roles = [start() for start in everything.starts]
    everything.publish(5)
    everything.check()


@pytest.mark.slow
@pytest.mark.parametrize("broker_is", whole.first(["silent", "killed and started"], 1))
def test_no_role_ends_while_the_broker_is(broker_is: str, own_broker: Any, everything: Everything) -> None:
    away, back = own_broker.pause, own_broker.resume
    if broker_is == "killed and started":
        away, back = partial(kill_between_transactions, own_broker), own_broker.restart
    away()
    everything.have_noticed()
    everything.look()
    back()
    everything.publish(5)
    everything.check()


@pytest.mark.whole
def test_consumer_with_an_expired_session_is_replaced(own_broker: Any, names: Topics) -> None:
    """Without `close`, two of eight such consumers never let go: librdkafka waited, and took a whole core."""
    connection = Connection(own_broker.bootstrap, {"session.timeout.ms": int(1000 * SESSION_SECONDS)})
    topics.create(Admin(connection), names, Sizes(partitions=2))
    readers = [KafkaPages(connection, names.pages, f"{names.pages}.{number}") for number in range(8)]

    with closing(Writer(connection, names.pages)) as writer:
        for partition in range(2):
            writer.send(b"page", partition=partition)
        writer.flush()
    batches: list[list[Range]] = [[] for _ in readers]

    def read() -> bool:
        for reader, ranges in zip(readers, batches, strict=True):
            batch = reader.read(1, bytes_max=1, linger_s=0, wait_s=0.05)
            ranges += batch.ranges if batch else []
        return all(len(reader.assigned()) == 2 for reader in readers)

    eventually(lambda: read() and min(map(len, batches)) == 2, "each has read both pages")
    own_broker.pause()
    for reader, ranges in zip(readers, batches, strict=True):
        reader._send_commit(reader._places_of({span.partition: span.stop for span in ranges}))
    until = time.monotonic() + SESSION_SECONDS + 4

    def silence_over() -> bool:
        for reader in readers:
            reader._consumer.consume(1, 0.05)
        return time.monotonic() > until

    eventually(silence_over, "the session is over")
    own_broker.resume()
    for reader in readers:
        reader._replace()

    eventually(read, "each reads again")
    discarded = [thread for thread in threading.enumerate() if thread.name == "discarded consumer"]
    eventually(lambda: not any(thread.is_alive() for thread in discarded), "the former consumers are closed")
    for reader in readers:
        with closing(reader):
            assert len(reader.assigned()) == 2


@pytest.mark.whole
def test_members_join_although_the_request_that_their_join_awaits_is_lost(tmp_path: Path) -> None:
    """Once the client knows the broker, it drops the connection to `bootstrap` and the requests under way there."""
    sessions = {"broker.heartbeat.interval.ms": 2_000, "broker.session.timeout.ms": 1_500}
    with kafka.Cluster(tmp_path, settings=sessions) as cluster:
        connection = Connection(cluster.bootstrap)
        eventually(lambda: Admin(connection).create("log", 1, 1, {}), "the topic")
        expired = sessions_expired(cluster)
        eventually(lambda: sessions_expired(cluster) > expired, "a session has expired")
        waiting = [Assignment(connection, "log", f"group{number}") for number in range(24)]

        def joined() -> bool:
            waiting[:] = [member for member in waiting if not member.look(0.02)]
            return not waiting

        eventually(joined, "each has led its group")
