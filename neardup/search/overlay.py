"""What one batch has read of the store, and the effects of its pages so far, seen as one.

`judge` reads and writes here only. What it needs and was not read raises Missing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from heapq import merge
from typing import Any, Generic, TypeVar

import numpy as np

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import keys, namings, rows, sharing
from neardup.index.base import Family
from neardup.rules.posted import counts_siblings, similarity_keys
from neardup.search.lists import Lists
from neardup.search.reads import FIRST_MIN, Missing, Needs, ReadSet
from neardup.sketch.header import Header
from neardup.verdict import Representative

Row = TypeVar("Row")
_UNKNOWN = object()
#: The end of a key that a prefix is asked for by: a page id.
_ID_BYTES = 8


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
        self._held: dict[bytes, Any] = reads.decoded[decode]  # what follows from the rows that were read
        self._now: dict[bytes, Row | None] = {}
        self._encoded: dict[bytes, bytes] = {}  # rows that nobody has looked at since
        self._changed: set[bytes] = set()
        self._grouped: dict[bytes, list[bytes]] | None = None  # keys put, by prefix

    def get(self, key: bytes) -> Row | None:
        """The row as it is now, None if there is none. Raises Missing if it was not read."""
        row: Any
        if key in self._now:
            row = self._now[key]
        elif key in self._encoded:
            row = self._now[key] = self._decode(self._encoded[key])
        elif key in self._held:
            row = self._held[key]
        else:
            row = self._read.get(key, _UNKNOWN)
            if row is None:
                return None
            if row is _UNKNOWN:
                raise Missing.row(self._family, key)
            row = self._held[key] = self._decode(row)
        return row  # type: ignore[no-any-return]

    def need(self, key: bytes) -> Row:
        """Like `get`; raises InvariantBroken where there must be a row and is none."""
        row = self.get(key)
        if row is None:
            raise InvariantBroken(f"{self._family.name.lower()}: no row under {key.hex()}")
        return row

    def put(self, key: bytes, row: Row | None) -> None:
        self._now[key] = row
        self._changed.add(key)
        if self._grouped is not None:
            self._group(self._grouped, key)

    def put_encoded(self, key: bytes, row: bytes) -> None:
        """Like `put`, of a row that is not what the store has."""
        self._encoded[key] = row
        if key in self._now:
            del self._now[key]
            self._changed.discard(key)
        if self._grouped is not None:
            self._group(self._grouped, key)

    def first(self, prefix: bytes, limit: int, after: bytes, *, fresh: bool) -> list[bytes]:
        """The smallest `limit` keys of a prefix and 8 bytes, after a key below which, itself included, none is left.

        fresh: the store cannot hold any. Raises Missing.
        """
        unread: tuple[list[bytes], bytes, bool] = [], after, fresh
        known, since, complete = unread if fresh else self._prefixes.get((self._family, prefix), unread)
        if since > after:
            known, complete = [], False
        # Beyond the last key that was read the store may hold keys that we do not know of.
        last = None if complete else known[-1] if known else prefix
        here = self._put_under(prefix)
        found: list[bytes] = []
        for key in merge(known[bisect_right(known, after) :], here[bisect_right(here, after) :]):
            if len(found) == limit or (last is not None and key > last):
                break
            if self._now.get(key, True) is not None and key not in found[-1:]:
                found.append(key)
        if not complete and len(found) < limit:
            needs = Needs()
            needs.first(self._family, prefix, max(limit, FIRST_MIN, 2 * len(known)), min(since, after))
            raise Missing(needs)
        return found

    def _put_under(self, prefix: bytes) -> list[bytes]:
        """The keys of a prefix and 8 bytes that this batch has put, ascending; some may have gone again."""
        if self._grouped is None:
            self._grouped = {}
            for key in sorted(self._changed | self._encoded.keys()):
                self._grouped.setdefault(key[:-_ID_BYTES], []).append(key)
        return self._grouped.get(prefix, [])

    @staticmethod
    def _group(grouped: dict[bytes, list[bytes]], key: bytes) -> None:
        group = grouped.setdefault(key[:-_ID_BYTES], [])
        at = bisect_left(group, key)
        if group[at : at + 1] != [key]:
            group.insert(at, key)

    def writes(self) -> dict[bytes, bytes | None]:
        """Rows that differ from what was read, encoded; None: deleted."""
        out: dict[bytes, bytes | None] = dict(self._encoded)
        for key in self._changed:
            row = self._now[key]
            value = None if row is None else self._encode(row)
            if key not in self._read or self._read[key] != value:
                out[key] = value
            else:
                out.pop(key, None)
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
        self.namings = Table(Family.KEYS, reads, namings.decode, namings.encode)
        self.postings = Table(Family.KEYS, reads, _same, _same)
        self.sketches = Table(Family.SKETCHES, reads, _same, _same)
        self.counts_siblings = counts_siblings(decider)
        self.representatives: dict[int, Representative] = {}  # as verdicts name them, by founding page
        self._turned: list[bytes] = []  # keys of pages of the store alone that turned hot
        self._told: set[bytes] = set()  # keys that turned hot, and were asked for

    @cached_property
    def lists(self) -> Lists:
        """The batch's posting lists, as they had been read when first asked for."""
        return self.reads.posted.lists(self.decider)

    def header(self, page_id: int) -> Header:
        """The sketch of a page of this batch or of the store. Raises Missing, InvariantBroken."""
        headers = self.reads.headers
        header = headers.get(page_id)
        if header is None and page_id in self.reads.batch:
            header = headers[page_id] = self.reads.batch[page_id]
        elif header is None:
            row = self.sketches.need(rows.id_key(page_id))
            rest = sharing.rest_of_row(row)
            rest_row = None if rest is None else self.sketches.need(rows.id_key(rest))
            header = headers[page_id] = Header(sharing.record_of_rows(row, rest_row))
        return header

    def posted_keys(self, page_id: int) -> list[bytes]:
        """The similarity keys of a page."""
        if page_id in self.reads.batch:
            return self.reads.posted.of_page(page_id)
        known = self.reads.keys
        if page_id not in known:
            known[page_id] = similarity_keys(self.header(page_id), self.decider)
        return known[page_id]

    def is_lonely(self, page_id: int) -> bool:
        """Whether it is known without a look that a page of the batch, whose turn it is, meets no candidate."""
        number = self.reads.posted.number_of.get(page_id)
        return number is None or self.lists.is_lonely(number)

    def post(self, page_id: int) -> None:
        """Posts a founding sketch under its similarity keys. Raises Missing with every list that was not read."""
        number = self.reads.posted.number_of.get(page_id)
        if number is None and page_id in self.reads.batch:
            return
        if number is not None and self.lists.is_lonely(number):
            self.lists.post_lonely(number)
            return
        header = self.header(page_id)
        word, entry = keys.word_of(page_id, header), keys.posting(page_id, header)
        slots, others = self._slots(page_id)
        if not self.lists.post(slots, word, foreign=page_id not in self.reads.batch):
            raise self.lacking(page_id)
        for key, row in others:
            after = keys.with_posting(row, entry, self.decider.postings_max, self.decider.hot_postings_kept)
            if keys.is_hot(after) and not keys.is_hot(row):
                self._turned.append(key)
            self.postings.put(key, after)

    def unpost(self, page_id: int) -> None:
        """Takes a founding sketch out of its lists, hot ones excepted. Raises Missing like `post`, InvariantBroken."""
        header = self.header(page_id)
        word, entry = keys.word_of(page_id, header), keys.posting(page_id, header)
        slots, others = self._slots(page_id)
        if not self.lists.unpost(slots, word):
            raise self.lacking(page_id)
        for key, row in others:
            self.postings.put(key, keys.without_posting(row, entry))

    def _slots(self, page_id: int) -> tuple[np.ndarray, list[tuple[bytes, bytes | None]]]:
        """Keys of a page: slots of those that the batch has, and the others with their rows. Raises Missing."""
        posted = self.reads.posted
        number = posted.number_of.get(page_id)
        if number is not None:
            return posted.slots[number], []
        slots, others, needs = [], [], Needs()
        for key in self.posted_keys(page_id):
            slot = posted.slot_of(key)
            if slot is not None:
                slots.append(slot)
                continue
            try:
                others.append((key, self.postings.get(key)))
            except Missing as missing:
                needs.add(missing.needs)
        if needs:
            raise self.lacking(page_id)
        return np.array(slots, dtype=np.int64), others

    @property
    def hot_turned(self) -> int:
        return len(self._turned) + len(self.lists.turned)

    def turned_keys(self) -> list[bytes]:
        """The similarity keys that turned hot since this was asked last, in byte order."""
        posted, lists = self.reads.posted.keys, self.lists
        if len(self._turned) + len(lists.turned) == len(self._told):
            return []
        fresh = sorted({*self._turned, *(posted[slot] for slot in lists.turned)} - self._told)
        self._told.update(fresh)
        return fresh

    def lacking(self, page_id: int) -> Missing:
        """The lists of a page, some of which were not read."""
        needs = Needs()
        needs.rows[Family.KEYS] = set(self.posted_keys(page_id))
        return Missing(needs)

    def writes(self) -> dict[Family, dict[bytes, bytes | None]]:
        """What this batch changed, ready for `Store.write`."""
        posted: dict[bytes, bytes | None] = {}
        # In the order of their families' bytes: what is sorted but for small parts is quickly sorted.
        for part in (self.digests, self.more, self.namings, self.lists, self.postings):
            posted.update(part.writes())
        out = {
            Family.KEYS: posted,
            Family.SKETCHES: self.sketches.writes(),
            Family.URLS: self.urls.writes(),
            Family.CLUSTERS: self.clusters.writes(),
            Family.MEMBERS: self.members.writes(),
        }
        return {family: changes for family, changes in out.items() if changes}
