"""The answers of shards as the judge reads them: a message of the sketch log is there once all shards answered it."""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.column_families import Family, Store
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Candidates
from streams.errors import BrokerError
from streams.formats.pieces import Collected, decode_piece
from streams.ports import Record, SketchLog, Topic

if TYPE_CHECKING:
    from streams.kafka.shard_answers import Beat, KafkaAnswers, ShardBeats

#: Where to read answers on, in the judge's META family: topic id, and a position by partition.
_POSITIONS = b"answers_at"
#: Answers that are kept of a shard that is ahead, at least.
_AHEAD_MIN = 64


class _Shard:
    """The answers of one partition that are kept.

    position: position of the next record. dropped: position of the first record that was dropped because it was too far
    ahead. dropped_least: offset of the earliest message of the dropped records.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.dropped: int | None = None
        self.dropped_least = 0
        self.complete: dict[int, bytes] = {}
        self.collected: dict[int, Collected] = {}
        self.first_seen: dict[int, int] = {}  # position of the first piece, by message
        self.newest = -1  # message of the newest record that was read
        self.foreign: set[int] = set()  # messages with answers that are not used

    def forget_before(self, offset: int) -> None:
        for held in (self.complete, self.collected, self.first_seen):
            for old in [message for message in list(held) if message < offset]:
                del held[old]
        self.foreign = {message for message in self.foreign if message >= offset}


class Lockstep:
    """Reads the answers of all shards in step with the sketch log: for each message one answer of each shard.

    Partition s of the topic `candidates` has the answers of shard s, in the log's order. A shard that starts again
    writes some of them again, and a shard that was restored from an old checkpoint writes many. An answer is a function
    of the log and of the decider, so the first complete one of a message counts, and later ones are dropped. Answers by
    another decider, of a shard with other settings than the judge's, are not used.

    Memory is bounded: of each partition at most `ahead_max` answers behind the required one are kept. A partition that
    has its required answer is read no further than half of that. Where a partition is read in search of a missing
    answer, answers too far ahead are dropped, and read again once they are near.

    Args:
        source: reader of the topic, at any position.
        starts: position at which the reading of each partition starts: a position of `positions` of an earlier run, or
            the begin of the partition.
        first: offset of the first message whose answers are required.
        ahead_max: greatest number of kept answers of a partition. Shards are at most two epochs ahead of the judge;
            three epochs are kept.
        is_own: function that tells whether an answer comes from a shard of the judge.
    """

    def __init__(
        self,
        source: "KafkaAnswers",
        starts: Mapping[int, int],
        first: int,
        ahead_max: int,
        is_own: Callable[[bytes], bool] = lambda payload: True,
    ) -> None:
        self._source, self._is_own = source, is_own
        self._first, self._ahead_max = first, max(1, ahead_max)
        self._shards = {partition: _Shard(start) for partition, start in starts.items()}
        source.seek(dict(starts))

    def take(self, offset: int, wait_s: float = 0.0) -> Sequence[bytes] | None:
        """Return the answers to the message at `offset`, by shard; None if one is missing after `wait_s`.

        Offsets ascend; a call for a later message drops all answers to earlier ones.
        """
        if offset > self._first:
            self._first = offset
            for shard in self._shards.values():
                shard.forget_before(offset)
        self._rewind()
        lacking = self.awaited()
        if lacking:
            for record in self._source.read(self._open(), wait_s):
                self._add(record)
            self._rewind()
        if self.awaited():
            return None
        return [self._shards[partition].complete[offset] for partition in sorted(self._shards)]

    def awaited(self) -> list[int]:
        """Return the shards whose answer to the required message has not been read."""
        return sorted(number for number, shard in self._shards.items() if self._lacks(shard))

    def describe(self, known: Mapping[int, str] = MappingProxyType({})) -> str:
        """Name the awaited shards, and what to do if their answers were lost. Empty if no shard is awaited.

        known: state of each shard by its heartbeats.
        """
        lacking = self.awaited()
        if not lacking:
            return ""
        numbers = ",".join(map(str, lacking))
        text = f"waits for the answer to message {self._first} of shard {numbers.replace(',', ', ')}"
        foreign = [number for number in lacking if self._first in self._shards[number].foreign]
        if foreign:
            return (
                f"{text}; shard {', '.join(map(str, foreign))} answers by other settings than the judge's: set "
                "the same for all (neardup config), and start that shard again"
            )
        for number in lacking:
            if number in known:
                text += f"; {known[number]}"
            elif self._shards[number].newest > self._first:
                text += f"; {self._source.name(number)} has an answer to message {self._shards[number].newest}"
        if all(number in known for number in lacking):
            return text
        return (
            f"{text}; see whether it runs. If it is ready, or waits for effects to answer a later message, the topic "
            f"has lost its answer: start that shard once with --answer-from {self._first}"
        )

    def tell(self, before: Mapping[int, "Beat"], beats: Mapping[int, "Beat"]) -> dict[int, str]:
        """By awaited shard, what its last two heartbeats tell. Raises BrokerError.

        A shard that is slow needs no restart. An answer is lost only if its shard lives and has passed the message,
        and the judge has read the shard's partition to its end.
        """
        ends = self._source.ends()
        return {number: self._tell(number, before.get(number), beats.get(number), ends) for number in self.awaited()}

    def _tell(self, number: int, before: "Beat | None", now: "Beat | None", ends: Mapping[int, int]) -> str:
        if now is None:
            return f"shard {number} has not run since the topic was created: start it"
        if before is None:
            return f"shard {number} was at message {now.answered_to}"
        if now.mark == before.mark:
            return f"shard {number} does not run: start it again (it was at message {now.answered_to})"
        is_lost = now.answered_to > self._first and before.answered_to > self._first
        if is_lost and self._shards[number].position >= ends[number]:
            return (
                f"shard {number} runs and has passed that message, so {self._source.name(number)} has lost the answer: "
                f"start that shard once with --answer-from {self._first}"
            )
        return f"shard {number} runs and is at message {now.answered_to}: leave it running, its /ready has its state"

    def progress(self) -> tuple[int, list[int]]:
        """Return the required message, and the positions of the awaited shards: they change while answers come."""
        return self._first, [self._shards[number].position for number in self.awaited()]

    def positions(self) -> dict[int, int]:
        """Return by partition the position from which all answers from the required message on can be read again."""
        found = {}
        for number, shard in self._shards.items():
            known = [*shard.first_seen.values(), *([] if shard.dropped is None else [shard.dropped]), shard.position]
            found[number] = min(known)
        return found

    def _open(self) -> list[int]:
        """The partitions to read now."""
        enough = self._ahead_max // 2
        return [number for number, shard in self._shards.items() if self._lacks(shard) or len(shard.complete) < enough]

    def _lacks(self, shard: _Shard) -> bool:
        return self._first not in shard.complete

    def _add(self, record: Record) -> None:
        shard = self._shards[record.partition()]
        position = record.offset()
        shard.position = position + 1
        where = f"{self._source.name(record.partition())}, offset {position}"
        piece = decode_piece(record.value() or b"", where)
        shard.newest = max(shard.newest, piece.offset)
        if piece.offset < self._first or piece.offset in shard.complete:
            return
        if piece.offset >= self._first + self._ahead_max:
            if shard.dropped is None:
                shard.dropped, shard.dropped_least = position, piece.offset
            shard.dropped_least = min(shard.dropped_least, piece.offset)
            return
        shard.first_seen[piece.offset] = min(position, shard.first_seen.get(piece.offset, position))
        collected = shard.collected.setdefault(piece.offset, Collected())
        payload = collected.add(piece, where)
        if payload is None:
            return
        del shard.collected[piece.offset]
        if self._is_own(payload):
            shard.complete[piece.offset] = payload
        else:
            shard.foreign.add(piece.offset)

    def _rewind(self) -> None:
        """Go back to the dropped records where the required answer can be among them."""
        back = {}
        for number, shard in self._shards.items():
            if shard.dropped is not None and shard.dropped_least <= self._first and self._lacks(shard):
                back[number] = shard.position = shard.dropped
                shard.dropped, shard.dropped_least = None, 0
        if back:
            self._source.seek(back)


class AnsweredLog:
    """Follows the log as `SketchLog`, one message at a time.

    `poll` returns a message once all shards have answered it; `answers` returns these answers.
    """

    def __init__(
        self,
        log: SketchLog,
        source: "KafkaAnswers",
        topic_id: bytes,
        store: Store,
        decider: Decider,
        beats: "ShardBeats | None" = None,
    ) -> None:
        """
        Args:
            log: the sketch log.
            source: reader of the topic `candidates`.
            topic_id: id of the topic `candidates`.
            store: rows of the judge, which `keep_positions` writes.
            decider: decider of the judge.
            beats: heartbeats of the shards; without heartbeats `awaits` has fewer details.
        """
        self._log, self._source, self._topic_id, self._store = log, source, topic_id, store
        self.sharding, self._decider = Sharding.of(decider), decider.digest
        self._ahead_max = max(_AHEAD_MIN, 3 * decider.epoch)  # shards are at most two epochs ahead
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._answers: tuple[int, list[Candidates]] = (-1, [])
        self._lockstep: Lockstep | None = None
        self._kept: bytes | None = None
        self._beats = beats
        self._before: Mapping[int, Beat] = {}
        self._known: dict[int, str] = {}

    @property
    def topic(self) -> Topic:
        return self._log.topic

    @property
    def cluster_id(self) -> str:
        return self._log.cluster_id

    def first_offset(self) -> int:
        return self._log.first_offset()

    def end(self) -> int:
        return self._log.end()

    def follow(self, start: int) -> None:
        self.keep_positions()  # of a standby that takes over: else it would read the topic from its start
        self._log.follow(start)
        self._waiting.clear()
        self._lockstep = Lockstep(self._source, self._kept_positions(), start, self._ahead_max, self._is_own)

    def poll(self, count: int, *, bytes_max: int, linger_s: float = 0.0, wait_s: float) -> list[tuple[int, bytes]]:
        """Return the next message, if it is answered. Raises CorruptRecord for an answer that cannot be read."""
        if not self._waiting:
            found = self._log.poll(count, bytes_max=bytes_max, linger_s=linger_s, wait_s=wait_s)
            self._waiting.extend(found)
            wait_s = 0.0
        if not self._waiting or self._lockstep is None:
            return []
        offset, _ = self._waiting[0]
        payloads = self._lockstep.take(offset, wait_s)
        if payloads is None:
            return []
        self._answers = offset, [Candidates.decode(payload) for payload in payloads]
        return [self._waiting.popleft()]

    def _is_own(self, payload: bytes) -> bool:
        return Candidates.decode(payload).decider == self._decider

    def answers(self, offset: int) -> list[Candidates]:
        """Return the answers to the message that `poll` returned last, by shard."""
        if self._answers[0] != offset:
            raise InvariantBroken(f"answers to message {offset} are required, and {self._answers[0]} was read last")
        return self._answers[1]

    def position(self) -> int:
        return self._waiting[0][0] if self._waiting else self._log.position()

    def lag(self) -> int:
        return self._log.lag() + len(self._waiting)

    def awaits(self) -> str:
        """Name the shards whose answer the next message waits for; "" if there is no such message."""
        return self._lockstep.describe(self._known) if self._waiting and self._lockstep is not None else ""

    def look(self) -> None:
        """Look at the heartbeats of the awaited shards, for `awaits`. Call it every few seconds while it waits."""
        beats = self._beats.read() if self._beats is not None else None
        self._known = {}
        if beats is not None and self._lockstep is not None:
            with suppress(BrokerError):
                self._known = self._lockstep.tell(self._before, beats)
        self._before = beats or {}

    def progress(self) -> tuple[int, list[int]] | None:
        """Return what changes while answers come; None if no message waits for answers."""
        return self._lockstep.progress() if self._waiting and self._lockstep is not None else None

    def awaited(self) -> list[int]:
        """Return the shards whose answer the next message waits for."""
        return self._lockstep.awaited() if self._waiting and self._lockstep is not None else []

    def check(self) -> None:
        self._log.check()
        self._source.check()

    def keep_positions(self) -> None:
        """Write into the store where to read answers on; its rows may be those of any later message."""
        if self._lockstep is None:
            return
        positions = [at for _, at in sorted(self._lockstep.positions().items())]
        row = json.dumps({"topic": self._topic_id.hex(), "at": positions}).encode()
        if row != self._kept:
            self._store.write({Family.META: {_POSITIONS: row}})
            self._kept = row

    def _kept_positions(self) -> dict[int, int]:
        (row,) = self._store.get_many(Family.META, [_POSITIONS])
        kept = json.loads(row) if row is not None else {}
        if kept.get("topic") != self._topic_id.hex():
            return dict.fromkeys(range(self.sharding.shards), 0)  # the source begins where the topic does
        return dict(enumerate(kept["at"]))
