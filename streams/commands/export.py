"""`neardup export`: a table of `streams.history.export` as Parquet, CSV or JSON lines."""

from collections.abc import Callable

from streams.history.comparing import Topics, history_of
from streams.history.export import TABLES, Name, rows
from streams.history.tables import must_be_writable, write_table


def export(
    source: str, table: Name, out: str, topics: Topics, progress: Callable[[int], None] = lambda read: None
) -> int:
    """Writes a table and returns its rows.

    source: see `streams.history.comparing.history_of`. Raises BadInput for what is no history, and as `write_table`.
    """
    must_be_writable(out)
    return write_table(rows(table, history_of(source, topics)(), progress), TABLES[table], out)
