"""How many pages of a site go by one name: where many do, their title and heading do not tell them apart.

A row of the `keys` family under site and naming. Counts only grow, and only with first sightings of URLs whose content
is new, so they are a function of the log's prefix however it is cut. They end at 255 pages: more tell no more.
"""

import struct
from typing import NamedTuple, Protocol

import numpy as np

from neardup.errors import CorruptRecord
from neardup.index.keys import KeyFamily
from neardup.sketch.header import Head

COUNT_MAX = 255
_ROW = struct.Struct("<BBBBBQQQ")
_KEY = struct.Struct("<BQQ")
#: A row as a column's type.
ROW = np.dtype(
    [
        *((name, "u1") for name in ("format", "others", "alike", "retitled", "moved")),
        *((name, "<u8") for name in ("tail", "titling", "place")),
    ]
)
#: Persisted. Format 1 had no retitled, moved, titling, place.
FORMAT = 2


class Siblings(NamedTuple):
    """Pages of one site and one naming. tail, titling, place: the first one's; alike: pages of its tail; others: the
    other pages; retitled, moved: pages of another titling, of another place (see `neardup.sketch.layout.HEADER`).

    Releases and languages of one page end alike; pages about different things, of one template, do not.
    """

    others: int = 0
    alike: int = 0
    retitled: int = 0
    moved: int = 0
    tail: int = 0
    titling: int = 0
    place: int = 0

    @property
    def titles_tell(self) -> bool:
        """Whether most of the pages have other titles than the first: in digits or punctuation, which no naming has."""
        return 2 * self.retitled > self.others + self.alike

    @property
    def paths_tell(self) -> bool:
        """Whether most of the pages lie elsewhere than the first: queries are not what tells them apart."""
        return 2 * self.moved > self.others + self.alike

    def encode(self) -> bytes:
        return _ROW.pack(FORMAT, *self)

    def with_one(self, head: "Named") -> "Siblings":
        """The row after one more page."""
        if not self.alike:
            return Siblings(0, 1, 0, 0, head.tail, head.titling, head.place)
        others, alike, retitled, moved, tail, titling, place = self
        if others + alike >= COUNT_MAX:
            return self
        same = head.tail == tail
        retitled += head.titling != titling
        moved += head.place != place
        return Siblings(others + (not same), alike + same, retitled, moved, tail, titling, place)

    @property
    def full(self) -> bool:
        """Whether more pages change nothing."""
        return self.others + self.alike >= COUNT_MAX


class Named(Protocol):
    """What of a page counts beside its site and naming: see `neardup.sketch.layout.HEADER`."""

    @property
    def tail(self) -> int: ...
    @property
    def titling(self) -> int: ...
    @property
    def place(self) -> int: ...


class Names(NamedTuple):
    """`Named` without the page."""

    tail: int
    titling: int
    place: int


NO_SIBLINGS = Siblings()


def decode(row: bytes) -> Siblings:
    if len(row) != _ROW.size or row[0] != FORMAT:
        raise CorruptRecord(
            f"not a naming's row of a known format: {row.hex()}; if another version made the index, delete it: "
            "it is folded again from the log"
        )
    return Siblings(*_ROW.unpack(row)[1:])


def key_of(head: Head) -> bytes:
    """17 bytes: site and naming of a page."""
    return _KEY.pack(KeyFamily.NAMING, head.site, head.naming)
