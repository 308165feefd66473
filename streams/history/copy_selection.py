"""Selects the pages of a deduplicated copy: the current fetch of each URL that an index shows."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from streams.history.export import TABLES, Verdict, rows
from streams.history.scratch import scratch_table

_COLUMNS = {name: number for number, name in enumerate(TABLES["urls"])}
_SCHEMA = """
CREATE TABLE pages (source TEXT, "offset" INT, kept INT, copy_of TEXT, PRIMARY KEY (source, "offset")) WITHOUT ROWID;
CREATE TABLE written (url TEXT PRIMARY KEY, digest TEXT, date TEXT) WITHOUT ROWID;
"""


class Written(NamedTuple):
    """A page that a copy holds. digest: of its payload. date: its WARC-Date."""

    digest: str
    date: str


class CopySelection:
    """The pages of the verdicts, and those that the copy holds so far."""

    def __init__(self, table: sqlite3.Connection) -> None:
        self._table = table

    def of(self, source: str) -> Iterator[tuple[int, bool, str | None]]:
        """Yields (offset, whether it is kept, URL of the page that it is an exact copy of), by offset.

        Pages that are neither, such as former fetches, are left out.
        """
        yield from self._table.execute(
            'SELECT "offset", kept, copy_of FROM pages WHERE source = ? AND (kept OR copy_of NOT NULL)'
            ' ORDER BY "offset"',
            (source,),
        )

    def add_written(self, url: str, page: Written) -> None:
        """Records that the copy holds a page."""
        self._table.execute("REPLACE INTO written VALUES (?, ?, ?)", (url, *page))

    def written(self, url: str) -> Written | None:
        """Returns the page of a URL that the copy holds so far."""
        found = self._table.execute("SELECT digest, date FROM written WHERE url = ?", (url,)).fetchone()
        return Written(*found) if found else None


@contextmanager
def copy_selection(verdicts: Iterable[Verdict], progress: Callable[[int], None]) -> Iterator[CopySelection]:
    """Reads all verdicts. progress: gets the number read. Raises BadInput for lines that are no verdicts."""
    columns = [_COLUMNS[name] for name in ("source", "offset", "shown", "verdict", "representative")]
    with scratch_table(_SCHEMA) as table:
        table.execute("BEGIN")
        for row in rows("urls", verdicts, progress):
            source, offset, shown, verdict, representative = (row[column] for column in columns)
            copy_of = representative if verdict == "exact_duplicate" else None
            table.execute("REPLACE INTO pages VALUES (?, ?, ?, ?)", (source, offset, shown, copy_of))
        table.execute("COMMIT")
        yield CopySelection(table)
