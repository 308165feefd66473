"""Counts the pages of an owner with one name: if there are many, title and heading do not distinguish them.

Owners are what hosts and users of a site are (`neardup.page.owner_of`), so that no user of a platform adds to what
another one's pages are counted by.

Counts only grow, and only with first sightings of URLs whose content is new, so they are a function of the log's prefix
whatever the batches. They end at COUNT_MAX pages, beyond which they change no ruling. `neardup.index.namings` keeps
them.
"""

from typing import NamedTuple, Protocol

COUNT_MAX = 255


class HasTraits(Protocol):
    """What of a page counts beside its site and naming: see `neardup.sketch.layout.HEADER`."""

    @property
    def tail(self) -> int: ...
    @property
    def titling(self) -> int: ...
    @property
    def place(self) -> int: ...


class Traits(NamedTuple):
    """`HasTraits` without the page."""

    tail: int
    titling: int
    place: int


class Siblings(NamedTuple):
    """Pages of one owner and one naming. tail, titling, place: the first one's; alike: pages of its tail; others: the
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
        """Whether most of the pages have other paths than the first, so that not only queries distinguish them."""
        return 2 * self.moved > self.others + self.alike

    @property
    def full(self) -> bool:
        """Whether more pages change nothing."""
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
