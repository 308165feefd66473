"""Shards and a judge as processes of their own: each goes on when a schedule says so, dies, and comes back older."""

import copy
import random
from collections import deque
from dataclasses import dataclass, field

from neardup.decider import Decider
from neardup.index.memory import MemoryStore
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.shard import Shard
from streams.pipeline.matcher import Matcher
from tests.streams.sharded.lockstep import Messages, records_in, started

_COPIES = 4


@dataclass
class Process:
    """A process with its rows, and copies of them from before, the oldest first."""

    rows: MemoryStore = field(default_factory=MemoryStore)
    copies: deque[MemoryStore] = field(default_factory=lambda: deque([MemoryStore()], maxlen=_COPIES))

    def copy_rows(self) -> None:
        self.copies.append(copy.deepcopy(self.rows))

    def go_back(self, rng: random.Random) -> None:
        self.rows = copy.deepcopy(rng.choice(self.copies))


class World:
    """A log with its candidates and effects, all of which stay; a judge; V shards. `run` ends when all is judged."""

    def __init__(self, messages: Messages, decider: Decider, rng: random.Random) -> None:
        self.messages, self.decider, self.rng = messages, decider, rng
        self.verdicts: list[list[bytes]] = []
        self.effects: list[bytes] = []
        self.answers: list[dict[int, bytes]] = [{} for _ in range(decider.shards)]
        self.judge_process, self.shard_processes = Process(), [Process() for _ in range(decider.shards)]
        self.start_judge()
        self.shards = [self.started_shard(number) for number in range(decider.shards)]
        self.deaths = self.repeated = 0

    def run(self) -> None:
        steps, weights = (self.step_judge, self.step_shard, self.die), (10, 10 + 10 * self.decider.shards, 1)
        idle, limit = 0, 2000 * (1 + self.decider.shards)
        while len(self.verdicts) < len(self.messages) or self.judge.next_offset < len(self.messages):
            (step,) = self.rng.choices(steps, weights)
            idle = 0 if step() else idle + 1
            assert idle < limit, "no process can go on"

    # ---- the judge ---------------------------------------------------------------------------------------------------

    def start_judge(self) -> None:
        self.judge: Matcher = started(self.judge_process.rows, self.messages, self.decider)

    def step_judge(self) -> bool:
        offset = self.judge.next_offset
        if offset == len(self.messages) or any(offset not in given for given in self.answers):
            return False
        answers = [Candidates.decode(given[offset]) for given in self.answers]
        self.rng.shuffle(answers)
        prepared = self.judge.prepare([(offset, self.messages[offset])], answers=answers)
        if self.rng.random() < 0.1:  # dies before its transaction
            self.start_judge()
            return True
        assert prepared.effects is not None
        self.emit(offset, [verdict.to_json() for verdict in prepared.verdicts], prepared.effects.encode())
        if self.rng.random() < 0.1:  # dies before its rows are written
            self.start_judge()
            return True
        self.judge.apply(prepared)
        if self.rng.random() < 0.2:
            self.judge_process.copy_rows()
        return True

    def emit(self, offset: int, verdicts: list[bytes], effects: bytes) -> None:
        if offset < len(self.verdicts):
            self.repeated += 1
            assert (self.verdicts[offset], self.effects[offset]) == (verdicts, effects), (
                "emitted twice, with a difference"
            )
            return
        assert offset == len(self.verdicts)
        self.verdicts.append(verdicts)
        self.effects.append(effects)

    # ---- shards ------------------------------------------------------------------------------------------------------

    def started_shard(self, number: int) -> Shard:
        return Shard(number, self.shard_processes[number].rows, self.decider)

    def step_shard(self) -> bool:
        number = self.rng.randrange(self.decider.shards)
        shard, process, given = self.shards[number], self.shard_processes[number], self.answers[number]
        what = self.rng.choice(("read", "learn", "answer", "answer", "advance"))
        if what == "read" and shard.log_position < len(self.messages):
            shard.read(shard.log_position, records_in(self.messages[shard.log_position]))
            return True
        if what == "learn" and self.effects:
            # From anywhere before: what a shard knows is ignored.
            first = self.rng.randrange(shard.effects_position + 1)
            for data in self.effects[first : first + self.rng.randrange(1, 2 * len(self.effects) + 1)]:
                shard.learn(Effects.decode(data))
            return False
        if what == "answer":
            found = list(shard.answers())
            for one in found:
                known = given.setdefault(one.offset, one.encode())
                assert known == one.encode(), "answered twice, and otherwise"
            return bool(found)
        if what == "advance" and not list(self._unsent(shard)) and shard.advance():
            if self.rng.random() < 0.5:
                process.copy_rows()
            return True
        return False

    def _unsent(self, shard: Shard) -> list[Candidates]:
        found = list(shard.answers())
        for one in found:
            self.answers[shard.number].setdefault(one.offset, one.encode())
        return found

    # ---- deaths ------------------------------------------------------------------------------------------------------

    def die(self) -> bool:
        self.deaths += 1
        number = self.rng.randrange(-1, self.decider.shards)
        older = self.rng.random() < 0.3
        if number < 0:
            if older:
                self.judge_process.go_back(self.rng)
            self.start_judge()
            return False
        if older:
            self.shard_processes[number].go_back(self.rng)
        self.shards[number] = self.started_shard(number)
        return False
