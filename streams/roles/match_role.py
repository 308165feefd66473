"""The matcher on Kafka: the sketch log in, verdicts out, exactly once.

Each round: (1) poll messages; (2) fold them, a pure function of messages and store; (3) commit their verdicts and the
log's next offset in one transaction; (4) write the store, with the next offset in the same atomic batch; (5) flush the
store at intervals.

A crash before the end of 3 leaves nothing behind: the next `init` aborts the transaction. A crash after 3 leaves the
committed offset M ahead of the store's N: the next start folds N to M without emitting. A crash after 4 is the same for
the part that was not flushed. 4 never comes before 3: a page would match itself after a crash. If the transaction of 3
failed, or its outcome is unknown, the matcher starts again in its process, with a new producer, from the committed
offset.

One matcher writes: it assigns itself the one partition, and its transactional id fences the former matcher.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from neardup.decider import Decider
from neardup.index.column_families import Store
from neardup.index.rocks import RocksStore
from neardup.shadow import Counts
from streams.config.settings import Settings
from streams.errors import Fenced, SourceGap, TopicError, Unsettled
from streams.kafka import KafkaVerdicts
from streams.kafka.assignment import Assignment
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import LogFrom, OperatorDecisions, describe_change, through_first_control
from streams.pipeline.matcher import FOLD_BYTES_MAX, Matcher, Prepared
from streams.ports import LogFollower
from streams.process import logs
from streams.process.disk import free_bytes
from streams.process.shutdown import now_ms
from streams.roles.match_start_checks import log_advice
from streams.roles.runtime import WAIT_SECONDS, Runtime, Silence
from streams.state.checkpoint_make import CopyableIndex
from streams.state.checkpoint_role import RoleCheckpoints, report_checkpoints

_log = logs.get("match")

_GAUGES_SECONDS = 5.0
#: Between two checks of the topics, with or without messages.
_TOPICS_SECONDS = 1.0
#: An idle matcher commits its offset again after so long. Brokers forget that of a week (`offsets.retention.minutes`).
COMMIT_AGAIN_SECONDS = 86_400.0


def new_matcher(settings: Settings, store: Store, first: Decider, messages_from: LogFrom, log: bytes) -> Matcher:
    """A matcher of the stream. first: the decider at the log's start. log: its topic id."""
    return Matcher(
        store,
        first,
        decided=OperatorDecisions(messages_from),
        threads=settings.threads,
        follows_changes=not settings.judges_anew,
        log=log.hex(),
        generation=settings.generation,
    )


class MatchRole:
    """One matcher. `round` does one round; `run` repeats it until stopped. committed: offset before which verdicts are
    committed.
    """

    def __init__(
        self,
        log: LogFollower,
        messages_from: LogFrom,
        verdicts: KafkaVerdicts,
        store: Store,
        decider: Decider,
        committed: int,
        runtime: Runtime,
        *,
        now_ms: Callable[[], int] = now_ms,
        audit: Audit | None = None,
        checkpoints: RoleCheckpoints | None = None,
        leader: Assignment | None = None,
    ) -> None:
        self._settings = runtime.settings
        self._log, self._verdicts, self._store = log, verdicts, store
        self._metrics = runtime.metrics
        self._health = runtime.health.role("match")
        self._stop = runtime.stop
        self._traces = runtime.traces
        self._committed = committed
        self._now_ms = now_ms
        self._held: Sequence[tuple[int, bytes]] = []
        self._steady_s = runtime.steady_s
        self._flushed = self._checked = self._committed_s = self._steady_s()
        self._gauged = -math.inf  # the first batch already says how full the disk is
        self._stalled_s = 0.0
        self._silence = Silence(_log)
        self._dirty = False
        self._unwritten = False  # whether verdicts were given to a transaction, and the store lacks their messages
        self.matcher = new_matcher(runtime.settings, store, decider, messages_from, verdicts.topic_ids.source)
        self.matcher.heartbeat = self._health.turned
        self._leader = leader
        self._checkpoints = checkpoints
        self._audit = audit
        self.matcher.keeps_compared = audit is not None

    def run(self) -> None:
        """Raises CorruptRecord, SourceGap, StateError, Fenced, Unsettled, BrokerError, PositionLost."""
        first = self.matcher.next_offset
        if first < self._committed:
            _log.info("folds messages whose verdicts are committed", offset=first, committed=self._committed)
        while not self._stop.is_set():
            self.round(WAIT_SECONDS)

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if there was nothing to read."""
        self._health.turned()
        if self._unwritten:
            raise Unsettled("the round before has folded messages that are not committed")
        if self._leader is not None and not self._leader.look():
            raise Fenced("the group of matchers chose another leader; after a restart, this one stands by")
        self._check_topics()
        messages = self._poll(wait_s)  # (1)
        if messages:
            prepared = self._judge(messages)  # (2)
            if not self._silent:
                self._commit(prepared)  # (3)
            self._write(prepared)  # (4)
            self._dirty = True
        elif not self._silent and self._steady_s() - self._committed_s >= COMMIT_AGAIN_SECONDS:
            self._verdicts.commit((), self._committed)
            self._committed_s = self._steady_s()
        self._flush_when_due()  # (5)
        if self._checkpoints is not None and isinstance(self._store, CopyableIndex):
            self._checkpoints.look(self.matcher, self._store)
            report_checkpoints(self._metrics, [self._checkpoints])
        self._report_health()
        return bool(messages)

    def _check_topics(self) -> None:
        """Raises TopicError if the log or the verdicts' topic was deleted or recreated."""
        if self._steady_s() - self._checked < _TOPICS_SECONDS:
            return
        try:
            self._silence.check(self._log.check, self._verdicts.check)
        except TopicError as error:
            self._health.not_ready(str(error))
            raise
        self._checked = self._steady_s()

    @property
    def _silent(self) -> bool:
        """Whether the verdicts of the next messages are committed already."""
        return self.matcher.next_offset < self._committed

    def _poll(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Polls messages that lie either all before the committed offset or all behind it."""
        most = self._settings.match_messages
        with self._metrics.step("match", "poll"):
            if not self._held:
                self._held = self._log.poll(most, bytes_max=FOLD_BYTES_MAX, wait_s=wait_s)
        self._metrics.lag["match"].set(self._log.lag())
        found, self._held = self._held, []
        if self._silent and found:
            before = sum(offset < self._committed for offset, _ in found)
            if not before:
                # The offsets up to there hold no message.
                self._committed = self.matcher.next_offset
                return self._through_control(found)
            found, self._held = found[:before], found[before:]
        elif self._silent and self._log.position() >= self._committed:
            self._committed = self.matcher.next_offset
        return self._through_control(found)

    def _through_control(self, found: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
        """Returns the messages through the first control record, and holds the others back."""
        taken = through_first_control(found)
        self._held = [*found[len(taken) :], *self._held]
        return taken

    def _judge(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        with self._metrics.step("match", "judge"):
            prepared = self._prepare(messages)
        for offset, control in prepared.controls:
            _log.info("operator's decision", decision=control.decision.value, settles=control.offset, offset=offset)
        if (change := prepared.decider_change) is not None:
            fields = {
                "offset": self.matcher.position,
                "decider": change.after.digest,
                "change": describe_change(change.before, change.after),
            }
            if prepared.decider is change.after:
                _log.info("new decider from here on", **fields)
            else:
                _log.warning("a new decider is void: it follows another one", before=change.before.digest, **fields)
        for done in prepared.takedowns:
            _log.info("taken down", **done.to_json())
        if prepared.expired:
            _log.info("dropped expired pages", pages=prepared.expired)
        for reason in prepared.skipped:
            _log.warning("skipped by an operator's decision", reason=reason)
        if prepared.accepted:
            _log.warning("source gaps accepted", gaps=prepared.accepted)
        if prepared.foreign:
            _log.warning("ignored messages for another log of this name", count=prepared.foreign)
        self._metrics.duplicate_ranges.inc(prepared.dropped)
        return prepared

    def _prepare(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        try:
            with log_advice(self.matcher):
                return self.matcher.prepare(messages, emit=not self._silent)
        except SourceGap:
            self._metrics.source_gaps.inc()
            raise

    def _commit(self, prepared: Prepared) -> None:
        with self._metrics.step("match", "produce"):
            lines = list(zip(prepared.verdicts.urls(), prepared.verdicts.lines(), strict=True))
        audit, counts = self._draw_audit(prepared)
        self._unwritten = True
        with self._metrics.step("match", "commit"), self._traced(prepared) as headers:
            self._verdicts.commit(lines, prepared.next_offset, audit, headers)
        self._committed, self._committed_s = prepared.next_offset, self._steady_s()
        self._count(prepared)
        for kind, counter in self._metrics.disagreements.items():
            counter.inc(getattr(counts, kind))
        self._metrics.audit_pairs.inc(counts.drawn)

    def _traced(self, prepared: Prepared) -> AbstractContextManager[Mapping[int, Sequence[tuple[str, bytes]]]]:
        """Headers of the verdicts on traced pages, by their index."""
        return nullcontext({}) if self._traces is None else self._traces.judged(prepared.verdicts)

    def _count(self, prepared: Prepared) -> None:
        metrics, outcome = self._metrics, prepared.outcome
        now = self._now_ms()
        metrics.latency.observe_many(np.array([max(0, now - page.log_time) / 1000 for page in prepared.pages]))
        metrics.pages["match"].inc(len(prepared.pages))
        metrics.bytes["match"].inc(sum(len(page.record) for page in prepared.pages))
        metrics.batch_pages["match"].observe(len(prepared.pages))
        for kind, count in prepared.verdicts.kinds().items():
            metrics.verdicts[kind].inc(count)
        metrics.candidates.observe_many(outcome.scored_by_page)
        metrics.candidates_cut.inc(outcome.cut)
        metrics.hot_keys.inc(outcome.hot_turned)

    def _draw_audit(self, prepared: Prepared) -> tuple[list[bytes], Counts]:
        """Lines for the topic of the audit, and the counts."""
        audit = self._audit
        if audit is None:
            return [], Counts()
        before = replace(audit.counts)
        audit.auditor.live = self.matcher.decider  # a control record may have changed it
        lines = audit.draw(prepared.outcome.compared)
        lines = [*lines, *audit.counts_since(before)] if self._settings.audit_topic else []
        return lines, audit.counts.since(before)

    def _write(self, prepared: Prepared) -> None:
        with self._metrics.step("match", "write"):
            self.matcher.apply(prepared)
        self._unwritten = False

    def _flush_when_due(self) -> None:
        now = self._steady_s()
        if self._dirty and (now - self._flushed) * 1000 >= self._settings.flush_ms:
            self._flush()
            self._flushed = now
            self._dirty = False
        if now - self._gauged >= _GAUGES_SECONDS and isinstance(self._store, RocksStore):
            self._gauged = now
            for family, size in self._store.sizes().items():
                self._metrics.rocksdb_bytes[family.name.lower()].set(size.file_bytes)
            pending, stopped = self._store.pressure()
            self._metrics.rocksdb_pending.set(pending)
            self._metrics.rocksdb_stopped.set(stopped)
            self._metrics.state_free.set(free_bytes(Path(self._settings.state)))
            self._metrics.rocksdb_stall_seconds.inc(self._store.stalled_s - self._stalled_s)
            self._stalled_s = self._store.stalled_s

    def _flush(self) -> None:
        with self._metrics.step("match", "flush"):
            self._store.flush()

    def _report_health(self) -> None:
        if self._silence.reason:
            self._health.not_ready(self._silence.reason)
        elif self._silent:
            left = self._committed - self.matcher.next_offset
            self._health.not_ready(f"folds messages whose verdicts are committed: {left} left")
        else:
            self._health.ready("judges")
