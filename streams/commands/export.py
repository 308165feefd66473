"""`neardup export`: a table of `streams.history.export` as Parquet, CSV or JSON lines."""

from collections.abc import Callable

from streams.commands.diff import history_of
from streams.commands.tables import must_be_writable, write_table
from streams.config.settings import Settings
from streams.history.export import TABLES, Name, rows


def export(
    source: str, table: Name, out: str, settings: Settings, progress: Callable[[int], None] = lambda read: None
) -> int:
    """Writes a table and returns its rows.

    source: see `streams.commands.diff.history_of`. Raises BadInput for what is no history, and as `write_table`.
    """
    must_be_writable(out)
    return write_table(rows(table, history_of(source, settings)(), progress), TABLES[table], out)
