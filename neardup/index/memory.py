"""A store in dictionaries, for tests and throw-away runs."""

from collections.abc import Iterable, Iterator, Sequence

from neardup.errors import StateError
from neardup.index.base import Family, Writes

#: MEMBERS are asked for by cluster, often: they are grouped by these first bytes of their keys.
_CLUSTER_BYTES = 8


class MemoryStore:
    """`neardup.index.base.Store` in RAM; nothing survives the process."""

    def __init__(self) -> None:
        self._rows: dict[Family, dict[bytes, bytes]] = {family: {} for family in Family}
        self._members: dict[bytes, set[bytes]] = {}
        self._closed = False

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        rows = self._open(family)
        return [rows.get(key) for key in keys]

    def first(self, family: Family, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        rows = self._open(family)
        keys: Iterable[bytes] = rows
        if family is Family.MEMBERS and len(prefix) >= _CLUSTER_BYTES:
            keys = self._members.get(prefix[:_CLUSTER_BYTES], ())
        # Of the other families nobody asks often: all keys are looked at.
        return [(key, rows[key]) for key in sorted(key for key in keys if key.startswith(prefix))[:limit]]

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        rows = self._open(family)
        for key in sorted(rows):
            if key in rows:
                yield key, rows[key]

    def write(self, writes: Writes) -> None:
        for family, changes in writes.items():
            rows = self._open(family)
            for key, value in changes.items():
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
                if family is Family.MEMBERS:
                    self._regroup(key, value is not None)

    def flush(self) -> None:
        self._open(Family.META)

    def close(self) -> None:
        self._closed = True

    def _regroup(self, key: bytes, present: bool) -> None:
        group = self._members.setdefault(key[:_CLUSTER_BYTES], set())
        if present:
            group.add(key)
        else:
            group.discard(key)
            if not group:
                del self._members[key[:_CLUSTER_BYTES]]

    def _open(self, family: Family) -> dict[bytes, bytes]:
        if self._closed:
            raise StateError("this store is closed; open it again")
        return self._rows[family]
