"""How many pages of a site go by one name: where many do, their title and heading do not tell them apart.

A row of the `keys` family under site and naming. Counts only grow, and only with first sightings of URLs whose content
is new, so they are a function of the log's prefix however it is cut. They end at 255: more tells no more.
"""

import struct
from typing import NamedTuple

import numpy as np

from neardup.errors import CorruptRecord
from neardup.index.keys import KeyFamily
from neardup.record import Head

COUNT_MAX = 255
_ROW = struct.Struct("<BBBQ")
_KEY = struct.Struct("<BQQ")
#: A row as a column's type.
ROW = np.dtype([("format", "u1"), ("others", "u1"), ("alike", "u1"), ("tail", "<u8")])


class Siblings(NamedTuple):
    """Pages of one site and one naming. tail: of the first one's URL; alike: pages with it; others: the other pages.

    Releases and languages of one page end alike; pages about different things, of one template, do not.
    """

    others: int = 0
    alike: int = 0
    tail: int = 0

    def encode(self) -> bytes:
        return _ROW.pack(1, *self)

    def with_one(self, tail: int) -> "Siblings":
        """The row after one more page."""
        if not self.alike:
            return Siblings(0, 1, tail)
        if tail == self.tail:
            return self._replace(alike=min(COUNT_MAX, self.alike + 1))
        return self._replace(others=min(COUNT_MAX, self.others + 1))


NO_SIBLINGS = Siblings()


def decode(row: bytes) -> Siblings:
    if len(row) != _ROW.size or row[0] != 1:
        raise CorruptRecord(f"not a naming's row of a known format: {row.hex()}")
    return Siblings(*_ROW.unpack(row)[1:])


def key_of(head: Head) -> bytes:
    """17 bytes: site and naming of a page."""
    return _KEY.pack(KeyFamily.NAMING, head.site, head.naming)
