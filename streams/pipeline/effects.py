"""Reads effects: what each message of the sketch log changes in the shards, in the log's order."""

import json
from collections import deque

from neardup.errors import CorruptRecord
from neardup.index.column_families import Family, Store
from neardup.sharded.messages import Effects
from streams.errors import TopicError
from streams.formats.pieces import Collected, decode_piece
from streams.ports import SketchLog

#: Where to read on, in a shard's META family: topic id and offset in the topic.
_POSITION = b"effects_at"
_RECORDS, _BYTES_MAX = 64, 16 << 20


class EffectsReader:
    """The topic `effects`, for one shard. next_offset: offset of the log behind the last message whose effects were
    read; 0 before the first.

    The judge writes them in transactions, each message's once, so they ascend.
    """

    def __init__(self, source: SketchLog, store: Store) -> None:
        """source: committed records of the topic. store: the shard's.

        Raises BrokerError, TopicError if the rows were made from another topic of this name that held more.
        """
        self.name = source.topic.name
        self.next_offset = 0
        self._source = source
        self._kept: bytes | None = None
        self._collected = Collected()
        #: (message, position of its first record) of effects that may not be in the rows yet.
        self._read: deque[tuple[int, int]] = deque()
        begin, end = source.first_offset(), source.end()
        (row,) = store.get_many(Family.META, [_POSITION])
        kept = json.loads(row) if row is not None else {}
        at = int(kept["at"]) if kept.get("topic") == source.topic.id.hex() else begin
        if at > end:
            raise TopicError(
                f"topic {self.name} ends at offset {end}, and {at} is to be read: records were lost with a broker; "
                "restore the topic"
            )
        source.follow(max(begin, at))

    def read(self, wait_s: float = 0.0) -> list[Effects]:
        """Return the effects of the next messages; none if there are none after `wait_s`. Raises CorruptRecord."""
        found = []
        for position, value in self._source.poll(_RECORDS, bytes_max=_BYTES_MAX, wait_s=wait_s):
            where = f"topic {self.name}, offset {position}"
            piece = decode_piece(value, where)
            if piece.offset < self.next_offset:
                continue
            if not piece.number:
                self._read.append((piece.offset, position))
            payload = self._collected.add(piece, where)
            if payload is None:
                continue
            self._collected = Collected()
            effects = Effects.decode(payload)
            if effects.offset != piece.offset:
                raise CorruptRecord(f"{where}: effects of message {effects.offset} in a piece for {piece.offset}")
            self.next_offset = piece.offset + 1
            found.append(effects)
        return found

    def keep_position(self, store: Store, effects_position: int) -> None:
        """Write where to read on into the store, whose rows contain the effects of messages before the position."""
        while self._read and self._read[0][0] < effects_position:
            self._read.popleft()
        at = self._read[0][1] if self._read else self._source.position()
        row = json.dumps({"topic": self._source.topic.id.hex(), "at": at}).encode()
        if row != self._kept:
            store.write({Family.META: {_POSITION: row}})
            self._kept = row
