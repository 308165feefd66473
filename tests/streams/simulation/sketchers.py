"""Sketchers of a line, and what happens to them."""

from dataclasses import dataclass

from neardup.errors import InvariantBroken, NeardupError
from streams.roles.sketch_role import SketchRole, check_scheme
from tests.streams.scripted import ScriptedPages, ScriptedPartition, ScriptedWriter
from tests.streams.simulation.ground import Crash, Ground
from tests.streams.simulation.ledger import SCHEME


@dataclass
class Sketcher:
    role: SketchRole | None
    pages: ScriptedPages
    writer: ScriptedWriter


class Sketchers(Ground):
    """zombies: those that the group has taken for dead, and what dead ones had under way (role None)."""

    def __init__(self, seed: int) -> None:
        self.sketchers: list[Sketcher] = []
        self.zombies: list[Sketcher] = []
        super().__init__(seed)

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
        assert each.role is not None
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
            self.zombies.append(Sketcher(None, each.pages, each.writer))
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
                try:
                    each.role.round()
                except InvariantBroken:
                    raise
                except (NeardupError, Crash):
                    each.role = None
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

    def add_partition(self) -> None:
        topic = self.broker.topics.get(self.names.pages)
        if topic is not None and len(topic.partitions) < 8:
            topic.partitions.append(ScriptedPartition())
            self.partitions = len(topic.partitions)
            self.rebalance()
