"""A store under changes that are not written yet, seen as one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from neardup.index.column_families import Family, Reader, Writes

_SCAN_ROWS = 1024


class Layered:
    """Reads of a store as if `changes` had been written. `add` takes more of them; `changes` is all of them."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self.changes: dict[Family, dict[bytes, bytes | None]] = {}
        self._ordered: dict[Family, list[bytes]] = {}

    def add(self, writes: Writes) -> None:
        for family, rows in writes.items():
            self.changes.setdefault(family, {}).update(rows)
            self._ordered.pop(family, None)

    def clear(self) -> None:
        """Forgets all changes."""
        self.changes, self._ordered = {}, {}

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        changed = self.changes.get(family)
        if not changed:
            return self._store.get_many(family, keys)
        unread = [key for key in keys if key not in changed]
        held = dict(zip(unread, self._store.get_many(family, unread), strict=True))
        return [changed[key] if key in changed else held[key] for key in keys]

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        changed, here = self.changes.get(family, {}), self._under(family, prefix, after)
        # Each key that was changed hides one row of the store at most.
        held = self._store.first(family, prefix, limit + len(here), after)
        rows = [(key, row) for key, row in held if key not in changed]
        rows += [(key, row) for key in here if (row := changed[key]) is not None]
        return sorted(rows)[:limit]

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        after = b""
        while rows := self.first(family, b"", _SCAN_ROWS, after):
            yield from rows
            after = rows[-1][0]

    def _under(self, family: Family, prefix: bytes, after: bytes) -> list[bytes]:
        """Changed keys of a prefix, after a key, ascending."""
        if family not in self._ordered:
            self._ordered[family] = sorted(self.changes.get(family, ()))
        ordered = self._ordered[family]
        start = max(bisect_left(ordered, prefix), bisect_right(ordered, after))
        end = start
        while end < len(ordered) and ordered[end].startswith(prefix):
            end += 1
        return ordered[start:end]
