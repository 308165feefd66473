"""Draws charts as inline SVG: numbers in, markup out. Colours come from the page's style sheet by class.

All text passes through markupsafe. Each chart has a description for screen readers. Series of a plot differ in shape as
well as colour.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from neardup.wording import counted

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 18, 44


#: A series with more dots is thinned to so many of them.
DOTS_MAX = 600
#: Hints that a description lists.
HINTS_READ_MAX = 60


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

    def mark(self, x: float, top: float, bottom: float, y: float, text: str) -> None:
        """Adds a vertical line with a text at height y, on the side with more room."""
        self.line(x, top, x, bottom, "threshold")
        left = x > WIDTH / 2
        self.text(x + (-6 if left else 6), y, text, "end" if left else "start", "mark")

    def done(self) -> Markup:
        return Markup("").join([*self.parts, Markup("</svg>")])


class Series(NamedTuple):
    """A series of points in order.

    hints: tooltips of the dots. style: dots, line (some points marked), curve (no marks), or steps (bars without gaps,
    from 0). step: width of a bar, from its x on. spans: (low, high) of a vertical bar through each point.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: str = "line"
    hints: Sequence[str] = ()
    step: float = 1
    spans: Sequence[tuple[float, float]] = ()


class Contour(NamedTuple):
    """A line behind all series, such as one of equal F; its name is drawn at its end."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axes:
    """The axes of a plot. x, y: labels. x_range, y_range: None for the range of the data.

    marks: vertical lines (x, label).
    """

    x: str
    y: str
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    marks: Sequence[tuple[float, str]] = field(default_factory=tuple)
    contours: Sequence[Contour] = ()


class _Scale:
    """Maps numbers to pixels from `start` to `end`."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self.log = log
        if log:
            low = 10 ** math.floor(math.log10(low) + 1e-9)
            high = 10 ** max(math.ceil(math.log10(high) - 1e-9), math.log10(low) + 1)
        elif high <= low:
            high = low + 1
        self.low, self.high, self._start, self._end = low, high, start, end

    def pixel(self, value: float) -> float:
        if self.log:
            share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self._start + min(max(share, 0.0), 1.0) * (self._end - self._start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1, max(1, (last - first) // 6))]
        raw = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(raw))
        # A step above 1 is a whole number: there is no C-similarity of 372.5.
        steps = (factor * power for factor in (1, 2, 2.5, 5, 10))
        step = next(one for one in steps if one >= raw * 0.999 and (one < 1 or one == round(one)))
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def plot(title: str, series: Sequence[Series], axes: Axes) -> Markup | None:
    """Draws series; None if no series has a point."""
    drawn = [_visible(one, axes) for one in series]
    points = [point for one in drawn for point in one.points]
    if not points:
        return None
    bottom = HEIGHT - BOTTOM
    x_low, x_high = axes.x_range or (min(x for x, _ in points), max(x for x, _ in points))
    y_low, y_high = axes.y_range or (0 if not axes.y_log else min(y for _, y in points), max(y for _, y in points))
    x = _Scale(x_low, x_high, LEFT, WIDTH - RIGHT, axes.x_log)
    y = _Scale(y_low, y_high, bottom, TOP, axes.y_log)
    drawing = Drawing(title, "; ".join(map(_description, series)))
    for tick in y.ticks():
        drawing.line(LEFT, y.pixel(tick), WIDTH - RIGHT, y.pixel(tick))
        drawing.text(LEFT - 8, y.pixel(tick) + 4, _tick(tick), "end")
    for tick in x.ticks():
        drawing.text(x.pixel(tick), bottom + 16, _tick(tick))
    for contour in axes.contours:
        _contour(drawing, contour, x, y)
    for number, one in enumerate(drawn):
        _draw(drawing, one, number, x, y)
    drawing.line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis")
    for value, text in axes.marks:
        if x.low <= value <= x.high:
            drawing.mark(x.pixel(value), TOP, bottom, bottom - 8, text)  # low, since curves of shares lie near the top
    drawing.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axes.x, style="label")
    drawing.text(LEFT, TOP - 6, axes.y, "start", "label")
    return drawing.done()


def _description(one: Series) -> str:
    """Describes a series for screen readers: by its hints, or if there are many, by the number of its points."""
    few = 0 < len(one.hints) <= HINTS_READ_MAX
    return f"{one.name}: {', '.join(one.hints) if few else f'{len(one.points)} points'}"


def _tick(value: float) -> str:
    return compact(round(value, 10)) if value >= 1000 else f"{value:.10g}"


def _visible(one: Series, axes: Axes) -> Series:
    """Drops points that an axis cannot show (logarithms need positive numbers), and thins very many dots."""
    keep = [i for i, (x, y) in enumerate(one.points) if (x > 0 or not axes.x_log) and (y > 0 or not axes.y_log)]
    if len(keep) > DOTS_MAX and one.style == "dots":
        every = (len(keep) - 1) / (DOTS_MAX - 1)  # the first and the last stay
        keep = [keep[round(i * every)] for i in range(DOTS_MAX)]
    hints = [one.hints[i] for i in keep] if one.hints else ()
    spans = [one.spans[i] for i in keep] if one.spans else ()
    return Series(one.name, [one.points[i] for i in keep], one.style, hints, one.step, spans)


def _contour(drawing: Drawing, one: Contour, x: _Scale, y: _Scale) -> None:
    places = " ".join(f"{x.pixel(px):.1f},{y.pixel(py):.1f}" for px, py in one.points)
    drawing.add('<polyline class="grid" fill="none" points="{}"/>', places)
    end = one.points[-1]
    drawing.text(x.pixel(end[0]) - 4, y.pixel(end[1]) - 4, one.name, "end")


def _draw(drawing: Drawing, one: Series, number: int, x: _Scale, y: _Scale) -> None:
    style = f"s{number}"
    places = [(x.pixel(px), y.pixel(py)) for px, py in one.points]
    for (px, _), (low, high) in zip(places, one.spans, strict=False):
        drawing.line(px, y.pixel(low), px, y.pixel(high), f"curve {style}")
    if one.style in ("line", "curve") and len(places) > 1:
        drawing.add(
            '<polyline class="curve {}" points="{}"/>', style, " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        )
    elif one.style == "steps":
        floor = y.pixel(y.low)
        for (px, py), (value, _), hint in zip(places, one.points, one.hints or [""] * len(places), strict=True):
            width = max(1.0, x.pixel(value + one.step) - px - 0.5)
            drawing.bar(px, py, width, floor - py, f"bar {style}", hint)
    if one.style == "dots" or (one.style == "line" and len(places) <= 40):
        hints = one.hints or [f"{px:g}, {py:.3g}" for px, py in one.points]
        for (px, py), hint in zip(places, hints, strict=True):
            _mark(drawing, number, px, py, style, f"{one.name}: {hint}")


def _mark(drawing: Drawing, number: int, x: float, y: float, style: str, hint: str) -> None:
    """Draws a circle, square, triangle, diamond or cross, by series number."""
    r = 3.2
    if number % 5 == 0:
        shape = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}"').format(x, y, r)
    else:
        paths = (
            "M{l:.1f},{t:.1f}H{R:.1f}V{b:.1f}H{l:.1f}Z",
            "M{x:.1f},{t:.1f}L{R:.1f},{b:.1f}H{l:.1f}Z",
            "M{x:.1f},{t:.1f}L{R:.1f},{y:.1f}L{x:.1f},{b:.1f}L{l:.1f},{y:.1f}Z",
            "M{l:.1f},{t:.1f}L{R:.1f},{b:.1f}M{R:.1f},{t:.1f}L{l:.1f},{b:.1f}",
        )
        path = paths[number % 5 - 1].format(x=x, y=y, l=x - r, R=x + r, t=y - r, b=y + r)
        shape = Markup('<path d="{}"').format(path)
    drawing.add(
        '{} class="point {}"><title>{}</title></{}>', shape, style, hint, "circle" if not number % 5 else "path"
    )


def bars(
    title: str, axis: str, values: Mapping[int, int], low: int, high: int, least: float | None = None
) -> Markup | None:
    """Draws a bar for each whole number low..high; None without any. least: the threshold, a line before its bar."""
    shown = {x: n for x, n in sorted(values.items()) if low <= x <= high}
    series = Series(
        "pairs", [(x - 0.5, n) for x, n in shown.items()], "steps", [f"{x}: {n:,}" for x, n in shown.items()]
    )
    marks = [(least - 0.5, f"threshold {least:g}")] if least is not None and low < least <= high else []
    return plot(title, [series], Axes(axis, "pairs", x_range=(low - 0.5, high + 0.5), marks=marks))


def sizes(distribution: Mapping[int, int]) -> Markup | None:
    """Draws clusters by size, both axes logarithmic; None without any."""
    hints = [f"{counted(count, 'cluster')} of {counted(size, 'page')}" for size, count in distribution.items()]
    series = Series("clusters", list(distribution.items()), "dots", hints)
    return plot("Clusters by size", [series], Axes("pages in the cluster", "clusters", x_log=True, y_log=True))


def ticks(greatest: float) -> list[float]:
    """Returns about four round steps from 0 to at least `greatest`."""
    if greatest <= 0:
        return [0, 1]
    raw = max(greatest / 4, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw and factor * power % 1 == 0)
    return [step * i for i in range(math.ceil(greatest / step) + 1)]


def tape_scores(
    accepted: Sequence[int], rejected: Sequence[int], vetoed: Sequence[int], thresholds: Sequence[float], bins: int
) -> Markup:
    """Draws scores: accepted pairs upwards, nearest candidates that were rejected downwards, vetoed ones hatched.

    thresholds: scores that pairs needed, a line each.
    """
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
        f"{sum(vetoed):,} by a veto; {' and '.join(f'threshold {one:g}' for one in thresholds)}",
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
    for number, threshold in enumerate(thresholds):
        x, y = LEFT + threshold * bins * each, top + 4 + 15 * number
        drawing.mark(x, top - 4, bottom, y, f"threshold {threshold:g}")
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


#: Style of standalone SVG files; in a page, the page's style sheet applies.
STANDALONE_STYLE = """
svg { background: #ffffff; }
text { font: 11.5px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; fill: #5a6470; }
text.caption { fill: #1d2126; font-size: 13px; font-weight: 600; }
text.label { fill: #1d2126; font-size: 12px; } text.mark { fill: #b3261e; font-weight: 600; font-size: 12px; }
.grid { stroke: #e2dfd9; } .axis { stroke: #5a6470; }
.threshold { stroke: #b3261e; stroke-width: 2; stroke-dasharray: 5 3; }
.curve { fill: none; stroke-width: 2; }
.s0 { stroke: #2b7fb3; fill: #2b7fb3; } .s1 { stroke: #b96a12; fill: #b96a12; } .s2 { stroke: #9b4f96; fill: #9b4f96; }
.s3 { stroke: #2f7d4f; fill: #2f7d4f; } .s4 { stroke: #6b5b53; fill: #6b5b53; }
polyline.curve { fill: none; } .curve.s1 { stroke-dasharray: 7 3; } .curve.s2 { stroke-dasharray: 2 3; }
.curve.s3 { stroke-dasharray: 9 3 2 3; } .bar { stroke: none; }
"""


#: Pixels in a standalone file for the caption, and for each line of the legend; width of a letter.
_CAPTION, _LEGEND_LINE, _LETTER = 26, 18, 6.4


def standalone(svg: Markup, caption: str = "", legend: Sequence[tuple[str, str]] = ()) -> str:
    """Formats a plot as a file with its caption and legend. legend: (class, name)."""
    text = str(svg)
    start, end = text.index("<svg"), text.index(">")
    around = [Markup('<text class="caption" x="{}" y="-10">{}</text>').format(LEFT, caption)]
    x, y = float(LEFT), float(HEIGHT + 12)
    for style, name in legend:
        width = _LETTER * len(name) + 30
        if x + width > WIDTH and x > LEFT:
            x, y = float(LEFT), y + _LEGEND_LINE
        around.append(_key(style, name, x, y))
        x += width
    height = int(y) + 12 if legend else HEIGHT
    box = f'viewBox="0 {-_CAPTION} {WIDTH} {height + _CAPTION}"'
    head = text[start:end].replace(f'viewBox="0 0 {WIDTH} {HEIGHT}"', box)
    head += f' xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height + _CAPTION}">'
    body = f"<style>{STANDALONE_STYLE}</style>{Markup('').join(around)}{text[end + 1 :]}"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{body}\n'


def _key(style: str, name: str, x: float, y: float) -> Markup:
    """Draws one entry of a legend: a short line and the name."""
    return Markup(
        '<line class="curve {}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/><text x="{:.1f}" y="{:.1f}">{}</text>'
    ).format(style, x, y, x + 16, y, x + 21, y + 4, name)
