"""Models the content of an evaluation: sections with tables and plots as data, for HTML, CSV and JSON."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

#: None is a figure that cannot be computed, shown as a dash.
Cell = str | int | float | None


@dataclass(frozen=True)
class ResultTable:
    """One table. name: for files. kinds: of each column: text, count, share (0 to 1) or number (decimals).

    paper: columns with the paper's figures.
    """

    name: str
    caption: str
    columns: Sequence[str]
    kinds: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    paper: Sequence[int] = ()

    def __post_init__(self) -> None:
        widths = {len(self.columns), len(self.kinds), *map(len, self.rows)}
        if len(widths) != 1:
            raise ValueError(f"table {self.name}: columns, kinds and rows are of lengths {sorted(widths)}")
        if len(set(self.columns)) != len(self.columns):  # in JSON the later column would replace the earlier
            raise ValueError(f"table {self.name}: two columns have one name: {', '.join(self.columns)}")

    def to_csv(self) -> str:
        return _csv(self.columns, self.rows)

    def to_json(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Plot:
    """One plot and its data. svg: for the page; standalone files get a style sheet of their own."""

    name: str
    caption: str
    svg: Markup
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    legend: Sequence[tuple[str, str]] = ()  # (class, name)

    def to_csv(self) -> str:
        return _csv(self.columns, self.rows)


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


def _csv(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
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


def ratio(part: float, whole: float) -> float | None:
    """Computes part / whole, None if whole is 0."""
    return part / whole if whole else None


def by_name(sections: Sequence[Section]) -> Mapping[str, ResultTable]:
    """Returns all tables of an evaluation by name."""
    return {table.name: table for section in sections for table in section.tables}
