"""What the judge knows of the last two epochs: their records, and the postings that their effects made.

For a message of epoch e it is a small shard of its own, in memory: the effects of all messages from the first one of
epoch e - 1 on, applied to an empty index, as far as they are about pages of these messages. Shards answer from the
effects before. So a representative is found by its shard or in the window, never by both.
"""

import struct
from collections import deque
from collections.abc import Sequence

from neardup.clusters.overlay import Effect, MakeReads
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.base import Family, Reader, Writes
from neardup.limits import PLACE_BITS
from neardup.rules.families import SIMILARITY_BYTES
from neardup.search.pages import Records
from neardup.sharded.epochs import Sharding
from neardup.sharded.judging import JudgeReader, JudgeReads
from neardup.sharded.records import Candidates, EffectKind, Effects
from neardup.sharded.window_lists import WindowLists

_PREFIX = b"effects:"
_OFFSET = struct.Struct(">Q")
_READ_ROWS = 1024


class Window:
    """The window of one judge. `begin` a message, judge it with `reads` over `reader`, and `end` it.

    After a restart `restore` takes the records of the messages from `restore_from` up to the judge's position again.
    """

    def __init__(self, store: Reader, decider: Decider, position: int) -> None:
        """store: the judge's rows. position: offset of the message that the judge must judge next."""
        self.sharding, self._decider = Sharding.of(decider), decider
        self._parts = deque(_effects_in(store))
        self._expired: list[int] = []  # offsets of parts that are still among the rows
        self._store = store
        self.restore_from = self.start = self.sharding.stable_to(position)
        self._lists = WindowLists(decider)
        self._is_filled = False
        self._begun = -1
        self.retired: set[int] = set()

    def restore(self, offset: int, pages: Records) -> None:
        """The pages of a message that was judged before, by page id. Must be called before the first `begin`."""
        if offset >= self.start:
            self._lists.add(pages)

    def begin(self, offset: int, pages: Records) -> None:
        """Moves the window to the epoch of the message at `offset`, and takes its pages. May be called again."""
        start = self.sharding.stable_to(offset)
        if start > self.start or not self._is_filled:
            self.start, self._is_filled = start, True
            while self._parts and self._parts[0].offset < start:
                self._expired.append(self._parts.popleft().offset)
            self.retired = set()
            for part in self._parts:
                self._retire(part)
            self._lists.start(start << PLACE_BITS, self._parts)
        if self._begun != offset:
            self._begun = offset
            self._lists.add(pages)
        self._lists.begin()

    @property
    def reader(self) -> Reader:
        """The judge's rows, with the posting lists of the window."""
        return JudgeReader(self._store, self._lists)

    def note(self, effects: Sequence[Effect]) -> None:
        """What some pages of the message that was begun changed, before others of it are judged."""
        self._lists.note(effects)

    def reads(self, answers: Sequence[Candidates]) -> MakeReads:
        """Makes the reads of the message that was begun. answers: of all shards."""
        lists, first = self._lists, self.start << PLACE_BITS
        return lambda pages, decider, threads: JudgeReads(
            pages, decider, threads, lists.alone, answers, lists.records, first, self.retired
        )

    def check(self, offset: int, answers: Sequence[Candidates]) -> None:
        """Raises InvariantBroken unless there is one answer of each shard to the message at `offset`."""
        given = sorted((answer.sharding, answer.offset, answer.shard) for answer in answers)
        if given != [(self.sharding, offset, shard) for shard in range(self.sharding.shards)]:
            raise InvariantBroken(
                f"the message at offset {offset} needs an answer of each of {self.sharding.shards} shards of epoch "
                f"{self.sharding.epoch}, and was given {given}"
            )

    def effects(self, offset: int, effects: Sequence[Effect]) -> Effects:
        return Effects.of(self.sharding, offset, effects)

    def rows(self, effects: Effects) -> dict[bytes, bytes | None]:
        """The rows of META that keep the effects of the window, as the judge writes them with those of a message."""
        expired: dict[bytes, bytes | None] = {_key(offset): None for offset in self._expired}
        return {**expired, _key(effects.offset): effects.encode()}

    def end(self, effects: Effects, writes: Writes) -> None:
        """The effects of the message that was begun have been written. writes: all of its changes, lists included."""
        self._expired.clear()
        self._parts.append(effects)
        self._retire(effects)
        lists = {key: row for key, row in writes.get(Family.KEYS, {}).items() if len(key) == SIMILARITY_BYTES}
        self._lists.end(lists)

    def _retire(self, effects: Effects) -> None:
        items = effects.items
        old = items["page_id"] < self.start << PLACE_BITS
        self.retired.update(items["page_id"][old & (items["kind"] == EffectKind.UNPOST)].tolist())


def without_window(writes: Writes) -> Writes:
    """What of a message's changes the judge stores: all but the posting lists, which are the window's."""
    rows = {key: row for key, row in writes.get(Family.KEYS, {}).items() if len(key) != SIMILARITY_BYTES}
    return {**writes, Family.KEYS: rows}


def _effects_in(store: Reader) -> list[Effects]:
    """The effects of the window, in order. Raises CorruptRecord."""
    out, after = [], b""
    while rows := store.first(Family.META, _PREFIX, _READ_ROWS, after):
        out += [Effects.decode(row) for _, row in rows]
        after = rows[-1][0]
    return out


def _key(offset: int) -> bytes:
    return _PREFIX + _OFFSET.pack(offset)
