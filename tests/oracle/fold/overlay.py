"""The rows of an index under the changes of a batch: read one by one, and encoded at each change."""

from collections.abc import Callable
from typing import Generic, TypeVar

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import naming_rows, posting_rows, rows, sketch_rows
from neardup.index.column_families import Family, Reader
from neardup.index.layered import Layered
from neardup.matching.batch_records import Pages
from neardup.rules.posted_keys import counts_siblings, similarity_keys
from neardup.sketch.header import Header
from tests.oracle.fold import posting_lists

Row = TypeVar("Row")


def same_bytes(row: bytes) -> bytes:
    """Codec of rows that are kept as bytes."""
    return row


class Table(Generic[Row]):
    """Rows of one kind."""

    def __init__(
        self, index: Layered, family: Family, decode: Callable[[bytes], Row], encode: Callable[[Row], bytes]
    ) -> None:
        self._index, self._family, self._decode, self._encode = index, family, decode, encode

    def get(self, key: bytes) -> Row | None:
        """The row as it is now; None if there is none."""
        (row,) = self._index.get_many(self._family, [key])
        return None if row is None else self._decode(row)

    def need(self, key: bytes) -> Row:
        """Like `get`, of a row that must exist. Raises InvariantBroken."""
        row = self.get(key)
        if row is None:
            raise InvariantBroken(f"{self._family.name.lower()}: no row under {key.hex()}")
        return row

    def put(self, key: bytes, row: Row | None) -> None:
        """Puts a row; None: deletes it."""
        self._index.add({self._family: {key: None if row is None else self._encode(row)}})

    def first(self, prefix: bytes, limit: int, after: bytes) -> list[bytes]:
        """The smallest `limit` keys of a prefix after a key."""
        return [key for key, _ in self._index.first(self._family, prefix, limit, after)]


class Overlay:
    """All rows that judging reads and changes. pages: those of the batch. turned: keys that turned hot, in order."""

    def __init__(self, pages: Pages, store: Reader, decider: Decider) -> None:
        self.pages, self.decider = pages, decider
        self._store = store
        self._index = index = Layered(store)
        self.urls = Table(index, Family.URLS, rows.decode_url, rows.UrlRow.encode)
        self.clusters = Table(index, Family.CLUSTERS, rows.decode_cluster, rows.ClusterRow.encode)
        self.members = Table(index, Family.MEMBERS, rows.decode_member, rows.MemberRow.encode)
        self.digests = Table(index, Family.KEYS, rows.decode_digest, rows.DigestRow.encode)
        self.more = Table(index, Family.KEYS, same_bytes, same_bytes)  # further pages of a digest
        self.namings = Table(index, Family.KEYS, naming_rows.decode, naming_rows.encode)
        self.postings = Table(index, Family.KEYS, same_bytes, same_bytes)
        self.sketches = Table(index, Family.SKETCHES, same_bytes, same_bytes)
        self.counts_siblings = counts_siblings(decider)
        self.turned: list[bytes] = []

    def header(self, page_id: int) -> Header:
        """The sketch of a page of this batch or of the store. Raises InvariantBroken."""
        if page_id in self.pages:
            return self.pages[page_id]
        row = self.sketches.need(rows.id_key(page_id))
        rest = sketch_rows.rest_of_row(row)
        rest_row = None if rest is None else self.sketches.need(rows.id_key(rest))
        return Header(sketch_rows.record_of_rows(row, rest_row))

    def keys(self, page_id: int) -> list[bytes]:
        """The similarity keys of a page."""
        return similarity_keys(self.header(page_id), self.decider)

    def post(self, page_id: int) -> None:
        """Posts a founding sketch under its similarity keys."""
        header, decider = self.header(page_id), self.decider
        for key in self.keys(page_id):
            row = self.postings.get(key)
            entry = posting_rows.posting(page_id, header, key)
            after = posting_lists.with_posting(row, entry, decider.postings_max, decider.hot_postings_kept)
            if posting_rows.is_hot(after) and not posting_rows.is_hot(row):
                self.turned.append(key)
            self.postings.put(key, after)

    def unpost(self, page_id: int) -> None:
        """Removes a founding sketch from its lists; hot ones may lack it. Raises InvariantBroken."""
        header = self.header(page_id)
        for key in self.keys(page_id):
            entry = posting_rows.posting(page_id, header, key)
            self.postings.put(key, posting_lists.without_posting(self.postings.get(key), entry))

    def writes(self) -> dict[Family, dict[bytes, bytes | None]]:
        """The rows that differ from those of the store."""
        out = {}
        for family, changes in self._index.changes.items():
            held = dict(zip(changes, self._store.get_many(family, list(changes)), strict=True))
            if changed := {key: row for key, row in changes.items() if row != held[key]}:
                out[family] = changed
        return out
