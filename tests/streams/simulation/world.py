"""Everything of one line, what may happen to it, and an operator who does what the program says, and only that.

A step is a function of the world and of a seed of its own, so that steps can be left out of a schedule and the others
still do what they did. What the roles do is theirs: `SketchRole`, `MatchRole`, `begin`, `check_scheme`, the client.
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from neardup.decider import Decider
from neardup.errors import InvariantBroken, NeardupError, StateError
from neardup.index.memory import MemoryStore
from neardup.page import Page
from streams.config.settings import Settings
from streams.errors import BrokerError, Fenced
from streams.formats.message import NewDecider, encode_control
from streams.history.replay import Stretch, replayed
from streams.line.deciders import words_in
from streams.line.decisions import Decisions
from streams.line.matcher import Matcher, folded_to
from streams.ports import Committed, Hop
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.roles.begin import Line, Wishes, begin
from streams.roles.match import MatchRole
from streams.roles.restart import Newest, check_said_by, newest_of
from streams.roles.runtime import Runtime
from streams.roles.sketch import SketchRole, check_scheme
from streams.testing import (
    Broker,
    ForgetfulStore,
    ManualClock,
    ScriptedLog,
    ScriptedPages,
    ScriptedPartition,
    ScriptedTopic,
    ScriptedWriter,
    Transactions,
)
from tests.streams.archives import crawl
from tests.streams.simulation.indexer import Indexer
from tests.streams.simulation.ledger import SCHEME

#: What happens, and the seed of how.
Step = tuple[str, int]

DECIDER = Decider(scheme=SCHEME.digest)
DECIDERS = [DECIDER, replace(DECIDER, tape_min=0.55), replace(DECIDER, tape_min=0.99)]
SAMPLES = crawl(12)
METRICS = Metrics()
NEW_YEAR_MS = 1_767_225_600_000
#: A schedule that makes one generation after the other would test only that.
GENERATIONS_MAX = 4


class Crash(Exception):
    """A process is gone at once."""


class Wrong(AssertionError):
    """An invariant does not hold."""


class Disk(ForgetfulStore):
    """An index on a disk that may be full. around: called before and after what is written and flushed."""

    full = False
    around: Callable[[str], None] = staticmethod(lambda moment: None)

    def write(self, writes: Any) -> None:
        self._must_have_room()
        super().write(writes)

    def flush(self) -> None:
        self.around("flush")
        self._must_have_room()
        super().flush()
        self.around("flushed")

    def _must_have_room(self) -> None:
        if self.full:
            raise StateError("cannot write the index in state: No space left on device")

    def durable(self) -> "Disk":
        """As the next process finds it."""
        found = Disk()
        found._durable = {family: dict(rows) for family, rows in self._durable.items()}
        ForgetfulStore.write(found, found._durable)
        found._since = []
        return found


@dataclass
class Folder:
    """A state folder: `neardup.state.matcher.Directory` without files."""

    store: Disk
    kept: Decider | None = None
    path: Path = Path("state")

    def first_decider(self, decider: Decider) -> Decider:
        if self.kept is None or not folded_to(self.store):
            self.kept = decider
        return self.kept

    def copied(self) -> "Folder":
        """What a crash leaves of it, or a copy that is made while nothing is at work."""
        return Folder(self.store.durable(), self.kept)


@dataclass
class Sketcher:
    role: SketchRole
    pages: ScriptedPages
    writer: ScriptedWriter


class World:
    """Attributes of the ports are what survives processes.

    complaints: what roles said when they ended, by role, until an operator has done it. accepted: by id of a topic of
    verdicts, the offset of the log below which verdicts may be missing there. retold: topics in which verdicts may be
    there twice. happened: how often what did.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"sizes {seed}")
        draw = self.chance.choice
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
        self.logs: list[tuple[int, ScriptedTopic]] = []
        self.sketchers: list[Sketcher] = []
        self.zombies: list[Sketcher] = []
        self.matcher: MatchRole | None = None
        self.past_matchers: list[tuple[MatchRole, Folder]] = []
        self.folder = Folder(Disk())
        self.copy: Folder | None = None
        self.decider = self.first_decider = DECIDER
        self.accept_lost = self.new_decider = self.starting = False
        self.indexer = Indexer(self.broker)
        self.complaints: dict[str, str] = {}
        self.accepted: dict[bytes, int] = {}
        self.retold: set[bytes] = set()
        self.happened: Counter[str] = Counter()
        self.armed: tuple[str, str] | None = None
        self.told: Callable[[str], None] = lambda text: None
        self.generation = -1
        self.next_generation()

    # Generations and topics.

    def next_generation(self) -> None:
        """What `begin another generation` asks for."""
        self.end_all()
        self.generation += 1
        self.settings = replace(self._base, generation=f"g{self.generation}" if self.generation else "")
        health = Health(self.wall, self.settings.stall_ms)
        self.runtime = Runtime(self.settings, METRICS, health, Event(), lambda: self.steady_s)
        self.names = self.settings.topics
        self.folder, self.copy = Folder(Disk()), None
        self.first_decider = self.decider
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
        if known is not None and known.hop is None:
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
        """The broker's wall clock is set; nobody may mind."""
        self.wall.ms += self.chance.choice([-86_400_000, -5_000, 3_600_000, 40 * 86_400_000])

    def add_partition(self) -> None:
        topic = self.broker.topics.get(self.names.pages)
        if topic is not None and len(topic.partitions) < 8:
            topic.partitions.append(ScriptedPartition())
            self.partitions = len(topic.partitions)
            self.rebalance()

    # Sketchers.

    def start_sketcher(self) -> None:
        if len(self.sketchers) >= 3:
            return

        def start() -> None:
            names = self.names
            for name in (names.pages, names.rejected, names.sketches):
                self.broker.topic(name)
            last = (self.log.end - 1, self.log.records[-1]) if self.log.held else None
            check_scheme(names.sketches, last, SCHEME)  # type: ignore[arg-type]
            pages = ScriptedPages(
                self.broker, names.pages, self.settings.group_of("sketch"), names.sketches, around=self.hook
            )
            writer = ScriptedWriter(self.broker, names.sketches)
            rejected = ScriptedWriter(self.broker, names.rejected, at_once=True)
            role = SketchRole(pages, writer, rejected, SCHEME, self.runtime)
            self.sketchers.append(Sketcher(role, pages, writer))

        if self.attempt("sketch", start):
            self.rebalance()

    def rebalance(self) -> None:
        topic = self.broker.topics.get(self.names.pages)
        if topic is None:
            return
        shares: list[list[int]] = [[] for _ in self.sketchers]
        for partition in range(len(topic.partitions)):
            if shares:
                self.chance.choice(shares).append(partition)
        members = list(zip(self.sketchers, shares, strict=True))
        for each, share in members:
            # Revoked everywhere before it is assigned anywhere.
            each.pages.assign([partition for partition in each.pages.assigned() if partition in share])
        for each, share in members:
            each.pages.assign(share)

    def sketch(self) -> None:
        if self.sketchers:
            each = self.chance.choice(self.sketchers)
            self.sketch_round(each)
            if each in self.sketchers:
                each.writer.deliver(self.chance.randrange(3), acknowledged=self.chance.random() < 0.7)

    def sketch_round(self, each: Sketcher) -> None:
        try:
            if not self.attempt("sketch", each.role.round):
                self.lose_sketcher(each)
        except Crash:
            self.lose_sketcher(each)

    def lose_sketcher(self, each: Sketcher) -> None:
        """It is gone, with messages under way: some of them may still arrive, late, a prefix of them."""
        if each in self.sketchers:
            self.sketchers.remove(each)
            each.pages.cut_off = True
            self.zombies.append(Sketcher(None, each.pages, each.writer))  # type: ignore[arg-type]
            self.rebalance()

    def crash_sketcher(self) -> None:
        if self.sketchers:
            self.lose_sketcher(self.chance.choice(self.sketchers))

    def cut_off_sketcher(self) -> None:
        """Taken for dead by the group, and at work all the same."""
        if self.sketchers:
            each = self.sketchers.pop(self.chance.randrange(len(self.sketchers)))
            each.pages.cut_off = True
            self.zombies.append(each)
            self.rebalance()

    def wake_zombie(self) -> None:
        if self.zombies:
            each = self.chance.choice(self.zombies)
            if each.role is not None:
                with suppress(NeardupError, Crash):
                    each.role.round()
            each.writer.deliver(self.chance.randrange(4))
            if self.chance.random() < 0.3:
                each.writer.lose()
                self.zombies.remove(each)

    def deafen_sketcher(self) -> None:
        """Its commits do not get through for a while."""
        if self.sketchers:
            each = self.chance.choice(self.sketchers)
            each.pages.deaf = not each.pages.deaf

    def fail_delivery(self) -> None:
        """A record is given up: what was sent after it is, too, and the sketcher must not commit it."""
        if self.sketchers:
            self.chance.choice(self.sketchers).writer.lose()

    def trouble_in_a_commit_of_pages(self) -> None:
        self.armed = ("commits", self.chance.choice(["crash", "recreate pages", "recreate sketches", "rebalance"]))
        self.sketch()
        self.armed = None

    # The matcher.

    def start_matcher(self) -> None:
        """Where one is at work, the new one takes over from it: with what is on its disk, as if that was copied."""
        folder = self.folder
        folder.store.around = self.hook

        def start() -> None:
            names = self.names
            for name in (names.sketches, names.verdicts):
                self.broker.topic(name)
            group = self.settings.group_of("match")
            verdicts = Transactions(self.broker, names.sketches, names.verdicts, group, around=self.hook)
            log = ScriptedLog(self.broker, names.sketches)
            line = Line(log, log.messages, verdicts, self.newest, self.say)
            lost, new = self.accept_lost, self.new_decider
            if lost:
                self.accept(verdicts)
            made = begin(line, folder, Wishes(self.decider, new, lost), self.runtime)
            self.accept_lost = self.new_decider = False
            self.matcher = made

        self.matcher, self.starting = None, True
        try:
            self.attempt("match", start)
        except Crash:
            self.crash_matcher()
        self.starting = False

    def replay(self, start: int, stop: int, name: str) -> None:
        """`neardup replay --from START --to STOP --to-topic NAME`: no transaction, and nothing that runs is touched."""
        topic = self.broker.topic(name)
        log = ScriptedLog(self.broker, self.names.sketches)
        words = words_in(log.messages(0))
        first = words[0][1].before if words else self.folder.kept or self.decider
        known = self.broker.committed(self.settings.group_of("match"), log.topic.name, 0)
        check_said_by(log.topic.id.hex(), first, words, self.newest(), known)
        judge = Matcher(MemoryStore(), first, settled=Decisions(log.messages), log=log.topic.id.hex())
        self.retold.add(topic.id)
        for verdicts in replayed(log.messages(0), judge, Stretch(start, stop)):
            for verdict in verdicts:
                key = verdict.url.encode()
                topic.partitions[zlib.crc32(key) % len(topic.partitions)].append((key, verdict.to_json()))

    def accept(self, verdicts: Transactions) -> None:
        """Of what is not told in the topic that is there now nothing more is owed, up to the place that was known."""
        known = verdicts.committed()
        upto = max(known.offset if known else 0, folded_to(self.folder.store))
        self.accepted[verdicts.hop.sink] = max(upto, self.accepted.get(verdicts.hop.sink, 0))

    def newest(self) -> Newest:
        topic = self.broker.topic(self.names.verdicts)
        values = {partition: pair[1] for partition, pair in topic.newest().items()}  # type: ignore[index]
        return newest_of(values, {number: held.begin for number, held in enumerate(topic.partitions)})

    def say(self, word: bytes) -> int:
        offset = self.log.append(word)
        self.hook("said")
        return offset

    def match(self) -> None:
        if self.matcher is None:
            return
        at_work = self.matcher
        try:
            if not self.attempt("match", at_work.round) and self.matcher is at_work:
                self.end_matcher()
        except Crash:
            if self.matcher is at_work:
                self.crash_matcher()

    def end_matcher(self) -> None:
        """It closes its folder in order."""
        self.matcher, folder = None, self.folder
        with suppress(NeardupError, Crash):
            folder.store.flush()
        if self.folder is folder:
            self.folder = folder.copied()

    def crash_matcher(self) -> None:
        self.matcher = None
        full = self.folder.store.full
        self.folder = self.folder.copied()
        self.folder.store.full = full

    def stop_matcher(self) -> None:
        if self.matcher is not None:
            self.end_matcher()

    def second_matcher(self) -> None:
        """Another one takes over, with a folder of its own that is empty or as old as the last flush."""
        if self.matcher is not None:
            self.past_matchers.append((self.matcher, self.folder))
        kept = self.folder.copied() if self.chance.random() < 0.7 else Folder(Disk())
        self.folder = kept
        self.start_matcher()

    def wake_past_matcher(self) -> None:
        if self.past_matchers:
            old, folder = self.past_matchers[-1]
            if folder is self.folder:
                self.past_matchers.pop()
                return
            try:
                old.round()
            except (NeardupError, Crash) as error:
                if isinstance(error, InvariantBroken):
                    raise
                self.past_matchers.pop()

    def flush(self) -> None:
        with suppress(NeardupError, Crash):
            self.folder.store.flush()

    def trouble_in_a_commit(self) -> None:
        moment = self.chance.choice(["begun", "sent", "committed", "flush", "flushed"])
        what = ["crash", "crash", "nobody knows", "second matcher", "recreate verdicts", "recreate sketches"]
        self.armed = (moment, self.chance.choice(what))
        self.match()
        self.armed = None

    def trouble_at_a_start(self) -> None:
        moment = self.chance.choice(["sent", "committed", "flush", "flushed", "said"])
        self.armed = (moment, self.chance.choice(["crash", "nobody knows", "second matcher", "recreate verdicts"]))
        self.stop_matcher()
        self.start_matcher()
        self.armed = None

    def change_decider(self) -> None:
        """An operator wants another one from here on. Not who has just set offsets by hand: they name no decider."""
        known = self.broker.committed(self.settings.group_of("match"), self.names.sketches, 0)
        if known is not None and known.hop is None:
            return
        self.decider = self.chance.choice(DECIDERS)
        self.new_decider = self.chance.random() < 0.8
        self.stop_matcher()

    def new_wishes(self) -> bool:
        """Whether another decider is set than decides."""
        from tests.streams.simulation.oracle import decided

        deciders = decided(self.log.records) if self.names.sketches in self.broker.topics else []
        return self.decider != (deciders[-1] if deciders else self.folder.kept or self.decider)

    def void_word(self) -> None:
        """Two operators at once: the word follows what decides no more. Never the first one."""
        from tests.streams.simulation.oracle import decided

        deciders = decided(self.log.records) if self.names.sketches in self.broker.topics else []
        if deciders:
            before, after = self.chance.sample(DECIDERS, 2)
            if before != deciders[-1]:
                self.log.append(encode_control(NewDecider(before, after)))

    # What happens around them.

    def fill_disk(self) -> None:
        self.folder.store.full = True

    def lose_folder(self) -> None:
        if self.matcher is not None:
            self.crash_matcher()
        self.folder = Folder(Disk())

    def copy_folder(self) -> None:
        if self.matcher is None:
            self.copy = self.folder.copied()

    def put_back_a_copy(self) -> None:
        """An operator's mistake, or his last way out."""
        if self.copy is not None:
            self.crash_matcher()
            self.folder = self.copy.copied()

    def retain(self) -> None:
        """Retention takes some of a topic, read or not."""
        topic = self.broker.topics.get(self.chance.choice(self.names[:4]))
        for held in topic.partitions if topic else ():
            held.begin = self.chance.randint(held.begin, held.end)

    def quiet_month(self) -> None:
        """Nobody fetches; offsets expire, and retention empties all topics. The roles were stopped in order."""
        self.end_all()
        self.expire()
        for topic in self.broker.topics.values():
            for held in topic.partitions:
                held.begin = held.end

    def expire(self) -> None:
        """A week without a commit. Not where verdicts went under a running matcher, whose place alone tells of it: that
        the index is lost, too, and nobody looks for a week, is more than can be told apart from a lost index."""
        group, topic = self.settings.group_of("match"), self.broker.topics.get(self.names.verdicts)
        known = self.broker.committed(group, self.names.sketches, 0)
        noticed = known is None or known.hop is None or topic is None or known.hop.sink == topic.id
        if self.matcher is None and noticed:
            self.broker.expire(group)
        if not self.sketchers:
            self.broker.expire(self.settings.group_of("sketch"))

    def recreate(self) -> None:
        name = self.chance.choice([self.names.pages, self.names.verdicts, self.names.verdicts, self.names.sketches])
        self.recreate_topic(name)

    def recreate_topic(self, name: str) -> None:
        if name in self.broker.topics and (name != self.names.sketches or self.generation < GENERATIONS_MAX):
            made = self.broker.recreate(name)
            if name == self.names.pages:
                self.complaints.pop("sketch", None)  # it named a place in the old one
            if name == self.names.verdicts:
                self.mind_a_hand(made)
            if name == self.names.verdicts and (self.matcher is not None or self.starting):
                # It tells some to the new topic before it looks: if all are told again, these are there twice.
                self.retold.add(made.id)

    def delete(self) -> None:
        name = self.chance.choice([self.names.pages, self.names.verdicts])
        if name in self.broker.topics:
            self.broker.delete(name)

    def reset_offsets(self) -> None:
        """An operator sets the matcher's group back by hand."""
        topic = self.broker.topics.get(self.names.verdicts)
        known = self.broker.committed(self.settings.group_of("match"), self.names.sketches, 0)
        # Not who also wants another decider: an offset by hand names none.
        if self.matcher is None and known is not None and topic is not None and not self.new_wishes():
            at = Committed(self.chance.randint(0, known.offset))
            self.broker.commit(self.settings.group_of("match"), self.names.sketches, 0, at)
            # It is his word that what is before is told, and that the rest is to be told.
            self.retold.add(topic.id)
            self.accepted[topic.id] = max(at.offset, self.accepted.get(topic.id, 0))

    def garbage(self) -> None:
        """Somebody writes to the log what is none of its messages."""
        if self.names.sketches in self.broker.topics:
            data = (
                bytearray(self.log.records[-1]) if self.log.held and self.chance.random() < 0.5 else bytearray(b"\1no")
            )  # type: ignore[call-overload]
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            self.log.append(bytes(data))

    def read_verdicts(self) -> None:
        count, batches = self.chance.randrange(1, 9), self.chance.randrange(1, 4)
        crash = self.chance.random() < 0.3
        self.attempt("index", lambda: self.indexer.read(self.names.verdicts, count, batches, crash=crash))

    # Whoever looks after it.

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
            self.told(f"    {role}: {self.complaints[role]}")
            self.happened[type(error).__name__] += 1
            return False
        return True

    def restart(self) -> None:
        """A process manager: whoever has ended begins again, mended or not."""
        if self.matcher is None:
            self.start_matcher()
        if not self.sketchers:
            self.start_sketcher()

    def operate(self) -> None:
        from tests.streams.simulation.operator import follow

        if self.complaints:
            role = self.chance.choice(sorted(self.complaints))
            follow(self, role, self.complaints.pop(role))

    def end_all(self) -> None:
        for each in list(self.sketchers):
            self.lose_sketcher(each)
        self.stop_matcher()

    def settled_round(self) -> bool:
        """Everybody does all that there is to do; True once there is nothing left."""
        while self.complaints:
            self.operate()
        self.restart()
        for sketcher in self.sketchers:
            sketcher.pages.deaf = False
        for _ in range(2):
            for sketcher in list(self.sketchers):
                self.sketch_round(sketcher)
                sketcher.writer.deliver(1_000)
        for zombie in self.zombies:
            zombie.writer.deliver(1_000)
        self.steady_s += 10
        before = self.matcher
        while self.matcher is not None and self.matcher is before and self.judges():
            pass
        self.attempt("index", lambda: self.indexer.read(self.names.verdicts, 1_000, 1_000, crash=False))
        return not self.complaints and self.standing() == ""

    def judges(self) -> bool:
        before = self.matcher.matcher.next_offset if self.matcher else 0
        self.match()
        return self.matcher is not None and self.matcher.matcher.next_offset > before

    def standing(self) -> str:
        """Who is not done yet; empty if all are."""
        pages = self.broker.topics.get(self.names.pages)
        if pages is None or self.matcher is None or not self.sketchers:
            return "somebody is missing"
        group, log = self.settings.group_of("sketch"), self.broker.topics[self.names.sketches]
        for partition, held in enumerate(pages.partitions):
            known = self.broker.committed(group, pages.name, partition)
            # One that was added is not known before it has a page, and another topic's place is none.
            mine = known is not None and (known.hop is None or known.hop == Hop(pages.id, log.id))
            if (known.offset if known and mine else 0) < held.end:
                return f"partition {partition} is read up to {known}, of {held.end}"
        if self.matcher.matcher.next_offset < self.log.end:
            return f"judged up to {self.matcher.matcher.next_offset}, of {self.log.end}"
        return ""

    def hook(self, moment: str) -> None:
        """Something happens in the midst of a commit."""
        if moment == "begun" and self.chance.random() < 0.2 and not self.folder.store.full:
            ForgetfulStore.flush(self.folder.store)  # RocksDB does so when it likes
        if self.armed is None or self.armed[0] != moment:
            return
        _, what = self.armed
        self.armed = None
        self.happened[f"{what} at {moment}"] += 1
        self.told(f"    {what} at {moment}")
        if what == "crash":
            raise Crash
        if what == "nobody knows":
            raise BrokerError("the transaction: not known after 45 s")
        if what == "second matcher":
            self.second_matcher()
        elif what == "rebalance":
            self.rebalance()
        else:
            self.recreate_topic(getattr(self.names, what.partition(" ")[2]))


#: How often what happens in a schedule; each is multiplied by what the seed draws.
WEIGHTS: dict[str, float] = {
    "publish": 4,
    "sketch": 8,
    "match": 8,
    "read_verdicts": 2,
    "restart": 4,
    "operate": 3,
    "flush": 1,
    "start_sketcher": 1.5,
    "rebalance": 1.5,
    "crash_sketcher": 1,
    "cut_off_sketcher": 1,
    "wake_zombie": 2,
    "deafen_sketcher": 1,
    "fail_delivery": 0.3,
    "trouble_in_a_commit_of_pages": 1.5,
    "crash_matcher": 1,
    "stop_matcher": 0.5,
    "second_matcher": 0.5,
    "wake_past_matcher": 1,
    "trouble_in_a_commit": 1,
    "trouble_at_a_start": 0.7,
    "change_decider": 0.6,
    "void_word": 0.2,
    "fill_disk": 0.3,
    "lose_folder": 0.2,
    "copy_folder": 0.4,
    "put_back_a_copy": 0.3,
    "retain": 0.3,
    "quiet_month": 0.15,
    "expire": 0.3,
    "recreate": 0.3,
    "delete": 0.3,
    "reset_offsets": 0.15,
    "garbage": 0.2,
    "add_partition": 0.1,
    "jump_clock": 0.3,
}


def schedule(seed: int) -> list[Step]:
    """The steps of a seed: swarms of faults, for all of them at once hide each other."""
    chance = random.Random(f"steps {seed}")
    weights = {name: weight * chance.choice([0, 0.3, 1, 1, 3]) for name, weight in WEIGHTS.items()}
    for name in ("publish", "sketch", "match", "restart", "operate"):
        weights[name] = WEIGHTS[name] * chance.choice([0.5, 1, 2])
    count = chance.choice([10, 30, 60, 60, 120, 200])
    names = chance.choices(list(weights), list(weights.values()), k=count)
    return [(name, chance.getrandbits(32)) for name in names]


def play(world: World, steps: Sequence[Step]) -> None:
    """Raises Wrong, and whatever the roles should never raise."""
    for name, seed in steps:
        world.chance = random.Random(seed)
        world.happened[name] += 1
        world.told(f"{name}")
        getattr(world, name)()
        world.tick()
