"""What the library looks up in an index: clusters, entries of URLs, and their number."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from neardup.index.column_families import Family, Reader
from neardup.index.rows import decode_cluster, decode_member, decode_url, id_key
from neardup.index.sketch_rows import records_of
from neardup.sketch.header import Header
from neardup.standing import SHOWN
from neardup.urls import url_hash
from neardup.verdict import Kind


class Cluster(NamedTuple):
    """A cluster as it is now: a page and its duplicates."""

    #: The page id of the founder; it never changes.
    id: int
    #: The URL that represents the cluster.
    representative: str
    #: The other live URLs, in the order in which they joined.
    members: tuple[str, ...]


class Entry(NamedTuple):
    """A URL of an index as it is now."""

    #: The normalised URL.
    url: str
    #: The verdict in force: `unique` or `same_content` of a representative, `exact_duplicate` or `near_duplicate` of
    #: another member, as it was when the member was verified last.
    verdict: Kind
    #: The cluster of the URL.
    cluster: Cluster

    @property
    def shown(self) -> bool:
        """Whether a search index shows the URL, and not the representative of its cluster instead."""
        return self.verdict.value in SHOWN


def entry_of(store: Reader, url: str) -> Entry | None:
    """Return the entry of a normalised URL; None if the index does not hold the URL or the URL is gone."""
    (row,) = store.get_many(Family.URLS, [url_hash(url)])
    if row is None or not (held := decode_url(row)).live:
        return None
    (row,) = store.get_many(Family.CLUSTERS, [id_key(held.cluster)])
    assert row is not None
    joined = store.first(Family.MEMBERS, id_key(held.cluster), decode_cluster(row).size)
    hashes = [decode_member(member).url_hash for _, member in joined]
    urls = store.get_many(Family.URLS, hashes)
    pages = [decode_cluster(row).current, *(decode_url(member or b"").page_id for member in urls)]
    representative, *members = (Header(record).url for record in records_of(store, pages))
    return Entry(url, held.standing, Cluster(held.cluster, representative, tuple(members)))


def is_live(store: Reader, url: str) -> bool:
    """Whether the index holds a normalised URL that is not gone."""
    (row,) = store.get_many(Family.URLS, [url_hash(url)])
    return row is not None and decode_url(row).live


class LiveCount:
    """The number of live URLs of an index, counted once and then kept in step with the changes of rows.

    The count belongs to a position of the log. At any other position the rows are counted again.
    """

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._at = -1
        self._count = 0
        self._change: int | None = None

    def value(self, next_offset: int) -> int:
        """Return the count. next_offset: position of the log up to which the index is folded."""
        if self._at != next_offset:
            self._count = _live(row for _, row in self._store.scan(Family.URLS))
            self._at = next_offset
        return self._count

    def before(self, rows: Mapping[bytes, bytes | None], next_offset: int) -> None:
        """Count changed rows of URLs that are about to be written, if the count is at the position before them.

        Args:
            rows: the changed rows by their keys; None deletes a row.
            next_offset: position of the log before the changes.
        """
        self._change = None
        if self._at == next_offset:
            self._change = _live(rows.values()) - _live(self._store.get_many(Family.URLS, [*rows]))

    def after(self, next_offset: int) -> None:
        """Take the counted change over, which was written. next_offset: position of the log behind it."""
        if self._change is not None:
            self._count += self._change
            self._at = next_offset


def _live(rows: Iterable[bytes | None]) -> int:
    return sum(row is not None and decode_url(row).live for row in rows)
