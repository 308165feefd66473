"""The matcher: messages of the sketch log in, verdicts and the index out. One at a time, in the log's order.

Each message: (1) read and decode it; (2) fold it, a pure function of the message and the store; (3) emit its verdicts;
(4) write the store, its next offset in the same atomic batch. A crash after 1 or 2 leaves nothing behind; after 3 the
verdicts may be out while the store knows nothing of the message: it is folded again, gives the same verdicts, and the
sink takes them for the same offset; after 4 the message is done. Never 4 before 3: a page would match itself after a
crash. What the store has written is durable only after its `flush`: a crash may take the store back by whole messages,
and the log folds it forward again.

1 and 2 are `prepare`, 4 is `apply`; several messages may go through them at once, and the results are the same.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from neardup.clusters.choice import Weighed
from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, StateError
from neardup.fold import Outcome
from neardup.index.base import Family, Store, Writes
from neardup.sketch.header import Header
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
    page_id,
)
from streams.pipeline import expiry
from streams.pipeline.accounting import Account, Key, Mark, account
from streams.pipeline.deciders import after_word
from streams.pipeline.expiry import Sweep
from streams.pipeline.judging import Judging
from streams.pipeline.takedowns import Done, takedowns_of
from streams.ports import VerdictSink

__all__ = ["Mark", "Matcher", "Prepared", "Settled", "folded_to"]

_NEXT, _LOG_TIME, _SCHEME, _DECIDER, _TOLD = b"next", b"log_time", b"scheme", b"decider", b"told"
#: Versions of the programs that began the index, and the log, as its first message says.
PROGRAM, LOG_PROGRAM = b"program", b"log_program"
_SWEEP = b"sweep"  # where dropping what nobody has seen stands, if the decider has a horizon
_DECIDED_BY = b"decided_by"  # the decider as JSON, once an operator's word has named another one than the first
_MARK = struct.Struct("<qq")

#: Told what was weighed for the pages of some messages, once their verdicts are out. It must not raise.
Watch = Callable[[Sequence[Weighed]], None]
#: Whether an operator decided so about the message at an offset, anywhere later in the log.
Settled = Callable[[Decision, int], bool]


@dataclass(slots=True)
class Prepared:
    """What some messages lead to; nothing is emitted or written yet.

    headers: of the pages judged, in order. controls: operators' words among the messages, with their offsets. word: the
    last message, if it names another decider. decider: what decides behind the messages. dropped, duplicates, accepted,
    skipped: as in Account, all messages together. foreign: messages that were meant for another log. takedowns: done.
    sweep: where sweeping stands; expired: URLs that were dropped for their age. log_program: as in Matcher.
    """

    outcome: Outcome
    writes: Writes
    next_offset: int
    log_time: int
    told: int
    headers: list[Header]
    decider: Decider
    word: NewDecider | None = None
    dropped: int = 0
    duplicates: int = 0
    accepted: int = 0
    foreign: int = 0
    skipped: list[str] = field(default_factory=list)
    controls: list[tuple[int, Control]] = field(default_factory=list)
    takedowns: list[Done] = field(default_factory=list)
    sweep: Sweep = field(default_factory=Sweep)
    expired: int = 0
    log_program: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
        return self.outcome.verdicts

    def take(self, offset: int, headers: list[Header]) -> None:
        """Pages of the message at an offset."""
        self.headers += headers
        self.log_time = max([self.log_time, *(header.log_time for header in headers)])
        if headers:
            self.told = offset + 1

    def add(self, found: Account) -> None:
        self.dropped += found.dropped
        self.duplicates += found.duplicates
        self.accepted += found.accepted
        self.skipped += found.skipped


class Matcher:
    """Folds messages into one store. next_offset: the message that must come next. log_time: ms since the epoch.

    told: the offset after the last message that had verdicts. threads: how many share a batch.
    at: the message at work, for whoever catches an error. forgot: the offset behind the last takedown, 0 if there was
    none: a checkpoint of before holds what was taken down. beat: called all the time by what takes long.
    log_program: version that began the log, "" where it does not say.
    decider: what decides there; the one given does from the log's begin on, until an operator's word names another.
    heeds: whether such words count; they do not for who judges another generation's log anew.
    log: the log's topic id, for its verdicts; None for a state directory's own. generation: for them, too. sink: for
    `step`.
    settled: for logs that operators may write to; by default nothing is. watch: by default nobody;
    `step` tells it, and whoever calls `prepare` does so with the outcome's `weighed`.
    """

    def __init__(
        self,
        store: Store,
        decider: Decider,
        sink: VerdictSink | None = None,
        *,
        settled: Settled = lambda decision, offset: False,
        threads: int = 1,
        heeds: bool = True,
        log: str | None = None,
        generation: str = "",
    ) -> None:
        """Raises StateError if the store was folded with another scheme or decider, OtherVersion if a later version
        began its log."""
        self._store = store
        self._sink = sink
        self._settled = settled
        self._heeds = heeds
        self.threads = threads
        self._log = log
        self._generation = generation or None
        self._log_id = ANY_LOG if log is None else bytes.fromhex(log)
        self.watch: Watch | None = None
        names = [_LOG_TIME, _SCHEME, _DECIDER, _TOLD, _DECIDED_BY, _SWEEP, LOG_PROGRAM]
        log_time, scheme, used, told, decided_by, sweep, program = store.get_many(Family.META, names)
        self.log_program = (program or b"").decode()
        if self.log_program:
            check_program(self.log_program, "the sketch log, by its index")
        self.decider = decider if decided_by is None else Decider.from_json(decided_by.decode(), "the index")
        self.next_offset = folded_to(store)
        self.log_time = int(log_time or 0)
        self.told = int(told or 0)
        self._sweep = expiry.decode(sweep)
        self.at = self.next_offset
        self.forgot = max((done.offset + 1 for done in takedowns_of(store)), default=0)
        self.beat: Callable[[], None] = lambda: None
        for what, found, wanted in (("scheme", scheme, decider.scheme), ("decider", used, self.decider.digest)):
            if found is not None and found.decode() != wanted:
                raise StateError(
                    f"the index was made with {what} {found.decode()}, and this run has {wanted}: other settings, or "
                    "another version of neardup; go on with those, or begin another directory"
                )

    def mark(self, source: str, partition: int = 0) -> Mark:
        """How far the folded log accounts for a source (32 hex digits)."""
        key = (bytes.fromhex(source), partition)
        return self._marks([key]).get(key, Mark())

    def step(self, offset: int, data: bytes) -> list[Verdict]:
        """Folds the message at `offset` and returns its verdicts.

        Raises CorruptRecord for bytes that are no message, InvariantBroken for one out of turn, SourceGap.
        """
        assert self._sink is not None
        if offset != self.next_offset:
            raise InvariantBroken(f"the matcher is at offset {self.next_offset} of the log, and was given {offset}")
        prepared = self.prepare([(offset, data)])  # (1), (2)
        self._sink.emit(offset, prepared.verdicts)  # (3)
        self.apply(prepared)  # (4)
        if self.watch is not None:
            self.watch(prepared.outcome.weighed)
        return prepared.verdicts

    def prepare(self, messages: Sequence[tuple[int, bytes]], *, tell: bool = True) -> Prepared:
        """Folds (offset, message) pairs; their offsets ascend from `next_offset` on, and may leave some out. Pure.

        tell: without, there are no verdicts: for messages whose verdicts are out. A message that names another decider
        must be the last.
        Raises CorruptRecord for what cannot be read, WrongScheme for another scheme's message, SourceGap, each unless
        an operator has settled it; InvariantBroken.
        """
        entries = []
        next_offset = self.next_offset
        for offset, data in messages:
            if offset < next_offset:
                raise InvariantBroken(f"the matcher is at offset {next_offset} of the log, and was given {offset}")
            self.at = offset
            entries.append((offset, self._decode(offset, data)))
            next_offset = offset + 1
        known = self._marks(
            {(s.source, s.partition) for _, e in entries if isinstance(e, Message) for s in e.ranges},
        )
        prepared = Prepared(Outcome([], {}), {}, next_offset, self.log_time, self.told, [], self.decider)
        prepared.sweep, prepared.log_program = self._sweep, self.log_program
        changed: dict[Key, Mark] = {}
        weigh = tell and self.watch is not None
        work = Judging(self._store, self.decider, tell=tell, weigh=weigh, threads=self.threads, beat=self.beat)
        for offset, entry in entries:
            self.at = offset
            if isinstance(entry, Control):
                prepared.controls.append((offset, entry))
            elif isinstance(entry, Forget):
                removed = work.forget(entry.takedown, offset)
                prepared.takedowns.append(Done.of(offset, prepared.log_time, entry.takedown, removed))
                if removed.told:
                    prepared.told = offset + 1
            elif isinstance(entry, NewDecider):
                if offset + 1 != next_offset:
                    raise InvariantBroken(f"messages follow the one at offset {offset}, which names another decider")
                if self._heeds:
                    prepared.word, prepared.decider = entry, after_word(self.decider, entry)
            elif isinstance(entry, Message) and not entry.meant_for(self._log_id):
                prepared.foreign += 1
            elif isinstance(entry, Message):
                prepared.log_program = prepared.log_program or entry.program
                found = self._account(offset, entry, known)
                known.update(found.marks)
                changed.update(found.marks)
                prepared.add(found)
                work.take([(page_id(offset, place), header.record) for place, header in found.taken])
                prepared.take(offset, [header for _, header in found.taken])
                if self.decider.expiry_days:
                    self._sweep_when_due(work, prepared, offset, len(found.taken))
            else:
                prepared.skipped.append(entry)
        prepared.outcome, writes = work.end()
        for verdict in prepared.verdicts:
            verdict.log, verdict.generation = self._log, self._generation
        meta: dict[bytes, bytes | None] = {
            **writes.get(Family.META, {}),
            **{_mark_key(*key): _MARK.pack(mark.offset, mark.position or 0) for key, mark in changed.items()},
            _NEXT: b"%d" % next_offset,
            _LOG_TIME: b"%d" % prepared.log_time,
            _TOLD: b"%d" % prepared.told,
            _SCHEME: prepared.decider.scheme.encode(),
            _DECIDER: prepared.decider.digest.encode(),
            **dict(done.row() for done in prepared.takedowns),
        }
        if not self.next_offset:
            meta[PROGRAM] = version("neardup").encode()
        if prepared.log_program != self.log_program:
            meta[LOG_PROGRAM] = prepared.log_program.encode()
        if prepared.sweep != self._sweep:
            meta[_SWEEP] = prepared.sweep.encode()
        if prepared.decider is not self.decider:
            meta[_DECIDED_BY] = prepared.decider.to_json().encode()
        prepared.writes = {**writes, Family.META: meta}
        return prepared

    def apply(self, prepared: Prepared) -> None:
        """Writes the store and goes on behind the messages."""
        self._store.write(prepared.writes)
        self.next_offset = prepared.next_offset
        self.log_time = prepared.log_time
        self.told = prepared.told
        self.decider = prepared.decider
        self.log_program = prepared.log_program
        self._sweep = prepared.sweep
        if prepared.takedowns:
            self.forgot = prepared.takedowns[-1].offset + 1

    def _sweep_when_due(self, work: Judging, prepared: Prepared, offset: int, pages: int) -> None:
        """pages: of the message at the offset."""
        prepared.sweep = prepared.sweep._replace(pages=prepared.sweep.pages + pages)
        if prepared.sweep.pages >= expiry.PAGES_BETWEEN:
            prepared.sweep, removed = work.sweep(prepared.sweep, offset, prepared.log_time)
            prepared.expired += removed.pages

    def _decode(self, offset: int, data: bytes) -> Message | Word | str:
        """The message, or why it is left out on an operator's word."""
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
        if self._settled(Decision.SKIP_RECORD, offset):
            return str(wrong)
        raise wrong

    def _account(self, offset: int, message: Message, known: dict[Key, Mark]) -> Account:
        return account(
            message,
            offset,
            known,
            accept_gaps=lambda: self._settled(Decision.ACCEPT_GAP, offset),
            skip_records=lambda: self._settled(Decision.SKIP_RECORD, offset),
        )

    def _marks(self, wanted: Iterable[Key]) -> dict[Key, Mark]:
        ordered = sorted(wanted)
        values = self._store.get_many(Family.META, [_mark_key(*key) for key in ordered])
        pairs = zip(ordered, values, strict=True)
        return {key: Mark(*_MARK.unpack(value)) for key, value in pairs if value is not None}


def folded_to(store: Store) -> int:
    """The offset of the message that a store is to be given next."""
    (value,) = store.get_many(Family.META, [_NEXT])
    return int(value or 0)


def _mark_key(source: bytes, partition: int) -> bytes:
    return b"mark:" + source + partition.to_bytes(4, "big")
