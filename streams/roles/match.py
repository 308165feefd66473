"""The matcher on Kafka: the sketch log in, verdicts out, exactly once.

Each round: (1) poll some messages; (2) fold them, a pure function of messages and store; (3) commit their verdicts and
the log's next offset in one transaction; (4) write the store, the next offset in the same atomic batch; (5) from time
to time, flush it. A crash before the end of 3 leaves nothing behind: the transaction is aborted by the next `init`.
After 3 the committed offset M is ahead of the store's N, and N to M is folded in silence at the next start; the same
after 4, where what was not flushed is lost. Never 4 before 3: a page would match itself after a crash. Where the
outcome of 3 is not known, or the transaction failed, the matcher starts again with a new producer, in the same process,
and believes the committed offset.

One matcher writes: it assigns itself the one partition, and its transactional id fences whoever had it before.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord, OtherVersion
from neardup.index.base import Store
from neardup.index.rocks import RocksStore
from neardup.shadow import Counts
from streams.errors import BrokerError, Fenced, SourceGap, TopicError, WrongScheme
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import LogFrom, OperatorDecisions, through_first_control
from streams.pipeline.deciders import describe_change
from streams.pipeline.matcher import Matcher, Prepared
from streams.ports import LogFollower, VerdictTransactions
from streams.process import logs
from streams.roles.checkpoint import RoleCheckpoints
from streams.roles.runtime import WAIT_SECONDS, Runtime, Silence
from streams.state.locked_folder import free_bytes

_log = logs.get("match")

#: Messages of one round together; each has 1 MB at most.
_ROUND_BYTES_MAX = 16 << 20
_GAUGES_SECONDS = 5.0
#: How often the topics are looked after, with or without work.
_TOPICS_SECONDS = 1.0


class Leading(Protocol):
    """Who of several matchers is at work."""

    def look(self, wait_s: float = 0.0) -> bool:
        """Whether this one is. To be called all the time."""
        ...


class _Looked(NamedTuple):
    """What an audit draws from a round: lines for its file and for its topic, and what it counted."""

    lines: list[bytes]
    for_topic: list[bytes]
    counts: Counts


class MatchRole:
    """One matcher. committed: up to where verdicts are out. `round` does one round; `run` goes on until stopped."""

    def __init__(
        self,
        log: LogFollower,
        ahead: LogFrom,
        verdicts: VerdictTransactions,
        store: Store,
        decider: Decider,
        committed: int,
        runtime: Runtime,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        audit: Audit | None = None,
        checkpoints: RoleCheckpoints | None = None,
        leader: Leading | None = None,
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
        self._flushed = self._gauged = self._looked = self._steady_s()
        self._stalled_s = 0.0
        self._silence = Silence(_log)
        self._dirty = False
        self.matcher = Matcher(
            store,
            decider,
            decided=OperatorDecisions(ahead),
            threads=runtime.settings.threads,
            follows_changes=not runtime.settings.judges_anew,
            log=verdicts.hop.source.hex(),
            generation=runtime.settings.generation,
        )
        self.matcher.heartbeat = self._health.turned
        self._leader = leader
        self._checkpoints = checkpoints
        self._audit = audit
        if audit is not None:
            self.matcher.audit = audit.record

    def run(self) -> None:
        """Raises CorruptRecord, SourceGap, StateError, Fenced, Unsettled, BrokerError, PositionLost."""
        first = self.matcher.next_offset
        if first < self._committed:
            _log.info("folding what was judged before", offset=first, committed=self._committed)
        while not self._stop.is_set():
            self.round(WAIT_SECONDS)

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if there was nothing to read."""
        self._health.turned()
        if self._leader is not None and not self._leader.look():
            raise Fenced("the group of matchers gives the lead to another one; started again, this one stands by")
        self._look_after_topics()
        messages = self._poll(wait_s)  # (1)
        if messages:
            prepared = self._judge(messages)  # (2)
            if not self._silent:
                self._commit(prepared)  # (3)
            self._write(prepared)  # (4)
            self._dirty = True
        self._flush_when_due()  # (5)
        if self._checkpoints is not None and isinstance(self._store, RocksStore):
            self._checkpoints.look(self.matcher, self._store)
        self._tell_health()
        return bool(messages)

    def _look_after_topics(self) -> None:
        """Raises TopicError if the log or the verdicts are no more what they were."""
        now = self._steady_s()
        if now - self._looked < _TOPICS_SECONDS:
            return
        try:
            self._log.check()
            self._verdicts.check()
        except TopicError as error:
            self._health.not_ready(str(error))
            raise
        except BrokerError as error:
            self._silence.begins(error)
        else:
            self._silence.ends()
        self._looked = self._steady_s()

    @property
    def _silent(self) -> bool:
        """Whether the verdicts of the messages that come next are out already."""
        return self.matcher.next_offset < self._committed

    def _poll(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Whole messages, all of them before the committed offset or all behind it."""
        most = self._settings.match_messages
        with self._metrics.step("match", "poll"):
            if not self._held:
                self._held = self._log.poll(most, bytes_max=_ROUND_BYTES_MAX, wait_s=wait_s)
        self._metrics.lag["match"].set(self._log.lag())
        found, self._held = self._held, []
        if self._silent and found:
            before = sum(offset < self._committed for offset, _ in found)
            if not before:
                # What was left of the messages up to there was taken by the log's own gaps.
                self._committed = self.matcher.next_offset
                return self._to_word(found)
            found, self._held = found[:before], found[before:]
        elif self._silent and self._log.position() >= self._committed:
            self._committed = self.matcher.next_offset
        return self._to_word(found)

    def _to_word(self, found: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
        """The messages up to an operator's word; the rest is for later."""
        taken = through_first_control(found)
        self._held = [*found[len(taken) :], *self._held]
        return taken

    def _judge(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        with self._metrics.step("match", "judge"):
            prepared = self._prepare(messages)
        for offset, control in prepared.controls:
            _log.info("operator's decision", decision=control.decision.value, settles=control.offset, offset=offset)
        if (word := prepared.decider_change) is not None:
            told = {
                "offset": self.matcher.position,
                "decider": word.after.digest,
                "change": describe_change(word.before, word.after),
            }
            if prepared.decider is word.after:
                _log.info("another decider from here on", **told)
            else:
                _log.warning("a new decider is void: it was to follow another one", before=word.before.digest, **told)
        for done in prepared.takedowns:
            _log.info("taken down", **done.to_json())
        if prepared.expired:
            _log.info("dropped pages that nobody has seen for long", pages=prepared.expired)
        for reason in prepared.skipped:
            _log.warning("left out on an operator's decision", reason=reason)
        if prepared.accepted:
            _log.warning("source gaps accepted", gaps=prepared.accepted)
        if prepared.foreign:
            _log.warning(
                "messages that were meant for another log of this name count for nothing", count=prepared.foreign
            )
        self._metrics.duplicate_ranges.inc(prepared.dropped)
        return prepared

    def _prepare(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        try:
            return self.matcher.prepare(messages, emit=not self._silent)
        except SourceGap as error:
            self._metrics.source_gaps.inc()
            advice = f"if they are lost for good, accept it: neardup accept-gap {self.matcher.position}"
            raise SourceGap(f"{error}; {advice}") from error
        except OtherVersion:
            raise
        except (CorruptRecord, WrongScheme) as error:
            advice = f"restore the topic, or leave it out: neardup skip-record {self.matcher.position}"
            raise type(error)(f"{error}; {advice}") from error

    def _commit(self, prepared: Prepared) -> None:
        with self._metrics.step("match", "produce"):
            lines = [(verdict.url.encode("utf-8", "replace"), verdict.to_json()) for verdict in prepared.verdicts]
        looked = None if self._audit is None else self._look(self._audit, prepared)
        with self._metrics.step("match", "commit"), self._traced(prepared) as headers:
            self._verdicts.commit(lines, prepared.next_offset, looked.for_topic if looked else (), headers)
        self._committed = prepared.next_offset
        self._count(prepared)
        if self._audit is not None and looked is not None:
            self._tell_audit(self._audit, looked)

    def _traced(self, prepared: Prepared) -> AbstractContextManager[Mapping[int, Sequence[tuple[str, bytes]]]]:
        """Headers of the verdicts on pages that are traced, by the verdicts' places."""
        return nullcontext({}) if self._traces is None else self._traces.judged(prepared.verdicts)

    def _count(self, prepared: Prepared) -> None:
        metrics, outcome = self._metrics, prepared.outcome
        now = self._now_ms()
        metrics.latency.observe_many(np.array([max(0, now - header.log_time) / 1000 for header in prepared.headers]))
        metrics.pages["match"].inc(len(prepared.headers))
        metrics.bytes["match"].inc(sum(len(header.record) for header in prepared.headers))
        metrics.batch_pages["match"].observe(len(prepared.headers))
        for verdict in prepared.verdicts:
            metrics.verdicts[verdict.verdict].inc()
        metrics.candidates.observe_many(outcome.scored_by_page)
        metrics.candidates_cut.inc(outcome.cut)
        metrics.hot_keys.inc(outcome.hot_turned)

    def _look(self, audit: Audit, prepared: Prepared) -> _Looked:
        before = replace(audit.counts)
        audit.auditor.live = self.matcher.decider  # an operator's word may have changed it
        lines = audit.draw(prepared.outcome.compared)
        for_topic = [*lines, *audit.counts_since(before)] if self._settings.audit_topic else []
        return _Looked(lines, for_topic, audit.counts.since(before))

    def _tell_audit(self, audit: Audit, looked: _Looked) -> None:
        """Of what is committed."""
        lost = audit.lost
        audit.write(looked.lines)
        for kind, counter in self._metrics.disagreements.items():
            counter.inc(getattr(looked.counts, kind))
        self._metrics.audit_pairs.inc(looked.counts.drawn)
        self._metrics.audit_lost.inc(audit.lost - lost)

    def _write(self, prepared: Prepared) -> None:
        with self._metrics.step("match", "write"):
            self.matcher.apply(prepared)

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

    def _tell_health(self) -> None:
        if self._silence.reason:
            self._health.not_ready(self._silence.reason)
        elif self._silent:
            left = self._committed - self.matcher.next_offset
            self._health.not_ready(f"folds what was judged before: {left} messages left")
        else:
            self._health.ready("judges")
