"""Counts of siblings as they grow, page by page."""

from neardup.rules.siblings import COUNT_MAX, Siblings
from neardup.sketch.header import Header


def is_full(counts: Siblings) -> bool:
    """Whether the counts have reached COUNT_MAX."""
    return counts.others + counts.alike >= COUNT_MAX


def with_one(counts: Siblings, page: Header) -> Siblings:
    """The counts after one more page."""
    if not counts.alike:
        return Siblings(0, 1, 0, 0, page.tail, page.titling, page.place)
    if is_full(counts):
        return counts
    others, alike, retitled, moved, tail, titling, place = counts
    same = page.tail == tail
    retitled += page.titling != titling
    moved += page.place != place
    return Siblings(others + (not same), alike + same, retitled, moved, tail, titling, place)
