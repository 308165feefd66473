"""Everything of one line, and what may happen to it.

What the roles do is theirs: `SketchRole`, `MatchRole`, `begin`, `check_scheme`, the client.
"""

from streams.errors import Unsettled
from streams.ports import Committed
from tests.streams.scripted import ForgetfulStore
from tests.streams.simulation.folder import Disk, Folder
from tests.streams.simulation.ground import Crash, decided
from tests.streams.simulation.standbys import Standbys

#: A schedule that makes one generation after the other would test only that.
GENERATIONS_MAX = 4


class World(Standbys):
    """With all that happens around the roles."""

    def next_generation(self) -> None:
        """What `begin another generation` asks for."""
        self.end_all()
        self.folder, self.copy, self.standby = Folder(Disk()), None, None
        self.begin_generation()

    def end_all(self) -> None:
        """In order."""
        for each in list(self.sketchers):
            self.lose_sketcher(each)
        self.stop_matcher()

    def restart(self) -> None:
        """A supervisor: restarts each role that has ended."""
        if self.matcher is None:
            self.start_matcher()
        if not self.sketchers:
            self.start_sketcher()

    # What happens around them.

    def retain(self) -> None:
        """Retention takes some of a topic, read or not."""
        topic = self.broker.topics.get(self.chance.choice(self.names[:4]))
        for held in topic.partitions if topic else ():
            held.begin = self.chance.randint(held.begin, held.end)

    def quiet_month(self) -> None:
        """No crawl for long: offsets expire, and retention empties all topics. The roles were stopped before."""
        self.end_all()
        self.expire()
        for topic in self.broker.topics.values():
            for held in topic.partitions:
                held.begin = held.end

    def expire(self) -> None:
        """A week without a commit. Not where verdicts went under a running matcher, whose place alone tells of it: that
        the index is lost, too, for a week, cannot be distinguished from a lost index."""
        group, topic = self.settings.group_of("match"), self.broker.topics.get(self.names.verdicts)
        known = self.broker.committed(group, self.names.sketches, 0)
        noticed = known is None or known.topic_ids is None or topic is None or known.topic_ids.sink == topic.id
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

    def delete(self) -> None:
        name = self.chance.choice([self.names.pages, self.names.verdicts])
        if name in self.broker.topics:
            self.broker.delete(name)

    def reset_offsets(self) -> None:
        """An operator sets the matcher's group back by hand."""
        topic = self.broker.topics.get(self.names.verdicts)
        known = self.broker.committed(self.settings.group_of("match"), self.names.sketches, 0)
        if self.matcher is None and known is not None and topic is not None and not self._wants_another(known):
            at = Committed(self.chance.randint(0, known.offset))
            self.broker.commit(self.settings.group_of("match"), self.names.sketches, 0, at)
            # The operator's offset states which verdicts are emitted, and which are due.
            self.asked_again.setdefault(topic.id, []).append(range(at.offset, known.offset))
            self.accepted[topic.id] = max(at.offset, self.accepted.get(topic.id, 0))

    def _wants_another(self, known: Committed) -> bool:
        """Whether another decider is set than has decided so far: an offset by hand names none to compare with."""
        words = decided(self.log.records) if self.names.sketches in self.broker.topics else []
        return self.decider.digest != (words[-1].digest if words else known.first or self.decider.digest)

    def garbage(self) -> None:
        """A foreign program writes invalid messages to the log."""
        if self.names.sketches in self.broker.topics:
            data = (
                bytearray(self.log.records[-1]) if self.log.held and self.chance.random() < 0.5 else bytearray(b"\1no")
            )  # type: ignore[call-overload]
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            self.log.append(bytes(data))

    def damage_checkpoints(self) -> None:
        if self.checkpoints.damage(self.chance):
            self.happened["damaged checkpoints"] += 1

    def turn_store(self) -> None:
        """The store of checkpoints goes away, or comes back."""
        self.checkpoints.turn(self.settings, away=not self.checkpoints.away)

    def read_verdicts(self) -> None:
        count, batches = self.chance.randrange(1, 9), self.chance.randrange(1, 4)
        crash = self.chance.random() < 0.3
        self.attempt("index", lambda: self.indexer.read(self.names.verdicts, count, batches, crash=crash))

    def hook(self, moment: str) -> None:
        """Something happens in the midst of a commit."""
        if moment == "begun" and self.chance.random() < 0.2 and not self.folder.store.full:
            ForgetfulStore.flush(self.folder.store)  # RocksDB does so when it likes
        if self.armed is None or self.armed[0] != moment:
            return
        _, what = self.armed
        self.armed = None
        self.happened[f"{what} at {moment}"] += 1
        self.report(f"    {what} at {moment}")
        if what == "crash":
            raise Crash
        if what == "unknown outcome":
            raise Unsettled("the transaction: not known after 45 s")
        if what == "second matcher":
            self.second_matcher()
        elif what == "rebalance":
            self.rebalance()
        else:
            self.recreate_topic(getattr(self.names, what.partition(" ")[2]))
