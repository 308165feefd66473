"""Text of strangers for a terminal."""

from rich.text import Text

from neardup.report import visible


def safe(text: str, limit: int = 200) -> Text:
    """Text from a page or a file, without markup, escape sequences or anything that turns the reading order."""
    return Text(str(visible(text.replace("\n", " ")))[:limit])
