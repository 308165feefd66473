"""Gives the cells of wide tables the names of their columns, so that a narrow window can stack the cells of a row.

The style sheet shows the names. It works on the rendered page, whose tags all come from the templates: texts of pages
are escaped there.
"""

import re

#: Tables with more columns are stacked in a narrow window, and those that mark a column as wide.
COLUMNS_MAX = 3
_TABLE = re.compile(r"<table>(.*?)</table>", re.DOTALL)
_HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_CELL = re.compile(r"<(tr|th|td)\b([^>]*)>")
_SPAN = re.compile(r'colspan="(\d+)"')
_WIDE = re.compile(r'<th\b[^>]*class="[^"]*\bwide\b')


def stacked(html: str) -> str:
    """Return a page with `class="stack"` on wide tables, and `data-label` on each cell behind the first of a row."""
    return _TABLE.sub(lambda found: _table(found[1]), html)


def _table(inner: str) -> str:
    head, end, body = inner.partition("</thead>")
    names = [_name(cell) for cell in _HEAD.findall(head)]
    if len(names) <= COLUMNS_MAX and not _WIDE.search(head):
        return f"<table>{inner}</table>"
    column = 0

    def cell(found: re.Match[str]) -> str:
        nonlocal column
        tag, attributes = found[1], found[2]
        if tag == "tr":
            column = 0
            return found[0]
        name = names[column] if 0 < column < len(names) else ""
        span = _SPAN.search(attributes)
        column += int(span[1]) if span else 1
        return f'<{tag}{attributes} data-label="{name}">' if name else found[0]

    return f'<table class="stack">{head}{end}{_CELL.sub(cell, body)}</table>'


def _name(cell: str) -> str:
    """Return the text of a column's name; none if it is for screen readers alone."""
    return "" if 'class="skip"' in cell else _TAG.sub("", cell).replace('"', "&#34;").strip()
