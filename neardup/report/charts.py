"""Draws charts as inline SVG: numbers in, markup out. Colours come from the page's style sheet by class.

All text passes through markupsafe. Each chart has a description for screen readers.
"""

import math
from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 18, 44


def compact(number: float) -> str:
    """Formats an axis number: 12,345 as 12.3k."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:g}"


class Drawing:
    """One chart. Parts are added in order; coordinates are those of its view box."""

    def __init__(self, title: str, description: str, height: int = HEIGHT) -> None:
        self.parts: list[Markup] = [
            Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
                WIDTH, height, f"{title}. {description}"
            )
        ]

    def add(self, template: str, *values: object) -> None:
        self.parts.append(Markup(template).format(*values))

    def text(self, x: float, y: float, text: str, anchor: str = "middle", style: str = "tick") -> None:
        self.add('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>', style, x, y, anchor, text)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "grid") -> None:
        self.add('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>', style, x1, y1, x2, y2)

    def bar(self, x: float, y: float, width: float, height: float, style: str, hint: str) -> None:
        self.add(
            '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>',
            style, x, y, max(width, 0.5), max(height, 0.0), hint,
        )  # fmt: skip

    def done(self) -> Markup:
        return Markup("").join([*self.parts, Markup("</svg>")])


def ticks(greatest: float) -> list[float]:
    """Returns about four round steps from 0 to at least `greatest`."""
    if greatest <= 0:
        return [0, 1]
    raw = max(greatest / 4, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw and factor * power % 1 == 0)
    return [step * i for i in range(math.ceil(greatest / step) + 1)]


def _threshold(drawing: Drawing, x: float, top: float, bottom: float, text: str) -> None:
    drawing.line(x, top - 4, x, bottom, "threshold")
    anchor = "end" if x > WIDTH * 0.5 else "start"
    drawing.text(x + (-6 if anchor == "end" else 6), top + 4, f"threshold {text}", anchor, "mark")


def tape_scores(
    accepted: Sequence[int], rejected: Sequence[int], vetoed: Sequence[int], threshold: float, bins: int
) -> Markup:
    """Draws scores: accepted pairs upwards, nearest candidates that were rejected downwards, vetoed ones hatched."""
    height = 340
    width, top, bottom = WIDTH - LEFT - RIGHT, TOP + 4, height - BOTTOM
    tallest = max(max(accepted), max(r + v for r, v in zip(rejected, vetoed, strict=True)), 1)
    # Square roots keep a few close calls visible beside thousands of clear ones.
    middle = (top + bottom) / 2
    scale = (bottom - top) / 2 / math.sqrt(tallest)
    each = width / (bins + 1)
    drawing = Drawing(
        "Tape scores",
        f"{sum(accepted):,} accepted pairs, {sum(rejected):,} nearest candidates ruled out by score, "
        f"{sum(vetoed):,} by a veto; threshold {threshold:g}",
        height,
    )
    drawing.add(
        '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="vetoed-ground" width="5" height="5"/>'
        '<line class="vetoed-line" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
    )
    for tick in _roots(tallest):
        for sign in (-1, 1) if tick else (1,):
            y = middle + sign * math.sqrt(tick) * scale
            drawing.line(LEFT, y, WIDTH - RIGHT, y)
            drawing.text(LEFT - 8, y + 4, compact(tick), "end")
    for i in range(bins + 1):
        left, range_text = LEFT + i * each, f"{i / bins:.2f} to {(i + 1) / bins:.2f}" if i < bins else "1.00"
        if accepted[i]:
            tall = math.sqrt(accepted[i]) * scale
            hint = f"{range_text}: {accepted[i]:,} accepted"
            drawing.bar(left + 1, middle - tall, each - 2, tall, "accepted", hint)
        low = math.sqrt(rejected[i]) * scale
        if rejected[i]:
            drawing.bar(left + 1, middle, each - 2, low, "refused", f"{range_text}: {rejected[i]:,} ruled out by score")
        if vetoed[i]:
            tall = math.sqrt(rejected[i] + vetoed[i]) * scale - low
            hint = f"{range_text}: {vetoed[i]:,} ruled out by a veto"
            drawing.bar(left + 1, middle + low, each - 2, tall, "vetoed", hint)
    drawing.line(LEFT, middle, WIDTH - RIGHT, middle, "axis")
    for tenth in range(0, 11, 2):
        drawing.text(LEFT + tenth / 10 * bins * each, bottom + 16, f"{tenth / 10:.1f}")
    drawing.text(LEFT + 6, top + 8, "accepted", "start", "label")
    drawing.text(LEFT + 6, bottom - 4, "nearest candidate, rejected", "start", "label")
    _threshold(drawing, LEFT + threshold * bins * each, top, bottom, f"{threshold:g}")
    drawing.text(
        LEFT + width / 2, height - 6, "tape score (share of the sampled text in the same order)", style="label"
    )
    return drawing.done()


def _roots(tallest: int) -> list[int]:
    """Returns round numbers for an axis of square roots."""
    steps = [10**power * factor for power in range(9) for factor in (1, 4)]
    fitting = [step for step in steps if step <= tallest]
    return [0, *fitting[-3:]]


def share(part: float, whole: float, style: str = "accepted") -> Markup:
    """Draws a thin bar for a table cell: part of whole."""
    width = 100 * part / whole if whole else 0
    return Markup(
        '<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="8"/><rect class="{}" width="{:.2f}" height="8"/></svg>'
    ).format(style, width)
