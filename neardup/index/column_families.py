"""The store of an index: ordered byte keys in column families, read in batches, written atomically."""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Protocol


class Family(IntEnum):
    """Column families. Persisted: values never change."""

    META = 0
    KEYS = 1
    SKETCHES = 2
    URLS = 3
    CLUSTERS = 4
    MEMBERS = 5


#: One atomic change: per family, key -> new value, or None to delete.
Writes = Mapping[Family, Mapping[bytes, bytes | None]]


class Reader(Protocol):
    """The read methods of an ordered key-value store."""

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values in the order of `keys`, None where absent."""
        ...

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        """The smallest `limit` keys that start with `prefix`, with their values, in byte order.

        after: return only greater keys. The store walks over deleted rows, so a caller that deletes
        the first rows again and again should pass the last one.
        """
        ...

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        """All pairs of a family in byte order. Writes during a scan may or may not be seen."""
        ...


class Store(Reader, Protocol):
    """An ordered key-value store. Not safe for two writers; one writer with readers in other threads is."""

    def write(self, writes: Writes) -> None:
        """Applies all of `writes` or, after a crash, none of it. May be lost by a crash until `flush`."""
        ...

    def flush(self) -> None:
        """Makes everything written so far durable."""
        ...

    def close(self) -> None:
        """Flushes, and releases the directory. Closing twice is harmless."""
        ...
