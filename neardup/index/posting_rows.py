"""Rows of the `keys` family under a similarity key (7 bytes, `neardup.rules.key_families`): posting lists.

A posting list has its oldest posting first. Lengths are `neardup.sketch.header.log_length`; numbers are big-endian.

    +---+-------------+-----------------+-------------------------+--------------+-----
    | 1 | page id (6) | tape length (1) | content tape length (1) | site tag (1) | ...
    +---+-------------+-----------------+-------------------------+--------------+-----

A list that grows too long turns hot for ever: format 2. A hot list keeps one posting a site, of a few sites.
Pages of other sites still have them as candidates. So one site that makes a key hot hides no page of another site,
older or newer.
"""

import struct
from collections.abc import Sequence

from neardup.errors import CorruptRecord
from neardup.sketch.header import Header

_LIST, HOT = b"\x01", b"\x02"
POSTING_BYTES = 9
_POSTING = struct.Struct(">QB")
_SPREAD, _MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9  # SplitMix64 (Steele, Lea, Flood 2014)


def posting(page_id: int, header: Header, key: bytes) -> bytes:
    """A page's posting under a key."""
    return _POSTING.pack(word_of(page_id, header), header.site * salt_of(key[0]) % 2**64 >> 56)


def word_of(page_id: int, header: Header) -> int:
    """A page's posting without the tag: page id << 16 | tape log-length << 8 | content log-length."""
    tape, content = header.tape_logs
    return page_id << 16 | tape << 8 | content


def salt_of(first: int) -> int:
    """Factor of the site tags under keys with this first byte. A site's tag is the high byte of fingerprint * salt.

    Salts differ within a family, so two sites whose tags are equal under one key differ under the others.
    """
    word = _SPREAD * ((first & 15) + 1) % 2**64
    word = (word ^ word >> 30) * _MIX % 2**64
    return word ^ word >> 27 | 1


def postings(row: bytes | None) -> Sequence[int]:
    """The postings of a row as words (`word_of`); of a hot row the few that it keeps."""
    return [word for word, _ in _POSTING.iter_unpack(b"".join(_entries(row)))]


def is_hot(row: bytes | None) -> bool:
    return row is not None and row[:1] == HOT


def _entries(row: bytes | None) -> Sequence[bytes]:
    if row is None or row == HOT:
        return ()
    if len(row) % POSTING_BYTES != 1 or row[:1] not in (_LIST, HOT):
        raise CorruptRecord(f"not a posting list of a known format: {row[:9].hex()}, {len(row)} bytes")
    return [row[at : at + POSTING_BYTES] for at in range(1, len(row), POSTING_BYTES)]
