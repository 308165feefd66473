"""Encodes and decodes pieces: a payload for one message of the sketch log, cut to records of a topic.

Answers of a shard and effects of a message may be larger than one Kafka record. A piece, version 1, little-endian:
version u8, zero u8, number u16, count u16, reserved u16, offset of the log's message u64, XXH64 of the whole payload
u64; then its part of the payload.

A shard that starts again writes answers again, and its predecessor may still be writing: pieces of two writers lie
between each other. Their payloads are equal unless their programs differ, so pieces are collected by payload, and the
first payload that is complete counts.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import xxhash

from neardup.errors import CorruptRecord, OtherVersion

PIECE_VERSION = 1
#: Bytes of a payload in one piece. Kafka's default limit of a record is 1 MB, before compression.
PIECE_BYTES_MAX = 900_000

_HEAD = struct.Struct("<BBHHHQQ")


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a payload.

    offset: offset of the message in the log. number: number of the part, 0 to count - 1. digest: digest of the whole
    payload. data: bytes of the part.
    """

    offset: int
    number: int
    count: int
    digest: int
    data: bytes


def pieces_of(offset: int, payload: bytes, bytes_max: int = PIECE_BYTES_MAX) -> Iterator[bytes]:
    """Yield the pieces of the payload for the message at `offset`, in order; an empty payload has one piece."""
    count = max(1, -(-len(payload) // bytes_max))
    digest = xxhash.xxh64_intdigest(payload)
    for number in range(count):
        head = _HEAD.pack(PIECE_VERSION, 0, number, count, 0, offset, digest)
        yield head + payload[number * bytes_max : (number + 1) * bytes_max]


def decode_piece(data: bytes, where: str) -> Piece:
    """where: topic, partition and offset of the record, for errors. Raises CorruptRecord, OtherVersion."""
    if not data:
        raise CorruptRecord(f"{where}: an empty record is no piece")
    if data[0] != PIECE_VERSION:
        raise OtherVersion(f"{where}: a piece of version {data[0]}; this program reads version {PIECE_VERSION}")
    if len(data) < _HEAD.size:
        raise CorruptRecord(f"{where}: {len(data)} bytes are no piece")
    _, _, number, count, _, offset, digest = _HEAD.unpack_from(data)
    if number >= count:
        raise CorruptRecord(f"{where}: piece {number} of {count}")
    return Piece(offset, number, count, digest, data[_HEAD.size :])


@dataclass(slots=True)
class Collected:
    """Pieces of one message's payloads, until one payload is complete."""

    parts: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)

    def add(self, piece: Piece, where: str) -> bytes | None:
        """Return the payload if this piece completes it. Raises CorruptRecord if its digest is another."""
        parts = self.parts.setdefault((piece.digest, piece.count), [])
        if piece.number != len(parts):
            return None  # a repeated piece, or one of a payload whose first pieces were written before the reader began
        parts.append(piece.data)
        if len(parts) < piece.count:
            return None
        payload = b"".join(parts)
        if xxhash.xxh64_intdigest(payload) != piece.digest:
            raise CorruptRecord(f"{where}: the payload for message {piece.offset} of the log has another digest")
        return payload
