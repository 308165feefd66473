"""A matcher's checkpoints: when they are made, and which may be restored here."""

import time
from collections.abc import Callable
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import NeardupError, StateError
from neardup.index.rocks import RocksStore
from streams.config.settings import Settings
from streams.kafka import KafkaLog
from streams.line.matcher import Matcher
from streams.process import logs
from streams.process.metrics import Metrics
from streams.state.checkpoint_store import CheckpointStore, Copied, Manifest
from streams.state.checkpointer import Checkpointer, manifest_of, restore_newest

_log = logs.get("match")


def identity(log: KafkaLog) -> str:
    """What names a sketch log beyond its name: offsets of another one mean nothing in it."""
    return f"{log.cluster_id}/{log.topic.id.hex()}"


class RoleCheckpoints:
    """Makes checkpoints beside a role: `look` after each round. Nothing that happens to them touches the line."""

    def __init__(
        self,
        settings: Settings,
        state: Path,
        log: str,
        metrics: Metrics,
        now_ms: Callable[[], int],
        *,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises BadInput for a URL that nothing here can read."""
        self._metrics, self._log_identity, self._now_ms = metrics, log, now_ms
        self._generation = settings.generation
        self._every = settings.checkpoint_messages
        self._said = ""
        store = CheckpointStore(settings.checkpoints)
        self._newest = self._found(store)
        keep = settings.checkpoints_kept
        self._maker = Checkpointer(store, state, every=self._every, keep=keep, told=self._told, steady_s=steady_s)

    def _found(self, store: CheckpointStore) -> int:
        """Offset of the newest checkpoint of this log that is there already; 0: none, or the store is away for now."""
        try:
            wanted = self._generation, self._log_identity
            offsets = (one.manifest.offset for one in store.usable(_log.warning) if one.manifest.line[:2] == wanted)
            return next(offsets, 0)
        except NeardupError as error:
            _log.error("the store of checkpoints cannot be read", reason=str(error))
            return 0

    def look(self, matcher: Matcher, store: RocksStore) -> None:
        """Begins one if the log's next place for it is passed, or none was made since the last takedown; reports what
        has become of the one before.

        A takedown is settled once a prune behind it has succeeded, in this process: a killed one may have left
        checkpoints, or files of them, that still hold the pages. So each start with a takedown in its index prunes.
        """
        maker = self._maker
        if maker.failed != self._said and not maker.busy:
            self._said = maker.failed
            if maker.failed:
                _log.error("no checkpoint was made, or old ones were not removed", reason=maker.failed)
            self._metrics.checkpoint_failed.set(bool(maker.failed))
        self._metrics.checkpoint_behind.set(max(0, matcher.next_offset - self._newest) / self._every)
        owed = maker.owes(matcher.forgot)
        if maker.due(matcher.next_offset) or (owed and self._newest < matcher.forgot):
            maker.begin(store, manifest_of(matcher, self._log_identity, self._generation))
        elif owed:
            maker.prune(self._newest)

    def _told(self, copied: Copied, seconds: float) -> None:
        self._newest = int(copied.checkpoint.partition("-")[0])
        self._metrics.checkpoint_offset.set(self._newest)
        self._metrics.checkpoint_time.set(self._now_ms() / 1000)
        self._metrics.checkpoint_bytes.inc(copied.bytes)
        _log.info(
            "checkpoint made",
            checkpoint=copied.checkpoint,
            copied_files=copied.files,
            copied_bytes=copied.bytes,
            bytes=copied.of_bytes,
            seconds=round(seconds, 3),
        )

    def close(self, seconds: float) -> None:
        """Waits so long for one that is being copied."""
        self._maker.wait(seconds)


def restoring(settings: Settings, log: KafkaLog, decider: Decider) -> Callable[[Path], None]:
    """What fills a state directory without an index: the newest checkpoint of this log that the log still covers."""

    def fits(manifest: Manifest) -> str:
        if manifest.generation != settings.generation:
            return f"it is of another generation, {manifest.generation or '(unnamed)'}"
        if manifest.log != identity(log):
            return f"it is of another log, {manifest.log}"
        if manifest.scheme != decider.scheme:
            return f"it is of another scheme, {manifest.scheme}"
        if settings.judges_anew and manifest.decider != decider.digest:
            return f"it was judged by another decider, {manifest.decider}"
        if not log.begin() <= manifest.offset <= log.end():
            return f"it ends at offset {manifest.offset}, and the log holds {log.begin()} to {log.end() - 1}"
        return ""

    def restore(state: Path) -> None:
        if not settings.checkpoints:
            return
        store = CheckpointStore(settings.checkpoints)
        found = restore_newest(store, state, fits, _log.warning)
        if found is not None:
            _log.info("index restored", checkpoint=found.name, bytes=found.manifest.size, offset=found.manifest.offset)
        elif log.begin():
            raise StateError(
                f"{state} has no index, topic {settings.topics.sketches} begins at offset {log.begin()}, and no "
                f"checkpoint at {settings.checkpoints} fits: see neardup checkpoints; begin another generation",
                path=str(state),
            )

    return restore
