"""Makes the checkpoints of a running matcher; a thread copies them.

`streams.state.checkpoint_restore` restores them.
"""

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.process import logs
from streams.process.metrics import Metrics
from streams.state.checkpoint_make import IMAGE, CopyableIndex, Folded, make_image, manifest_of
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_store import CheckpointStore, Copied

_log = logs.get("match")

#: Between two attempts to remove the checkpoints made before a takedown, in seconds.
RETRY_SECONDS = 30.0


class Checkpointer:
    """Makes checkpoints of a running matcher at fixed positions of the log. A thread of its own copies them.

    The matcher waits for the hard links only. It continues if the copy fails: `failed` has the reason until one
    succeeds.

    Args:
        every: number of messages between two checkpoints.
        keep: number of checkpoints that stay in the store.

    pruned: offset of the checkpoint behind which this process has pruned the store, -1 before the
    first prune. Older checkpoints, also those of a killed process, may still contain the pages of a takedown at a
    greater offset.
    """

    def __init__(
        self,
        store: CheckpointStore,
        state: Path,
        *,
        every: int,
        keep: int,
        done: Callable[[Copied, float], None] = lambda copied, seconds: None,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failed = ""
        self.pruned = -1
        self._store = store
        self._state = state
        self._every = every
        self._keep = keep
        self._done = done
        self._thread: threading.Thread | None = None
        self._last: int | None = None
        self._steady_s = steady_s
        self._retry_at_s = steady_s()
        shutil.rmtree(state / IMAGE, ignore_errors=True)

    def due(self, offset: int) -> bool:
        """Whether `offset` is past the position of the next checkpoint, and none is being copied."""
        if self._last is None:
            self._last = offset  # a start is no place of the log
        return offset // self._every > self._last // self._every and not self.busy

    def owes(self, takedowns_to: int) -> bool:
        """Whether checkpoints made before a takedown must be removed now.

        Not while one is being copied; after a failure only RETRY_SECONDS later. takedowns_to: the offset after the last
        takedown, 0 without any.
        """
        return takedowns_to > max(0, self.pruned) and self.may_retry

    @property
    def may_retry(self) -> bool:
        """Whether nothing is being copied, and the last failure is RETRY_SECONDS ago."""
        return not self.busy and self._steady_s() >= self._retry_at_s

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self, index: CopyableIndex, manifest: Manifest) -> None:
        """Links the index, and copies it in another thread. Raises nothing if the store or the disk fails."""
        self._last = manifest.offset
        try:
            image = make_image(self._state, index)
        except NeardupError as error:
            self._fail(error)
            return
        self._start(lambda: self._copy(image, manifest))

    def prune(self, newest: int) -> None:
        """Removes old checkpoints in another thread, after a checkpoint behind the last takedown was copied.

        newest: offset of the newest checkpoint.
        """
        self._start(lambda: self._prune(newest))

    def read(self, work: Callable[[], None]) -> None:
        """Reads the store in this thread: `failed` has the reason if that raises NeardupError."""
        try:
            work()
        except NeardupError as error:
            self._fail(error)
        else:
            self.failed = ""

    def read_aside(self, work: Callable[[], None]) -> None:
        """Does the same in another thread."""
        self._start(lambda: self.read(work))

    def wait(self, seconds: float) -> None:
        """Waits until the copy is done, or a time limit.

        If a copy is cut short, the checkpoint before it stays the newest.
        """
        if self._thread is not None:
            self._thread.join(seconds)

    def _start(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, name="checkpoint", daemon=True)
        self._thread.start()

    def _copy(self, image: Path, manifest: Manifest) -> None:
        began = time.monotonic()
        try:
            copied = self._store.write(image, manifest)
        except NeardupError as error:
            self._fail(error)
        else:
            self._done(copied, time.monotonic() - began)
            self._prune(manifest.offset)
        finally:
            shutil.rmtree(image, ignore_errors=True)

    def _prune(self, newest: int) -> None:
        try:
            self._store.prune(self._keep)
        except NeardupError as error:
            self._fail(error)
        else:
            self.failed, self.pruned = "", newest

    def _fail(self, error: NeardupError) -> None:
        self.failed, self._retry_at_s = str(error), self._steady_s() + RETRY_SECONDS


class RoleCheckpoints:
    """Makes checkpoints beside a role, which calls `look` after each round. A failure never stops the role.

    newest: offset of the newest checkpoint, 0 without any. behind: messages that it lacks, in intervals. made_ms: when
    this process made it, None if it made none. bytes: copied so far. failed: why the last attempt failed, "" if it did
    not.
    """

    def __init__(
        self,
        settings: Settings,
        state: Path,
        log: str,
        now_ms: Callable[[], int],
        *,
        url: str = "",
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the store of checkpoints.

        Args:
            settings: settings of the role.
            state: state directory of the role.
            log: topic id of the log.
            now_ms: clock, ms since 1970.
            url: URL of the store; by default the URL of the settings.
            steady_s: monotonic clock, seconds.

        Raises:
            BadInput: if the scheme of the URL is unknown.
        """
        self._log_identity, self._now_ms = log, now_ms
        self._generation, self._state = settings.generation, str(state)
        self._every = settings.checkpoint_messages
        self.failed = ""
        self.made_ms: int | None = None
        self.bytes = 0
        self.behind = 0.0
        self.newest, self._searched = 0, False
        self._store = CheckpointStore(url or settings.checkpoints)
        keep = settings.checkpoints_kept
        self._maker = Checkpointer(self._store, state, every=self._every, keep=keep, done=self._made, steady_s=steady_s)
        self._maker.read(self._search)
        if self._maker.failed:
            self.failed = self._maker.failed
            _log.error("goes on without checkpoints, and tries again", reason=self.failed)

    def _search(self) -> None:
        """Finds the newest existing checkpoint of this log. Raises StateError if the store does not answer."""
        required = self._generation, self._log_identity
        found = self._store.usable(_log.warning)
        offsets = (one.manifest.offset for one in found if one.manifest.line[:2] == required)
        self.newest, self._searched = max(self.newest, next(offsets, 0)), True

    def look(self, folded: Folded, store: CopyableIndex) -> None:
        """Reports the result of the last checkpoint, and begins one if one is due, or a takedown followed the last one.

        A takedown is settled once a prune behind it has succeeded in this process, because a killed process may have
        left checkpoints, or files of them, that hold the pages. So each start with a takedown in its index prunes.
        """
        maker = self._maker
        if maker.failed != self.failed and not maker.busy:
            self.failed = maker.failed
            if maker.failed:
                _log.error("no checkpoint was made, or old ones were not removed", reason=maker.failed)
        if not self._searched and maker.may_retry:
            maker.read_aside(self._search)
        self.behind = max(0, folded.next_offset - self.newest) / self._every
        owed = maker.owes(folded.takedowns_to)
        if maker.due(folded.next_offset) or (owed and self.newest < folded.takedowns_to):
            maker.begin(store, manifest_of(folded, self._log_identity, self._generation))
        elif owed:
            maker.prune(self.newest)

    def _made(self, copied: Copied, seconds: float) -> None:
        self.newest = int(copied.checkpoint.partition("-")[0])
        self.made_ms = self._now_ms()
        self.bytes += copied.bytes
        _log.info(
            "checkpoint made",
            state=self._state,
            checkpoint=copied.checkpoint,
            copied_files=copied.files,
            copied_bytes=copied.bytes,
            bytes=copied.of_bytes,
            seconds=round(seconds, 3),
        )

    def close(self, seconds: float) -> None:
        """Waits at most `seconds` for a checkpoint that is being copied."""
        self._maker.wait(seconds)


def report_checkpoints(metrics: Metrics, each: Sequence[RoleCheckpoints]) -> None:
    """Set the gauges of checkpoints. each: checkpoints of each role of this process; the worst of them counts."""
    metrics.checkpoint_failed.set(any(one.failed for one in each))
    metrics.checkpoint_behind.set(max((one.behind for one in each), default=0))
    times = [one.made_ms for one in each]
    made = [time_ms for time_ms in times if time_ms is not None]
    if made and len(made) == len(each):
        metrics.checkpoint_offset.set(min(one.newest for one in each))
        metrics.checkpoint_time.set(min(made) / 1000)
    for one in each:
        copied, one.bytes = one.bytes, 0
        metrics.checkpoint_bytes.inc(copied)
