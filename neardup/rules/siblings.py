"""Counts the pages of an owner with one name: if there are many, title and heading do not distinguish them.

An owner is a host or a user of a site (`neardup.urls.owner_of`), so the pages of one user of a platform do not count
for the pages of another.

Counts only grow, and only with the first fetch of a URL whose content is new. So they are a function of the log's
prefix, however the log is cut into batches. They stop at COUNT_MAX pages; larger counts would change no ruling.
`neardup.index.naming_rows` keeps them.
"""

from typing import NamedTuple, Protocol

COUNT_MAX = 255


class HasTraits(Protocol):
    """The traits of a page that are counted: see `neardup.sketch.layout.HEADER`."""

    @property
    def tail(self) -> int: ...
    @property
    def titling(self) -> int: ...
    @property
    def place(self) -> int: ...


class Siblings(NamedTuple):
    """Counts of the pages of one owner and one naming; see `neardup.sketch.layout.HEADER`.

    others: number of pages with another tail (end of the URL) than the first page.
    alike: number of pages with the tail of the first page, the first page included.
    retitled, moved: numbers of pages with another titling, and with another place, than the first page.
    tail, titling, place: traits of the first page.

    The URLs of releases and languages of one page have one tail. The URLs of different pages of a template do not.
    """

    others: int = 0
    alike: int = 0
    retitled: int = 0
    moved: int = 0
    tail: int = 0
    titling: int = 0
    place: int = 0

    @property
    def full(self) -> bool:
        """Whether the counts have reached COUNT_MAX."""
        return self.others + self.alike >= COUNT_MAX

    def with_one(self, page: HasTraits) -> "Siblings":
        """The counts after one more page."""
        if not self.alike:
            return Siblings(0, 1, 0, 0, page.tail, page.titling, page.place)
        others, alike, retitled, moved, tail, titling, place = self
        if others + alike >= COUNT_MAX:
            return self
        same = page.tail == tail
        retitled += page.titling != titling
        moved += page.place != place
        return Siblings(others + (not same), alike + same, retitled, moved, tail, titling, place)


NO_SIBLINGS = Siblings()
