"""Rows of `neardup.rules.siblings`: a row of the `keys` family under site and naming."""

import struct

from neardup.errors import CorruptRecord
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import COUNT_MAX, Siblings
from neardup.sketch.header import Header

_ROW = struct.Struct("<BBBBBQQQ")
_KEY = struct.Struct("<BQQ")
assert COUNT_MAX < 256
#: Persisted. Format 1 had no retitled, moved, titling, place.
FORMAT = 2


def encode(siblings: Siblings) -> bytes:
    return _ROW.pack(FORMAT, *siblings)


def encode_first(tail: int, titling: int, place: int) -> bytes:
    """The row of a name that one page has alone."""
    return _ROW.pack(FORMAT, 0, 1, 0, 0, tail, titling, place)


def decode(row: bytes) -> Siblings:
    """Raises CorruptRecord for a row of another format."""
    if len(row) != _ROW.size or row[0] != FORMAT:
        raise CorruptRecord(
            f"not a naming's row of a known format: {row.hex()}; if another version made the index, set it aside: "
            "it is folded again from the log"
        )
    return Siblings(*_ROW.unpack(row)[1:])


def key_of(header: Header) -> bytes:
    """17 bytes: site and naming of a page."""
    return _KEY.pack(KeyFamily.NAMING, header.site, header.naming)
