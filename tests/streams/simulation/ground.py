"""The environment of a stream: topics, committed positions, clocks, pages, and the last errors of its roles.

A step is a function of the world and of a seed of its own, so that steps can be left out of a schedule and the others
still do what they did.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, NeardupError
from neardup.page import Page
from streams.config.settings import Settings
from streams.errors import Fenced
from streams.formats.message import NewDecider, decode_entry
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.roles.runtime import Runtime
from tests.streams.archives import crawl
from tests.streams.scripted import Broker, ManualClock, ScriptedPartition, ScriptedTopic
from tests.streams.simulation.checkpoints import Checkpoints
from tests.streams.simulation.indexer import Indexer
from tests.streams.simulation.ledger import SCHEME

DECIDER = Decider(scheme=SCHEME.digest)
DECIDERS = [DECIDER, replace(DECIDER, tape_min=0.55), replace(DECIDER, tape_min=0.99)]
SAMPLES = crawl(12)
METRICS = Metrics()
NEW_YEAR_MS = 1_767_225_600_000


class Crash(Exception):
    """A process is gone at once."""


class Wrong(AssertionError):
    """An invariant does not hold."""


class Ground:
    """The parts that survive the end of any process.

    complaints: last errors of roles, by role, until an operator has acted. By id of a topic of verdicts:
    accepted, the offset of the log below which verdicts may be missing there; asked_again, offsets whose verdicts an
    operator has had told once more; strays, how often a matcher that began on the topic before it has told a verdict
    there, by the verdict's id. replayed: topics to which a replay wrote. happened: how often what did.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"sizes {seed}")
        draw = self.chance.choice
        self.checkpoints = Checkpoints(seed)
        self.partitions = draw([1, 2, 3, 3, 5])
        self.pages_max = draw([1, 2, 3, 8])  # in a message
        self._base = Settings(
            seed=7,
            batch_pages=draw([1, 2, 4, 9]),
            inflight_batches=draw([1, 2, 3]),
            match_messages=draw([1, 2, 3, 6]),
            flush_ms=draw([1, 5_000, 3_600_000]),
            threads=1,
            transaction_timeout_ms=10_000,
        )
        self.wall, self.steady_s = ManualClock(NEW_YEAR_MS), 0.0
        self.broker = Broker()
        self.broker.create("pages", self.partitions)
        self.pages: dict[tuple[bytes, int, int], Page] = {}
        self.decider = DECIDER
        self.indexer = Indexer(self.broker)
        self.complaints: dict[str, str] = {}
        self.accepted: dict[bytes, int] = {}
        self.asked_again: dict[bytes, list[range]] = {}
        self.replayed: set[bytes] = set()
        self.strays: dict[bytes, Counter[tuple[int, int]]] = {}
        self.happened: Counter[str] = Counter()
        self.armed: tuple[str, str] | None = None
        self.report: Callable[[str], None] = lambda text: None
        self.settings, self.generation = self._base, -1
        self.begin_generation()

    # Generations and topics.

    def begin_generation(self) -> None:
        """Makes settings and topics; no process runs yet."""
        self.generation += 1
        self.checkpoints.turn(self.settings, away=False)
        self.settings = replace(
            self._base,
            generation=f"g{self.generation}" if self.generation else "",
            **self.checkpoints.settings(self.generation),  # type: ignore[arg-type]
        )
        health = Health(self.wall.now_ms, self.settings.stall_ms)
        self.runtime = Runtime(self.settings, METRICS, health, Event(), lambda: self.steady_s)
        self.names = self.settings.topics
        self.complaints = {}
        self.make_topics()

    def make_topics(self) -> None:
        """`neardup topics create`."""
        for name, partitions in (
            (self.names.pages, self.partitions),
            (self.names.rejected, 1),
            (self.names.sketches, 1),
            (self.names.verdicts, self.partitions),
        ):
            if name not in self.broker.topics:
                made = self.broker.create(name, partitions)
                if name == self.names.verdicts:
                    self.mind_a_hand(made)

    def mind_a_hand(self, verdicts: ScriptedTopic) -> None:
        """An offset that was set by hand is meant for the topics that are there."""
        known = self.broker.committed(self.settings.group_of("match"), self.names.sketches, 0)
        if known is not None and known.topic_ids is None:
            self.accepted[verdicts.id] = known.offset

    @property
    def log(self) -> ScriptedPartition:
        return self.broker.topics[self.names.sketches].partitions[0]

    # Pages.

    def publish(self) -> None:
        topic = self.broker.topics.get(self.names.pages)
        if topic is None:
            return
        for _ in range(self.chance.randrange(1, 6)):
            sample = self.chance.choice(SAMPLES)
            url = f"http://site{self.chance.randrange(3)}.example/{self.chance.choice(SAMPLES).path}"
            partition = self.chance.randrange(len(topic.partitions))
            body = None if self.chance.random() < 0.1 else sample.body
            status = 500 if self.chance.random() < 0.1 else 200
            fetched_at = NEW_YEAR_MS + self.chance.randrange(5) * 1_000
            headers = [("fetched-at", b"%d" % fetched_at), ("http-status", b"%d" % status)]
            record = topic.publish(partition, url.encode(), body, headers, self.wall.ms)
            self.pages[topic.id, *record.at] = Page(url, body, fetched_at=fetched_at, status=status)
            self.tick()

    def tick(self) -> None:
        self.wall.ms += self.chance.randrange(50)
        self.steady_s += self.chance.choice([0.0, 0.1, 2.0])

    def jump_clock(self) -> None:
        """Sets the broker's wall clock, which must have no effect."""
        self.wall.ms += self.chance.choice([-86_400_000, -5_000, 3_600_000, 40 * 86_400_000])

    # What becomes of roles.

    def attempt(self, role: str, work: Callable[[], object]) -> bool:
        """False if the role has ended with an error, which becomes a complaint."""
        try:
            work()
        except InvariantBroken as error:
            raise Wrong(f"{role}: {error}") from error
        except Fenced:
            return False
        except NeardupError as error:
            self.complaints[role] = f"{type(error).__name__}: {error}"
            self.report(f"    {role}: {self.complaints[role]}")
            self.happened[type(error).__name__] += 1
            return False
        return True

    def hook(self, moment: str) -> None:
        """Called in the midst of commits."""
        raise NotImplementedError


def decided(records: Sequence[object]) -> list[Decider]:
    """What decides behind each of the log's words that is not void."""
    found: list[Decider] = []
    for offset, data in enumerate(records):
        try:
            entry = decode_entry(data, offset)  # type: ignore[arg-type]
        except CorruptRecord:
            continue
        if isinstance(entry, NewDecider) and (not found or entry.before == found[-1]):
            found.append(entry.after)
    return found
