"""Tables in a terminal, and text of pages and files that is safe there."""

from rich.table import Table
from rich.text import Text

from neardup.report.page_templates import visible


def safe(text: str, limit: int | None = 200, *, fold: bool = False) -> Text:
    """Return text of a page or a file without markup, escape sequences, or marks that change the reading order."""
    return Text(str(visible(text.replace("\n", " ").replace("\t", " ")))[:limit], overflow="fold" if fold else None)


def folded(text: str) -> Text:
    """Return `safe` text of any length, which a table wraps."""
    return safe(text, None, fold=True)


def table_of(*columns: str) -> Table:
    """Return a table without lines and rows. A name that begins with `>` aligns its column to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return table
