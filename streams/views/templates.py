"""Renders the templates of the pages, and their chart of verdicts over time as inline SVG.

Cells of wide tables get the names of their columns, so that a narrow window can stack the cells of a row. The style
sheet shows the names. The names are added to the rendered page, whose tags all come from the templates: texts of pages
are escaped there.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from markupsafe import Markup

from neardup.evaluation.audits import SAMPLES
from neardup.evaluation.labelling_criteria import NAMES
from neardup.report import evidence_sentences
from neardup.report.page_templates import environment
from neardup.report.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Drawing, compact, ticks
from neardup.report.readable_urls import readable, readable_host
from neardup.report.samples import instant
from neardup.rules import why_refused
from neardup.standing import DUPLICATES
from neardup.urls import id_of, site_of_verdict
from neardup.wording import counted
from streams.views.health import ago
from streams.views.lists import Facts, family_name

#: Labels that fit under a chart.
_LABELS = 4
_environment = environment("streams.views")
#: Tables with more columns are stacked in a narrow window, and those that mark a column as wide.
COLUMNS_MAX = 3
_TABLE = re.compile(r"<table>(.*?)</table>", re.DOTALL)
_HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_CELL = re.compile(r"<(tr|th|td)\b([^>]*)>")
_SPAN = re.compile(r'colspan="(\d+)"')
_WIDE = re.compile(r'<th\b[^>]*class="[^"]*\bwide\b')


def over_time(title: str, spans: Sequence[tuple[str, Mapping[str, int]]]) -> Markup:
    """Draw a bar for each (label, verdicts by kind), oldest first: duplicates below, all other kinds above."""
    totals = [sum(kinds.values()) for _, kinds in spans]
    steps = ticks(max(totals, default=0))
    bottom, width = HEIGHT - BOTTOM, WIDTH - LEFT - RIGHT
    scale, each = (bottom - TOP) / steps[-1], width / max(1, len(spans))
    last = next((label for (label, _), total in zip(reversed(spans), reversed(totals), strict=True) if total), "none")
    drawing = Drawing(
        title, f"{counted(sum(totals), 'verdict')}, the last of them in {last}; the table below has the numbers"
    )
    for tick in steps:
        drawing.line(LEFT, bottom - tick * scale, WIDTH - RIGHT, bottom - tick * scale)
        drawing.text(LEFT - 8, bottom - tick * scale + 4, compact(tick), "end")
    every = max(1, -(-len(spans) // _LABELS))
    for number, ((label, kinds), total) in enumerate(zip(spans, totals, strict=True)):
        left, gap = LEFT + number * each, min(4.0, each * 0.2)
        repeats = sum(kinds.get(kind, 0) for kind in DUPLICATES)
        hint = f"{label}: {counted(total, 'verdict')}, {counted(repeats, 'duplicate')}"
        if total:
            y = bottom - repeats * scale
            drawing.bar(left + gap / 2, y, each - gap, repeats * scale, "refused", hint)
            drawing.bar(left + gap / 2, bottom - total * scale, each - gap, (total - repeats) * scale, "accepted", hint)
        if (len(spans) - 1 - number) % every == 0:
            last_one = number == len(spans) - 1
            drawing.text(left + each / (1 if last_one else 2), bottom + 16, label, "end" if last_one else "middle")
    return drawing.done()


def _short(url: str) -> str:
    """Decode a URL and cut its middle for display; links keep the whole URL. A document is shown by its id."""
    return evidence_sentences.short(_named(url))


def _named(url: str) -> str:
    return id_of(url) or readable(url)


def _labelled(time: Facts) -> list[tuple[str, Facts]]:
    form = "%d %b %H:00" if time["span_hours"] == 1 else "%d %b %Y"
    return [(datetime.fromtimestamp(span["from"] / 1000, UTC).strftime(form), span["kinds"]) for span in time["spans"]]


_environment.filters |= {
    "instant": instant,
    "short": _short,
    "host": readable_host,
    "id": id_of,
    "site": site_of_verdict,
}
_environment.globals |= {
    "kinds": evidence_sentences.KINDS,
    "samples": SAMPLES,
    "judgement_names": NAMES,
    "form_token": "",
    "sent": (),
    "labels_taken": False,
    "share": lambda part, whole: evidence_sentences.percent(part / whole) if whole else "",
    "family_name": family_name,
    "ago": ago,
    "refusal": why_refused,
    "time_chart": lambda time: over_time("Verdicts over time", _labelled(time)),
}


def html(template: str, facts: Facts | None, **more: Any) -> str:
    """Render a template. facts: None: nothing is known."""
    return stacked(_environment.get_template(f"{template}.html.j2").render(facts=facts, **more))


def style() -> str:
    """Return the report's style sheet and that of the views."""
    report = resources.files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    return Markup(report + resources.files("streams.views").joinpath("views.css").read_text(encoding="utf-8"))


# ---- tables in narrow windows ----------------------------------------------------------------------------------------


def stacked(html: str) -> str:
    """Return a page with `class="stack"` on wide tables, and `data-label` on each cell behind the first of a row."""
    return _TABLE.sub(lambda found: _stacked_table(found[1]), html)


def _stacked_table(inner: str) -> str:
    head, end, body = inner.partition("</thead>")
    names = [_column_name(cell) for cell in _HEAD.findall(head)]
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


def _column_name(cell: str) -> str:
    """Return the text of a column's name; none if it is for screen readers alone."""
    return "" if 'class="skip"' in cell else _TAG.sub("", cell).replace('"', "&#34;").strip()
