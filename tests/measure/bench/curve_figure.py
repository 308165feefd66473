"""The picture of the curve of posted keys: one row of two plots for each number of pages, and one of costs."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from neardup.report.plots import HEIGHT, STANDALONE_STYLE, WIDTH, Axes, Series, compact, plot

_Rows = Sequence[Mapping[str, str]]
_DEFAULT = {"head": "1", "place": "1", "content": "1", "width": "2", "supershingles": "7", "blocks": "2"}
#: The default of versions of the scheme before 4, and of tables from their time.
_FORMER = _DEFAULT | {"content": "0", "supershingles": "8"}
_TITLE = 22
_LEGEND = 16
_OVER = {"keys": "keys a page, with the digest's", "candidates": "candidates a page"}
_RECALL = (0.6, 1.0)


def _default(rows: _Rows) -> Mapping[str, str]:
    return _DEFAULT if any(row["content"] == "1" for row in rows) else _FORMER


def _chosen(rows: _Rows, **fixed: str) -> _Rows:
    wanted = {"head": "1", "place": "1", "content": _default(rows)["content"], **fixed}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _series(rows: _Rows, x: str) -> list[Series]:
    """Recall over x: lines over the number of supershingles and over the number of blocks."""
    many = _default(rows)["supershingles"]
    lines = [
        ("n supershingles of 2, no blocks", _chosen(rows, width="2", blocks="0")),
        ("n supershingles of 3, no blocks", _chosen(rows, width="3", blocks="0")),
        ("n supershingles of 3, 6 blocks", _chosen(rows, width="3", blocks="6")),
        (f"{many} supershingles of 2, b blocks", _chosen(rows, width="2", supershingles=many)),
    ]
    out = []
    for name, found in lines:
        ordered = sorted(found, key=lambda row: int(row["keys"]))
        points = [(float(row[x]), float(row["recall"])) for row in ordered]
        hints = [f"{_label(row)}: {row['keys']} keys, recall {row['recall']}, {row['candidates']}" for row in ordered]
        out.append(Series(name, points, "line", hints))
    return out


def _label(row: Mapping[str, str]) -> str:
    return f"{row['supershingles']} of {row['width']}, {row['blocks']} blocks"


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
        for x, (name, label) in enumerate(_OVER.items()):
            series = _series(these, name)
            marks = [(float(row[name]), "default") for row in _chosen(these, **_default(these))]
            reach = (0.0, 26.0 if name == "keys" else 21.0)
            axes = Axes(label, "recall of repeats", x_range=reach, y_range=_RECALL, marks=marks)
            parts += _panel(plot("recall", series, axes), f"{about}: recall over {name}", series, x * WIDTH, y)
        y += tall
    folded = [row for row in rows if row.get("us a page")]
    if folded:
        for x, (name, label) in enumerate((("us a page", "processor's us a page"), ("bytes a page", "bytes a page"))):
            series = [
                Series(
                    f"{compact(int(size))} pages",
                    [(float(row["keys"]), float(row[name])) for row in folded if row["pages"] == size],
                    "dots",
                    [f"{_label(row)}: {row[name]}" for row in folded if row["pages"] == size],
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
