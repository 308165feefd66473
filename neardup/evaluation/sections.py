"""Models the content of an evaluation: sections with tables and plots as data, for HTML, CSV and JSON."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from markupsafe import Markup

from neardup.report.plots import Axes, Series, plot

#: None is a figure that cannot be computed, shown as a dash.
Cell = str | int | float | None
Kind = Literal["text", "count", "share", "number"]


def _columns(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)


#: Columns of one kind: texts, counts, shares from 0 to 1, numbers with decimals. A table's columns are joined by `|`.
_KINDS: tuple[Kind, ...] = ("text", "count", "share", "number")
text, count, share, number = (partial(_columns, kind) for kind in _KINDS)


@dataclass(frozen=True)
class ResultTable:
    """One table.

    name: name of the table in names of files.
    columns: kind of each column; a column whose name begins with "paper" has the paper's figures.
    """

    name: str
    caption: str
    columns: Mapping[str, Kind]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        widths = {len(self.columns), *map(len, self.rows)}
        if len(widths) != 1:  # also where two columns have one name
            raise ValueError(f"table {self.name}: columns and rows are of lengths {sorted(widths)}")

    @property
    def kinds(self) -> Sequence[Kind]:
        return list(self.columns.values())

    @property
    def paper(self) -> Sequence[int]:
        """Returns the places of the columns with the paper's figures."""
        return [place for place, name in enumerate(self.columns) if name.startswith("paper")]

    def to_csv(self) -> str:
        return _csv(self.columns, self.rows)

    def to_json(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Plot:
    """One plot and its data. svg: picture for the page; standalone files get a style sheet of their own."""

    name: str
    caption: str
    svg: Markup
    columns: Iterable[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    legend: Sequence[tuple[str, str]] = ()  # (class, name)

    def to_csv(self) -> str:
        return _csv(self.columns, self.rows)


def figure(
    name: str,
    caption: str,
    series: Sequence[Series],
    axes: Axes,
    columns: Iterable[str],
    rows: Sequence[Sequence[Cell]],
    note: str = "",
    legend: Sequence[str] | None = None,
) -> list[Plot]:
    """Draws series as a plot of a section, with its data; none if no series has a point.

    legend: a name for each series; by default its own.
    """
    svg = plot(caption, series, axes)
    names = [one.name for one in series] if legend is None else legend
    keys = [(f"s{place}", each) for place, each in enumerate(names)]
    return [] if svg is None else [Plot(name, caption, svg, columns, rows, note, keys)]


@dataclass
class Section:
    """One numbered table or plot of the paper, or an addition. missing: why it is empty or incomplete."""

    key: str
    title: str
    text: str = ""
    tables: list[ResultTable] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    missing: str = ""

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"title": self.title, "tables": {t.name: t.to_json() for t in self.tables}}
        if self.missing:
            out["missing"] = self.missing
        return out


def _csv(columns: Iterable[str], rows: Sequence[Sequence[Cell]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if cell is None else _guarded(cell) for cell in row])
    return out.getvalue()


def _guarded(cell: Cell) -> Cell:
    """Escapes cells that spreadsheets would run as formulas, since URLs and words come from untrusted pages."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + cell
    return cell


def shown(cell: Cell, kind: str) -> str:
    """Formats a cell."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if kind == "count":
        return f"{cell:,.0f}"
    if kind == "share":
        return f"{cell:.2f}"
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.4g}" if abs(cell) >= 1e-4 or cell == 0 else f"{cell:.1e}"


def ratio(part: float | None, whole: float | None) -> float | None:
    """Computes part / whole; None if whole is 0, or one of them is unknown."""
    return part / whole if whole and part is not None else None


def by_name(sections: Sequence[Section]) -> Mapping[str, ResultTable]:
    """Returns all tables of an evaluation by name."""
    return {table.name: table for section in sections for table in section.tables}
