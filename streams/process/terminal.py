"""Makes text of pages and files safe for a terminal."""

from rich.text import Text

from neardup.report import visible


def safe(text: str, limit: int | None = 200, *, fold: bool = False) -> Text:
    """Return text of a page or a file without markup, escape sequences, or marks that change the reading order."""
    return Text(str(visible(text.replace("\n", " ").replace("\t", " ")))[:limit], overflow="fold" if fold else None)


def folded(text: str) -> Text:
    """Return `safe` text of any length, which a table wraps."""
    return safe(text, None, fold=True)
