"""The matcher on Kafka: the sketch log in, verdicts out, exactly once.

Each round: (1) poll some messages; (2) fold them, a pure function of messages and store; (3) commit their verdicts and
the log's next offset in one transaction; (4) write the store, the next offset in the same atomic batch; (5) from time
to time, flush it. A crash before the end of 3 leaves nothing behind: the transaction is aborted by the next `init`.
After 3 the committed offset M is ahead of the store's N, and N to M is folded in silence at the next start; the same
after 4, where what was not flushed is lost. Never 4 before 3: a page would match itself after a crash. Where the
outcome of 3 is not known the process ends, and the next start believes the committed offset.

One matcher writes: it assigns itself the one partition, and its transactional id fences whoever had it before.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from neardup.decider import Decider
from neardup.errors import CorruptRecord, NewerProgram, StateError
from neardup.index.base import Family, Store
from neardup.index.rocks import RocksStore
from neardup.limits import PLACE_BITS
from neardup.matching.shadow import Counts
from streams.config.settings import Settings
from streams.errors import SourceGap, WrongScheme
from streams.formats.message import NewDecider, encode_control, is_control
from streams.kafka import Admin, KafkaLog, KafkaVerdicts, Writer
from streams.kafka.reader import Reader
from streams.kafka.topics import require
from streams.line.audit import Audit, open_audit, shadow_numbers
from streams.line.deciders import Words, after_words, change, why_not, words_in
from streams.line.decisions import Ahead, Decisions
from streams.line.matcher import Matcher, Prepared, folded_to
from streams.ports import LogFollower, VerdictTransactions
from streams.process import logs
from streams.process.signals import SystemClock
from streams.roles.checkpoint import RoleCheckpoints, identity, restoring
from streams.roles.restart import Standing, Told, resume_at
from streams.roles.runtime import STOP_SECONDS_MAX, WAIT_SECONDS, Runtime, connect, serving
from streams.state.directory import MatcherDirectory

_log = logs.get("match")

#: Messages of one round together; each has 1 MB at most.
_ROUND_BYTES_MAX = 16 << 20
_GAUGES_SECONDS = 5.0
_CLUSTER, _TOPIC = b"cluster_id", b"topic_id"


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
        ahead: Ahead,
        verdicts: VerdictTransactions,
        store: Store,
        decider: Decider,
        committed: int,
        runtime: Runtime,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        audit: Audit | None = None,
        checkpoints: RoleCheckpoints | None = None,
    ) -> None:
        self._settings = runtime.settings
        self._log, self._verdicts, self._store = log, verdicts, store
        self._metrics = runtime.metrics
        self._health = runtime.health.role("match")
        self._stop = runtime.stop
        self._committed = committed
        self._now_ms = now_ms
        self._held: Sequence[tuple[int, bytes]] = []
        self._flushed = self._gauged = time.monotonic()
        self._stalled_s = 0.0
        self._dirty = False
        self.matcher = Matcher(
            store,
            decider,
            settled=Decisions(ahead),
            threads=runtime.settings.threads,
            heeds=not runtime.settings.judges_anew,
        )
        self._checkpoints = checkpoints
        self._audit = audit
        if audit is not None:
            self.matcher.watch = audit.look

    def run(self) -> None:
        """Raises CorruptRecord, SourceGap, StateError, Fenced, NotCommitted, BrokerError, PositionLost."""
        first = self.matcher.next_offset
        if first < self._committed:
            _log.info("folding what was judged before", offset=first, committed=self._committed)
        while not self._stop.is_set():
            self.round(WAIT_SECONDS)

    def round(self, wait_s: float = 0.0) -> bool:
        """One round; False if there was nothing to read."""
        self._health.turned()
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
        """The messages up to an operator's word, behind which another decider may decide; the rest is for later."""
        for number, (_, data) in enumerate(found, 1):
            if is_control(data):
                self._held = [*found[number:], *self._held]
                return found[:number]
        return found

    def _judge(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        with self._metrics.step("match", "judge"):
            prepared = self._prepare(messages)
        for offset, control in prepared.controls:
            _log.info("operator's decision", decision=control.decision.value, settles=control.offset, offset=offset)
        if (word := prepared.word) is not None:
            told = {"offset": self.matcher.at, "decider": word.after.digest, "change": change(word.before, word.after)}
            if prepared.decider is word.after:
                _log.info("another decider from here on", **told)
            else:
                _log.warning("a new decider is void: it was to follow another one", before=word.before.digest, **told)
        for reason in prepared.skipped:
            _log.warning("left out on an operator's decision", reason=reason)
        if prepared.accepted:
            _log.warning("source gaps accepted", gaps=prepared.accepted)
        self._metrics.duplicate_ranges.inc(prepared.dropped)
        return prepared

    def _prepare(self, messages: Sequence[tuple[int, bytes]]) -> Prepared:
        try:
            return self.matcher.prepare(messages, tell=not self._silent)
        except SourceGap as error:
            self._metrics.source_gaps.inc()
            advice = f"if they are lost for good, accept it: neardup accept-gap {self.matcher.at}"
            raise SourceGap(f"{error}; {advice}") from error
        except NewerProgram:
            raise
        except (CorruptRecord, WrongScheme) as error:
            advice = f"restore the topic, or leave it out: neardup skip-record {self.matcher.at}"
            raise type(error)(f"{error}; {advice}") from error

    def _commit(self, prepared: Prepared) -> None:
        with self._metrics.step("match", "produce"):
            lines = [(verdict.url.encode("utf-8", "replace"), verdict.to_json()) for verdict in prepared.verdicts]
        before = self._verdicts.aborted
        looked = None if self._audit is None else self._look(self._audit, prepared)
        with self._metrics.step("match", "commit"):
            self._verdicts.commit(lines, prepared.next_offset, looked.for_topic if looked else ())
        self._metrics.restarts["match", "abort"].inc(self._verdicts.aborted - before)
        self._committed = prepared.next_offset
        self._count(prepared)
        if self._audit is not None and looked is not None:
            self._tell_audit(self._audit, looked)

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
        lines = audit.draw(prepared.outcome.weighed)
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
        now = time.monotonic()
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
            self._metrics.state_free.set(shutil.disk_usage(self._settings.state).free)
            self._metrics.rocksdb_stall_seconds.inc(self._store.stalled_s - self._stalled_s)
            self._stalled_s = self._store.stalled_s

    def _flush(self) -> None:
        with self._metrics.step("match", "flush"):
            self._store.flush()

    def _tell_health(self) -> None:
        if self._silent:
            left = self._committed - self.matcher.next_offset
            self._health.not_ready(f"folds what was judged before: {left} messages left")
        else:
            self._health.ready("judges")


def run_matcher(settings: Settings, runtime: Runtime | None = None, *, new_decider: bool = False) -> None:
    """Judges the sketch log until it is stopped.

    runtime: by default one with logs, metrics and signals of its own. new_decider: where the log says that another
    decider than that of the settings decides, say there that it is this one from here on. Raises what MatchRole.run
    raises, TopicError if its topics are not as they must be, and StateError or PositionLost where state, log and
    verdicts do not fit together; the text says what to do.
    """
    if runtime is None:
        with serving(settings, "match") as made:
            return run_matcher(settings, made, new_decider=new_decider)
    scheme = settings.scheme()
    wanted = settings.decider(scheme)
    names = settings.topics
    with ExitStack() as held:
        audit = _audit_of(settings, wanted)
        if audit is not None:
            held.callback(audit.close)
        wanted_topics = [name for name in (names.sketches, names.verdicts, names.audit) if name]
        require(Admin(connect(settings, "match")), names, *wanted_topics)
        log = KafkaLog(connect(settings, "match", reading=True), names.sketches)
        held.callback(log.close)
        directory = MatcherDirectory(Path(settings.state), scheme, restore=restoring(settings, log, wanted))
        held.callback(directory.close)
        _check_identity(directory, log)
        verdicts = KafkaVerdicts(
            connect(settings, "match"),
            names.verdicts,
            log_topic=names.sketches,
            audit_topic=names.audit,
            group=settings.group_of("match"),
            transactional_id=settings.transactional_id,
            transaction_timeout_ms=settings.transaction_timeout_ms,
            deadline_s=settings.transaction_deadline_ms / 1000,
            message_bytes_max=settings.message_bytes_max,
        )
        held.callback(verdicts.close)
        verdicts.init()
        store = directory.store
        words = () if settings.judges_anew else words_in(_ahead(settings, max(folded_to(store), log.begin())))
        first = directory.first_decider(words[0][1].before if words else wanted)
        committed = _resume(settings, directory, log, verdicts, first, words)
        checkpoints = None
        if settings.checkpoints:
            checkpoints = RoleCheckpoints(
                settings, directory.path, identity(log), runtime.metrics, SystemClock().now_ms
            )
            held.callback(checkpoints.close, STOP_SECONDS_MAX / 2)
        role = MatchRole(
            log,
            lambda start: _ahead(settings, start),
            verdicts,
            store,
            first,
            committed,
            runtime,
            audit=audit,
            checkpoints=checkpoints,
        )
        _decide_by(wanted, after_words(role.matcher.decider, words, log.end()), settings, new_decider)
        log.follow(role.matcher.next_offset)
        role.run()
    return None


def _audit_of(settings: Settings, decider: Decider) -> Audit | None:
    return open_audit(
        decider,
        file=Path(settings.audit) if settings.audit else None,
        topic=settings.audit_topic,
        rate=settings.audit_rate,
        shadow=settings.shadow or None,
        numbers=shadow_numbers([text for text in settings.shadow_set.split(",") if text.strip()]),
        bytes_max=settings.audit_bytes_max,
        warn=lambda text: _log.warning(text),
    )


def _check_identity(directory: MatcherDirectory, log: KafkaLog) -> None:
    """Raises StateError if the store was folded from another topic; a new store remembers this one."""
    store = directory.store
    now = {_CLUSTER: log.cluster_id.encode(), _TOPIC: log.topic.id.hex().encode()}
    known = dict(zip(now, store.get_many(Family.META, list(now)), strict=True))
    for name, wanted in now.items():
        held = known[name]
        if held is not None and held != wanted:
            raise StateError(
                f"the index in {directory.path} was folded from {name.decode().replace('_', ' ')} {held.decode()}, and "
                f"topic {log.topic.name} at {log.bootstrap} has {wanted.decode()}: another log; name its own state "
                "directory, or begin another generation"
            )
    if None in known.values():
        store.write({Family.META: now})


def _decide_by(wanted: Decider, held: Decider, settings: Settings, new_decider: bool) -> None:
    """Raises StateError if the log ends with another decider than is wanted; or says there that it changes."""
    if wanted.digest == held.digest:
        return
    topic, reason = settings.topics.sketches, why_not(held, wanted)
    if settings.judges_anew:
        reason = "this generation judges another one's sketches by one rule from their begin on"
    if reason or not new_decider:
        advice = f"{reason}: begin another generation" if reason else "add --new-decider: it decides from here on"
        raise StateError(
            f"topic {topic} is decided by rule {held.rule} (decider {held.digest}), and {wanted.rule} "
            f"({wanted.digest}) is set ({change(held, wanted)}); set what it was, or {advice}"
        )
    with closing(Writer(connect(settings, "match"), topic)) as writer:
        writer.send(encode_control(NewDecider(held, wanted)))
        writer.flush()
        _log.info("a new decider is written into the log", offset=writer.last_offset, change=change(held, wanted))


def _resume(
    settings: Settings,
    directory: MatcherDirectory,
    log: KafkaLog,
    verdicts: KafkaVerdicts,
    first: Decider,
    words: Words,
) -> int:
    names = settings.topics
    matcher = Matcher(directory.store, first)
    committed = verdicts.committed()
    told = None
    if committed is None or matcher.next_offset < committed:
        told = last_verdict(settings)
    found = Standing(
        log=names.sketches,
        verdicts=names.verdicts,
        state=str(directory.path),
        store=matcher.next_offset,
        store_told=matcher.told,
        committed=committed,
        begin=log.begin(),
        end=log.end(),
        told=told,
    )
    then = after_words(matcher.decider, words, told.next_offset if told else 0)  # what has made the last verdict
    at = resume_at(found, scheme=first.scheme, decider=then.digest)
    _log.info("resumes", store=found.store, committed=at, log_begin=found.begin, log_end=found.end)
    return at


def last_verdict(settings: Settings) -> Told | None:
    """What the newest committed verdict tells of its message, and of what judged it. Raises BrokerError, TopicError."""
    with closing(
        Reader(connect(settings, "match", reading=True), settings.topics.verdicts, committed_only=True)
    ) as end:
        newest = [orjson.loads(record.value() or b"{}") for record in end.last().values()]
    if not newest:
        return None
    last = max(newest, key=lambda verdict: int(verdict["page_id"]))
    return Told((int(last["page_id"]) >> PLACE_BITS) + 1, last["scheme"], last["decider"])


def _ahead(settings: Settings, start: int) -> Iterable[tuple[int, bytes]]:
    with closing(KafkaLog(connect(settings, "match", reading=True), settings.topics.sketches)) as log:
        if start < log.end():
            yield from log.messages(start)
