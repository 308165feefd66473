"""The shards of a scan that another process may be running, for questions to the index of the judge's last flush.

A shard's rows on disk are never newer than those of the judge's last flush (`streams.files.shards`). The later effects
are in the scan's logs. They are applied in memory here, up to the stable view of the message that the judge expects.
"""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.layered import Deferred
from neardup.index.rocks import RocksSnapshot
from neardup.limits import PLACE_BITS
from neardup.sharded.answering import answer
from neardup.sharded.changing import changes
from neardup.sharded.epochs import Sharding
from neardup.sharded.records import Candidates, Effects
from neardup.sharded.shard import Question, applied_to
from streams.files.segments import read_frames
from streams.files.shards import records_of
from streams.pipeline.matcher import Matcher
from streams.state.directory import shard_folder


class ShardSnapshots:
    """All shards of a state directory, and the log from which they and the window of the judge are brought up."""

    def __init__(self, directory: Path, decider: Decider, scratch: Path) -> None:
        """scratch: a folder of its own for RocksDB's logs. Raises StateError: a shard has no index."""
        self._directory, self._decider, self._sharding = directory, decider, Sharding.of(decider)
        self._held = ExitStack()
        self._shards: list[_Snapshot] = []
        try:
            for number in range(decider.shards):
                own = scratch / f"shard-{number}"
                own.mkdir()
                self._held.callback(shutil.rmtree, own, ignore_errors=True)
                store = RocksSnapshot(shard_folder(directory, number), own, cache_bytes=(256 << 20) // decider.shards)
                self._held.callback(store.close)
                self._shards.append(_Snapshot(number, store))
        except BaseException:
            self.close()
            raise

    def catch_up(self) -> None:
        """Takes the newest flush of each shard. The judge's own must be taken afterwards, or shards may be ahead."""
        for shard in self._shards:
            shard.catch_up()

    def bring_up(self, judge: Matcher) -> None:
        """Brings the rows of all shards, and the judge's window, to the judge's next message. Raises StateError."""
        assert judge.window is not None
        end = judge.next_offset
        stable = self._sharding.stable_to(end)
        for offset, data in read_frames(self._directory / "log", judge.window.restore_from, end):
            judge.restore_window(offset, data)
        start = min(shard.position for shard in self._shards)
        if max(shard.position for shard in self._shards) > stable:
            raise StateError(f"the index in {self._directory} is being rebuilt; ask again when it is")
        log = read_frames(self._directory / "log", start, stable)
        for (offset, data), (_, effects) in zip(
            log, read_frames(self._directory / "effects", start, stable), strict=True
        ):
            question = Question(offset, records_of(offset, data, self._decider.scheme))
            decoded = Effects.decode(effects)
            for shard in self._shards:
                if offset >= shard.position:
                    shard.apply(question, decoded, self._decider)

    def answers(self, offset: int, record: bytes) -> Sequence[Candidates]:
        """Returns the answers of all shards to a message of one page at `offset`, to which they were brought up."""
        pages = Question(offset, [record]).pages
        return [
            answer(self._sharding, shard.number, offset, pages, shard.rows, self._decider) for shard in self._shards
        ]

    def close(self) -> None:
        self._held.close()


class _Snapshot:
    """One shard. position: offset behind the last message whose effects are in `rows`."""

    def __init__(self, number: int, store: RocksSnapshot) -> None:
        self.number, self._store = number, store
        self.position, self.rows = applied_to(store), Deferred(store)

    def catch_up(self) -> None:
        before = applied_to(self._store)
        self._store.catch_up()
        if (now := applied_to(self._store)) > before:  # fewer changes are kept in memory then
            self.position, self.rows = now, Deferred(self._store)

    def apply(self, message: Question, effects: Effects, decider: Decider) -> None:
        """Applies the effects of the message at `position`."""
        shard_of = effects.sharding.shard_of
        own = dict(message.pages) if shard_of(message.offset << PLACE_BITS) == self.number else {}
        items = effects.items.tolist()
        self.rows.write(changes(items, own, self.rows, decider, lambda page_id: shard_of(page_id) == self.number))
        self.position = message.offset + 1
