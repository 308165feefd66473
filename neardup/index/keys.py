"""Keys of the `keys` family and the rows under them: digests and posting lists.

A similarity key is 7 bytes (`neardup.rules.families`). A digest's key is 17 bytes, the whole digest, because equal keys
mean equal pages there.

A posting list, oldest posting first. Lengths are `neardup.sketch.header.log_length`; numbers are big-endian.

    +---+-------------+-----------------+-------------------------+-----
    | 1 | page id (6) | tape length (1) | content tape length (1) | ...
    +---+-------------+-----------------+-------------------------+-----

A hot list has format 2 and keeps its first few postings: pages of other sites still have them as candidates, so that a
site that makes a key hot hides no older page.
"""

import struct
from collections.abc import Sequence

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.rules.families import KeyFamily
from neardup.sketch.header import Header


def digest_key(header: Header) -> bytes:
    """Key of the row of a page's digest; b"" if it has none."""
    if not header.digest:
        return b""
    return (_OPAQUE if header.opaque else _DIGEST) + header.digest


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


def posting(page_id: int, header: Header) -> bytes:
    """8 bytes: page id, log-length of the tape, log-length of the content tape."""
    return _POSTING.pack(word_of(page_id, header))


def word_of(page_id: int, header: Header) -> int:
    """A page's posting as a number: page id << 16 | tape log-length << 8 | content log-length."""
    tape, content = header.tape_logs
    return page_id << 16 | tape << 8 | content


def postings(row: bytes | None) -> Sequence[int]:
    """The postings of a row as words: page id << 16 | tape log-length << 8 | content log-length; of a hot one the few
    that it keeps.
    """
    if row is None or row == _HOT:
        return ()
    if len(row) % POSTING_BYTES != 1 or row[:1] not in (_LIST, _HOT):
        raise CorruptRecord(f"not a posting list of a known format: {row[:9].hex()}, {len(row)} bytes")
    return struct.unpack_from(f">{len(row) // POSTING_BYTES}Q", row, 1)


def is_hot(row: bytes | None) -> bool:
    return row is not None and row[:1] == _HOT


def with_posting(row: bytes | None, entry: bytes, postings_max: int, kept: int) -> bytes:
    """The row after one more posting; hot, for ever, if there would be more than `postings_max`: the first are kept."""
    if row is None:
        return _LIST + entry if postings_max else _HOT
    if is_hot(row):
        return row
    if len(row) // POSTING_BYTES >= postings_max:
        return _HOT + row[1 : 1 + POSTING_BYTES * kept]
    return row + entry


def without_posting(row: bytes | None, entry: bytes) -> bytes | None:
    """The row after a posting left; None if it was the last. A hot row stays, and need not have it.

    Raises InvariantBroken if the posting is not there.
    """
    at = -1 if row is None else _index(row, entry)
    if row is None or at < 0:
        if is_hot(row):
            return row
        raise InvariantBroken(f"posting {entry.hex()} is not where it was put")
    left = row[:at] + row[at + POSTING_BYTES :]
    return None if left == _LIST else left


def _index(row: bytes, entry: bytes) -> int:
    for at in range(1, len(row), POSTING_BYTES):
        if row[at : at + POSTING_BYTES] == entry:
            return at
    return -1
