"""The index of a state directory that another process may have open: what adding a page would give."""

import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.decider import Decider
from neardup.errors import CorruptRecord, StateError
from neardup.fold import fold
from neardup.index.rocks import RocksSnapshot
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.making import sketch_pages
from neardup.verdict import Verdict
from streams.formats.message import page_id
from streams.pipeline.matcher import Matcher
from streams.state.directory import ONE_MATCHER, kept_decider
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
        """Raises StateError: no state directory, no index, or one whose pages are compared by shards."""
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
        scratch = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="neardup-ask-")))
        try:
            self._open(directory / "index", scratch)
        except BaseException:
            self._held.close()
            raise

    def _open(self, path: Path, scratch: Path) -> None:
        identity = _identity(path)
        self._store = RocksSnapshot(path, scratch)
        self._scratch, self._identity = scratch, identity
        self._store_held = self._held.enter_context(ExitStack())
        self._store_held.callback(self._store.close)
        self._read_progress()
        if self._matcher.decider.epoch:
            raise StateError(f"{path.parent} belongs to shards and a judge: ask beside a single matcher; {ONE_MATCHER}")

    def _read_progress(self) -> None:
        self._matcher = Matcher(self._store, self._first_decider)
        self._caught_up = time.monotonic()

    def _catch_up(self) -> None:
        """Take in the newest flush. A matcher that restored a checkpoint has replaced the index: open the new one."""
        if _identity(self._store.path) == self._identity:
            self._store.catch_up()
            self._read_progress()
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
            batch = [(page_id(matcher.next_offset, 0), sketch_pages([page], self.scheme, log_times=times)[0])]
            verdict = fold(batch, self._store, matcher.decider).verdicts[0]
            age = max(0.0, time.time() - self._store.flushed_at())
            return AskAnswer(verdict, matcher.next_offset, matcher.log_time, age)

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            self._held.close()


def _identity(index: Path) -> tuple[int, int, int] | None:
    """What changes when another index takes the place of this one; None: there is none at the moment."""
    try:
        file = (index / "IDENTITY").stat()
        return index.stat().st_ino, file.st_ino, file.st_mtime_ns
    except OSError:
        return None
