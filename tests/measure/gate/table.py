"""The gate's table at the end of the run. Rows travel as properties of tests, so that xdist's workers can send them."""

from typing import Any

#: "needed" and "bound" belong to the figure before them.
HEADINGS = (
    *("class", "items", "repeats", "found", "needed", "as content", "wrong", "bound", "as content"),
    *("rule `tape`: found", "wrong"),
)


def write(terminalreporter: Any) -> None:
    """Writes the table; nothing if no test of the gate ran."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    properties = (pair for report in reports for pair in report.user_properties)
    rows = sorted(value for name, value in properties if name == "gate")
    if not rows:
        return
    terminalreporter.section(
        "accuracy gate: rule `verified`, and on the first stream `tape`, which looks at no headings, URLs and siblings"
    )
    terminalreporter.write_line("found: share of repeats merged rightly; wrong: items merged with another, per 1,000")
    table = [HEADINGS, *(cells for _, cells in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(HEADINGS))]
    for first, *rest in table:
        line = first.ljust(widths[0])
        for cell, width in zip(rest, widths[1:], strict=True):
            line += "  " + cell.rjust(width)
        terminalreporter.write_line(line.rstrip())
