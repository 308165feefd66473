"""What one batch has read of the store, and what it still needs.

What judging needs and was not read raises Missing, so that it stays a pure function of the batch and its read set.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from neardup.decider import Decider
from neardup.index import rows, sharing
from neardup.index.base import Family, Reader
from neardup.parallel import spread
from neardup.search.lists import Posted
from neardup.search.pages import Pages
from neardup.search.scores import Numbers, Scores
from neardup.sketch.header import Header

#: Rows of a prefix are read at least so many at a time: a promotion is seldom the only one of its batch.
FIRST_MIN = 4

#: Fewer keys are not worth another thread: of a large index each costs some 10 us.
_PART_KEYS = 48


class Needs:
    """Rows and prefixes to read. Prefixes carry how many of their first rows are needed, and after which key."""

    def __init__(self) -> None:
        self.rows: dict[Family, set[bytes]] = {}
        self.prefixes: dict[tuple[Family, bytes], tuple[int, bytes]] = {}

    def row(self, family: Family, key: bytes) -> None:
        self.rows.setdefault(family, set()).add(key)

    def sketches(self, page_ids: Iterable[int]) -> None:
        self.rows.setdefault(Family.SKETCHES, set()).update(map(rows.id_key, page_ids))

    def add(self, other: "Needs") -> None:
        for family, wanted in other.rows.items():
            self.rows.setdefault(family, set()).update(wanted)
        for (family, prefix), (limit, after) in other.prefixes.items():
            self.first(family, prefix, limit, after)

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes) -> None:
        """The first keys of a prefix, so many, after a key. What was wanted before is still wanted."""
        known = self.prefixes.get((family, prefix), (0, after))
        self.prefixes[family, prefix] = max(limit, known[0]), min(after, known[1])

    def __bool__(self) -> bool:
        return bool(self.rows or self.prefixes)


class Missing(Exception):
    """What judging needed and the read set does not hold. Not an error: `fold` reads `needs` and judges again."""

    def __init__(self, needs: Needs) -> None:
        super().__init__("the read set lacks rows")
        self.needs = needs

    @classmethod
    def row(cls, family: Family, key: bytes) -> "Missing":
        needs = Needs()
        needs.row(family, key)
        return cls(needs)


class ReadSet:
    """Everything a batch has read. rows: per family, key -> value or None for absent.

    prefixes: the first keys of a prefix after a key, that key, and whether these are all of them. posted: the batch's
    similarity keys with their rows, which `rows` does not hold. decoded: rows as somebody looked at them, by how they
    are decoded. headers, keys and scores remember what follows from records, by page id: decoded records, similarity
    keys of pages of the store, numbers of pairs. chosen: what was chosen for a page, and from what: candidates,
    siblings, the search, whether the lists were as they were read. founders: pages of the batch that will likely be
    posted. threads: how many read and score.
    """

    def __init__(self, batch: Pages, decider: Decider, threads: int = 1) -> None:
        self.batch = batch
        self.posted = Posted(batch, decider)
        self.rows: dict[Family, dict[bytes, bytes | None]] = {family: {} for family in Family}
        self.prefixes: dict[tuple[Family, bytes], tuple[list[bytes], bytes, bool]] = {}
        self.decoded: defaultdict[Callable[[bytes], Any], dict[bytes, Any]] = defaultdict(dict)
        self.headers: dict[int, Header] = {}
        self.keys: dict[int, list[bytes]] = {}
        self.numbers = Numbers(decider)
        self.scores: dict[int, Scores] = {}
        self.chosen: dict[int, tuple[Any, Any, Any, bool]] = {}
        self.founders: set[int] = set()
        self.threads = threads

    def read(self, store: Reader, needs: Needs) -> int:
        """Reads what is needed and not here yet; returns the number of rows and prefixes read."""
        # Sorted: neighbours share a block of the file.
        absent = {
            family: sorted(key for key in keys_wanted if key not in self.rows[family])
            for family, keys_wanted in needs.rows.items()
        }
        for family, values in self._get(store, absent).items():
            self.rows[family].update(zip(absent[family], values, strict=True))
        if absent.get(Family.KEYS):
            self.posted.learn(absent[Family.KEYS], self.rows[Family.KEYS])
        read = sum(map(len, absent.values()))
        for (family, prefix), (limit, after) in needs.prefixes.items():
            known, since, complete = self.prefixes.get((family, prefix), ([], after, False))
            if since <= after and (complete or len(known) >= limit):
                continue
            since = min(since, after)
            found = store.first(family, prefix, limit, since)
            self.prefixes[family, prefix] = ([key for key, _ in found], since, len(found) < limit)
            self.rows[family].update(found)
            read += 1
        return read

    def _get(self, store: Reader, wanted: Mapping[Family, Sequence[bytes]]) -> dict[Family, list[bytes | None]]:
        """Values of keys in several families, read by several threads."""
        out: dict[Family, list[bytes | None]] = {family: [None] * len(keys) for family, keys in wanted.items()}
        step = max(_PART_KEYS, -(-sum(map(len, wanted.values())) // self.threads))
        parts = [
            (family, slice(first, first + step))
            for family, keys in wanted.items()
            for first in range(0, len(keys), step)
        ]

        def get(first: int, last: int) -> None:
            for family, part in parts[first:last]:
                out[family][part] = store.get_many(family, wanted[family][part])

        spread(get, len(parts), self.threads, 1)
        return out

    def read_lists(self, store: Reader, page_ids: Iterable[int]) -> None:
        """Reads the posting lists of pages of the batch."""
        slots = self.posted.unread_of(page_ids)
        if slots:
            wanted = [self.posted.keys[slot] for slot in slots]
            self.posted.put(slots, self._get(store, {Family.KEYS: wanted})[Family.KEYS])

    def read_sketches(self, store: Reader, page_ids: Iterable[int]) -> None:
        """Reads sketches rows and the rows that hold their shared parts."""
        needs = Needs()
        needs.sketches(page_id for page_id in page_ids if page_id not in self.headers and page_id not in self.batch)
        self.read(store, needs)
        held = self.rows[Family.SKETCHES]
        shared = Needs()
        for key in needs.rows[Family.SKETCHES]:
            row = held[key]
            rest = None if row is None else sharing.rest_of_row(row)
            if rest is not None:
                shared.sketches((rest,))
        self.read(store, shared)
