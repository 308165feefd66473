"""The picture of the curve of posted keys: one row of two plots for each number of pages, and one of costs."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from neardup.evaluation.plots import STANDALONE_STYLE, Axes, Series, plot
from neardup.report.charts import HEIGHT, WIDTH, compact

_Rows = Sequence[Mapping[str, str]]
_DEFAULT = {"head": "1", "place": "1", "width": "3", "supershingles": "8", "blocks": "6"}
_TITLE = 22
_LEGEND = 16


def _chosen(rows: _Rows, **fixed: str) -> _Rows:
    wanted = {"head": "1", "place": "1", **fixed}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _series(rows: _Rows, x: str, y: str, *, missed: bool = False) -> list[Series]:
    """Lines over the number of supershingles for each width, and over the number of blocks."""
    lines = [
        *((f"n supershingles of {width}, 6 blocks", _chosen(rows, width=width, blocks="6")) for width in "234"),
        ("8 supershingles of 3, b blocks", _chosen(rows, width="3", supershingles="8")),
    ]
    out = []
    for name, found in lines:
        ordered = sorted(found, key=lambda row: int(row["keys"]))
        points = [
            (float(row[x]), max(1e-4, 1 - float(row[y])) if missed else float(row[y])) for row in ordered if row[y]
        ]
        hints = [
            f"{row['supershingles']} of {row['width']}, {row['blocks']} blocks: {row['keys']} keys, recall"
            f" {row['recall']}, {row['candidates']} candidates"
            for row in ordered
            if row[y]
        ]
        out.append(Series(name, points, "line", hints))
    return out


def _panel(picture: Markup | None, title: str, series: Sequence[Series], x: int, y: int) -> list[Markup]:
    if picture is None:
        return []
    text = Markup('<text class="label" x="{}" y="{}" font-weight="600">{}</text>').format(x + 8, y + 14, title)
    start = str(picture).index(">")
    inner = Markup('<svg x="{}" y="{}" width="{}" height="{}" viewBox="0 0 {} {}">').format(
        x, y + _TITLE, WIDTH, HEIGHT, WIDTH, HEIGHT
    ) + Markup(str(picture)[start + 1 :])
    parts = [text, inner]
    for number, one in enumerate(series):
        left, top = x + 60 + 250 * (number % 2), y + _TITLE + HEIGHT + 12 + _LEGEND * (number // 2)
        parts.append(
            Markup('<line class="curve s{}" x1="{}" y1="{}" x2="{}" y2="{}"/><text x="{}" y="{}">{}</text>').format(
                number, left, top - 4, left + 24, top - 4, left + 30, top, one.name
            )
        )
    return parts


def figure(rows: _Rows) -> str:
    """An SVG file of the table's rows."""
    tall = _TITLE + HEIGHT + 3 * _LEGEND
    parts: list[Markup] = []
    y = 0
    sizes = list(dict.fromkeys(row["pages"] for row in rows))
    for size in sizes:
        these = [row for row in rows if row["pages"] == size]
        real = int(these[0]["real pages"])
        about = f"{compact(int(size))} pages" + (f", {compact(real)} of them real" if real else ", generated")
        series = _series(these, "keys", "recall")
        axes = Axes("keys a page, with the digest's", "recall of repeats", y_range=(0.5, 1.0), marks=[(17, "default")])
        parts += _panel(plot("recall", series, axes), f"{about}: recall over keys", series, 0, y)
        series = _series(these, "candidates", "recall", missed=True)
        axes = Axes("candidates a page", "repeats missed", y_log=True)
        parts += _panel(plot("missed", series, axes), f"{about}: repeats missed over candidates", series, WIDTH, y)
        y += tall
    folded = [row for row in rows if row.get("us a page")]
    if folded:
        for x, (name, label) in enumerate((("us a page", "processor's us a page"), ("bytes a page", "bytes a page"))):
            series = [
                Series(
                    f"{compact(int(size))} pages",
                    [(float(row["keys"]), float(row[name])) for row in folded if row["pages"] == size],
                    "dots",
                    [
                        f"{row['supershingles']} of {row['width']}, {row['blocks']} blocks: {row[name]}"
                        for row in folded
                        if row["pages"] == size
                    ],
                )
                for size in sizes
            ]
            series = [one for one in series if one.points]
            axes = Axes("keys a page, with the digest's", label, x_range=(0.0, 24.0))
            parts += _panel(plot(name, series, axes), f"folded into an index on disk: {label}", series, x * WIDTH, y)
        y += tall
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{y}" viewBox="0 0 {2 * WIDTH} {y}">'
    body = "\n".join(str(part) for part in parts)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<style>{STANDALONE_STYLE}</style>\n{body}\n</svg>\n'
