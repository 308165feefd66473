"""One kind of row: the rows that were read, under the changes of the batch so far."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from heapq import merge
from typing import Any, Generic, TypeVar

from neardup.errors import InvariantBroken
from neardup.index.column_families import Family
from neardup.index.reads import FIRST_MIN, Missing, Needs, ReadSet

Row = TypeVar("Row")
_UNKNOWN = object()
#: A prefix is a key without its last bytes, a page id.
_ID_BYTES = 8


class Table(Generic[Row]):
    """Rows of one kind. Reads raise Missing for rows that were not read."""

    def __init__(
        self, family: Family, reads: ReadSet, decode: Callable[[bytes], Row], encode: Callable[[Row], bytes]
    ) -> None:
        self._family = family
        self._read = reads.rows[family]
        self._prefixes = reads.prefixes
        self._decode = decode
        self._encode = encode
        self._held: dict[bytes, Any] = reads.decoded[decode]  # of the rows that were read
        self._now: dict[bytes, Row | None] = {}
        self._encoded: dict[bytes, bytes] = {}  # rows put and not read since
        self._changed: set[bytes] = set()
        self._grouped: dict[bytes, list[bytes]] | None = None  # keys put, by prefix

    def get(self, key: bytes) -> Row | None:
        """The row as it is now; None if there is none. Raises Missing."""
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
        """Like `get`, of a row that must exist. Raises Missing, InvariantBroken."""
        row = self.get(key)
        if row is None:
            raise InvariantBroken(f"{self._family.name.lower()}: no row under {key.hex()}")
        return row

    def is_put(self, key: bytes) -> bool:
        """Whether the batch has put a row under a key, or deleted it."""
        return key in self._changed or key in self._encoded

    def put(self, key: bytes, row: Row | None) -> None:
        self._now[key] = row
        self._changed.add(key)
        if self._grouped is not None:
            self._group(self._grouped, key)

    def put_encoded(self, key: bytes, row: bytes) -> None:
        """Like `put`, of an encoded row that differs from the stored one."""
        self._encoded[key] = row
        if key in self._now:
            del self._now[key]
            self._changed.discard(key)
        if self._grouped is not None:
            self._group(self._grouped, key)

    def put_new(self, keys: Sequence[bytes], rows: Sequence[bytes]) -> None:
        """Like `put_encoded` of many rows, under keys that were neither stored nor put before."""
        self._encoded.update(zip(keys, rows, strict=True))
        if self._grouped is not None:
            for key in keys:
                self._group(self._grouped, key)

    def first(self, prefix: bytes, limit: int, after: bytes, *, fresh: bool, lookahead: int = 0) -> list[bytes]:
        """The smallest `limit` keys of a prefix and 8 bytes after a key. Raises Missing.

        Args:
            after: the keys up to this one are deleted.
            fresh: the store has no such keys.
            lookahead: number of keys that the batch will need, at least; read together if the first ones were not read.
        """
        unread: tuple[list[bytes], bytes, bool] = [], after, fresh
        known, since, complete = unread if fresh else self._prefixes.get((self._family, prefix), unread)
        if since > after:
            known, complete = [], False
        # The store may have unread keys after the last key that was read.
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
            needs.first(self._family, prefix, max(limit, FIRST_MIN, lookahead, 2 * len(known)), min(since, after))
            raise Missing(needs)
        return found

    def _put_under(self, prefix: bytes) -> list[bytes]:
        """The keys of a prefix and 8 bytes that this batch has put or deleted, ascending."""
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
        """Encoded rows that differ from those that were read; None: deleted."""
        out: dict[bytes, bytes | None] = dict(self._encoded)
        for key in self._changed:
            row = self._now[key]
            value = None if row is None else self._encode(row)
            if key not in self._read or self._read[key] != value:
                out[key] = value
            else:
                out.pop(key, None)
        return out
