"""The index of a state directory that another process may have open: what adding a page would give."""

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.page import Page
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Verdict
from streams.pipeline.matcher import Matcher, folded_to
from streams.state.directory import kept_both, snapshot
from streams.state.scan_directory import FLUSH_MESSAGES

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
        """Raises StateError: no state directory, no index."""
        self._lock = threading.Lock()
        self._held = ExitStack()
        self.scheme, self._first_decider = kept_both(directory)
        self.flushes = _FLUSHES_OF_SCAN if (directory / "log").is_dir() else _FLUSHES_OF_MATCHER
        try:
            self._open(directory / "index")
        except BaseException:
            self._held.close()
            raise

    def _open(self, path: Path) -> None:
        identity = _identity(path)
        self._store_held = self._held.enter_context(ExitStack())
        self._store = snapshot(path, self._store_held)
        self._identity = identity
        self._read_progress()

    def _read_progress(self) -> None:
        self._matcher = Matcher(self._store, self._first_decider)
        self._caught_up = time.monotonic()

    def _catch_up(self) -> None:
        """Take in the newest flush. A matcher that restored a checkpoint has replaced the index: open the new one."""
        if _identity(self._store.path) == self._identity:
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
            verdict = matcher.query(record)
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
    return [directory / "scheme.json", directory / "decider.json", directory / "index" / "CURRENT"]


def _identity(index: Path) -> tuple[int, int, int] | None:
    """What changes when another index takes the place of this one; None: there is none at the moment."""
    try:
        file = (index / "IDENTITY").stat()
        return index.stat().st_ino, file.st_ino, file.st_mtime_ns
    except OSError:
        return None
