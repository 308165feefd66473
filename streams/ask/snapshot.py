"""The index of a state directory that another process may have open: what adding a page would give."""

import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.decider import Decider
from neardup.errors import CorruptRecord, StateError
from neardup.index.rocks import RocksSnapshot
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.making import sketch_pages
from neardup.verdict import Verdict
from streams.ask.shard_snapshots import ShardSnapshots
from streams.pipeline.matcher import Matcher, folded_to
from streams.state.directory import ONE_MATCHER, kept_decider, shard_folder
from streams.state.locked_folder import state_error

#: Between two looks for a newer flush.
CATCH_UP_S = 1.0


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """verdict: what adding the page would give. messages, log_time: of the log that the index had folded; log_time in
    ms since the epoch. age_s: since that was flushed.
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
        index = {"messages": self.messages, "log_time": self.log_time, "age_s": round(self.age_s, 3)}
        return {"verdict": verdict, "index": index}


class IndexSnapshot:
    """The last flushed index of a state directory. Thread-safe; one query at a time."""

    def __init__(self, directory: Path) -> None:
        """Raises StateError: no state directory, no index, or the index of a judge on Kafka."""
        self._lock = threading.Lock()
        self._held = ExitStack()
        file = directory / "scheme.json"
        try:
            self.scheme = Scheme.from_json(file.read_text(), str(file))
        except OSError as error:
            raise state_error("read", file, error) from error
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptRecord(f"{file} is not a scheme: {error}; restore it") from error
        self._first_decider = kept_decider(directory) or Decider(self.scheme.digest)
        if self._first_decider.epoch and not (directory / "log").is_dir():
            raise StateError(
                f"{directory} belongs to a judge on Kafka, whose shards are elsewhere, each at a message of its own; "
                f"{ONE_MATCHER}"
            )
        scratch = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="neardup-ask-")))
        try:
            self._open(directory / "index", scratch)
        except BaseException:
            self._held.close()
            raise

    def _open(self, path: Path, scratch: Path) -> None:
        identity = self._identities(path)
        self._shards: ShardSnapshots | None = None
        self._store_held = self._held.enter_context(ExitStack())
        decider = self._first_decider
        if decider.epoch:
            self._shards = ShardSnapshots(path.parent, decider, scratch)
            self._store_held.callback(self._shards.close)
        self._store = RocksSnapshot(path, scratch)
        self._store_held.callback(self._store.close)
        self._scratch, self._identity = scratch, identity
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
            self._open(self._store.path, self._scratch)

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
            age = max(0.0, time.time() - self._store.flushed_at())
            return AskAnswer(verdict, matcher.next_offset, matcher.log_time, age)

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            self._held.close()


def index_files(directory: Path) -> list[Path]:
    """The files that stand in a state directory once its index can be opened, as far as they can be named now."""
    decider = kept_decider(directory)
    shards = range(decider.shards if decider is not None and decider.epoch and (directory / "log").is_dir() else 0)
    return [directory / "scheme.json", *(one / "CURRENT" for one in _indexes(directory, shards))]


def _indexes(directory: Path, shards: Iterable[int]) -> list[Path]:
    return [directory / "index", *(shard_folder(directory, number) for number in shards)]


def _identity(index: Path) -> tuple[int, int, int] | None:
    """What changes when another index takes the place of this one; None: there is none at the moment."""
    try:
        file = (index / "IDENTITY").stat()
        return index.stat().st_ino, file.st_ino, file.st_mtime_ns
    except OSError:
        return None
