"""The ports of a matcher on Kafka for the loop over the log (`streams.pipeline.follow`), one class for each.

What is measured, logged, audited and traced at a step is done here, so that the loop has the steps alone.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from neardup.index.column_families import Store
from neardup.index.rocks import RocksStore
from neardup.shadow import Counts
from neardup.verdict import FOUND_BY
from streams.errors import SourceGap
from streams.kafka import KafkaVerdicts
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import describe_change
from streams.pipeline.follow import Batch
from streams.pipeline.matcher import FOLD_BYTES_MAX, Matcher, Prepared
from streams.ports import LogFollower
from streams.process import logs
from streams.process.disk import free_bytes
from streams.process.metrics import Metrics
from streams.roles.match_start_checks import log_advice
from streams.roles.runtime import Runtime

_log = logs.get("match")

_GAUGES_SECONDS = 5.0
#: An idle matcher commits its offset again after so long. Brokers forget that of a week (`offsets.retention.minutes`).
COMMIT_AGAIN_SECONDS = 86_400.0


class MatcherLog:
    """Step 1: batches of the sketch log, first of the messages whose verdicts are committed, then of the others.

    committed: offset before which verdicts are committed; that of the matcher once it is past it.
    wait_s: longest wait of a poll, seconds.
    """

    def __init__(self, log: LogFollower, matcher: Matcher, committed: int, runtime: Runtime) -> None:
        self.committed = committed
        self.wait_s = 0.0
        self._log, self._matcher = log, matcher
        self._messages_max = runtime.settings.match_messages
        self._metrics = runtime.metrics

    @property
    def silent(self) -> bool:
        """Whether the verdicts of the next messages are committed already."""
        return self._matcher.next_offset < self.committed

    def __iter__(self) -> Iterator[Batch]:
        """Yield a batch after each poll, without messages if none came. Never ends."""
        while True:
            found = self._poll()
            before = [message for message in found if message[0] < self.committed]
            if before:
                yield Batch(before, emit=False)
            behind = found[len(before) :]
            if self.silent and (behind or (not found and self._log.position() >= self.committed)):
                self.committed = self._matcher.next_offset  # the offsets up to there hold no message
            if behind or not before:
                yield Batch(behind)

    def _poll(self) -> Sequence[tuple[int, bytes]]:
        with self._metrics.step("match", "poll"):
            found = self._log.poll(self._messages_max, bytes_max=FOLD_BYTES_MAX, wait_s=self.wait_s)
        self._metrics.lag["match"].set(self._log.lag())
        return found


class ReportedMatcher:
    """Steps 2 and 4: a matcher, with the log's lines about operators' records, and advice about bad messages."""

    def __init__(self, matcher: Matcher, metrics: Metrics) -> None:
        self.matcher = matcher
        self._metrics = metrics

    def prepare(self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Prepared:
        """Fold messages: see `Matcher.prepare`."""
        try:
            with self._metrics.step("match", "judge"), log_advice(self.matcher):
                prepared = self.matcher.prepare(messages, emit=emit)
        except SourceGap:
            self._metrics.source_gaps.inc()
            raise
        self._metrics.duplicate_ranges.inc(prepared.dropped)
        _report(prepared)
        return prepared

    def apply(self, prepared: Prepared) -> None:
        """Write the store: see `Matcher.apply`."""
        with self._metrics.step("match", "write"):
            self.matcher.apply(prepared)


def _report(prepared: Prepared) -> None:
    """Logs what operators' records among the messages have done."""
    for offset, control in prepared.controls:
        _log.info("operator's decision", decision=control.decision.value, settles=control.offset, offset=offset)
    if (change := prepared.decider_change) is not None:
        fields = {
            "offset": prepared.next_offset - 1,
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


class VerdictTransactions:
    """Step 3: one transaction with a batch's verdicts, its lines for the audit, and the log's next offset."""

    def __init__(
        self,
        verdicts: KafkaVerdicts,
        matcher: Matcher,
        audit: Audit | None,
        runtime: Runtime,
        now_ms: Callable[[], int],
    ) -> None:
        self._verdicts, self._matcher, self._audit = verdicts, matcher, audit
        self._metrics, self._traces = runtime.metrics, runtime.traces
        self._audit_topic = runtime.settings.audit_topic
        self._now_ms, self._steady_s = now_ms, runtime.steady_s
        self._committed_s = runtime.steady_s()

    def emit(self, prepared: Prepared) -> None:
        """Commit. Raises Fenced, Unsettled, RecordTooLarge, BrokerError."""
        with self._metrics.step("match", "produce"):
            lines = list(zip(prepared.verdicts.urls(), prepared.verdicts.lines(), strict=True))
        audit, counts = self._draw_audit(prepared)
        with self._metrics.step("match", "commit"), self._traced(prepared) as headers:
            self._verdicts.commit(lines, prepared.next_offset, audit, headers)
        self._committed_s = self._steady_s()
        self._count(prepared, counts)

    def commit_again_when_due(self, next_offset: int) -> None:
        """Commit the offset of an idle matcher again, once a day, so that brokers do not forget it."""
        if self._steady_s() - self._committed_s >= COMMIT_AGAIN_SECONDS:
            self._verdicts.commit((), next_offset)
            self._committed_s = self._steady_s()

    def _draw_audit(self, prepared: Prepared) -> tuple[list[bytes], Counts]:
        """Lines for the topic of the audit, and the counts."""
        audit = self._audit
        if audit is None:
            return [], Counts()
        before = replace(audit.counts)
        audit.auditor.live = self._matcher.decider  # a control record may have changed it
        lines = audit.draw(prepared.outcome.compared)
        lines = [*lines, *audit.counts_since(before)] if self._audit_topic else []
        return lines, audit.counts.since(before)

    def _traced(self, prepared: Prepared) -> AbstractContextManager[Mapping[int, Sequence[tuple[str, bytes]]]]:
        """Headers of the verdicts on traced pages, by their index."""
        return nullcontext({}) if self._traces is None else self._traces.judged(prepared.verdicts)

    def _count(self, prepared: Prepared, counts: Counts) -> None:
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
        for name, candidates, repeats in zip(FOUND_BY, outcome.candidates_by, outcome.repeats_by, strict=True):
            metrics.candidates_found[name].inc(candidates)
            metrics.repeats_found[name].inc(repeats)
        metrics.hot_keys.inc(outcome.hot_turned)
        for disagreement, counter in metrics.disagreements.items():
            counter.inc(getattr(counts, disagreement))
        metrics.audit_pairs.inc(counts.drawn)


class TimedFlush:
    """Step 5: flushes the index `flush_ms` after its last flush, if something was written since."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store, self._metrics, self._steady_s = store, runtime.metrics, runtime.steady_s
        self._seconds = runtime.settings.flush_ms / 1000
        self._flushed_s = runtime.steady_s()
        self._dirty = False

    def when_due(self, messages: int) -> None:
        """Flush if it is time. messages: number of messages that were written in this round."""
        now = self._steady_s()
        self._dirty = self._dirty or bool(messages)
        if self._dirty and now - self._flushed_s >= self._seconds:
            self.flush()
            self._flushed_s, self._dirty = now, False

    def flush(self) -> None:
        with self._metrics.step("match", "flush"):
            self._store.flush()


class IndexGauges:
    """Sets the gauges of RocksDB and of the disk from time to time."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store, self._metrics, self._steady_s = store, runtime.metrics, runtime.steady_s
        self._state = Path(runtime.settings.state)
        self._set_s = -math.inf  # the first batch already says how full the disk is
        self._stalled_s = 0.0

    def set_when_due(self) -> None:
        now = self._steady_s()
        if now - self._set_s < _GAUGES_SECONDS or not isinstance(self._store, RocksStore):
            return
        self._set_s = now
        for family, size in self._store.sizes().items():
            self._metrics.rocksdb_bytes[family.name.lower()].set(size.file_bytes)
        pending, stopped = self._store.pressure()
        self._metrics.rocksdb_pending.set(pending)
        self._metrics.rocksdb_stopped.set(stopped)
        self._metrics.state_free.set(free_bytes(self._state))
        self._metrics.rocksdb_stall_seconds.inc(self._store.stalled_s - self._stalled_s)
        self._stalled_s = self._store.stalled_s
