"""Shards and a judge under faults that a seed draws: what they say is what a lockstep of them says.

The roles, their readers and their positions are real: `ShardRole`, `MatchRole`, `Shard`, `AnsweredLog`, `Lockstep`.
What they find is made up, so that a schedule takes milliseconds: a shard's rows are a hash of all effects in their
order, its answer is a hash of these rows and the message, and the judge's verdict and effects are hashes of the answers
and of the messages in its window. A message that is answered from an earlier or later view, or judged with another
window, has another verdict.

Shards and judge make checkpoints. In some schedules retention removes the start of the log and of the effects, as far
as the newest checkpoints permit; such a schedule loses either effects or answers, because no checkpoint can replace
both. The operator does what errors and logs say.
"""

import hashlib
import pickle
import random
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import orjson

from neardup.decider import Decider
from neardup.errors import NeardupError, StateError
from neardup.fold import Outcome
from neardup.index.column_families import Family, Store
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.sharded import shard as shard_module
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import ANSWER, EFFECT, Candidates, Effects
from neardup.sharded.shard import Shard, applied_to
from neardup.verdict import Kind
from streams.config.settings import Settings
from streams.errors import PositionLost
from streams.formats.message import Message, encode_message, page_id
from streams.formats.pieces import decode_piece, pieces_of
from streams.pipeline.answered_log import AnsweredLog
from streams.pipeline.effects import EffectsReader
from streams.pipeline.matcher import Prepared
from streams.pipeline.shared_log import SharedLog, decode_message
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.process.shutdown import steady_ms
from streams.roles import match_role as match_module
from streams.roles import match_start
from streams.roles import shard_role as role_module
from streams.roles.match_role import MatchRole
from streams.roles.match_start import start_matcher
from streams.roles.match_start_checks import HeldEffects, MatcherPorts, StartOptions, VerdictsEnd, verdicts_end
from streams.roles.runtime import Runtime
from streams.roles.shard_role import ShardRole
from tests.streams.scripted import Broker, ScriptedLog, ScriptedRecord, ScriptedWriter, Transactions
from tests.streams.simulation.folder import Disk, Folder

SCHEME = bytes(range(16))
LOG, VERDICTS, CANDIDATES, EFFECTS = "sketches", "verdicts", "candidates", "effects"
#: Bytes of a payload in one record: effects of some messages have two.
PIECE = 60
ROUNDS_MAX = 2_000


class Crash(Exception):
    """The process dies here."""


class Wrong(Exception):
    """What must not happen."""


def hashed(*parts: Any) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=6).digest())


# What shards and judge find.


def made_up_answer(
    sharding: Sharding, number: int, offset: int, pages: Any, store: Store, decider: Decider, *_: Any
) -> Candidates:
    (chain,) = store.get_many(Family.KEYS, [b"chain"])
    return answer_of(decider, number, offset, int(chain or 0), [record for _, record in pages])


def answer_of(decider: Decider, number: int, offset: int, chain: int, records: Sequence[bytes]) -> Candidates:
    pairs = np.zeros(1, ANSWER)
    pairs["page_id"] = hashed(number, chain, list(records))
    return Candidates(Sharding.of(decider), decider.digest, number, offset, np.zeros(0, "<u2"), pairs)


def chained(chain: int, items: Sequence[tuple[int, int, bytes]]) -> int:
    for _, page, _ in items:
        chain = hashed(chain, page)
    return chain


def made_up_changes(items: Any, records: Any, store: Store, *_: Any) -> dict[Family, dict[bytes, bytes | None]]:
    (chain,) = store.get_many(Family.KEYS, [b"chain"])
    return {Family.KEYS: {b"chain": b"%d" % chained(int(chain or 0), items)}}


def judged(
    sharding: Sharding, offset: int, state: int, window: Sequence[bytes], answers: Sequence[Candidates]
) -> tuple[int, Effects]:
    """The judge's next state, which is also the verdict, and the effects: 0 to 4."""
    found = [int(answer.pairs["page_id"][0]) for answer in answers]
    state = hashed(state, list(window), found)
    items = np.zeros(state % 5, EFFECT)
    items["page_id"] = [hashed(state, number) for number in range(len(items))]
    return state, Effects(sharding, offset, items)


@dataclass
class MadeUpVerdict:
    """url, page_id, n: of the message's one page."""

    page_id: int
    state: int
    log: str | None
    n: int = 0
    verdict: Kind = Kind.UNIQUE

    @property
    def url(self) -> str:
        return f"http://a.example/{self.page_id}"

    def to_json(self) -> bytes:
        return orjson.dumps(
            {
                "page_id": self.page_id,
                "n": 0,
                "url": self.url,
                "state": self.state,
                "log": self.log,
                "scheme": SCHEME.hex(),
                "decider": DECIDERS[0],
            }
        )


DECIDERS: list[str] = []  # digest of the one decider


class MadeUpMatcher:
    """The judge's part of `Matcher`."""

    def __init__(self, store: Store, decider: Decider, *_: Any, log: str = "", **__: Any) -> None:
        self._store, self.decider, self._log = store, decider, log
        self.sharding = Sharding.of(decider)
        following, state, parts = store.get_many(Family.META, [b"next", b"state", b"parts"])
        self.next_offset = self.position = self.emitted_to = int(following or 0)
        self._state = int(state or 0)
        self._parts: list[Effects] = list(map(Effects.decode, pickle.loads(parts))) if parts else []
        self.log_time = self.takedowns_to = 0
        self.window = SimpleNamespace(
            restore_from=self.sharding.stable_to(self.next_offset),
            kept_effects=lambda start: [part for part in self._parts if part.offset >= start],
        )
        self._messages: dict[int, bytes] = {}
        self.audit = None
        self.heartbeat = lambda: None

    def restore_window(self, offset: int, data: bytes) -> None:
        assert self.window.restore_from <= offset < self.next_offset
        self._messages[offset] = data

    def prepare(self, messages: Any, *, emit: bool, answers: Sequence[Candidates]) -> Prepared:
        ((offset, data),) = messages
        assert [(each.offset, each.shard) for each in answers] == [(offset, n) for n in range(self.sharding.shards)]
        self._messages[offset] = data
        start = self.sharding.stable_to(offset)
        window = [data for at, data in sorted(self._messages.items()) if start <= at]
        state, effects = judged(self.sharding, offset, self._state, window, answers)
        parts = [part.encode() for part in self._parts if part.offset >= start] + [effects.encode()]
        meta = {b"next": b"%d" % (offset + 1), b"state": b"%d" % state, b"parts": pickle.dumps(parts)}
        verdicts: list[Any] = [MadeUpVerdict(page_id(offset, 0), state, self._log)] if emit else []
        made = Prepared(
            Outcome(BatchVerdicts(verdicts), {}), {Family.META: meta}, offset + 1, 0, offset + 1, [], self.decider
        )
        made.effects = effects
        return made

    def apply(self, prepared: Prepared) -> None:
        self._store.write(prepared.writes)
        self.next_offset = self.emitted_to = prepared.next_offset
        self._state = int(prepared.writes[Family.META][b"state"])
        self._parts = list(map(Effects.decode, pickle.loads(prepared.writes[Family.META][b"parts"])))
        self._messages = {at: data for at, data in self._messages.items() if at >= self.sharding.stable_to(at) - 99}


def any_is_page(*_: Any) -> bool:
    """A function: to call a mock takes a tenth of a millisecond."""
    return True


@contextmanager
def made_up() -> Iterator[None]:
    """What is found is made up meanwhile."""
    small = lambda offset, payload: pieces_of(offset, payload, PIECE)  # noqa: E731
    with (
        mock.patch.object(shard_module, "answer", made_up_answer),
        mock.patch.object(shard_module, "changes", made_up_changes),
        mock.patch.object(shard_module, "_is_page", any_is_page),
        mock.patch.object(match_module, "Matcher", MadeUpMatcher),
        mock.patch.object(match_start, "Matcher", MadeUpMatcher),
        mock.patch.object(match_module, "pieces_of", small),
        mock.patch.object(role_module, "pieces_of", small),
    ):
        yield


# The ports.


class Answers:
    """The topic `candidates`, of the name; a position that it does not hold becomes its start."""

    def __init__(self, broker: Broker, most: int) -> None:
        self._broker, self._most = broker, most
        self.topic = broker.topic(CANDIDATES)
        self._at: dict[int, int] = {}

    def seek(self, starts: Mapping[int, int]) -> None:
        for partition, start in starts.items():
            held = self.topic.partitions[partition]
            self._at[partition] = start if held.begin <= start <= held.end else held.begin

    def read(self, partitions: Collection[int], wait_s: float) -> list[Any]:
        found = []
        for partition in partitions:
            records = self.topic.partitions[partition].records
            at = self._at[partition]
            some = records[at : at + self._most]
            found += [ScriptedRecord((partition, at + i), None, value) for i, value in enumerate(some)]  # type: ignore[arg-type]
            self._at[partition] += len(some)
        return found

    def name(self, partition: int) -> str:
        return f"topic {CANDIDATES}, partition {partition}"

    def check(self) -> None:
        pass


class Out(ScriptedWriter):
    """Answers of one shard; what waits for acknowledgements may die instead. around: called with "answers"."""

    def __init__(self, broker: Broker, number: int, around: Any) -> None:
        super().__init__(broker, CANDIDATES, partition=number)
        self._around = around

    def flush(self) -> None:
        if self.sent > self.acknowledged:
            self._around("answers")
        self.deliver(10_000)


# The world.


@dataclass
class World:
    """V shards and a judge. zombies: shards and judges whose successors are at work."""

    seed: int
    metrics: Metrics = field(default_factory=Metrics)
    shards: list[ShardRole | None] = field(default_factory=list)
    folders: list[Disk] = field(default_factory=list)
    judge: MatchRole | None = None
    judge_folder: Folder = field(default_factory=lambda: Folder(Disk()))
    zombies: list[Any] = field(default_factory=list)
    copies: dict[int, Disk] = field(default_factory=dict)
    judge_copy: Folder | None = None
    elsewhere: dict[int, Disk] = field(default_factory=dict)  # disks of processes that ran a shard before
    checkpoints: list[list[Disk]] = field(default_factory=list)  # of each shard, oldest first
    judge_checkpoints: list[Folder] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    armed: str = ""
    log: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = self.chance = random.Random(f"world {self.seed}")
        self.sharding = Sharding(chance.choice([1, 2, 4]), chance.choice([1, 2, 3, 8]))
        self.decider = Decider(scheme=SCHEME.hex(), shards=self.sharding.shards, epoch=self.sharding.epoch)
        DECIDERS[:] = [self.decider.digest]
        self.broker = Broker()
        for name, partitions in ((LOG, 1), (VERDICTS, 2), (CANDIDATES, self.sharding.shards), (EFFECTS, 1)):
            self.broker.create(name, partitions)
        settings = Settings(seed=1, state="state", flush_ms=1_000_000, match_messages=chance.choice([1, 2, 8]))
        health = Health(steady_ms, settings.stall_ms)
        self.runtime = Runtime(settings, self.metrics, health, threading.Event())
        self.shards = [None] * self.sharding.shards
        self.checkpoints = [[] for _ in self.shards]
        #: In schedules with retention only one of them.
        self.may_lose = chance.choice([(CANDIDATES, EFFECTS), (CANDIDATES,), (EFFECTS,)])
        self.folders = [Disk() for _ in self.shards]
        for folder in self.folders:
            folder.around = self.around
        log_id = self.broker.topic(LOG).id
        self.shared_log = SharedLog(  # all shards of a schedule are in one process
            partial(ScriptedLog, self.broker, LOG),
            lambda offset, data: decode_message(offset, data, SCHEME.hex(), log_id),
            chance.choice([1, 3, 64]),
        )

    def around(self, moment: str) -> None:
        if self.armed == moment:
            self.armed = ""
            raise Crash

    # What happens.

    def publish(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            records = tuple(b"%d" % self.chance.getrandbits(32) for _ in range(self.chance.randrange(4)))
            data = encode_message(Message(SCHEME, (), records))
            self.broker.topics[LOG].partitions[0].append(data)
            self.log.append(data)

    def round_of_a_shard(self, number: int | None = None) -> bool:
        number = self.chance.randrange(len(self.shards)) if number is None else number
        role = self.shards[number]
        try:
            if role is None:
                role = self.shards[number] = self.shard(number)
            worked = role.round()
            if self.chance.random() < 0.2:
                role._flush()
            return worked
        except Crash:
            self.crash_shard(number)
            return True
        except PositionLost as error:
            if required := re.findall("needs those of message ([0-9]+)", str(error)):
                self.happened["a shard lacks effects"] += 1
                self.find_effects(number, int(required[0]))
            else:
                self.happened["retention has overtaken a shard"] += 1
                self.crash_shard(number)
            return True

    def shard(self, number: int) -> ShardRole:
        applied, begin = applied_to(self.folders[number]), self.broker.topic(LOG).partitions[0].begin
        restored = applied >= self.begin_of_shards() or self.restore_shard(number, self.begin_of_shards())
        if not restored and applied < begin:  # effects are lost, too: its error with this one says how to get them
            self.restore_shard(number, begin)
        store = self.folders[number]
        found = Shard(number, store, self.decider)
        return ShardRole(
            number,
            found,
            store,
            self.sharding,
            self.shared_log.view(found.effects_position),
            EffectsReader(ScriptedLog(self.broker, EFFECTS), store),
            Out(self.broker, number, self.around),
            self.runtime,
        )

    def round_of_the_judge(self) -> bool:
        try:
            if self.judge is None:
                self.judge = self.begin()
            worked = self.judge.round()
            if self.chance.random() < 0.2:
                self.judge._flush()
            return worked
        except StateError as error:
            if "the judge writes the effects that it keeps" not in str(error):
                raise
            self.happened["effects are lost in the middle"] += 1
            self.stop_all()
            self.broker.recreate(EFFECTS)
            return True
        except (Crash, NeardupError) as error:
            expected = isinstance(error, Crash | PositionLost)  # retention may overtake it
            if not expected and "another process has taken over" not in str(error):
                raise
            self.crash_judge()
            return True

    def begin(self) -> MatchRole:
        begin = self.broker.topic(LOG).partitions[0].begin
        if self.sharding.stable_to(judged_to(self.judge_folder)) < begin:
            self.judge_folder = max(self.judge_checkpoints, key=judged_to).copied()
        folder = self.judge_folder
        folder.store.around = self.around
        verdicts = Transactions(self.broker, LOG, VERDICTS, "judge", effects=EFFECTS, around=self.around)
        answers = Answers(self.broker, self.chance.randrange(1, 30))
        log = AnsweredLog(ScriptedLog(self.broker, LOG), answers, answers.topic.id, folder.store, self.decider)
        raw = ScriptedLog(self.broker, LOG)
        ports = MatcherPorts(log, raw.messages, verdicts, self.newest, lambda word: 0, self.effects)
        return start_matcher(ports, folder, StartOptions(self.decider), self.runtime)

    def newest(self) -> VerdictsEnd:
        topic = self.broker.topic(VERDICTS)
        values = {partition: orjson.loads(pair[1]) for partition, pair in topic.newest().items()}  # type: ignore[index]
        return verdicts_end(values, {number: held.begin for number, held in enumerate(topic.partitions)})

    def effects(self) -> HeldEffects:
        topic = self.broker.topic(EFFECTS)
        held: list[Any] = topic.partitions[0].records
        if not held:
            return HeldEffects(topic.id.hex())
        return HeldEffects(topic.id.hex(), decode_piece(held[0], "").offset, decode_piece(held[-1], "").offset + 1)

    def crash_shard(self, number: int | None = None) -> None:
        number = self.chance.randrange(len(self.shards)) if number is None else number
        self.end(number)
        self.folders[number] = self.durable(self.folders[number])

    def end(self, number: int) -> None:
        """A shard runs no more, unless as a zombie."""
        role, self.shards[number] = self.shards[number], None
        if role is not None and role not in self.zombies:
            role._log.close()

    def durable(self, disk: Disk) -> Disk:
        found = disk.durable()
        found.around = self.around
        return found

    def crash_judge(self) -> None:
        self.judge = None
        self.judge_folder = self.judge_folder.copied()

    def die_at_a_step(self) -> None:
        self.armed = self.chance.choice(["begun", "sent", "committed", "flush", "flushed", "answers"])
        for _ in range(4):
            self.round_of_a_shard()
            self.round_of_the_judge()
        self.armed = ""

    def zombie_shard(self) -> None:
        """Two processes run a shard: the new one starts from what was flushed."""
        number = self.chance.randrange(len(self.shards))
        if self.shards[number] is not None:
            self.zombies.append(self.shards[number])
            self.crash_shard(number)

    def zombie_judge(self) -> None:
        if self.judge is not None:
            self.zombies.append(self.judge)
            self.crash_judge()

    def wake_a_zombie(self) -> None:
        if self.zombies:
            zombie = self.chance.choice(self.zombies)
            with suppress(NeardupError, Crash):
                for _ in range(3):
                    zombie.round()

    def copy(self) -> None:
        number = self.chance.randrange(len(self.shards))
        self.copies[number] = self.folders[number].durable()
        self.judge_copy = self.judge_folder.copied()

    def restore_a_copy(self) -> None:
        if self.copies and self.chance.random() < 0.7:
            number = self.chance.choice(sorted(self.copies))
            self.use(number, self.copies[number].durable())
        elif self.judge_copy is not None:
            self.judge = None
            self.judge_folder = self.judge_copy.copied()

    def lose_a_folder(self) -> None:
        number = self.chance.randrange(len(self.shards) + 1)
        if number == len(self.shards):
            self.judge, self.judge_folder = None, Folder(Disk())
        else:
            self.use(number, Disk())

    def use(self, number: int, disk: Disk) -> None:
        """A shard starts with this disk."""
        self.end(number)
        self.folders[number] = disk
        disk.around = self.around

    def move_a_shard(self) -> None:
        """To another process, with a disk of its own, on which it may have been before. The former one may go on."""
        number = self.chance.randrange(len(self.shards))
        if self.shards[number] is not None and self.chance.random() < 0.5:
            self.zombies.append(self.shards[number])
        there = self.elsewhere.get(number, Disk())
        self.elsewhere[number] = self.folders[number].durable()
        self.use(number, there)
        if not applied_to(there) and self.checkpoints[number]:
            self.restore_shard(number, 0)

    # Checkpoints and retention.

    def checkpoint(self) -> None:
        """As roles make them, between two rounds: some shards, then the judge."""
        for number, role in enumerate(self.shards):
            if role is not None and role._store is self.folders[number] and self.chance.random() < 0.7:
                self.checkpoints[number].append(copy_of(self.folders[number]))
        if self.judge is not None and self.chance.random() < 0.7:
            self.judge_checkpoints.append(Folder(copy_of(self.judge_folder.store), self.judge_folder.kept))

    def expire(self) -> None:
        """Retention removes the start of the log and of its effects, where checkpoints make up for a lost disk."""
        if len(self.may_lose) > 1:
            return
        newest = [max((applied_to(disk) for disk in each), default=0) for each in self.checkpoints]
        for folder in reversed(self.judge_checkpoints):
            stable = self.sharding.stable_to(judged_to(folder))
            if self.may_lose == (EFFECTS,) and judged_to(folder) <= min(newest):
                return self.expire_before(min(stable, *newest))
            older = [max((at for at in map(applied_to, each) if at <= stable), default=0) for each in self.checkpoints]
            if self.may_lose == (CANDIDATES,) and all(older):
                return self.expire_before(min(older))

    def expire_before(self, offset: int) -> None:
        held = self.broker.topic(EFFECTS).partitions[0]
        for at in range(held.begin, held.end):
            if decode_piece(held.records[at], "").offset >= offset:  # type: ignore[arg-type]
                break
            held.begin = at + 1
        log = self.broker.topic(LOG).partitions[0]
        self.happened["expired"] += offset > log.begin
        log.begin = max(log.begin, offset)

    def begin_of_shards(self) -> int:
        """The first message with sketches and effects."""
        held = self.broker.topic(EFFECTS).partitions[0]
        first = held.records[held.begin : held.begin + 1]
        effects = decode_piece(first[0], "").offset if first else 0  # type: ignore[arg-type]
        return max(self.broker.topic(LOG).partitions[0].begin, effects)

    def restore_shard(self, number: int, least: int, most: int = 1 << 62) -> bool:
        """From the newest checkpoint within limits, or else from nothing if that is within them."""
        fitting = [disk for disk in self.checkpoints[number] if least <= applied_to(disk) <= most]
        if fitting:
            self.happened["shard restored"] += 1
            self.use(number, copy_of(max(fitting, key=applied_to)))
        elif not least:
            self.use(number, Disk())
        return bool(fitting) or not least

    def find_effects(self, number: int, required: int) -> None:
        """A shard lacks effects that its topic has lost: the operator does what its error says."""
        self.end(number)
        if self.restore_shard(number, required + 1):
            return  # perhaps for the same error, with a later message
        self.stop_all()
        self.broker.recreate(EFFECTS)
        begin = self.broker.topic(LOG).partitions[0].begin
        fitting = [
            folder
            for folder in self.judge_checkpoints
            if judged_to(folder) <= required and self.sharding.stable_to(judged_to(folder)) >= begin
        ]
        if not fitting and begin:
            raise Wrong(f"no checkpoint of the judge ends at {required} or before")
        self.happened["judge restored for effects"] += bool(fitting)
        self.judge_folder = max(fitting, key=judged_to).copied() if fitting else Folder(Disk())

    def stop_all(self) -> None:
        self.zombies = []
        for number in range(len(self.shards)):
            self.crash_shard(number)
        self.crash_judge()

    def lose_a_topic(self) -> None:
        """Its readers restart, as the roles' own checks make them. A judge may write effects before its check."""
        name = self.chance.choice(self.may_lose)
        self.broker.recreate(name)
        if name == EFFECTS and len(self.log) % 2:
            self.round_of_the_judge()
        self.stop_all()

    def trim(self) -> None:
        """Retention takes answers."""
        if CANDIDATES in self.may_lose:
            for held in self.broker.topics[CANDIDATES].partitions:
                held.begin = self.chance.randint(held.begin, held.end)

    # The end.

    def settle(self) -> None:
        """Liveness: without faults, all roles work, and an operator helps with an unanswered message."""
        self.armed, idle = "", 0
        for _ in range(ROUNDS_MAX):
            worked = [self.round_of_a_shard(number) for number in range(len(self.shards))]
            worked.append(self.round_of_the_judge())
            if self.judge is not None and self.judge.matcher.next_offset == len(self.log):
                return
            idle = 0 if any(worked) or self.reads_answers() else idle + 1
            if idle > 5:
                assert self.judge is not None
                awaited = self.judge._answered.awaits()  # type: ignore[union-attr]
                named = awaited.partition(" of shard ")[2].partition(";")[0].split(", ")
                for number in map(int, filter(None, named)):
                    self.answer_again(number, int(awaited.rpartition("--answer-from ")[2]))
                idle = 0
        raise Wrong(f"it never settles: {self.judge and self.judge._answered.awaits()}")  # type: ignore[union-attr]

    def answer_again(self, number: int, message: int) -> None:
        """What the judge's log says, where an answer is lost.

        Without a checkpoint of the shard, the judge starts from one; without that, the shard from nothing, and its
        error says what it lacks.
        """
        if self.restore_shard(number, self.begin_of_shards(), self.sharding.stable_to(message)):
            return
        newest = max(self.judge_checkpoints, key=judged_to, default=Folder(Disk()))
        if judged_to(newest) > message:
            self.judge, self.judge_folder = None, newest.copied()
        else:
            self.happened["a shard starts from nothing"] += 1
            self.use(number, Disk())

    def reads_answers(self) -> bool:
        """Whether the judge has answers to read, among which there may be the awaited one."""
        if self.judge is None:
            return True
        lockstep = self.judge._answered._lockstep  # type: ignore[union-attr]
        ends = [held.end for held in self.broker.topics[CANDIDATES].partitions]
        source: Answers = lockstep._source  # type: ignore[union-attr,assignment]
        return any(source._at[number] < ends[number] for number in lockstep.awaited())  # type: ignore[union-attr]

    def check(self) -> None:
        verdicts, effects = self.expected()
        answer = [
            orjson.loads(pair[1])  # type: ignore[index]
            for held in self.broker.topics[VERDICTS].partitions
            for pair in held.records
            if pair is not None
        ]
        found = sorted((each["page_id"] >> 12, each["state"]) for each in answer)
        if found != list(enumerate(verdicts)):
            raise Wrong(f"verdicts {found}, expected {verdicts}")
        records = [decode_piece(record, "") for record in self.broker.topics[EFFECTS].partitions[0].records]  # type: ignore[arg-type]
        first = records[0].offset if records else len(effects)
        if b"".join(piece.data for piece in records) != b"".join(effects[first:]):
            raise Wrong("the topic of effects has not each message's once")

    def expected(self) -> tuple[list[int], list[bytes]]:
        """Verdicts and effects, in lockstep."""
        state, states = 0, []
        effects: list[Effects] = []
        for offset in range(len(self.log)):
            stable = self.sharding.stable_to(offset)
            chain = 0
            for each in effects[:stable]:
                chain = chained(chain, each.items.tolist())
            records = list(records_of(self.log[offset]))
            answers = [answer_of(self.decider, n, offset, chain, records) for n in range(self.sharding.shards)]
            state, made = judged(self.sharding, offset, state, self.log[stable : offset + 1], answers)
            states.append(state)
            effects.append(made)
        return states, [each.encode() for each in effects]


def judged_to(folder: Folder) -> int:
    (following,) = folder.store.get_many(Family.META, [b"next"])
    return int(following or 0)


def copy_of(disk: Disk) -> Disk:
    """Of all rows, as a checkpoint has them."""
    return Disk({family: dict(disk.scan(family)) for family in Family})


def records_of(data: bytes) -> tuple[bytes, ...]:
    from streams.formats.message import decode_entry

    entry = decode_entry(data, 0)
    assert isinstance(entry, Message)
    return entry.records


STEPS: Mapping[str, float] = {
    "publish": 4, "round_of_a_shard": 12, "round_of_the_judge": 8, "crash_shard": 1, "crash_judge": 0.7,
    "die_at_a_step": 1, "zombie_shard": 0.7, "zombie_judge": 0.4, "wake_a_zombie": 1.5, "copy": 0.7,
    "restore_a_copy": 0.6, "lose_a_folder": 0.3, "lose_a_topic": 0.15, "trim": 0.3, "move_a_shard": 0.7,
    "checkpoint": 2, "expire": 1,
}  # fmt: skip


class Unread(Metrics):
    """Metrics that measure no time: to make them anew and to observe them takes an eighth of a schedule's time."""

    def step(self, role: str, name: str) -> AbstractContextManager[object]:
        return nullcontext()


UNREAD = Unread()


def simulate(seed: int) -> World:
    """Play, settle and check the schedule of a seed. Raises Wrong, and whatever the roles should never raise."""
    world = World(seed, UNREAD)
    chance = random.Random(f"steps {seed}")
    weights = [weight * chance.choice([0, 0.3, 1, 1, 3]) for weight in STEPS.values()]
    weights[:3] = list(STEPS.values())[:3]
    with made_up():
        for name in chance.choices(
            list(STEPS), weights, k=chance.choice([10, 25, 25, 80] if len(world.may_lose) > 1 else [25, 80, 160])
        ):
            getattr(world, name)()
        world.settle()
    world.check()
    return world
