"""A temporary SQLite database, for results that grow with the pages and so do not fit into memory."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRAGMAS = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"


@contextmanager
def scratch_table(schema: str) -> Iterator[sqlite3.Connection]:
    """Makes the tables of `schema` in a file that vanishes at the end. Each statement commits itself."""
    with tempfile.TemporaryDirectory(prefix="neardup-scratch-") as folder:
        table = sqlite3.connect(Path(folder) / "table", isolation_level=None)
        try:
            table.executescript(_PRAGMAS + schema)
            yield table
        finally:
            table.close()
