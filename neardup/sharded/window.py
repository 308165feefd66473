"""The judge's window: the records of the last two epochs, and the posting lists after the effects of their messages.

The window acts like a small shard in memory. For a message of epoch e it contains the effects of all messages from the
first one of epoch e - 1 on, applied to an empty index; effects on older pages are left out. Shards answer from the
effects before. So a representative is found by its shard or in the window, never in both.
"""

import struct
from collections import deque
from collections.abc import Sequence

from neardup.clusters.overlay import Effect, MakeReads
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index.column_families import Family, Reader, Writes
from neardup.limits import PLACE_BITS
from neardup.rules.key_families import SIMILARITY_BYTES
from neardup.search.batch_records import Records
from neardup.sharded.epochs import Sharding
from neardup.sharded.judge_rows import JudgeReader, JudgeReads
from neardup.sharded.messages import Candidates, EffectKind, Effects
from neardup.sharded.window_lists import WindowLists

_PREFIX = b"effects:"
_OFFSET = struct.Struct(">Q")
_READ_ROWS = 1024


class Window:
    """The window of one judge. For each message: `begin`, judge it with `reads` over `reader`, `end`.

    After a restart, pass the messages from `restore_from` up to the judge's position to `restore` first.
    """

    def __init__(self, store: Reader, decider: Decider, position: int) -> None:
        """store: the judge's rows. position: offset of the next message to judge."""
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
        """Adds the pages of a message that was judged before the restart. Must be called before the first `begin`."""
        if offset >= self.start:
            self._lists.add(pages)

    def begin(self, offset: int, pages: Records | None = None) -> None:
        """Moves the window to the epoch of the message at `offset`, and adds its pages. May be repeated.

        pages: None if one page is judged that the message will not contain: the window stays as it is.
        """
        start = self.sharding.stable_to(offset)
        if start > self.start or not self._is_filled:
            self.start, self._is_filled = start, True
            while self._parts and self._parts[0].offset < start:
                self._expired.append(self._parts.popleft().offset)
            self.retired = set()
            for part in self._parts:
                self._retire(part)
            self._lists.start(start << PLACE_BITS, self._parts)
        if pages is not None and self._begun != offset:
            self._begun = offset
            self._lists.add(pages)
        self._lists.begin()

    @property
    def reader(self) -> Reader:
        """The judge's rows, with the posting lists of the window."""
        return JudgeReader(self._store, self._lists)

    def note(self, effects: Sequence[Effect]) -> None:
        """Notes the effects of some pages of the current message before its other pages are judged."""
        self._lists.note(effects)

    def reads(self, answers: Sequence[Candidates]) -> MakeReads:
        """Return a function that makes the reads of the current message. answers: answers of all shards."""
        lists, first = self._lists, self.start << PLACE_BITS
        return lambda pages, decider, threads: JudgeReads(
            pages, decider, threads, lists.alone, answers, lists.records, first, self.retired
        )

    def check(self, offset: int, answers: Sequence[Candidates]) -> None:
        """Raises InvariantBroken unless there is one answer of each shard to the message at `offset`."""
        given = sorted((answer.sharding, answer.decider, answer.offset, answer.shard) for answer in answers)
        of = self.sharding, self._decider.digest, offset
        if given != [(*of, shard) for shard in range(self.sharding.shards)]:
            raise InvariantBroken(
                f"the message at offset {offset} needs an answer of each of {self.sharding.shards} shards of epoch "
                f"{self.sharding.epoch} and decider {self._decider.digest}, and was given {given}"
            )

    def effects(self, offset: int, effects: Sequence[Effect]) -> Effects:
        return Effects.of(self.sharding, offset, effects)

    def kept_effects(self, start: int) -> list[Effects]:
        """Returns the effects of the last messages that were judged, from offset `start` on as far as they are kept."""
        return [part for part in self._parts if part.offset >= start]

    def rows(self, effects: Effects) -> dict[bytes, bytes | None]:
        """The changes of the META rows that keep the window's effects; the judge writes them with a message's rows."""
        expired: dict[bytes, bytes | None] = {_key(offset): None for offset in self._expired}
        return {**expired, _key(effects.offset): effects.encode()}

    def end(self, effects: Effects, writes: Writes) -> None:
        """Ends the current message, once its effects are written. writes: all of its changes, lists included."""
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
    """The changes of a message that the judge stores: all but those of the posting lists, which the window holds."""
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
