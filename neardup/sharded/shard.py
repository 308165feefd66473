"""A shard: answers messages of the sketch log from posting lists and sketches of its own.

Each epoch takes three steps:

1. answer the messages of the epoch from the rows (`answers`);
2. the caller makes these answers durable;
3. apply the effects that the next epoch needs, and write rows and position in one atomic batch (`advance`).

A crash after 1 or 2 leaves the rows as they were: the shard answers again, with the same answers. Step 3 must not
precede step 2: it replaces the rows from which an answer is computed, so a lost answer could not be computed again.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, StateError
from neardup.index.column_families import Family, Reader, Store
from neardup.limits import PLACE_BITS
from neardup.search.batch_records import Pages
from neardup.search.posting_lists import Posted
from neardup.search.search_reads import BatchReads
from neardup.sharded.answering import answer
from neardup.sharded.apply_effects import changes
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Candidates, Effects
from neardup.sketch.header import Header, headers_of_valid
from neardup.sketch.layout import RecordKind

_OWNER, _EFFECTS = b"shard", b"effects"
_POSITION = struct.Struct(">Q")


def applied_to(store: Reader) -> int:
    """The offset behind the last message whose effects are in the rows; 0 for an empty store."""
    (position,) = store.get_many(Family.META, [_EFFECTS])
    return int(_POSITION.unpack(position)[0]) if position else 0


def owner_of(store: Reader) -> str:
    """The shard that the rows belong to: its number, V, E and decider as text; "" if the rows name no shard."""
    (owner,) = store.get_many(Family.META, [_OWNER])
    return "" if owner is None else owner.decode()


class Question:
    """A message of the log that shards answer with candidates; decoded once for all shards of a process."""

    def __init__(self, offset: int, records: Sequence[bytes]) -> None:
        """offset: offset of the message in the log. records: records of the message; empty for a control record."""
        self.offset = offset
        first, headers = offset << PLACE_BITS, headers_of_valid(records)
        if headers is not None:
            places = np.nonzero(headers["kind"] == RecordKind.PAGE)[0].tolist()
        else:
            places = [place for place, record in enumerate(records) if _is_page(record)]
        #: (page id, record) of its pages, without tombstones, rejected and unreadable records.
        self.pages = [(first + place, records[place]) for place in places]
        self._read: tuple[Decider, Pages, Posted] | None = None

    def reads(self, decider: Decider, threads: int) -> BatchReads:
        """Returns reads of its pages, without any row. Raises CorruptRecord."""
        if self._read is None or self._read[0] is not decider:
            pages = Pages(self.pages)
            self._read = decider, pages, Posted(pages, decider)
        _, pages, posted = self._read
        return BatchReads(pages, decider, threads, posted=posted.unread())


class Shard:
    """One of the V shards of a decider, with a store of its own.

    log_position: offset behind the last message that was read. effects_position: offset behind the last message whose
    effects are in the rows.
    """

    def __init__(self, number: int, store: Store, decider: Decider, *, threads: int = 1, answers_from: int = 0) -> None:
        """Raises StateError if the store belongs to another shard, decider or sharding.

        Args:
            threads: number of threads that read and score.
            answers_from: offset of the first message to answer; earlier ones only bring the rows up to date.
        """
        self._answers_from = answers_from
        self.number, self.sharding, self.decider = number, Sharding.of(decider), decider
        self._store, self._threads = store, threads
        self._owner = f"{number} of {self.sharding.shards}, epoch {self.sharding.epoch}, {decider.digest}"
        owner = owner_of(store)
        if owner not in ("", self._owner):
            raise StateError(
                f"this is the index of shard {owner}, and this run is shard {self._owner}: go on with the settings "
                "that it was made with; if these were wrong, move the index away: it is built again"
            )
        self.effects_position = applied_to(store)
        self.log_position = self.effects_position
        self._unapplied: deque[int] = deque()  # offsets of read messages whose effects are not in the rows
        self._unanswered: deque[Question] = deque()
        self._effects: deque[Effects] = deque()  # not in the rows
        self._records: dict[int, bytes] = {}  # of own pages of unapplied messages

    def read(self, offset: int, records: Sequence[bytes]) -> None:
        """Accept the next message of the log.

        Messages before `log_position` are ignored. After a restart, pass the log from `effects_position` on.

        Args:
            offset: offset of the message, which need not follow directly on the offset of the last message.
            records: records of the message; empty for a control record.
        """
        self.take(Question(offset, records))

    def take(self, message: Question) -> None:
        """Like `read`, with a message that shards of one process can share."""
        offset = message.offset
        if offset < self.log_position:
            return
        if offset % self.sharding.shards == self.number:
            self._records.update(message.pages)
        # If the rows are already newer than this message's view, its answer was durable before they were written.
        if self.sharding.stable_to(offset) >= self.effects_position:
            self._unanswered.append(message)
        self._unapplied.append(offset)
        self.log_position = offset + 1

    def learn(self, effects: Effects) -> None:
        """Accepts the effects of the next message; effects of earlier messages are ignored. Raises StateError."""
        if effects.sharding != self.sharding:
            raise StateError(
                f"the judge has {effects.sharding.shards} shards with an epoch of {effects.sharding.epoch} messages, "
                f"and this run is shard {self._owner}: set the same for all"
            )
        last = self._effects[-1].offset if self._effects else self.effects_position - 1
        if effects.offset > last:
            self._effects.append(effects)

    def answers(self) -> Iterator[Candidates]:
        """Answers the messages that were read and can be answered from the rows as they are, in order."""
        while self._unanswered:
            message = self._unanswered[0]
            offset = message.offset
            if self._unapplied[0] < self.sharding.stable_to(offset):
                return
            self._unanswered.popleft()
            if offset < self._answers_from:
                continue
            pages, store, decider = message.pages, self._store, self.decider
            make_reads = partial(message.reads, decider, self._threads)
            yield answer(self.sharding, self.number, offset, pages, store, decider, self._threads, make_reads)

    @property
    def needed_to(self) -> int:
        """The offset before which the next answer needs all effects, also if its message was not read yet."""
        return int(self.sharding.stable_to(self._unanswered[0].offset if self._unanswered else self.log_position))

    def advance(self) -> bool:
        """Applies and writes the effects that the next answer needs; False if none are needed or some have not arrived.

        They are those of `needed_to`. The answers so far must be durable. Raises InvariantBroken if the effects of a
        message are missing in between.
        """
        needed = self.needed_to
        due = list(takewhile(lambda offset: offset < needed, self._unapplied))
        if not due or len(self._effects) < len(due):
            return False
        parts = [self._effects.popleft() for _ in due]
        if [part.offset for part in parts] != due:
            given = [part.offset for part in parts]
            raise InvariantBroken(f"shard {self._owner} needs the effects of the messages {due}, and was given {given}")
        self.effects_position = due[-1] + 1
        self._write(parts)
        for _ in due:
            self._unapplied.popleft()
        records = self._records.items()
        self._records = {one: record for one, record in records if one >> PLACE_BITS >= self.effects_position}
        return True

    def _write(self, parts: Sequence[Effects]) -> None:
        items = [item for part in parts for item in part.items.tolist()]
        rows = changes(items, self._records, self._store, self.decider, self._is_own)
        meta: dict[bytes, bytes | None] = {
            _OWNER: self._owner.encode(),
            _EFFECTS: _POSITION.pack(self.effects_position),
        }
        self._store.write({**rows, Family.META: meta})

    def _is_own(self, page_id: int) -> bool:
        return bool(self.sharding.shard_of(page_id) == self.number)


def _is_page(record: bytes) -> bool:
    """Whether a record is a page. False for an unreadable one: the judge stops there until the operator skips it."""
    try:
        header = Header(record)
    except (ValueError, CorruptRecord):
        return False
    return header.kind is RecordKind.PAGE and not header.problem()
