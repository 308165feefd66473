"""Chart of verdicts over time, as inline SVG."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from neardup.report.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Drawing, compact, ticks
from neardup.standing import DUPLICATES
from neardup.wording import counted

#: Labels that fit under a chart.
_LABELS = 4


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
    every = max(1, len(spans) // _LABELS)
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
