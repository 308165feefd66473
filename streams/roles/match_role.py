"""The matcher on Kafka: the sketch log in, verdicts out, exactly once.

It drives the loop over the log: `streams.pipeline.follow` has the steps and what a crash after each leaves behind,
`match_ports` what they do here:

1. poll messages, first those up to the committed offset, whose verdicts are not emitted again;
2. fold them;
3. commit their verdicts and the log's next offset in one transaction;
4. write the store, with the next offset in the same atomic batch;
5. flush the store at intervals.

If the transaction of 3 failed, or its outcome is unknown, the matcher starts again in its process, with a new producer,
from the committed offset.

One matcher writes: it assigns itself the one partition, and its transactional id fences the former matcher.
"""

from collections.abc import Callable

from neardup.decider import Decider
from neardup.index.column_families import Store
from streams.config.settings import Settings
from streams.errors import Fenced, TopicError, Unsettled
from streams.kafka import KafkaVerdicts
from streams.kafka.assignment import Assignment
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import LogFrom, OperatorDecisions
from streams.pipeline.follow import follow
from streams.pipeline.matcher import Matcher
from streams.ports import LogFollower
from streams.process import logs
from streams.process.shutdown import now_ms
from streams.roles.match_ports import IndexGauges, MatcherLog, ReportedMatcher, TimedFlush, VerdictTransactions
from streams.roles.runtime import WAIT_SECONDS, Runtime, Silence
from streams.state.checkpoint_make import CopyableIndex
from streams.state.checkpoint_role import RoleCheckpoints, report_checkpoints

_log = logs.get("match")

#: Between two checks of the topics, with or without messages.
_TOPICS_SECONDS = 1.0


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
    """One matcher. `round` does one round of the loop, with what a matcher does around it; `run` repeats it until
    stopped. committed: offset before which verdicts are committed.
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
        self._runtime = runtime
        self._health = runtime.health.role("match")
        self._checks = log.check, verdicts.check
        self._checked_s = runtime.steady_s()
        self._silence = Silence(_log)
        self._store, self._leader, self._checkpoints = store, leader, checkpoints
        self.matcher = matcher = new_matcher(runtime.settings, store, decider, messages_from, verdicts.topic_ids.source)
        matcher.heartbeat = self._health.turned
        matcher.keeps_compared = audit is not None
        self._log = MatcherLog(log, matcher, committed, runtime)
        self._verdicts = VerdictTransactions(verdicts, matcher, audit, runtime, now_ms)
        self._gauges = IndexGauges(store, runtime)
        flush = TimedFlush(store, runtime)
        self._rounds = follow(self._log, ReportedMatcher(matcher, runtime.metrics), self._verdicts.emit, flush.when_due)

    def run(self) -> None:
        """Raises CorruptRecord, SourceGap, StateError, Fenced, Unsettled, BrokerError, PositionLost."""
        first, committed = self.matcher.next_offset, self._log.committed
        if first < committed:
            _log.info("folds messages whose verdicts are committed", offset=first, committed=committed)
        while not self._runtime.stop.is_set():
            self.round(WAIT_SECONDS)

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if there was nothing to read."""
        self._health.turned()
        if self._leader is not None and not self._leader.look():
            raise Fenced("the group of matchers chose another leader; after a restart, this one stands by")
        self._check_topics()
        self._log.wait_s = wait_s
        try:
            prepared = next(self._rounds)
        except StopIteration:  # the log of a matcher has no end
            raise Unsettled("an earlier round has failed: it may have folded messages that are not committed") from None
        if prepared is None and not self._log.silent:
            self._verdicts.commit_again_when_due(self.matcher.next_offset)
        self._gauges.set_when_due()
        if self._checkpoints is not None and isinstance(self._store, CopyableIndex):
            self._checkpoints.look(self.matcher, self._store)
            report_checkpoints(self._runtime.metrics, [self._checkpoints])
        self._report_health()
        return prepared is not None

    def _check_topics(self) -> None:
        """Raises TopicError if the log or the verdicts' topic was deleted or recreated."""
        if self._runtime.steady_s() - self._checked_s < _TOPICS_SECONDS:
            return
        try:
            self._silence.check(*self._checks)
        except TopicError as error:
            self._health.not_ready(str(error))
            raise
        self._checked_s = self._runtime.steady_s()

    def _report_health(self) -> None:
        if self._silence.reason:
            self._health.not_ready(self._silence.reason)
        elif self._log.silent:
            left = self._log.committed - self.matcher.next_offset
            self._health.not_ready(f"folds messages whose verdicts are committed: {left} left")
        else:
            self._health.ready("judges")
