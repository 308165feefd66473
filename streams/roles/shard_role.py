"""A shard on Kafka: sketch log and effects in, answers out.

Each round: (1) read messages of the log, and the effects that their answers need; (2) answer what can be answered from
the rows, and send the answers; (3) wait until all answers are acknowledged; (4) apply the effects that the next answer
needs; (5) from time to time, flush the rows.

Answers are written at least once: the judge uses a shard's first answer to a message. Step 4 must not precede step 3:
it replaces the rows from which an answer is computed, so a lost answer could not be computed again. After a crash the
rows are those of an earlier epoch: the next start reads the log from there, and may repeat answers. Two processes with
copies of one shard do no harm, because they write the same answers.

A checkpoint contains the rows and both positions. The effects of a takedown delete its pages from the rows two epochs
later; then the role makes a checkpoint and removes older ones.
"""

import json
from collections import deque
from collections.abc import Callable

from neardup.index.column_families import Family, Store
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Effects
from neardup.sharded.shard import Shard
from streams.errors import PositionLost, effects_again
from streams.formats.pieces import pieces_of
from streams.kafka.shard_answers import AnswerWriter
from streams.pipeline.effects import EffectsReader
from streams.pipeline.shared_log import LogView
from streams.roles.runtime import Runtime
from streams.state.checkpoint_make import CopyableIndex
from streams.state.checkpoint_role import RoleCheckpoints

#: Messages of the log that are read together; each has 1 MB at most.
_MESSAGES = 16
_BYTES_MAX = 16 << 20
#: Key of the META family. Row: offsets behind the last takedown whose effects are in the rows, and behind later ones.
_TAKEDOWNS = b"takedowns"
#: A shard that waits longer than this for effects is not ready. It says so before the judge complains about the shard.
_PATIENCE_SECONDS = 4.0


class FoldedShard:
    """The positions of a shard's rows, for checkpoints; implements `streams.state.checkpoint_make.Folded`."""

    def __init__(self, shard: Shard, store: Store) -> None:
        self.decider = shard.decider
        self.log_time = 0
        self._shard, self._store = shard, store
        (row,) = store.get_many(Family.META, [_TAKEDOWNS])
        self._takedowns: list[int] = json.loads(row) if row is not None else []

    @property
    def next_offset(self) -> int:
        return self._shard.effects_position

    @property
    def takedowns_to(self) -> int:
        return max((behind for behind in self._takedowns if behind <= self.next_offset), default=0)

    def take_down(self, offset: int) -> None:
        """Note the takedown at this offset of the log, before its effects are in the rows. May be repeated."""
        if offset + 1 in self._takedowns:
            return
        last = self.takedowns_to
        self._takedowns = [behind for behind in self._takedowns if behind >= last] + [offset + 1]
        self._store.write({Family.META: {_TAKEDOWNS: json.dumps(self._takedowns).encode()}})


class ShardRole:
    """One shard. `round` does one round; a process with several shards calls them in turn."""

    def __init__(
        self,
        number: int,
        shard: Shard,
        store: Store,
        sharding: Sharding,
        log: LogView,
        effects: EffectsReader,
        answers: AnswerWriter,
        runtime: Runtime,
        *,
        checkpoints: RoleCheckpoints | None = None,
    ) -> None:
        """
        Args:
            log: follows the sketch log from `shard.effects_position` on.
            effects: reads from a message before `shard.effects_position` on.
            answers: writes to the partition of this shard.
        """
        self.number = number
        self.checkpoints, self._folded = checkpoints, FoldedShard(shard, store)
        self._shard, self._store, self._sharding = shard, store, sharding
        self._log, self._effects, self._answers = log, effects, answers
        self._metrics = runtime.metrics
        self._flush_s = runtime.settings.flush_ms / 1000
        self._steady_s: Callable[[], float] = runtime.steady_s
        self._unanswered: deque[int] = deque()
        self._has_answered = False
        self._flushed = self._worked = self._steady_s()
        #: Before this offset of the log the shard has answered all messages that it will answer.
        self.answered_to = shard.effects_position
        self._begin: int | None = None  # offset of the first message that the shard read
        self._whole = False  # whether the topic is known to hold its effects

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if nothing was answered or applied. Raises PositionLost, TopicError, BrokerError.

        wait_s: longest wait for a message or for effects, seconds.
        """
        self.answer(wait_s)
        return self.settle()

    def answer(self, wait_s: float = 0.0) -> None:
        """The first half of a round, which waits for no acknowledgement."""
        with self._metrics.step("shard", "poll"):
            self._read(wait_s)  # (1)
            self._learn(wait_s)
        with self._metrics.step("shard", "answer"):
            self._has_answered = self._answer()  # (2)

    def settle(self) -> bool:
        """The second half of a round."""
        worked = self._has_answered
        with self._metrics.step("shard", "acknowledge"):
            self._answers.flush()  # (3)
        if self._begin is not None:
            self.answered_to = self._unanswered[0] if self._unanswered else self._log.position
        with self._metrics.step("shard", "apply"):
            if self._shard.advance():  # (4)
                worked = True
                self._effects.keep_position(self._store, self._shard.effects_position)
        self._flush_when_due()  # (5)
        if self.checkpoints is not None and isinstance(self._store, CopyableIndex):
            self.checkpoints.look(self._folded, self._store)
        if worked:
            self._worked = self._steady_s()
        return worked

    def awaits(self) -> str:
        """Return what this shard waits for, if it has waited for _PATIENCE_SECONDS; "" otherwise."""
        if not self._unanswered or self._steady_s() - self._worked < _PATIENCE_SECONDS:
            return ""
        return (
            f"shard {self.number} waits for the effects of messages before "
            f"{self._sharding.stable_to(self._unanswered[0])}, which the judge writes, to answer message "
            f"{self._unanswered[0]}; it has those before {self._effects.next_offset}. If the judge waits for the "
            f"answer to that message or a later one, topic {self._effects.name} has lost them: start the judge again, "
            "which writes them"
        )

    def lag(self) -> int:
        """Messages of the log that are not answered."""
        return self._log.lag() + len(self._unanswered)

    def close(self) -> None:
        """Flush the rows, if all answers are acknowledged."""
        self._answers.flush()
        self._flush()

    def _read(self, wait_s: float) -> None:
        """Pass messages to the shard, unless an epoch of messages is unanswered."""
        room = max(1, self._sharding.epoch) - len(self._unanswered)
        if room <= 0:
            return
        found = self._log.poll(min(room, _MESSAGES), bytes_max=_BYTES_MAX, wait_s=0 if self._unanswered else wait_s)
        for message in found:
            offset = message.offset
            self._begin = offset if self._begin is None else self._begin
            if message.is_takedown:
                self._folded.take_down(offset)
            if message.log_time is not None:
                self._folded.log_time = message.log_time
            self._shard.take(message.question)
            self._metrics.pages["shard"].inc(message.pages)
            self._metrics.bytes["shard"].inc(message.size)
            self._metrics.batch_pages["shard"].observe(message.pages)
            # If the rows are newer than this message's view, its answer was acknowledged before they were written.
            if self._sharding.stable_to(offset) >= self._shard.effects_position:
                self._unanswered.append(offset)

    def _learn(self, wait_s: float) -> None:
        """Read the effects that the unanswered messages need, or the next one, as far as the judge has written them.

        So an epoch's first message does not wait until they are read and applied.
        """
        if self._begin is None:
            return
        last = self._sharding.stable_to(self._unanswered[-1]) if self._unanswered else 0
        while self._effects.next_offset < max(last, first := self._shard.needed_to):
            # Without those that an unanswered message needs there is nothing else to do.
            is_stuck = self._unanswered and self._effects.next_offset < first
            found = self._effects.read(wait_s if is_stuck else 0.0)
            if not found:
                return
            for effects in found:
                self._must_hold(effects)
                self._shard.learn(effects)

    def _must_hold(self, effects: Effects) -> None:
        """Check that the topic holds the effects of the first message that the rows lack."""
        if self._whole or self._begin is None or effects.offset < self._begin:
            return
        if effects.offset > self._begin:
            raise PositionLost(
                f"topic {self._effects.name} begins with the effects of message {effects.offset}, and shard "
                f"{self.number} needs those of message {self._begin}: restore a newer checkpoint of this shard. Where "
                f"there is none, {effects_again(self._begin, self._log.begin())}"
            )
        self._whole = True

    def _answer(self) -> bool:
        answered = False
        for candidates in self._shard.answers():
            answered = True
            while self._unanswered and self._unanswered[0] <= candidates.offset:
                self._unanswered.popleft()
            for piece in pieces_of(candidates.offset, candidates.encode()):
                self._answers.send(piece)
        return answered

    def _flush_when_due(self) -> None:
        if self._steady_s() - self._flushed >= self._flush_s:
            self._flush()

    def _flush(self) -> None:
        with self._metrics.step("shard", "flush"):
            self._store.flush()
        self._flushed = self._steady_s()
