"""The index of a state directory that another process may have open: what adding a page would give.

A scan's shards are read likewise. Their rows on disk are never newer than those of the judge's last flush
(`streams.state.scan_shards`). The later effects are in the scan's logs. They are applied in memory here, up to the
stable view of the message that the judge expects.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.layered import Deferred
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.sharded.answering import answer
from neardup.sharded.apply_effects import changes
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.shard import Question, applied_to
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Verdict
from streams.pipeline.matcher import Matcher, folded_to
from streams.state.directory import kept_both, kept_decider, shard_folder, snapshot
from streams.state.scan_directory import FLUSH_MESSAGES
from streams.state.scan_shards import records_of
from streams.state.segments import read_frames

#: What to do where a command does not serve a generation with shards.
_ONE_MATCHER = (
    "for that, judge the same sketches by one matcher in another generation (neardup backfill --generation NAME "
    "--shards 0 --sketches-of GENERATION), and name its `generation` and `state`"
)
_FLUSHES_OF_MATCHER = (
    "the matcher flushes its index every 30 s by default; its option --flush-ms (NEARDUP_FLUSH_MS) shortens this"
)
_FLUSHES_OF_SCAN = (
    f"a scan flushes its index every {FLUSH_MESSAGES} messages and at its end, and no option shortens this; an index "
    "of the library is flushed by index.flush()"
)
#: Between two looks for a newer flush.
CATCH_UP_S = 1.0


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """The answer to a question.

    verdict: verdict that adding the page would give. messages: number of messages of the log that the index had folded.
    log_time: log time after these messages, ms since 1970. age_s: seconds since the index was flushed.
    """

    verdict: Verdict
    messages: int
    log_time: int
    age_s: float

    def to_json(self) -> dict[str, Any]:
        """The verdict without its ids: the page has none."""
        verdict = self.verdict.to_dict()
        for name in ("page_id", "n", "coordinates", "revision"):
            verdict.pop(name, None)
        return {"verdict": verdict, "index": _state_of_index(self.messages, self.log_time, self.age_s)}


def _state_of_index(messages: int, log_time: int, age_s: float) -> dict[str, Any]:
    return {"messages": messages, "log_time": log_time, "age_s": round(age_s, 3)}


class IndexSnapshot:
    """The last flushed index of a state directory. Thread-safe; one query at a time.

    flushes: a sentence about when the index is flushed, and about the option that makes its flushes more frequent.
    """

    def __init__(self, directory: Path) -> None:
        """Raises StateError: no state directory, no index, or the index of a judge on Kafka."""
        self._lock = threading.Lock()
        self._held = ExitStack()
        self.scheme, self._first_decider = kept_both(directory)
        self.flushes = _FLUSHES_OF_SCAN if (directory / "log").is_dir() else _FLUSHES_OF_MATCHER
        if self._first_decider.epoch and not (directory / "log").is_dir():
            raise StateError(
                f"{directory} belongs to a judge on Kafka, whose shards are elsewhere, each at a message of its own; "
                f"{_ONE_MATCHER}"
            )
        try:
            self._open(directory / "index")
        except BaseException:
            self._held.close()
            raise

    def _open(self, path: Path) -> None:
        identity = self._identities(path)
        self._shards: ShardSnapshots | None = None
        self._store_held = self._held.enter_context(ExitStack())
        decider = self._first_decider
        if decider.epoch:
            self._shards = ShardSnapshots(path.parent, decider)
            self._store_held.callback(self._shards.close)
        self._store = snapshot(path, self._store_held)
        self._identity = identity
        self._read_progress()

    def _identities(self, path: Path) -> list[tuple[int, int, int] | None]:
        """What changes when another index takes the place of one of the directory's."""
        decider = self._first_decider
        shards = range(decider.shards if decider.epoch else 0)
        return [_identity(one) for one in _indexes(path.parent, shards)]

    def _read_progress(self) -> None:
        self._matcher = Matcher(self._store, self._first_decider)
        if self._shards is not None:
            self._shards.bring_up(self._matcher)
        self._caught_up = time.monotonic()

    def _catch_up(self) -> None:
        """Take in the newest flush. A matcher that restored a checkpoint has replaced the index: open the new one."""
        if self._identities(self._store.path) == self._identity:
            if self._shards is not None:
                self._shards.catch_up()
            self._store.catch_up()
            if folded_to(self._store) != self._matcher.next_offset:
                self._read_progress()
            self._caught_up = time.monotonic()
        else:
            self._store_held.close()
            self._open(self._store.path)

    def query(self, page: Page) -> AskAnswer:
        """Return the verdict that adding the page would give. Raises StateError."""
        with self._lock:
            if time.monotonic() - self._caught_up > CATCH_UP_S:
                self._catch_up()
            matcher = self._matcher
            times = [max(matcher.log_time, page.fetched_at or 0)]
            record = sketch_pages([page], self.scheme, log_times=times)[0]
            answers = () if self._shards is None else self._shards.answers(matcher.next_offset, record)
            verdict = matcher.query(record, answers)
            return AskAnswer(verdict, matcher.next_offset, matcher.log_time, self._age_s())

    def state(self) -> dict[str, Any]:
        """Return `index` of an answer: messages, log time and age of the index. Raises StateError."""
        with self._lock:
            if time.monotonic() - self._caught_up > CATCH_UP_S:
                self._catch_up()
            return _state_of_index(self._matcher.next_offset, self._matcher.log_time, self._age_s())

    def _age_s(self) -> float:
        return max(0.0, time.time() - self._store.flushed_at())

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            self._held.close()


def index_files(directory: Path) -> list[Path]:
    """The files that stand in a state directory once its index can be opened, as far as they can be named now."""
    decider = kept_decider(directory)
    shards = range(decider.shards if decider is not None and decider.epoch and (directory / "log").is_dir() else 0)
    return [
        directory / "scheme.json",
        directory / "decider.json",
        *(one / "CURRENT" for one in _indexes(directory, shards)),
    ]


def _indexes(directory: Path, shards: Iterable[int]) -> list[Path]:
    return [directory / "index", *(shard_folder(directory, number) for number in shards)]


def _identity(index: Path) -> tuple[int, int, int] | None:
    """What changes when another index takes the place of this one; None: there is none at the moment."""
    try:
        file = (index / "IDENTITY").stat()
        return index.stat().st_ino, file.st_ino, file.st_mtime_ns
    except OSError:
        return None


class ShardSnapshots:
    """All shards of a state directory, and the log from which they and the window of the judge are brought up."""

    def __init__(self, directory: Path, decider: Decider) -> None:
        """Raises StateError: a shard has no index."""
        self._directory, self._decider, self._sharding = directory, decider, Sharding.of(decider)
        self._held = ExitStack()
        self._shards: list[_Snapshot] = []
        try:
            for number in range(decider.shards):
                cache_bytes = (256 << 20) // decider.shards
                self._shards.append(_Snapshot(number, shard_folder(directory, number), self._held, cache_bytes))
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

    def __init__(self, number: int, index: Path, held: ExitStack, cache_bytes: int) -> None:
        self.number, self._store = number, snapshot(index, held, cache_bytes=cache_bytes)
        self.position, self.rows = applied_to(self._store), Deferred(self._store)

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
