"""Random schedules of pages, crashes, rebalances, zombies and restarts through both roles, against a plain fold.

A schedule is a function of its seed, which a failure names: run it again with SCHEDULE_SEED=<seed>.
"""

import json
import os
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from neardup.decider import Decider
from neardup.index.memory import MemoryStore
from neardup.matching.fold import fold
from neardup.page import Page
from neardup.sketch.header import Header
from neardup.sketch.making import sketch_pages
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.errors import Fenced
from streams.formats.message import Message, NewDecider, decode_entry, encode_control, page_id
from streams.line.matcher import Matcher
from streams.line.packing import pack
from streams.roles import sketch
from streams.roles.match import MatchRole
from streams.roles.restart import Standing, resume_at
from streams.roles.runtime import Runtime
from streams.roles.sketch import SketchRole
from streams.testing import (
    ForgetfulStore,
    ListLog,
    PagesTopic,
    ScriptedPages,
    ScriptedWriter,
    Transactions,
    VerdictLine,
)
from tests.streams.archives import crawl

SETTINGS = Settings(seed=7, batch_pages=4, inflight_batches=2, match_messages=3, flush_ms=3_600_000, threads=1)
SCHEME = SETTINGS.scheme()
DECIDER = Decider(scheme=SCHEME.digest)
PARTITIONS = 3
STEPS = 250
SAMPLES = crawl(12)
RUNTIME = Runtime.quiet(SETTINGS)


class Crash(Exception):
    """A process is gone at once."""


class World:
    """Everything of one line, and what may happen to it. Attributes of the ports are what survives processes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.topic = PagesTopic.empty(PARTITIONS)
        self.pages: dict[tuple[int, int], Page] = {}
        self.log = ListLog()
        self.rejected: list[bytes] = []
        self.line = VerdictLine()
        self.store = ForgetfulStore()
        self.sketchers: list[tuple[SketchRole, ScriptedPages, ScriptedWriter]] = []
        self.zombies: list[tuple[SketchRole | None, ScriptedWriter]] = []
        self.told: list[str] = []
        self.crash_at = ""
        self.decider = DECIDER
        self.past_matchers: list[MatchRole] = []
        self.start_sketcher()
        self.matcher = self.start_matcher()

    # Pages.

    def publish(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            sample = self.chance.choice(SAMPLES)
            url = f"http://site{self.chance.randrange(3)}.example/{self.chance.choice(SAMPLES).path}"
            partition = self.chance.randrange(PARTITIONS)
            body = None if self.chance.random() < 0.1 else sample.body
            status = 500 if self.chance.random() < 0.1 else 200
            fetched_at = sample.ms + self.chance.randrange(100_000)
            headers = [("fetched-at", b"%d" % fetched_at), ("http-status", b"%d" % status)]
            record = self.topic.publish(partition, url.encode(), body, headers, 1_600_000_000_000 + len(self.pages))
            self.pages[record.at] = Page(url, body, fetched_at=fetched_at, status=status)

    # Sketchers.

    def start_sketcher(self) -> None:
        if len(self.sketchers) < 3:
            pages, writer = ScriptedPages(self.topic), ScriptedWriter(self.log.messages)
            rejected = ScriptedWriter(self.rejected, at_once=True)
            self.sketchers.append((SketchRole(pages, writer, rejected, SCHEME, RUNTIME), pages, writer))
            self.rebalance()

    def rebalance(self) -> None:
        shares: list[list[int]] = [[] for _ in self.sketchers]
        for partition in range(PARTITIONS):
            if shares:
                self.chance.choice(shares).append(partition)
        for (_, pages, _), share in zip(self.sketchers, shares, strict=True):
            # Revoked everywhere before it is assigned anywhere.
            pages.assign([partition for partition in pages.assigned() if partition in share])
        for (_, pages, _), share in zip(self.sketchers, shares, strict=True):
            pages.assign(share)

    def sketch(self) -> None:
        if self.sketchers:
            role, _, writer = self.chance.choice(self.sketchers)
            role.round()
            writer.deliver(self.chance.randrange(3))

    def crash_sketcher(self) -> None:
        """Killed with messages under way: some of them may still arrive, late, a prefix of them."""
        if self.sketchers:
            _, _, writer = self.sketchers.pop(self.chance.randrange(len(self.sketchers)))
            self.zombies.append((None, writer))
            self.rebalance()

    def cut_off_sketcher(self) -> None:
        """Taken for dead by the group, and at work all the same."""
        if self.sketchers:
            role, pages, writer = self.sketchers.pop(self.chance.randrange(len(self.sketchers)))
            pages.cut_off = True
            self.zombies.append((role, writer))
            self.rebalance()

    def wake_zombie(self) -> None:
        if self.zombies:
            at = self.chance.randrange(len(self.zombies))
            role, writer = self.zombies[at]
            if role is not None:
                role.round()
            writer.deliver(self.chance.randrange(4))
            if self.chance.random() < 0.3:
                writer.lose()
                del self.zombies[at]

    # The matcher.

    def start_matcher(self) -> MatchRole:
        transactions = Transactions(self.line, self.around)
        known = Matcher(self.store, DECIDER)
        end = len(self.log.messages)
        found = Standing(
            "sketches", "verdicts", "state", known.next_offset, known.told, self.line.committed, 0, end, None
        )
        committed = resume_at(found, scheme=DECIDER.scheme, decider=DECIDER.digest)
        log = self.log.follower(known.next_offset)
        return MatchRole(log, self.log.ahead, transactions, self.store, DECIDER, committed, RUNTIME, now_ms=lambda: 0)

    def around(self, moment: str) -> None:
        if self.chance.random() < 0.3:
            self.store.flush()  # RocksDB does so when it likes
        if moment == self.crash_at:
            self.crash_at = ""
            raise Crash(moment)

    def match(self) -> None:
        try:
            self.matcher.round()
        except Crash:
            self.crash_matcher()

    def crash_in_commit(self) -> None:
        self.crash_at = self.chance.choice(["begun", "committed"])
        self.match()
        self.crash_at = ""  # there was nothing to commit

    def crash_matcher(self) -> None:
        self.store = self.store.crashed()
        self.matcher = self.start_matcher()

    def second_matcher(self) -> None:
        """Another one takes over, with a directory of its own that is empty or as old as the last flush."""
        self.past_matchers.append(self.matcher)
        self.store = self.store.crashed() if self.chance.random() < 0.7 else ForgetfulStore()
        self.matcher = self.start_matcher()

    def wake_past_matcher(self) -> None:
        if self.past_matchers:
            old = self.past_matchers[-1]
            try:
                old.round()
            except Fenced:
                self.past_matchers.pop()

    def flush(self) -> None:
        self.store.flush()

    def new_decider(self) -> None:
        """An operator's word; some are void, for they follow what decides no more, or would need another index."""
        before = self.decider if self.chance.random() < 0.7 else replace(DECIDER, tape_min=0.5)
        after = replace(DECIDER, tape_min=self.chance.choice([0.55, 0.74, 0.99]))
        if self.chance.random() < 0.2:
            after = replace(after, rule="simhash")
        self.log.messages.append(encode_control(NewDecider(before, after)))
        if before == self.decider and after.rule == DECIDER.rule:
            self.decider = after

    # All of it.

    def play(self) -> None:
        weights = {
            self.publish: 4,
            self.sketch: 8,
            self.match: 8,
            self.flush: 2,
            self.start_sketcher: 2,
            self.rebalance: 2,
            self.crash_sketcher: 1,
            self.cut_off_sketcher: 1,
            self.wake_zombie: 3,
            self.crash_matcher: 1,
            self.crash_in_commit: 1,
            self.second_matcher: 0.5,
            self.wake_past_matcher: 1,
            self.new_decider: 1,
        }
        for _ in range(STEPS):
            (step,) = self.chance.choices(list(weights), list(weights.values()))
            self.told.append(step.__name__)
            step()
        if not self.sketchers:
            self.start_sketcher()
        rounds = 0
        while any(len(records) > self.topic.committed[p] for p, records in enumerate(self.topic.partitions)):
            rounds += 1
            assert rounds < 10_000, f"pages that nobody reads: {self.topic.committed}"
            for role, _, writer in self.sketchers:
                role.round()
                writer.deliver(100)
                role.round()
        for _, writer in self.zombies:
            writer.deliver(100)
        while self.matcher.round():
            pass

    def expected(self) -> list[dict[str, Any]]:
        """The fold, one page at a time, of pages as published, in the order in which they first stand in the log."""
        store, seen, decider = MemoryStore(), set(), DECIDER
        verdicts = []
        for offset, data in enumerate(self.log.messages):
            entry = decode_entry(data, offset)
            if isinstance(entry, NewDecider):
                decider = entry.after if entry.before == decider and entry.after.rule == DECIDER.rule else decider
            for place, held in enumerate(entry.records if isinstance(entry, Message) else ()):
                header = Header(held)
                at = (header.partition, header.offset)
                if at in seen:
                    continue
                seen.add(at)
                where = Coordinates(self.topic.id.hex(), *at)
                (record,) = sketch_pages([self.pages[at]], SCHEME, coordinates=[where], log_times=[header.log_time])
                outcome = fold([(page_id(offset, place), record)], store, decider)
                store.write(outcome.writes)
                verdicts += [json.loads(verdict.to_json()) for verdict in outcome.verdicts]
        assert seen == set(self.pages)
        return verdicts


#: Twenty of each run are new ones.
FIXED, NEW = 40, 20


@pytest.fixture(autouse=True)
def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of four pages make several messages."""
    monkeypatch.setattr(sketch, "pack", partial(pack, pages_max=3))


@pytest.mark.parametrize("number", range(FIXED + NEW))
def test_any_schedule_ends_in_the_verdicts_of_the_fold(number: int) -> None:
    given = os.environ.get("SCHEDULE_SEED")
    seed = int(given) if given else number if number < FIXED else random.SystemRandom().randrange(1 << 32)
    print(f"SCHEDULE_SEED={seed}")
    world = World(seed)
    world.play()
    print(" ".join(world.told))

    assert [json.loads(line) for _, line in world.line.verdicts] == world.expected()
    # Whoever loses everything but the log comes to the same index.
    folded = world.store.rows()
    world.store = ForgetfulStore()
    again = world.start_matcher()
    while again.round():
        pass
    assert world.store.rows() == folded


def test_schedules_meet_what_they_are_about() -> None:
    """Pages come twice, in other cuts, and late: else the test above proves nothing."""
    twice = 0
    deciders = set()
    for seed in range(10):
        world = World(seed)
        world.play()
        entries = [decode_entry(data, at) for at, data in enumerate(world.log.messages)]
        twice += sum(len(entry.records) for entry in entries if isinstance(entry, Message)) - len(world.pages)
        deciders |= {json.loads(line)["decider"] for _, line in world.line.verdicts}
    assert twice > 100
    assert len(deciders) == 3


def test_a_partition_that_changes_hands_keeps_its_times() -> None:
    """A sketcher that is behind takes over from one that is not: a later fetch of a page is not taken for an older."""
    topic, log = PagesTopic.empty(2), ListLog()
    url = b"http://a.example/"
    topic.publish(0, b"http://b.example/", SAMPLES[0].body, [], 9_000)
    topic.publish(1, url, SAMPLES[1].body, [], 1_000)

    def read(partitions: list[int]) -> None:
        pages, writer = ScriptedPages(topic), ScriptedWriter(log.messages)
        role = SketchRole(pages, writer, ScriptedWriter([], at_once=True), SCHEME, RUNTIME)
        pages.assign(partitions)
        role.round()
        writer.deliver(100)
        role.round()

    read([0, 1])
    topic.publish(1, url, SAMPLES[2].body, [], 1_001)
    read([1])

    matcher = Matcher(MemoryStore(), DECIDER)
    verdicts = matcher.prepare(list(enumerate(log.messages))).verdicts
    assert [(verdict.url, verdict.fetched_at) for verdict in verdicts] == [
        ("http://b.example/", 9_000),
        ("http://a.example/", 1_000),
        ("http://a.example/", 1_001),
    ]
    assert "stale" not in {verdict.verdict for verdict in verdicts}
    assert matcher.prepare(list(enumerate(log.messages))).log_time == 9_000
