"""The matcher: messages of the sketch log in, verdicts and the index out. One at a time, in the log's order.

Each message: (1) read and decode it; (2) fold it, a pure function of the message and the store; (3) emit its verdicts;
(4) write the store, its next offset in the same atomic batch. A crash after 1 or 2 leaves nothing behind; after 3 the
verdicts may be out while the store knows nothing of the message: it is folded again, gives the same verdicts, and the
sink takes them for the same offset; after 4 the message is done. Never 4 before 3: a page would match itself after a
crash. What the store has written is durable only after its `flush`: a crash may take the store back by whole messages,
and the log folds it forward again.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from neardup.decider import Decider
from neardup.errors import InvariantBroken, StateError
from neardup.index.base import Family, Store
from neardup.matching import fold
from neardup.record import Head
from neardup.verdict import Verdict
from streams.ports import Range, VerdictSink
from streams.records import Message, decode_message, page_id

_NEXT, _LOG_TIME, _SCHEME, _DECIDER = b"next", b"log_time", b"scheme", b"decider"
_MARK = struct.Struct("<qq")


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the log accounts for one partition of a source: next offset, and the position of the record before."""

    offset: int = 0
    position: int | None = None


class Matcher:
    """Folds messages into one store. next_offset: the message that must come next. log_time: ms since the epoch."""

    def __init__(self, store: Store, decider: Decider, sink: VerdictSink) -> None:
        """Raises StateError if the store was folded with another scheme or decider."""
        self._store = store
        self._decider = decider
        self._sink = sink
        next_offset, log_time, scheme, used = store.get_many(Family.META, [_NEXT, _LOG_TIME, _SCHEME, _DECIDER])
        self.next_offset = int(next_offset or 0)
        self.log_time = int(log_time or 0)
        for what, found, wanted in (("scheme", scheme, decider.scheme), ("decider", used, decider.digest)):
            if found is not None and found.decode() != wanted:
                raise StateError(f"the index was made with {what} {found.decode()}, and this run has {wanted}")

    def mark(self, source: str, partition: int = 0) -> Mark:
        """How far the folded log accounts for a source (32 hex digits)."""
        (value,) = self._store.get_many(Family.META, [_mark_key(bytes.fromhex(source), partition)])
        return Mark() if value is None else Mark(*_MARK.unpack(value))

    def step(self, offset: int, data: bytes) -> list[Verdict]:
        """Folds the message at `offset` and returns its verdicts.

        Raises CorruptRecord for bytes that are no message, InvariantBroken for one out of turn.
        """
        if offset != self.next_offset:
            raise InvariantBroken(f"the matcher is at offset {self.next_offset} of the log, and was given {offset}")
        message = decode_message(data, offset)  # (1)
        if message.scheme.hex() != self._decider.scheme:
            raise StateError(
                f"the message at offset {offset} has scheme {message.scheme.hex()}, and this run {self._decider.scheme}"
            )
        batch = [(page_id(offset, place), record) for place, record in enumerate(message.records)]
        outcome = fold(batch, self._store, self._decider)  # (2)
        _check_complete(batch, outcome.verdicts)
        last = Head(message.records[-1]) if message.records else None
        log_time = max(self.log_time, last.log_time if last else 0)
        meta: dict[bytes, bytes | None] = {
            **outcome.writes.get(Family.META, {}),
            **self._marks(message),
            _NEXT: b"%d" % (offset + 1),
            _LOG_TIME: b"%d" % log_time,
            _SCHEME: self._decider.scheme.encode(),
            _DECIDER: self._decider.digest.encode(),
        }
        self._sink.emit(offset, outcome.verdicts)  # (3)
        self._store.write({**outcome.writes, Family.META: meta})  # (4)
        self.next_offset = offset + 1
        self.log_time = log_time
        return outcome.verdicts

    def _marks(self, message: Message) -> Mapping[bytes, bytes]:
        marks = {}
        for span in message.ranges:
            known = self.mark(span.source.hex(), span.partition)
            if known.position is not None and known.offset != span.start:
                raise InvariantBroken(
                    f"source {span.source.hex()} goes on at {span.start}; the log accounts for it up to {known.offset}"
                )
            last = next((head for head in map(Head, reversed(message.records)) if _is_of(head, span)), None)
            position = last.position if last else known.position or 0
            marks[_mark_key(span.source, span.partition)] = _MARK.pack(span.stop, position)
        return marks


def _is_of(head: Head, span: Range) -> bool:
    return bool(head.source == span.source and head.partition == span.partition)


def _mark_key(source: bytes, partition: int) -> bytes:
    return b"mark:" + source + partition.to_bytes(4, "big")


def _check_complete(batch: list[tuple[int, bytes]], verdicts: list[Verdict]) -> None:
    """Pages in = verdicts out: each page of the batch has its own verdict, in their order."""
    told = [verdict.page_id for verdict in verdicts if verdict.n == 0]
    if told != [number for number, _ in batch]:
        raise InvariantBroken(f"{len(batch)} pages went in, {len(told)} page verdicts came out, or in another order")
