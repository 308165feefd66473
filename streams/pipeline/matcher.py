"""The matcher: folds messages of the sketch log into the index, in order.

`prepare` folds some messages: a pure function of the messages and the store. `apply` writes the result and the next
offset into the store, in one atomic batch. However the messages are cut into calls, verdicts and rows are the same.
Between the two, the verdicts are emitted: `streams.pipeline.follow` has the steps, and what a crash leaves behind.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, StateError
from neardup.fold import Outcome, Trace, fold
from neardup.index.column_families import Family, Store, Writes
from neardup.matching.batch_verdicts import BatchVerdicts
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
from streams.pipeline.batch_fold import BatchFold, Sweep, decode_sweep
from streams.pipeline.control_records import decider_after
from streams.pipeline.folded_takedowns import FoldedTakedown, takedowns_of

#: Bytes of messages that are folded together, at most: seven full ones. Rows of more leave the processor's caches.
FOLD_BYTES_MAX = 6 << 20

_NEXT, _LOG_TIME, _SCHEME, _DECIDER, _EMITTED_TO = b"next", b"log_time", b"scheme", b"decider", b"emitted_to"
#: Versions of the programs that began the index, and the log (from its first message).
PROGRAM, LOG_PROGRAM = b"program", b"log_program"
_SWEEP = b"sweep"  # state of expiry, if the decider has a horizon
_DECIDED_BY = b"decided_by"  # the decider as JSON, once a control record has changed it
_MARK = struct.Struct("<qq")


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
    keeps_compared: whether `prepare` keeps the compared pages, for an audit.
    """

    def __init__(
        self,
        store: Store,
        decider: Decider,
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
        self._decided = decided
        self._follows_changes = follows_changes
        self.threads = threads
        self._log = log
        self._generation = generation or None
        self._log_id = ANY_LOG if log is None else bytes.fromhex(log)
        self.keeps_compared = False
        self.trace: Callable[[Trace], None] | None = None  # called for each judged page
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

    def prepare(self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Prepared:
        """Fold messages without writing.

        Args:
            messages: offset and bytes of each message. Offsets ascend from `next_offset` on and may have gaps. A
                message that names another decider must be the last.
            emit: whether to make verdicts. False when messages are folded again whose verdicts are committed.

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
        work = BatchFold(
            self._store,
            self.decider,
            emit=emit,
            audit=emit and self.keeps_compared,
            threads=self.threads,
            heartbeat=self.heartbeat,
            trace=self.trace,
        )
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
        prepared.writes = {**writes, Family.META: meta}
        return prepared

    def query(self, record: bytes) -> Verdict:
        """Return the verdict that a message of this one sketch would give. Changes nothing."""
        return fold([(page_id(self.next_offset, 0), record)], self._store, self.decider).verdicts[0]

    def apply(self, prepared: Prepared) -> None:
        """Write the store and continue behind the messages."""
        self._store.write(prepared.writes)
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
