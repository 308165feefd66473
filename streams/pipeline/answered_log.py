"""The sketch log as the judge reads it: a message is there once the answers of all shards to it are."""

import json
from collections import deque

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.base import Family, Store
from neardup.sharded.epochs import Sharding
from neardup.sharded.records import Candidates
from streams.pipeline.lockstep import Lockstep
from streams.ports import AnswerSource, SketchLog, Topic

#: Where to read answers on, in the judge's META family: topic id, and a position by partition.
_POSITIONS = b"answers_at"
#: Answers that are kept of a shard that is ahead, at least.
_AHEAD_MIN = 64


class AnsweredLog:
    """Follows the log as `SketchLog`, one message at a time.

    `poll` returns a message once all shards have answered it; `answers` returns these answers.
    """

    def __init__(self, log: SketchLog, source: AnswerSource, topic_id: bytes, store: Store, decider: Decider) -> None:
        """
        Args:
            topic_id: of the topic `candidates`, which is `source`.
            store: the judge's; `keep_positions` writes into it.
        """
        self._log, self._source, self._topic_id, self._store = log, source, topic_id, store
        self.sharding, self._decider = Sharding.of(decider), decider.digest
        self._ahead_max = max(_AHEAD_MIN, 3 * decider.epoch)  # shards are at most two epochs ahead
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._answers: tuple[int, list[Candidates]] = (-1, [])
        self._lockstep: Lockstep | None = None
        self._kept: bytes | None = None

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
        return self._lockstep.describe() if self._waiting and self._lockstep is not None else ""

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
