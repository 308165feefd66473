"""Rows of the index that were read for one batch.

Judging is a pure function of the batch and of the rows that were read. A row that was not read raises Missing, which
names it: so the function that uses a row is also the declaration that it is needed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from neardup.errors import InvariantBroken
from neardup.index import rows
from neardup.index.column_families import Family, Reader
from neardup.parallel import spread

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Least number of rows of a prefix per read: a batch with one promotion often has more.
FIRST_MIN = 4

#: Least number of keys that is worth another thread. Reading a key of a large index takes some 10 us.
_PART_KEYS = 48


class Needs:
    """Rows and prefixes to read. Of a prefix: the number of rows, and the key after which they begin."""

    def __init__(self) -> None:
        self.rows: dict[Family, set[bytes]] = {}
        self.prefixes: dict[tuple[Family, bytes], tuple[int, bytes]] = {}

    def row(self, family: Family, key: bytes) -> None:
        self.rows.setdefault(family, set()).add(key)

    def sketches(self, page_ids: Iterable[int]) -> None:
        self.rows.setdefault(Family.SKETCHES, set()).update(map(rows.id_key, page_ids))

    def add(self, other: "Needs") -> None:
        for family, required in other.rows.items():
            self.rows.setdefault(family, set()).update(required)
        for (family, prefix), (limit, after) in other.prefixes.items():
            self.first(family, prefix, limit, after)

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes) -> None:
        """Requires the first `limit` keys of a prefix after a key, besides those that were required before."""
        known = self.prefixes.get((family, prefix), (0, after))
        self.prefixes[family, prefix] = max(limit, known[0]), min(after, known[1])

    def __bool__(self) -> bool:
        return bool(self.rows or self.prefixes)


class Missing(Exception):
    """Rows that were needed and not read. Not an error: the caller reads `needs` and calls again."""

    def __init__(self, needs: Needs) -> None:
        super().__init__("rows were not read")
        self.needs = needs

    @classmethod
    def row(cls, family: Family, key: bytes) -> "Missing":
        needs = Needs()
        needs.row(family, key)
        return cls(needs)


class ReadSet:
    """Rows that were read, and what was decoded of them.

    Args:
        threads: number of threads that read.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        #: Per family: key -> value, or None where the store has no row.
        self.rows: dict[Family, dict[bytes, bytes | None]] = {family: {} for family in Family}
        #: The first keys of a prefix after a key, that key, and whether these are all of them.
        self.prefixes: dict[tuple[Family, bytes], tuple[list[bytes], bytes, bool]] = {}
        #: Decoded rows, by decoder.
        self.decoded: defaultdict[Callable[[bytes], Any], dict[bytes, Any]] = defaultdict(dict)

    def read(self, store: Reader, needs: Needs) -> int:
        """Reads the needs that were not read yet; returns the number of rows and prefixes read."""
        # Sorted: neighbours share a block of the file.
        absent = {
            family: sorted(key for key in required if key not in self.rows[family])
            for family, required in needs.rows.items()
        }
        for family, values in self._get(store, absent).items():
            self.rows[family].update(zip(absent[family], values, strict=True))
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

    def in_rounds(
        self, store: Reader, items: Iterable[Item], begin: Callable[[], Callable[[Item], Result]]
    ) -> dict[Item, Result]:
        """Calls a function with each item, reads what the calls missed, and repeats those calls.

        Args:
            begin: returns the function for one round. A function with effects needs a fresh overlay each round, since
                a call that misses a row may leave half of its effects there.

        Returns results by item, without the items whose call raised InvariantBroken: effects of other pages that these
        items depend on may be absent here. A real fault is raised again by judging.
        """
        results = {}
        pending = list(items)
        while pending:
            needs, missed, call = Needs(), [], begin()
            for item in pending:
                try:
                    results[item] = call(item)
                except Missing as missing:
                    needs.add(missing.needs)
                    missed.append(item)
                except InvariantBroken:
                    continue
            if missed and not self.read(store, needs):
                break
            pending = missed
        return results

    def _get(self, store: Reader, required: Mapping[Family, Sequence[bytes]]) -> dict[Family, list[bytes | None]]:
        """Values of keys in several families, read by several threads."""
        out: dict[Family, list[bytes | None]] = {family: [None] * len(keys) for family, keys in required.items()}
        step = max(_PART_KEYS, -(-sum(map(len, required.values())) // self.threads))
        parts = [
            (family, slice(first, first + step))
            for family, keys in required.items()
            for first in range(0, len(keys), step)
        ]

        def get(first: int, last: int) -> None:
            for family, part in parts[first:last]:
                out[family][part] = store.get_many(family, required[family][part])

        spread(get, len(parts), self.threads, 1)
        return out


def for_each(items: Iterable[Item], call: Callable[[Item], Result]) -> list[Result]:
    """Calls a function with each item, in order; returns the results. Raises Missing with the needs of all items.

    After a miss the other calls only learn what they need too: the effects of the missed call are absent, so their
    results are dropped, and InvariantBroken is ignored.
    """
    needs, results = Needs(), []
    for item in items:
        try:
            results.append(call(item))
        except Missing as missing:
            needs.add(missing.needs)
        except InvariantBroken:
            if not needs:
                raise
    if needs:
        raise Missing(needs)
    return results
