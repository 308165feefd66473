"""The second driver of the soak: pages of ordinary producers, zombies that sleep longer than every timeout, partitions
that are added, and state folders that were copied while a process wrote to them.

It keeps no account of its own of what is in `pages`: an ordinary producer repeats and reorders. What Kafka has in the
end counts: all that was acknowledged must be in it, and each record must have its verdict, once.
"""

import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from broker import eventually
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from corpus import Event
from line import SOON, Line
from roles import Role
from soak import FOLD_AGAIN_MAX, SETTINGS, SKETCHERS, Soak
from supervised import Publisher, all_of, digest_of

from neardup import errors as method_errors
from streams import errors as stream_errors

PARTITIONS_MAX = 12
#: Longer than each of the timeouts below, of the group's sessions, of a transaction, and of its watchdog.
SLEEP_SECONDS = 26.0
#: Published meanwhile.
PAGES_ASLEEP = 3_000
SIEGE_SETTINGS: Mapping[str, Any] = {
    **SETTINGS,
    "transaction_timeout_ms": 10_000,
    "transaction_deadline_ms": 10_000,
    "kafka_values": {
        **SOON,
        "sketch.max.poll.interval.ms": "10000",
        "topic.metadata.refresh.interval.ms": "2000",  # added partitions are seen so soon
    },
}
#: Clients of others, as they come; none is idempotent.
CLIENTS: list[dict[str, Any]] = [
    {},
    {"partitioner": "murmur2_random", "compression.type": "gzip", "linger.ms": 50},
    {"partitioner": "random", "batch.num.messages": 7, "max.in.flight.requests.per.connection": 3},
]


class OrdinaryProducers(Publisher):
    """Three of them, in turn. `digests` is read from Kafka, by `flush`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        common = {"bootstrap.servers": line.bootstrap, "topic.metadata.refresh.interval.ms": 2_000, "log_level": 0}
        self._clients = [Producer({**common, **client}) for client in CLIENTS]
        self._acknowledged: Counter[bytes] = Counter()
        self._sent = 0
        self.digests = [[] for _ in range(line.sizes.partitions)]
        self.failed: list[KafkaError] = []

    @property
    def pages(self) -> int:
        return self._sent

    def send(self, event: Event) -> None:
        digest = digest_of(event.key, event.value, event.headers)

        def output(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._acknowledged[digest] += 1
            else:
                self.failed.append(error)

        client = self._clients[self._sent % len(self._clients)]
        headers = list(event.headers)
        client.produce(self._line.names.pages, event.value, event.key, headers=headers, on_delivery=output)
        self._sent += 1

    def wait(self, seconds: float) -> None:
        for client in self._clients:
            client.poll(seconds / len(self._clients))

    def flush(self) -> None:
        """Raises AssertionError if what was acknowledged is not there."""
        for client in self._clients:
            assert client.flush(60) == 0, "records that were never acknowledged"
        assert not self.failed, self.failed[:3]
        found: list[dict[int, bytes]] = [{} for _ in self._line.ends(self._line.names.pages)]
        for records in all_of(self._line, self._line.names.pages):
            for record in records:
                digest = digest_of(record.key(), record.value(), record.headers())
                found[record.partition()][record.offset()] = digest
        self.digests = [[held[offset] for offset in range(len(held))] for held in found]
        missing = self._acknowledged - Counter(digest for held in self.digests for digest in held)
        assert not missing, f"{missing.total()} records were acknowledged and are not in the topic"
        self._sent = sum(map(len, self.digests))


class Siege(Soak):
    """One run."""

    settings = SIEGE_SETTINGS

    def producers(self) -> Publisher:
        return OrdinaryProducers(self.line)

    def actions(self) -> dict[Callable[[], None], int]:
        return {
            self.zombie_matcher: 3,
            self.zombie_sketcher: 3,
            self.add_partitions: 2,
            self.torn_copy: 3,
            self.kill_broker: 1,
            self.kill_matcher: 1,
        }

    def zombie_matcher(self) -> None:
        """Another one takes over on another machine, with an empty folder; then the first wakes up, and must end."""
        if self.publisher.pages > FOLD_AGAIN_MAX:
            return self.kill_matcher()
        zombie = self.keeper.role("match")
        if not zombie.running:
            return None
        zombie.signal(signal.SIGSTOP)
        try:
            self.line.settings = replace(self.line.settings, state=str(self.line.folder / f"on-{self.done.total()}"))
            self.keeper.start("match")
            self._sleep()
        finally:
            zombie.signal(signal.SIGCONT)
        code = zombie.wait()
        assert code != 0, "it continued although another one has taken over"
        return None

    def zombie_sketcher(self) -> None:
        """The group gives its partitions to others. What it has in hand may arrive when it wakes up."""
        role = self.keeper.role(self.chance.choice(SKETCHERS))
        if not role.running:
            return
        role.signal(signal.SIGSTOP)
        try:
            self._sleep()
        finally:
            role.signal(signal.SIGCONT)

    def _sleep(self) -> None:
        until, left = time.monotonic() + SLEEP_SECONDS, PAGES_ASLEEP
        while time.monotonic() < until:
            count = min(left, self.chance.randrange(10, 60))
            self._publish_ahead(count)
            left -= count
            self.keeper.look()
            self.publisher.wait(0.2)

    def add_partitions(self) -> None:
        count = len(self.line.ends(self.line.names.pages))
        if count < PARTITIONS_MAX:
            client = AdminClient({"bootstrap.servers": self.line.bootstrap, "log_level": 0})
            more = NewPartitions(self.line.names.pages, count + self.chance.randrange(1, 3))
            client.create_partitions([more])[self.line.names.pages].result(30)

    def torn_copy(self) -> None:
        """Copies the folder of an active matcher, file by file, possibly not to the end, and puts it back."""
        if self.publisher.pages > FOLD_AGAIN_MAX:
            return self.kill_matcher()
        state = Path(self.line.settings.state)
        copy = state.with_name(f"{state.name}-copy-{self.done.total()}")
        self._copy(state, copy)
        self._publish(self.chance.randrange(200, 1_000))
        self.keeper.kill("match")
        shutil.rmtree(state, ignore_errors=True)
        copy.rename(state)
        self.keeper.look()
        role = self.keeper.role("match")
        eventually(lambda: not role.running or '"folding' in role.output() or '"resumes"' in role.output(), "a start")
        if not role.running:
            self._must_be_refused(role)
            shutil.rmtree(state, ignore_errors=True)  # the log begins at 0: all of it is folded anew
        return None

    def _copy(self, state: Path, copy: Path) -> None:
        files = sorted(path for path in state.rglob("*") if path.is_file() and path.name != "LOCK")
        self.chance.shuffle(files)
        copy.mkdir()  # of a matcher that has only just started there are no files
        for path in files:
            self._publish_ahead(self.chance.randrange(20))
            target = copy / path.relative_to(state)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue  # compacted away meanwhile
            target.write_bytes(data[: self.chance.randrange(len(data) + 1)] if self.chance.random() < 0.03 else data)

    def _must_be_refused(self, role: Role) -> None:
        """In words, with a name of ours: no trace of a stack, no signal."""
        error = role.refused()
        name = error.partition(":")[0]
        assert hasattr(method_errors, name) or hasattr(stream_errors, name), error
        self.done[f"torn copy refused with {name}"] += 1
