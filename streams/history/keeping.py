"""Selects the pages of a deduplicated copy: the current fetch of each URL that an index shows."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from streams.history.export import TABLES, Verdict, rows

_AT = {name: place for place, name in enumerate(TABLES["urls"])}
_SCHEMA = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;
CREATE TABLE pages (source TEXT, "offset" INT, kept INT, copy_of TEXT, PRIMARY KEY (source, "offset")) WITHOUT ROWID;
CREATE TABLE written (url TEXT PRIMARY KEY, digest TEXT, date TEXT) WITHOUT ROWID;
"""


class Written(NamedTuple):
    """A page that a copy holds. digest: of its payload; date: its WARC-Date."""

    digest: str
    date: str


class Keeping:
    """The selection, in an SQLite file, so that memory does not grow with the pages. A context manager."""

    def __init__(self, verdicts: Iterable[Verdict], progress: Callable[[int], None] = lambda read: None) -> None:
        """Raises BadInput for lines that are no verdicts."""
        self._folder = tempfile.TemporaryDirectory(prefix="neardup-copy-")
        self._table = sqlite3.connect(Path(self._folder.name) / "pages", isolation_level=None)
        try:
            self._table.executescript(_SCHEMA + "BEGIN;")
            wanted = [_AT[name] for name in ("source", "offset", "shown", "verdict", "representative")]
            for row in rows("urls", verdicts, progress):
                source, offset, shown, verdict, representative = (row[place] for place in wanted)
                copy_of = representative if verdict == "exact_duplicate" else None
                self._table.execute("REPLACE INTO pages VALUES (?, ?, ?, ?)", (source, offset, shown, copy_of))
            self._table.execute("COMMIT")
        except BaseException:
            self.close()
            raise

    def of(self, source: str) -> Iterator[tuple[int, bool, str | None]]:
        """Yield (offset, whether it is kept, URL of the page that it is an exact copy of), by offset.

        Pages that are neither, such as former fetches, are left out.
        """
        yield from self._table.execute(
            'SELECT "offset", kept, copy_of FROM pages WHERE source = ? AND (kept OR copy_of NOT NULL)'
            ' ORDER BY "offset"',
            (source,),
        )

    def wrote(self, url: str, page: Written) -> None:
        """Record that the copy holds a page."""
        self._table.execute("REPLACE INTO written VALUES (?, ?, ?)", (url, *page))

    def written(self, url: str) -> Written | None:
        """Return the page of a URL that the copy holds so far."""
        found = self._table.execute("SELECT digest, date FROM written WHERE url = ?", (url,)).fetchone()
        return Written(*found) if found else None

    def close(self) -> None:
        self._table.close()
        self._folder.cleanup()

    def __enter__(self) -> "Keeping":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
