"""Checkpoints of a matcher or a shard: when they are made, and which ones its log admits."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import NeardupError, StateError
from neardup.index.column_families import Store
from streams.config.settings import Settings
from streams.errors import NEW_GENERATION
from streams.kafka import KafkaLog
from streams.pipeline.matcher import folded_to
from streams.process import logs
from streams.process.metrics import Metrics
from streams.roles.runtime import Runtime
from streams.state.checkpoint_store import CheckpointStore, Copied
from streams.state.checkpointer import Checkpointer, CopyableIndex, Folded, manifest_of
from streams.state.directory import log_names
from streams.state.manifest import Manifest
from streams.state.restore import restore_newest

_log = logs.get("match")

#: Finds the first offset of the log from which an index can be continued, and the topic that begins there.
Begin = Callable[[], tuple[int, str]]

#: Between two searches of a standby for a checkpoint that fits.
_LOOK_SECONDS = 2.0


def identity(log: KafkaLog) -> str:
    """Names a sketch log by cluster and topic id; offsets of another log are void in it."""
    return f"{log.cluster_id}/{log.topic.id.hex()}"


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
        """url: of the store; by default that of the settings. Raises BadInput for a URL of an unknown scheme."""
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


def report(metrics: Metrics, each: Sequence[RoleCheckpoints]) -> None:
    """Set the gauges of checkpoints. each: of the roles of this process; the worst one counts."""
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


class Restoring:
    """Fills a state directory from the newest checkpoint of this log that the log still covers.

    It does so if there is no index, or if the index needs messages that retention has removed from the log. A standby
    beside an active matcher waits for a checkpoint that fits, because the active matcher makes more. active: returns
    whether this is a standby and another matcher is active.
    """

    def __init__(
        self,
        settings: Settings,
        log: KafkaLog,
        decider: Decider,
        runtime: Runtime,
        active: Callable[[], bool] = lambda: False,
        *,
        url: str = "",
        position: Callable[[Store], int] = folded_to,
        begin: Begin | None = None,
        newest: int | None = None,
        behind_max: int | None = None,
        advice: Callable[[str, int], str] = lambda topic, newest: NEW_GENERATION,
        role: str = "match",
    ) -> None:
        """
        Args:
            url: of the checkpoints; by default that of the settings.
            position: returns the offset that an index was folded to.
            begin: the first offset at which an index that can be continued may end, and the topic that limits it; by
                default the log's start.
            newest: greatest offset of an index that serves; by default the log's end.
            behind_max: messages by which an index may lag behind the newest checkpoint before it is replaced: a shard
                may return to a process that has an old index of it. By default an index is not replaced for that.
            advice: called with the topic whose begin is behind all checkpoints, and the offset of the newest one, 0
                without any.
            role: for health.
        """
        self._settings, self._log, self._decider = settings, log, decider
        self._stop, self._active = runtime.stop, active
        self._url, self._position = url or settings.checkpoints, position
        self._newest, self._behind_max, self._advice = newest, behind_max, advice
        self._begin = begin or (lambda: (log.first_offset(), settings.topics.sketches))
        self._health = runtime.health.role(role)

    def outlived(self, store: Store) -> bool:
        """Whether an index of this log and generation, or an empty one, is too new, lags far behind the newest
        checkpoint, or needs messages that are gone.
        """
        position = self._position(store)
        fits = position >= self._begin()[0] and (self._newest is None or position <= self._newest)
        if fits and not self.lags(position):
            return False
        held = log_names(store)
        own = (self._log.cluster_id, self._log.topic.id.hex(), self._settings.generation)
        return not position or (held is not None and held[:3] == own)

    def lags(self, position: int) -> bool:
        """Whether an index that ends at `position` would be replaced by the newest checkpoint, which is far ahead."""
        if self._behind_max is None or not self._url:
            return False
        try:
            offsets = (
                one.manifest.offset for one in CheckpointStore(self._url).usable() if not self._fits(one.manifest)
            )
            return next(offsets, 0) - position > self._behind_max
        except NeardupError as error:
            _log.error("the store of checkpoints cannot be read", reason=str(error))
            return False

    def restore(self, state: Path) -> bool:
        """Restores a checkpoint that fits, if there is one, into `state`; it replaces an index there.

        Returns whether one was restored. Raises StateError if there is no index, and the log alone cannot build one.
        """
        (begin, topic), url, there = self._begin(), self._url, (state / "index").exists()
        lacks = f"{state} has no index that topic {topic} can continue: one that ends at offset {begin} or later"
        if not url:
            if begin and self._active():
                raise StateError(
                    f"{lacks}, and no checkpoints are set: set the same `checkpoints` for all matchers and "
                    "start them again: this one waits for a checkpoint of the active matcher; or copy here the state "
                    "folder of the stopped active matcher",
                )
            return False
        store, tried, warned = CheckpointStore(url), set[str](), False
        while not self._stop.is_set():
            try:
                found = restore_newest(
                    store, state, self._fits, _log.warning, self._progress, replace=there, tried=tried
                )
            except StateError as error:
                if begin or there:  # the log alone cannot build the index
                    raise
                _log.error("goes on without checkpoints: folds the log from its start", reason=str(error))
                return False
            if found is not None:
                size, offset = found.manifest.size, found.manifest.offset
                _log.info("index restored", checkpoint=found.name, bytes=size, offset=offset, replaced=there)
                return True
            if not begin or not self._active():
                break
            why = (
                f"{lacks}, and no checkpoint at {url} fits: waits for the next one of the active matcher, made "
                f"every {self._settings.checkpoint_messages} messages"
            )
            self._health.not_ready(why)
            if not warned:
                _log.warning(why)
            warned = True
            self._health.turned()
            self._stop.wait(_LOOK_SECONDS)
        if begin and not there and not self._stop.is_set():
            own = self._settings.generation, identity(self._log)
            newest = next((one.manifest.offset for one in store.usable() if one.manifest.line[:2] == own), 0)
            raise StateError(
                f"{lacks}, and no checkpoint at {url} fits: see neardup checkpoint list; {self._advice(topic, newest)}",
            )
        return False

    def _progress(self, done: int, total: int) -> None:
        self._health.turned()
        self._health.not_ready(f"restores a checkpoint: {done} of {total} bytes")

    def _fits(self, manifest: Manifest) -> str:
        """Why a checkpoint cannot be used here; "" if it can."""
        log = self._log
        if manifest.generation != self._settings.generation:
            return f"it is of another generation, {manifest.generation or '(unnamed)'}"
        if manifest.log != identity(log):
            return f"it is of another log, {manifest.log}"
        if manifest.scheme != self._decider.scheme:
            return f"it is of another scheme, {manifest.scheme}"
        one_decider = self._settings.judges_anew or self._settings.is_sharded
        if one_decider and manifest.decider != self._decider.digest:
            return f"it was judged by another decider, {manifest.decider}"
        begin, topic = self._begin()
        if self._newest is not None and manifest.offset > self._newest:
            return f"it ends at offset {manifest.offset}, and one that ends at {self._newest} or before is required"
        if not begin <= manifest.offset <= log.end():
            return f"it ends at offset {manifest.offset}, and topic {topic} can continue {begin} to {log.end()} alone"
        return ""
