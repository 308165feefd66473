"""What one batch has read of the store, and the effects of its pages so far, seen as one.

`judge` reads and writes here only. What it needs and was not read raises Missing, so that judging stays a pure function
of the batch and its read set.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import keys, namings, rows, sharing
from neardup.index.base import Family, Store
from neardup.record import Head
from neardup.rules import Pair

Row = TypeVar("Row")
_UNKNOWN = object()

#: Rows of a prefix are read at least so many at a time: a promotion is seldom the only one of its batch.
FIRST_MIN = 4


class Wanted:
    """Rows and prefixes to read. Prefixes carry how many of their first rows are wanted."""

    def __init__(self) -> None:
        self.rows: dict[Family, set[bytes]] = {}
        self.prefixes: dict[tuple[Family, bytes], int] = {}

    def row(self, family: Family, key: bytes) -> None:
        self.rows.setdefault(family, set()).add(key)

    def sketches(self, page_ids: Iterable[int]) -> None:
        self.rows.setdefault(Family.SKETCHES, set()).update(map(rows.id_key, page_ids))

    def add(self, other: "Wanted") -> None:
        for family, wanted in other.rows.items():
            self.rows.setdefault(family, set()).update(wanted)
        for prefix, limit in other.prefixes.items():
            self.prefixes[prefix] = max(limit, self.prefixes.get(prefix, 0))

    def __bool__(self) -> bool:
        return bool(self.rows or self.prefixes)


class Missing(Exception):
    """What judging needed and the read set does not hold. Not an error: `fold` reads `wanted` and judges again."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__("the read set lacks rows")
        self.wanted = wanted

    @classmethod
    def row(cls, family: Family, key: bytes) -> "Missing":
        wanted = Wanted()
        wanted.row(family, key)
        return cls(wanted)


class ReadSet:
    """Everything a batch has read. rows: per family, key -> value or None for absent.

    prefixes: the first keys of a prefix, and whether these are all of them. heads, posted and pairs remember decoded
    records, similarity keys and pair numbers by page id: functions of records, kept so that judging again is cheap.
    gathered and chosen: what follows from rows, with the rows that it follows from, by page id.
    """

    def __init__(self, batch: Mapping[int, Head]) -> None:
        self.batch = batch
        self.rows: dict[Family, dict[bytes, bytes | None]] = {family: {} for family in Family}
        self.prefixes: dict[tuple[Family, bytes], tuple[list[bytes], bool]] = {}
        self.heads: dict[int, Head] = dict(batch)
        self.posted: dict[int, list[bytes]] = {}
        self.pairs: dict[tuple[int, int], Pair] = {}
        self.gathered: dict[int, tuple[list[bytes | None], Any]] = {}
        self.chosen: dict[int, tuple[list[bytes | None], Any, Any]] = {}

    def read(self, store: Store, wanted: Wanted) -> int:
        """Reads what is wanted and not here yet; returns the number of rows and prefixes read."""
        read = 0
        for family, keys_wanted in wanted.rows.items():
            held = self.rows[family]
            # Sorted: neighbours share a block of the file.
            absent = sorted(key for key in keys_wanted if key not in held)
            if absent:
                held.update(zip(absent, store.get_many(family, absent), strict=True))
                read += len(absent)
        for (family, prefix), limit in wanted.prefixes.items():
            known, complete = self.prefixes.get((family, prefix), ([], False))
            if complete or len(known) >= limit:
                continue
            found = store.first(family, prefix, limit)
            self.prefixes[family, prefix] = ([key for key, _ in found], len(found) < limit)
            self.rows[family].update(found)
            read += 1
        return read

    def read_sketches(self, store: Store, page_ids: Iterable[int]) -> None:
        """Reads sketches rows and the rows that hold their shared parts."""
        wanted = Wanted()
        wanted.sketches(page_id for page_id in page_ids if page_id not in self.heads)
        self.read(store, wanted)
        held = self.rows[Family.SKETCHES]
        shared = Wanted()
        for key in wanted.rows[Family.SKETCHES]:
            row = held[key]
            rest = None if row is None else sharing.rest_of_row(row)
            if rest is not None:
                shared.sketches((rest,))
        self.read(store, shared)


class Table(Generic[Row]):
    """One kind of row: as the store has it, under what this batch changed."""

    def __init__(
        self, family: Family, reads: ReadSet, decode: Callable[[bytes], Row], encode: Callable[[Row], bytes]
    ) -> None:
        self._family = family
        self._read = reads.rows[family]
        self._prefixes = reads.prefixes
        self._decode = decode
        self._encode = encode
        self._now: dict[bytes, Row | None] = {}
        self._changed: set[bytes] = set()

    def get(self, key: bytes) -> Row | None:
        """The row as it is now, None if there is none. Raises Missing if it was not read."""
        row: Any = self._now.get(key, _UNKNOWN)
        if row is _UNKNOWN:
            value: Any = self._read.get(key, _UNKNOWN)
            if value is _UNKNOWN:
                raise Missing.row(self._family, key)
            row = self._now[key] = None if value is None else self._decode(value)
        return cast("Row | None", row)

    def get_all(self, wanted: Iterable[bytes]) -> list[Row | None]:
        """The rows of many keys, in their order. Raises Missing with every one that was not read."""
        now, read, decode = self._now, self._read, self._decode
        out = []
        absent = None
        for key in wanted:
            row: Any = now.get(key, _UNKNOWN)
            if row is _UNKNOWN:
                value: Any = read.get(key, _UNKNOWN)
                if value is _UNKNOWN:
                    absent = absent or Wanted()
                    absent.row(self._family, key)
                else:
                    row = now[key] = None if value is None else decode(value)
            out.append(row)
        if absent:
            raise Missing(absent)
        return out

    def need(self, key: bytes) -> Row:
        """Like `get`; raises InvariantBroken where there must be a row and is none."""
        row = self.get(key)
        if row is None:
            raise InvariantBroken(f"{self._family.name.lower()}: no row under {key.hex()}")
        return row

    def put(self, key: bytes, row: Row | None) -> None:
        self._now[key] = row
        self._changed.add(key)

    def first(self, prefix: bytes, limit: int, *, fresh: bool) -> list[bytes]:
        """The smallest `limit` keys with a prefix. fresh: the store cannot hold any. Raises Missing."""
        known, complete = ([], True) if fresh else self._prefixes.get((self._family, prefix), ([], False))
        found = {key for key in known if self._now.get(key, True) is not None}
        found.update(key for key in self._changed if key.startswith(prefix) and self._now[key] is not None)
        ordered = sorted(found)[:limit]
        # Beyond the last key that was read the store may hold keys that we do not know of.
        safe = ordered if complete else [key for key in ordered if known and key <= known[-1]]
        if not complete and len(safe) < limit:
            wanted = Wanted()
            wanted.prefixes[self._family, prefix] = max(limit, FIRST_MIN, 2 * len(known))
            raise Missing(wanted)
        return safe

    def writes(self) -> dict[bytes, bytes | None]:
        """Rows that differ from what was read, encoded; None: deleted."""
        out = {}
        for key in self._changed:
            row = self._now[key]
            value = None if row is None else self._encode(row)
            if key not in self._read or self._read[key] != value:
                out[key] = value
        return out


def _same(row: bytes) -> bytes:
    return row


class Overlay:
    """The tables of one batch, and the decider that judges it."""

    def __init__(self, reads: ReadSet, decider: Decider) -> None:
        self.reads = reads
        self.decider = decider
        self.urls = Table(Family.URLS, reads, rows.decode_url, rows.UrlRow.encode)
        self.clusters = Table(Family.CLUSTERS, reads, rows.decode_cluster, rows.ClusterRow.encode)
        self.members = Table(Family.MEMBERS, reads, rows.decode_member, rows.MemberRow.encode)
        self.digests = Table(Family.KEYS, reads, rows.decode_digest, rows.DigestRow.encode)
        self.more = Table(Family.KEYS, reads, _same, _same)  # further pages of a digest
        self.namings = Table(Family.KEYS, reads, namings.decode, namings.Siblings.encode)
        self.postings = Table(Family.KEYS, reads, _same, _same)
        self.sketches = Table(Family.SKETCHES, reads, _same, _same)
        self.hot_turned = 0

    def head(self, page_id: int) -> Head:
        """The sketch of a page of this batch or of the store. Raises Missing, InvariantBroken."""
        heads = self.reads.heads
        head = heads.get(page_id)
        if head is None:
            row = self.sketches.need(rows.id_key(page_id))
            rest = sharing.rest_of_row(row)
            rest_row = None if rest is None else self.sketches.need(rows.id_key(rest))
            head = heads[page_id] = Head(sharing.record_of_rows(row, rest_row))
        return head

    def posted_keys(self, page_id: int) -> list[bytes]:
        """The similarity keys of a page."""
        posted = self.reads.posted
        if page_id not in posted:
            posted[page_id] = keys.similarity_keys(self.head(page_id), self.decider)
        return posted[page_id]

    def posted_rows(self, page_id: int) -> list[tuple[bytes, bytes | None]]:
        """Similarity keys of a page with their posting lists. Raises Missing with every list that was not read."""
        posted = self.posted_keys(page_id)
        return list(zip(posted, self.postings.get_all(posted), strict=True))

    def writes(self) -> dict[Family, dict[bytes, bytes | None]]:
        """What this batch changed, ready for `Store.write`."""
        out = {
            Family.KEYS: self.postings.writes() | self.namings.writes() | self.digests.writes() | self.more.writes(),
            Family.SKETCHES: self.sketches.writes(),
            Family.URLS: self.urls.writes(),
            Family.CLUSTERS: self.clusters.writes(),
            Family.MEMBERS: self.members.writes(),
        }
        return {family: changes for family, changes in out.items() if changes}
