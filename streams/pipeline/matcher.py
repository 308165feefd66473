"""The matcher: folds messages of the sketch log into the index and emits verdicts, one message at a time, in order.

Each message takes four steps:

1. read and decode the message;
2. fold it: a pure function of the message and the store;
3. emit its verdicts;
4. write the store and its next offset in one atomic batch.

A crash after 1 or 2 leaves nothing behind. After 3 the verdicts may be emitted, and the store has not folded the
message. So the next start folds it again, with the same verdicts; the sink recognises them by their offset. After 4
the message is done. Step 4 must not come before 3: after a crash, a page would match itself. A write is durable only
after the store's `flush`. A crash may undo the last messages in the store; the next start folds them again.

`prepare` does steps 1 and 2, `apply` does step 4. Both take several messages at once, with the same results. If the
decider names shards, the matcher is a judge (`neardup.sharded`): it takes one message at a time, with the answers of
the shards.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from neardup.clusters.overlay import MakeReads
from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, StateError
from neardup.fold import Outcome, Trace, fold
from neardup.index.column_families import Family, Reader, Store, Writes
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.outcome import ComparedPage
from neardup.search.batch_records import Records
from neardup.sharded.fold import fold as fold_as_judge
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.window import Window, without_window
from neardup.verdict import Verdict
from streams.errors import WrongScheme
from streams.formats.message import (
    ANY_LOG,
    Control,
    Decision,
    Forget,
    Message,
    NewDecider,
    Word,
    check_program,
    decode_entry,
    own_version,
    page_id,
)
from streams.pipeline import batch_fold
from streams.pipeline.accounting import Account, CountedRecord, Key, Mark, account
from streams.pipeline.batch_fold import BatchFold, Sweep, decode_sweep, ignore
from streams.pipeline.control_records import decider_after
from streams.pipeline.folded_takedowns import FoldedTakedown, takedowns_of
from streams.ports import VerdictSink

#: Bytes of messages that are folded together, at most: seven full ones. Rows of more leave the processor's caches.
FOLD_BYTES_MAX = 6 << 20

_NEXT, _LOG_TIME, _SCHEME, _DECIDER, _EMITTED_TO = b"next", b"log_time", b"scheme", b"decider", b"emitted_to"
#: Versions of the programs that began the index, and the log (from its first message).
PROGRAM, LOG_PROGRAM = b"program", b"log_program"
_SWEEP = b"sweep"  # state of expiry, if the decider has a horizon
_DECIDED_BY = b"decided_by"  # the decider as JSON, once a control record has changed it
_MARK = struct.Struct("<qq")


class ShardGroup(Protocol):
    """The shards of a judge in the process that judges."""

    def answers(self, offset: int, data: bytes) -> Sequence[Candidates]:
        """The answers of all shards to a message of the log."""
        ...

    def learn(self, effects: Effects) -> None:
        """Takes the effects of the message that was judged, before its verdicts are emitted."""
        ...


#: Called with the scored candidates of some messages, after their verdicts were emitted. It must not raise.
AuditHook = Callable[[Sequence[ComparedPage]], None]
#: Whether a later control record of the log holds this decision of the operator about the message at this offset.
Decided = Callable[[Decision, int], bool]


@dataclass(slots=True)
class Prepared:
    """The result of folding some messages; nothing is emitted or written yet.

    pages: judged pages, in order.
    decider: decider in force after the messages. decider_change: the last message, if it names another decider.
    dropped, duplicates, accepted, skipped: sums of `Account`.
    foreign: number of messages meant for another log.
    controls: other control records with their offsets.
    expired: number of URLs that were dropped for their age.
    """

    outcome: Outcome
    writes: Writes
    next_offset: int
    log_time: int
    emitted_to: int
    pages: list[CountedRecord]
    decider: Decider
    decider_change: NewDecider | None = None
    dropped: int = 0
    duplicates: int = 0
    accepted: int = 0
    foreign: int = 0
    skipped: list[str] = field(default_factory=list)
    controls: list[tuple[int, Control]] = field(default_factory=list)
    takedowns: list[FoldedTakedown] = field(default_factory=list)
    sweep: Sweep = field(default_factory=Sweep)
    expired: int = 0
    log_program: str = ""
    #: Of the message, for shards; None where the decider has no shards.
    effects: Effects | None = None

    @property
    def verdicts(self) -> BatchVerdicts:
        return self.outcome.verdicts

    def add_pages(self, offset: int, pages: list[CountedRecord]) -> None:
        """Add judged pages. offset: offset of the message of the pages."""
        self.pages += pages
        self.log_time = max([self.log_time, *(page.log_time for page in pages)])
        if pages:
            self.emitted_to = offset + 1

    def add_account(self, found: Account) -> None:
        self.dropped += found.dropped
        self.duplicates += found.duplicates
        self.accepted += found.accepted
        self.skipped += found.skipped


class Matcher:
    """Folds messages into one store.

    next_offset: offset of the next message.
    position: offset of the message being folded, for errors.
    log_time: log time, ms since 1970.
    emitted_to: offset after the last message that had verdicts.
    takedowns_to: offset after the last takedown; 0 without a takedown. Older checkpoints still contain the pages.
    decider: decider at next_offset.
    log_program: version of the program that began the log; empty if it is unknown.
    threads: number of threads that share a batch.
    heartbeat: function that is called repeatedly during long work.
    audit: function that `step` calls with the compared pages; a caller of `prepare` passes them on itself.
    shards: shards of a judge, which `step` uses.
    """

    def __init__(
        self,
        store: Store,
        decider: Decider,
        sink: VerdictSink | None = None,
        *,
        decided: Decided = lambda decision, offset: False,
        threads: int = 1,
        follows_changes: bool = True,
        log: str | None = None,
        generation: str = "",
    ) -> None:
        """Continue an index, or begin one in an empty store.

        Args:
            store: rows of the index.
            decider: decider in force at the first message of the log. A decider in the store takes precedence.
            sink: consumer of the verdicts of `step`.
            decided: function that finds the operator's decisions; by default there are none.
            threads: number of threads that share a batch.
            follows_changes: whether control records change the decider. False if the log of another generation is
                judged again.
            log: topic id of the log, which verdicts name; None for the log of a state directory.
            generation: name of the generation, which verdicts name.

        Raises:
            StateError: if the store was folded with another scheme or decider.
            OtherVersion: if a later version of the program began the log.
        """
        self._store = store
        self._sink = sink
        self._decided = decided
        self._follows_changes = follows_changes
        self.threads = threads
        self._log = log
        self._generation = generation or None
        self._log_id = ANY_LOG if log is None else bytes.fromhex(log)
        self.audit: AuditHook | None = None
        self.trace: Callable[[Trace], None] | None = None  # called for each judged page
        self.shards: ShardGroup | None = None
        names = [_LOG_TIME, _SCHEME, _DECIDER, _EMITTED_TO, _DECIDED_BY, _SWEEP, LOG_PROGRAM]
        log_time, scheme, used, emitted_to, decided_by, sweep, program = store.get_many(Family.META, names)
        self.log_program = (program or b"").decode()
        if self.log_program:
            check_program(self.log_program, "the sketch log, by its index")
        self.decider = decider if decided_by is None else Decider.from_json(decided_by.decode(), "the index")
        self.next_offset = folded_to(store)
        self.log_time = int(log_time or 0)
        self.emitted_to = int(emitted_to or 0)
        self._sweep = decode_sweep(sweep)
        self.position = self.next_offset
        self.takedowns_to = max((done.offset + 1 for done in takedowns_of(store)), default=0)
        self.window = Window(store, self.decider, self.next_offset) if self.decider.epoch else None
        self.heartbeat: Callable[[], None] = lambda: None
        for what, found, expected in (("scheme", scheme, decider.scheme), ("decider", used, self.decider.digest)):
            if found is not None and found.decode() != expected:
                raise StateError(
                    f"the index was made with {what} {found.decode()}, and this run has {expected}: other settings, or "
                    "another version of neardup; go on with those, or begin another directory"
                )

    def mark(self, source: str, partition: int = 0) -> Mark:
        """Return how far the folded log accounts for a source (32 hex digits)."""
        key = (bytes.fromhex(source), partition)
        return self._marks([key]).get(key, Mark())

    def step(self, offset: int, data: bytes) -> BatchVerdicts:
        """Fold the message at `offset` and return its verdicts.

        Raises CorruptRecord for bytes that are no message, InvariantBroken for one out of turn, SourceGap.
        """
        assert self._sink is not None
        if offset != self.next_offset:
            raise InvariantBroken(f"the matcher is at offset {self.next_offset} of the log, and was given {offset}")
        prepared = self.answered([(offset, data)])  # (1), (2)
        self._sink.emit(offset, prepared.verdicts)  # (3)
        self.apply(prepared)  # (4)
        if self.audit is not None:
            self.audit(prepared.outcome.compared)
        return prepared.verdicts

    def answered(self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Prepared:
        """Like `prepare`, with the answers of `shards` if the decider names shards; they learn the effects."""
        if self.shards is None:
            return self.prepare(messages, emit=emit)
        prepared = self.prepare(messages, emit=emit, answers=self.shards.answers(*messages[0]))
        assert prepared.effects is not None
        self.shards.learn(prepared.effects)
        return prepared

    def restore_window(self, offset: int, data: bytes) -> None:
        """Restore the window from a folded message: each one from `window.restore_from` on, up to `next_offset`."""
        assert self.window is not None
        assert offset < self.next_offset
        entry = self._decode(offset, data)
        if isinstance(entry, Message):
            self.window.restore(offset, [(page_id(offset, i), record) for i, record in enumerate(entry.records)])

    def prepare(
        self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True, answers: Sequence[Candidates] = ()
    ) -> Prepared:
        """Fold messages without writing.

        Args:
            messages: offset and bytes of each message. Offsets ascend from `next_offset` on and may have gaps. A
                message that names another decider must be the last.
            emit: whether to make verdicts. False when messages are folded again whose verdicts are committed.
            answers: answers of all shards to the one message, if the decider names shards.

        Raises:
            CorruptRecord, WrongScheme, SourceGap: if a message cannot be read, belongs to another scheme, or follows
                missing pages; each unless the operator accepted it.
            InvariantBroken: if the index contradicts itself.
        """
        entries = []
        next_offset = self.next_offset
        for offset, data in messages:
            if offset < next_offset:
                raise InvariantBroken(f"the matcher is at offset {next_offset} of the log, and was given {offset}")
            self.position = offset
            entries.append((offset, self._decode(offset, data)))
            next_offset = offset + 1
        known = self._marks(
            {(s.source, s.partition) for _, e in entries if isinstance(e, Message) for s in e.ranges},
        )
        prepared = Prepared(Outcome(), {}, next_offset, self.log_time, self.emitted_to, [], self.decider)
        prepared.sweep, prepared.log_program = self._sweep, self.log_program
        changed: dict[Key, Mark] = {}
        work = self._begin(entries, emit, answers)
        for offset, entry in entries:
            self.position = offset
            if isinstance(entry, Control):
                prepared.controls.append((offset, entry))
            elif isinstance(entry, Forget):
                removed = work.take_down(entry.takedown, offset)
                prepared.takedowns.append(
                    FoldedTakedown(offset, prepared.log_time, entry.takedown, removed.pages, removed.promoted)
                )
                if removed.emitted:
                    prepared.emitted_to = offset + 1
            elif isinstance(entry, NewDecider):
                if offset + 1 != next_offset:
                    raise InvariantBroken(f"messages follow the one at offset {offset}, which names another decider")
                if self._follows_changes:
                    prepared.decider_change, prepared.decider = entry, decider_after(self.decider, entry)
            elif isinstance(entry, Message) and not entry.meant_for(self._log_id):
                prepared.foreign += 1
            elif isinstance(entry, Message):
                prepared.log_program = prepared.log_program or entry.program
                found = self._account(offset, entry, known)
                known.update(found.marks)
                changed.update(found.marks)
                prepared.add_account(found)
                work.add([(page_id(offset, number), page.record) for number, page in found.new])
                prepared.add_pages(offset, [page for _, page in found.new])
                if self.decider.expiry_days:
                    self._sweep_when_due(work, prepared, offset, len(found.new))
            else:
                prepared.skipped.append(entry)
        prepared.outcome, writes = work.finish()
        if self.window is not None:
            prepared.effects = self.window.effects(next_offset - 1, work.effects)
        prepared.verdicts.name_origin(self._log, self._generation)
        meta: dict[bytes, bytes | None] = {
            **writes.get(Family.META, {}),
            **{_mark_key(*key): _MARK.pack(mark.offset, mark.position or 0) for key, mark in changed.items()},
            _NEXT: b"%d" % next_offset,
            _LOG_TIME: b"%d" % prepared.log_time,
            _EMITTED_TO: b"%d" % prepared.emitted_to,
            _SCHEME: prepared.decider.scheme.encode(),
            _DECIDER: prepared.decider.digest.encode(),
            **dict(done.row() for done in prepared.takedowns),
        }
        if not self.next_offset:
            meta[PROGRAM] = own_version().encode()
        if prepared.log_program != self.log_program:
            meta[LOG_PROGRAM] = prepared.log_program.encode()
        if self.decider.expiry_days:  # not only if it changed: from batch to batch it may be what it was
            meta[_SWEEP] = prepared.sweep.encode()
        if prepared.decider is not self.decider:
            meta[_DECIDED_BY] = prepared.decider.to_json().encode()
        if self.window is not None and prepared.effects is not None:
            meta |= self.window.rows(prepared.effects)
        prepared.writes = {**writes, Family.META: meta}
        return prepared

    def _begin(
        self, entries: Sequence[tuple[int, Message | Word | str]], emit: bool, answers: Sequence[Candidates]
    ) -> BatchFold:
        """Start the fold of some messages; with shards, of the one message that they have answered."""
        pages: Records = ()
        if self.window is not None:
            if len(entries) != 1:
                raise InvariantBroken(f"a judge takes one message at a time, and was given {len(entries)}")
            ((offset, entry),) = entries
            records = entry.records if isinstance(entry, Message) else ()
            pages = [(page_id(offset, i), record) for i, record in enumerate(records)]
        store, make_reads = self._judged_over(self.position, answers, pages)
        return BatchFold(
            store,
            self.decider,
            emit=emit,
            audit=emit and self.audit is not None,
            threads=self.threads,
            heartbeat=self.heartbeat,
            make_reads=make_reads,
            note=ignore if self.window is None else self.window.note,
            trace=self.trace,
        )

    def query(self, record: bytes, answers: Sequence[Candidates] = ()) -> Verdict:
        """Return the verdict that a message of this one sketch would give. Changes nothing.

        answers: answers of all shards to a message at `next_offset`, if the decider names shards.
        """
        store, make_reads = self._judged_over(self.next_offset, answers)
        batch = [(page_id(self.next_offset, 0), record)]
        if make_reads is None:
            return fold(batch, store, self.decider).verdicts[0]
        return fold_as_judge(batch, store, self.decider, make_reads=make_reads).verdicts[0]

    def _judged_over(
        self, offset: int, answers: Sequence[Candidates], pages: Records | None = None
    ) -> tuple[Reader, MakeReads | None]:
        """Return the rows over which the message at `offset` is judged: without a window, those of the store.

        Args:
            offset: offset of the message.
            answers: answers of all shards to the message.
            pages: pages of the message; None if it is a query, and no message of the log.
        """
        if self.window is None:
            return self._store, None
        self.window.check(offset, answers)
        self.window.begin(offset, pages)
        return self.window.reader, self.window.reads(answers)

    def apply(self, prepared: Prepared) -> None:
        """Write the store and continue behind the messages."""
        if self.window is None or prepared.effects is None:
            self._store.write(prepared.writes)
        else:
            self._store.write(without_window(prepared.writes))
            self.window.end(prepared.effects, prepared.writes)
        self.next_offset = prepared.next_offset
        self.log_time = prepared.log_time
        self.emitted_to = prepared.emitted_to
        self.decider = prepared.decider
        self.log_program = prepared.log_program
        self._sweep = prepared.sweep
        if prepared.takedowns:
            self.takedowns_to = prepared.takedowns[-1].offset + 1

    def _sweep_when_due(self, work: BatchFold, prepared: Prepared, offset: int, pages: int) -> None:
        """Expire old pages if it is time. pages: number of pages of the message at the offset."""
        prepared.sweep = prepared.sweep._replace(pages=prepared.sweep.pages + pages)
        if prepared.sweep.pages >= batch_fold.PAGES_BETWEEN:
            prepared.sweep, removed = work.sweep(prepared.sweep, offset, prepared.log_time)
            prepared.expired += removed.pages

    def _decode(self, offset: int, data: bytes) -> Message | Word | str:
        """Return the message, or the reason for which the operator decided to skip it."""
        wrong: CorruptRecord | WrongScheme
        try:
            entry = decode_entry(data, offset)
            if entry.scheme.hex() == self.decider.scheme:
                return entry
            wrong = WrongScheme(
                f"the message at offset {offset} of the sketch log has scheme {entry.scheme.hex()}, and this run "
                f"{self.decider.scheme}: a sketcher with another seed or other limits wrote it"
            )
        except CorruptRecord as error:
            wrong = error
        if self._decided(Decision.SKIP_RECORD, offset):
            return str(wrong)
        raise wrong

    def _account(self, offset: int, message: Message, known: dict[Key, Mark]) -> Account:
        return account(
            message,
            offset,
            known,
            accept_gaps=lambda: self._decided(Decision.ACCEPT_GAP, offset),
            skip_records=lambda: self._decided(Decision.SKIP_RECORD, offset),
        )

    def _marks(self, keys: Iterable[Key]) -> dict[Key, Mark]:
        ordered = sorted(keys)
        values = self._store.get_many(Family.META, [_mark_key(*key) for key in ordered])
        pairs = zip(ordered, values, strict=True)
        return {key: Mark(*_MARK.unpack(value)) for key, value in pairs if value is not None}


def folded_to(store: Store) -> int:
    """Return the offset of the message that a store must fold next."""
    (value,) = store.get_many(Family.META, [_NEXT])
    return int(value or 0)


def _mark_key(source: bytes, partition: int) -> bytes:
    return b"mark:" + source + partition.to_bytes(4, "big")
