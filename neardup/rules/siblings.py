"""Counts the pages of an owner with one name: if there are many, title and heading do not distinguish them.

An owner is a host or a user of a site (`neardup.urls.owner_of`), so the pages of one user of a platform do not count
for the pages of another.

Counts only grow, and only with the first fetch of a URL whose content is new. So they are a function of the log's
prefix, however the log is cut into batches. They stop at COUNT_MAX pages; larger counts would change no ruling.
`neardup.index.naming_rows` keeps them.
"""

from typing import NamedTuple

COUNT_MAX = 255


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


NO_SIBLINGS = Siblings()
