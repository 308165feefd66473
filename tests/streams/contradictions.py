"""Contradictions between the rows of an index: tests that change an index in many ways end with this search."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, NamedTuple

from neardup.errors import CorruptRecord
from neardup.index import posting_rows, sketch_rows
from neardup.index.column_families import Family, Store
from neardup.index.rows import (
    NO_PAGE,
    ClusterRow,
    DigestRow,
    UrlRow,
    decode_cluster,
    decode_digest,
    decode_member,
    decode_url,
    id_key,
    member_key,
)
from neardup.rules.key_families import KeyFamily, family_of
from neardup.sketch.header import Header

_BATCH = 1024
#: Contradictions that are listed; further ones are counted.
LISTED_MAX = 100

#: Called with the rows read so far.
Progress = Callable[[int], None]


class Wrong(NamedTuple):
    """A contradiction. family: of the row; key: in hex; what: a sentence about the row; folder: of the index."""

    family: str
    key: str
    what: str
    folder: str = "index/"


@dataclass(slots=True)
class Inspection:
    """The content of an index.

    rows, bytes: by column family, keys and values, before compression. standing: URLs by standing; a member's is that
    of its last verification. keys: rows of the `keys` family by kind of key; hot: those of them that are hot. largest:
    the clusters with the most pages, (pages, cluster id). wrong: the first LISTED_MAX contradictions; wrong_total:
    their number.
    """

    rows: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    standing: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    hot: Counter[str] = field(default_factory=Counter)
    largest: list[tuple[int, int]] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    wrong_total: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        counts = {name: dict(getattr(self, name)) for name in ("rows", "bytes", "standing", "keys", "hot")}
        largest = [{"pages": pages, "cluster": cluster} for pages, cluster in self.largest]
        wrong = [one._asdict() for one in self.wrong]
        return {**counts, "largest_clusters": largest, "wrong": wrong, "wrong_total": self.wrong_total}


class _Inspector:
    def __init__(self, store: Store, progress: Progress) -> None:
        self.store, self.progress = store, progress
        self.found = Inspection()
        self._read = 0

    def rows(self, family: Family) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield all rows of a family in batches, and count them."""
        name = family.name.lower()
        source = iter(self.store.scan(family))
        while batch := list(islice(source, _BATCH)):
            self.found.rows[name] += len(batch)
            self.found.bytes[name] += sum(len(key) + len(value) for key, value in batch)
            self._read += len(batch)
            self.progress(self._read)
            yield batch

    def wrong(self, family: Family, key: bytes, what: str) -> None:
        self.found.wrong_total += 1
        if len(self.found.wrong) < LISTED_MAX:
            self.found.wrong.append(Wrong(family.name.lower(), key.hex(), what))

    def decoded(self, family: Family, batch: Iterable[tuple[bytes, bytes]], decode: Callable[[bytes], Any]) -> Any:
        """Yield (key, row); rows that cannot be decoded are contradictions."""
        for key, value in batch:
            try:
                yield key, decode(value)
            except CorruptRecord as error:
                self.wrong(family, key, str(error))

    def lacking(self, family: Family, required: Sequence[bytes]) -> list[bool]:
        return [value is None for value in self.store.get_many(family, required)]


def inspect(store: Store, progress: Progress = lambda rows: None) -> Inspection:
    """Read the whole index. Raises StateError if it cannot be opened."""
    work = _Inspector(store, progress)
    _urls(work)
    _clusters(work)
    _members(work)
    _sketches(work)
    _keys(work)
    work.found.largest.sort(reverse=True)
    return work.found


def _urls(work: _Inspector) -> None:
    """Check that each live URL has its sketch, its cluster, and a row as member or representative."""
    for batch in work.rows(Family.URLS):
        rows: list[tuple[bytes, UrlRow]] = list(work.decoded(Family.URLS, batch, decode_url))
        work.found.standing.update(row.standing.value for _, row in rows)
        live = [(key, row) for key, row in rows if row.live]
        lost = work.lacking(Family.SKETCHES, [id_key(row.page_id) for _, row in live])
        for (key, row), gone in zip(live, lost, strict=True):
            if gone:
                work.wrong(Family.URLS, key, f"its sketch, page {row.page_id}, is missing")
        clusters = work.store.get_many(Family.CLUSTERS, [id_key(row.cluster) for _, row in live])
        members = work.store.get_many(
            Family.MEMBERS, [member_key(row.cluster, row.member) if row.member else b"" for _, row in live]
        )
        for (key, row), cluster, member in zip(live, clusters, members, strict=True):
            if cluster is None:
                work.wrong(Family.URLS, key, f"its cluster, {row.cluster}, is missing")
            elif row.member and _hash(member, decode_member) != key:
                work.wrong(Family.URLS, key, f"it is no member {row.member} of cluster {row.cluster}")
            elif not row.member and _hash(cluster, decode_cluster) != key:
                work.wrong(Family.URLS, key, f"cluster {row.cluster} has another representative")


def _clusters(work: _Inspector) -> None:
    """Check each cluster's founding sketch, representative, and number of members."""
    members = _counts(work.store)
    next_counted = next(members, None)
    for batch in work.rows(Family.CLUSTERS):
        rows: list[tuple[bytes, ClusterRow]] = list(work.decoded(Family.CLUSTERS, batch, decode_cluster))
        lost = work.lacking(Family.SKETCHES, [id_key(row.founding) for _, row in rows])
        urls = work.store.get_many(Family.URLS, [row.url_hash for _, row in rows])
        for (key, row), gone, url in zip(rows, lost, urls, strict=True):
            if gone:
                work.wrong(Family.CLUSTERS, key, f"its founding sketch, page {row.founding}, is missing")
            if _place(url) != (int.from_bytes(key, "big"), 0):
                work.wrong(Family.CLUSTERS, key, "its representative's URL is missing, or stands elsewhere")
            while next_counted is not None and next_counted[0] < key:
                next_counted = next(members, None)
            counted = next_counted[1] if next_counted is not None and next_counted[0] == key else 0
            if row.size != counted + 1:
                work.wrong(Family.CLUSTERS, key, f"it says {row.size} pages, and has {counted} members")
            _keep_largest(work.found.largest, row.size, int.from_bytes(key, "big"))


def _place(url: bytes | None) -> tuple[int, int] | None:
    """Return cluster and member of a URL's row; None if it is missing or cannot be decoded."""
    try:
        return None if url is None else (decode_url(url).cluster, decode_url(url).member)
    except CorruptRecord:
        return None


def _hash(row: bytes | None, decode: Callable[[bytes], Any]) -> bytes | None:
    """Return the hash of the URL in a cluster's or a member's row; None as above."""
    try:
        return None if row is None else decode(row).url_hash
    except CorruptRecord:
        return None


def _counts(store: Store) -> Iterator[tuple[bytes, int]]:
    """Yield (cluster's key, members), ascending."""
    for cluster, rows in groupby(store.scan(Family.MEMBERS), key=lambda row: row[0][:8]):
        yield cluster, sum(1 for _ in rows)


def _keep_largest(largest: list[tuple[int, int]], size: int, cluster: int) -> None:
    if size > 1:
        largest.append((size, cluster))
        largest.sort(reverse=True)
        del largest[10:]


def _members(work: _Inspector) -> None:
    """Check that each member has its cluster, and that its URL's row agrees."""
    for batch in work.rows(Family.MEMBERS):
        rows = list(work.decoded(Family.MEMBERS, batch, decode_member))
        lost = work.lacking(Family.CLUSTERS, [key[:8] for key, _ in rows])
        urls = work.store.get_many(Family.URLS, [row.url_hash for _, row in rows])
        for (key, _), gone, url in zip(rows, lost, urls, strict=True):
            if gone:
                work.wrong(Family.MEMBERS, key, "its cluster is missing")
            if _place(url) != (int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")):
                work.wrong(Family.MEMBERS, key, "its URL is missing, or stands elsewhere")


def _sketches(work: _Inspector) -> None:
    """Check that each sketch can be decoded, with the parts that it shares with others."""
    for batch in work.rows(Family.SKETCHES):
        rests = dict(work.decoded(Family.SKETCHES, batch, sketch_rows.rest_of_row))
        shared = [id_key(rest) for rest in rests.values() if rest is not None]
        held = dict(zip(shared, work.store.get_many(Family.SKETCHES, shared), strict=True))
        for key, value in batch:
            rest = rests.get(key)
            other = None if rest is None else held[id_key(rest)]
            if key not in rests:
                continue
            if rest is not None and other is None:
                work.wrong(Family.SKETCHES, key, f"what it shares with page {rest} is missing")
                continue
            try:
                Header(sketch_rows.record_of_rows(value, other))
            except CorruptRecord as error:
                work.wrong(Family.SKETCHES, key, str(error))


def _keys(work: _Inspector) -> None:
    """Check that each page in a digest's row or a posting list has its sketch."""
    for batch in work.rows(Family.KEYS):
        named: list[tuple[bytes, int]] = []
        for key, value in batch:
            family = family_of(key)
            name = family.name.lower()
            work.found.keys[name] += 1
            try:
                if family in (KeyFamily.DIGEST, KeyFamily.OPAQUE):
                    digest: DigestRow = decode_digest(value)
                    named += [(key, page) for page in digest.pages]
                    named += [(key, digest.rest)] * (digest.rest != NO_PAGE)
                elif family in (KeyFamily.DIGEST_MORE, KeyFamily.OPAQUE_MORE):
                    named.append((key, int.from_bytes(key[-8:], "big")))
                elif family is not KeyFamily.NAMING:
                    work.found.hot[name] += posting_rows.is_hot(value)
                    named += [(key, word >> 16) for word in posting_rows.postings(value)]
            except CorruptRecord as error:
                work.wrong(Family.KEYS, key, str(error))
        lost = work.lacking(Family.SKETCHES, [id_key(page) for _, page in named])
        for (key, page), gone in zip(named, lost, strict=True):
            if gone:
                work.wrong(Family.KEYS, key, f"it names page {page}, whose sketch is missing")
