"""The rows of the views during a batch of verdicts: each row is read once and written once.

The stream and a scan share it: it does not matter where the tables are.
"""

from collections.abc import Callable, Mapping

import orjson

from streams.views.entries import Row
from streams.views.view_rows import TABLES


def key_of(text: str) -> bytes:
    """Return the stored form of a key."""
    return text.encode("utf-8", "replace")


class RowBatch:
    """`view_rows.ViewRows` of one partition. read: returns a stored row of a table, by its key."""

    def __init__(self, read: Callable[[str, bytes], bytes | None]) -> None:
        self._read = read
        self._held: dict[str, dict[str, Row | None]] = {table: {} for table in TABLES}
        self._changed: dict[str, dict[str, Row]] = {table: {} for table in TABLES}

    def hold(self, table: str, rows: Mapping[str, bytes | None]) -> None:
        """Take rows that were read together, which costs less than one by one."""
        self._held[table].update((key, None if row is None else orjson.loads(row)) for key, row in rows.items())

    def get(self, table: str, key: str) -> Row | None:
        row = self._changed[table].get(key)
        if row is not None:
            return row
        held = self._held[table]
        if key not in held:
            value = self._read(table, key_of(key))
            held[key] = None if value is None else orjson.loads(value)
        return held[key]

    def put(self, table: str, key: str, row: Row) -> None:
        self._changed[table][key] = row

    def changed(self) -> dict[str, dict[bytes, bytes]]:
        """Return the changed rows of each table, by key."""
        return {
            table: {key_of(key): orjson.dumps(row) for key, row in rows.items()}
            for table, rows in self._changed.items()
            if rows
        }
