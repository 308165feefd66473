"""Keys of the `keys` family: which a page posts and probes, and the rows under them.

A similarity key is 7 bytes: one names family and place, six are the low bytes of the fingerprint (two pages whose
fingerprints differ only above them meet once in 2**48 pairs, and are then told apart by verification). A digest's key
is 17 bytes, the whole digest, because equal keys mean equal pages there.

A posting list is one format byte and postings of 8 bytes each, oldest first: page id (6 bytes, big-endian),
log-length of the tape, log-length of the content tape (`neardup.sketch.header.log_length`). A hot list is its format
byte alone.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from itertools import combinations

import numpy as np

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.sketch.header import Head, field_at
from neardup.sketch.layout import HEADER, RecordFlag


class KeyFamily(IntEnum):
    """First byte of a key, for place 0. Persisted: values never change."""

    DIGEST = 0x01  # of a token sequence
    OPAQUE = 0x02  # of an opaque body
    DIGEST_MORE = 0x03  # live pages of a digest beyond those that its row lists
    OPAQUE_MORE = 0x04
    NAMING = 0x05  # pages of a site by what they call themselves: neardup.namings
    HEAD = 0x10  # the first 8 tokens
    PLACE = 0x60  # site, words of title and heading, end of the URL
    SUPERSHINGLE = 0x20  # 6 places: algorithm B's, of 14 minvalues
    WIDE = 0x30  # 8 places: supershingles of few minvalues
    LOGTF = 0x40  # 6 places: 32-bit blocks of the log-tf simhash
    BLOCK = 0x50  # 12 places: 32-bit blocks of algorithm C's vector
    MANKU = 0x80  # 56 places: 3 of the 8 bytes of C's first 64 bits


#: Similarity keys that each rule posts and probes. Other keys would need a new generation.
FAMILIES: dict[str, tuple[KeyFamily, ...]] = {
    "shingling": (KeyFamily.SUPERSHINGLE,),
    "simhash": (KeyFamily.BLOCK,),
    "combined": (KeyFamily.SUPERSHINGLE,),
    "site-split": (KeyFamily.SUPERSHINGLE, KeyFamily.BLOCK),
    "simhash64": (KeyFamily.MANKU,),
    "tape": (KeyFamily.HEAD, KeyFamily.WIDE, KeyFamily.LOGTF),
    "verified": (KeyFamily.PLACE, KeyFamily.HEAD, KeyFamily.WIDE, KeyFamily.LOGTF),
}

#: Rules that read tapes: thin pages are no candidates, nor are pages of too different a length.
TAPE_RULES = frozenset({"tape", "verified"})

_KEY_BYTES = 6
#: Of a similarity key, its family included.
SIMILARITY_BYTES = 1 + _KEY_BYTES
#: (family byte, offset of the fingerprint in a record, bytes of it)
_Slice = tuple[bytes, int, int]


def _slices(family: KeyFamily, name: str, places: int, step: int, size: int) -> list[_Slice]:
    return [(bytes([family + place]), field_at(name) + step * place, size) for place in range(places)]


_SLICES: dict[KeyFamily, list[_Slice]] = {
    KeyFamily.HEAD: _slices(KeyFamily.HEAD, "head", 1, 8, _KEY_BYTES),
    KeyFamily.PLACE: _slices(KeyFamily.PLACE, "place", 1, 8, _KEY_BYTES),
    KeyFamily.SUPERSHINGLE: _slices(KeyFamily.SUPERSHINGLE, "supershingles", 6, 8, _KEY_BYTES),
    KeyFamily.WIDE: _slices(KeyFamily.WIDE, "wide", 8, 8, _KEY_BYTES),
    KeyFamily.LOGTF: _slices(KeyFamily.LOGTF, "logtf", 6, 4, 4),
    KeyFamily.BLOCK: _slices(KeyFamily.BLOCK, "simhash", 12, 4, 4),
}
_SIMHASH = field_at("simhash")
# Manku 2007, section 3: cut 64 bits in 8 blocks, one table for every choice of 3. Two vectors that differ in at most
# 5 bits agree in at least 3 whole blocks, so they meet; 24 bits keep the lists of 10**7 pages short.
_MANKU = [(bytes([KeyFamily.MANKU + i]), *places) for i, places in enumerate(combinations(range(8), 3))]


def similarity_keys(head: Head, decider: Decider) -> list[bytes]:
    """The 7-byte keys under which a page is posted and looked for, in a fixed order; none for a page without tokens.

    The rules that read tapes post no thin pages either: they never merge them but by their digest.
    """
    fewest = decider.thin_tokens if decider.rule in TAPE_RULES else 1
    if head.opaque or head.tokens < max(1, fewest):
        return []
    record = head.record
    if decider.rule == "simhash64":
        word = record[_SIMHASH : _SIMHASH + 8]
        return [first + bytes((word[a], word[b], word[c], 0, 0, 0)) for first, a, b, c in _MANKU]
    return [
        first + record[at : at + size] if size == _KEY_BYTES else first + record[at : at + size] + b"\0\0"
        for first, at, size in _slices_of(*_choice(decider))
    ]


def posts_the_same(one: Decider, other: Decider) -> bool:
    """Whether two deciders post and probe the same similarity keys of a page that both post."""
    return FAMILIES[one.rule] == FAMILIES[other.rule] and _choice(one)[1:] == _choice(other)[1:]


def _choice(decider: Decider) -> tuple[str, int, int]:
    """A rule, and how many keys of the families that it may post in part; -1: all."""
    if decider.rule in TAPE_RULES:
        return decider.rule, decider.supershingles_posted, decider.blocks_posted
    return decider.rule, -1, -1


@cache
def _slices_of(rule: str, supershingles: int, blocks: int) -> tuple[_Slice, ...]:
    parts = _SLICES
    if rule in TAPE_RULES:
        wide, logtf = _SLICES[KeyFamily.WIDE][:supershingles], _SLICES[KeyFamily.LOGTF][:blocks]
        parts = _SLICES | {KeyFamily.WIDE: wide, KeyFamily.LOGTF: logtf}
    return tuple(part for family in FAMILIES[rule] for part in parts[family])


@cache
def _bytes_of(rule: str, supershingles: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """First bytes of a rule's keys, uint8[keys], and places of the others in a record, int64[keys, 6]; -1: a zero."""
    if rule == "simhash64":
        first = [part[0][0] for part in _MANKU]
        places = [[_SIMHASH + at for at in part[1:]] + [-1] * 3 for part in _MANKU]
    else:
        slices = _slices_of(rule, supershingles, blocks)
        first = [part[0][0] for part in slices]
        places = [[at + i if i < size else -1 for i in range(_KEY_BYTES)] for _, at, size in slices]
    return np.array(first, dtype=np.uint8), np.array(places, dtype=np.int64)


def similarity_columns(headers: np.ndarray, decider: Decider) -> tuple[np.ndarray, np.ndarray]:
    """`similarity_keys` of many pages. headers: HEADER[pages].

    -> bool[pages]: which have keys; uint64[pages with keys, keys]: the bytes of each as a number, which order alike.
    """
    fewest = decider.thin_tokens if decider.rule in TAPE_RULES else 1
    posted = (headers["flags"] & RecordFlag.OPAQUE == 0) & (headers["tokens"] >= max(1, fewest))
    first, places = _bytes_of(*_choice(decider))
    raw = headers[posted].view(np.uint8).reshape(-1, HEADER.itemsize)
    out = np.zeros((len(raw), *places.shape[:1], 8), dtype=np.uint8)
    out[:, :, 1] = first
    out[:, :, 2:] = raw[:, places.reshape(-1)].reshape(-1, *places.shape)
    out[:, :, 2:][:, places < 0] = 0
    return posted, out.view(">u8")[:, :, 0].astype(np.uint64)


def keys_of_columns(columns: np.ndarray) -> list[bytes]:
    """The keys of one dimension of `similarity_columns`."""
    raw = columns.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 1:]
    out: list[bytes] = np.ascontiguousarray(raw).view("V7")[:, 0].tolist()
    return out


def family_of(key: bytes) -> KeyFamily:
    """The family that a key of the `keys` family belongs to."""
    first = key[0]
    if first >= KeyFamily.MANKU:
        return KeyFamily.MANKU
    return KeyFamily(first & 0xF0 if first >= KeyFamily.HEAD else first)


def families_of(decider: Decider) -> list[str]:
    """Names of the families of a page's similarity keys, in their order."""
    return [family_of(bytes([first])).name.lower() for first in _bytes_of(*_choice(decider))[0].tolist()]


def digest_key(head: Head) -> bytes:
    """Key of the row of a page's digest; b"" if it has none."""
    if not head.digest:
        return b""
    return (_OPAQUE if head.opaque else _DIGEST) + head.digest


#: The row of a page under `more_prefix`.
MORE = b"\x01"
_DIGEST, _OPAQUE = bytes([KeyFamily.DIGEST]), bytes([KeyFamily.OPAQUE])


def more_prefix(digest: bytes) -> bytes:
    """Prefix of the keys of a digest's further live pages; 8 bytes of page id follow."""
    return bytes([digest[0] + (KeyFamily.DIGEST_MORE - KeyFamily.DIGEST)]) + digest[1:]


# ---- posting lists -------------------------------------------------------------------------------------------------

_LIST, _HOT = b"\x01", b"\x02"
HOT = _HOT
POSTING_BYTES = 8
_POSTING = struct.Struct(">Q")


def posting(page_id: int, head: Head) -> bytes:
    """8 bytes: page id, log-length of the tape, log-length of the content tape."""
    return _POSTING.pack(word_of(page_id, head))


def word_of(page_id: int, head: Head) -> int:
    """A page's posting as a number: page id << 16 | tape log-length << 8 | content log-length."""
    tape, content = head.tape_logs
    return page_id << 16 | tape << 8 | content


def postings(row: bytes | None) -> Sequence[int]:
    """The postings of a row as words: page id << 16 | tape log-length << 8 | content log-length. None if hot."""
    if row is None or row == _HOT:
        return ()
    if len(row) % POSTING_BYTES != 1 or row[0] != 1:
        raise CorruptRecord(f"not a posting list of a known format: {row[:9].hex()}, {len(row)} bytes")
    return struct.unpack_from(f">{len(row) // POSTING_BYTES}Q", row, 1)


def with_posting(row: bytes | None, entry: bytes, postings_max: int) -> bytes:
    """The row after one more posting; hot, for ever, if there would be more than `postings_max`."""
    if row is None:
        return _LIST + entry if postings_max else _HOT
    if row == _HOT or len(row) // POSTING_BYTES >= postings_max:
        return _HOT
    return row + entry


def without_posting(row: bytes | None, entry: bytes) -> bytes | None:
    """The row after a posting left; None if it was the last. A hot row stays, and nothing is there to take out.

    Raises InvariantBroken if the posting is not there.
    """
    if row == _HOT:
        return row
    at = -1 if row is None else _index(row, entry)
    if row is None or at < 0:
        raise InvariantBroken(f"posting {entry.hex()} is not where it was put")
    return None if len(row) == 1 + POSTING_BYTES else row[:at] + row[at + POSTING_BYTES :]


def _index(row: bytes, entry: bytes) -> int:
    for at in range(1, len(row), POSTING_BYTES):
        if row[at : at + POSTING_BYTES] == entry:
            return at
    return -1
