"""A store in dictionaries, for tests and throw-away runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from neardup.errors import StateError
from neardup.index.column_families import Family, Writes

#: MEMBERS are often read by cluster: their keys are kept in order, grouped by these first bytes.
_CLUSTER_BYTES = 8


class MemoryStore:
    """A `neardup.index.column_families.Store` in memory. It ends with the process."""

    def __init__(self) -> None:
        self._rows: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}
        self._members: dict[bytes, list[bytes]] = {}
        self._closed = False

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        rows = self._open(family)
        return [rows.get(key) for key in keys]

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        rows = self._open(family)
        keys: Iterable[bytes]
        if family is Family.MEMBERS and len(prefix) == _CLUSTER_BYTES:
            group = self._members.get(prefix, [])
            at = bisect_right(group, after)
            keys = group[at : at + limit]
        else:  # rare: scans all keys
            keys = sorted(key for key in rows if key.startswith(prefix) and key > after)[:limit]
        return [(key, rows[key]) for key in keys]

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        rows = self._open(family)
        for key in sorted(rows):
            if key in rows:
                yield key, rows[key]

    def write(self, writes: Writes) -> None:
        for family, changes in writes.items():
            rows = self._open(family)
            for key, value in changes.items():
                if family is Family.MEMBERS and (key in rows) is (value is None):
                    self._regroup(key)
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value

    def flush(self) -> None:
        self._open(Family.META)

    def close(self) -> None:
        self._closed = True

    def _regroup(self, key: bytes) -> None:
        """Adds a member's key to its group, or removes it if it is there."""
        group = self._members.setdefault(key[:_CLUSTER_BYTES], [])
        at = bisect_left(group, key)
        if group[at : at + 1] != [key]:
            group.insert(at, key)
            return
        del group[at]
        if not group:
            del self._members[key[:_CLUSTER_BYTES]]

    def _open(self, family: Family) -> dict[bytes, bytes]:
        if self._closed:
            raise StateError("this store is closed; open it again")
        return self._rows[family]
