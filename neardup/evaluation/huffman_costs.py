"""Measures F as signals are added in the order of their cost: by the paper's steps, and as measured here."""

from collections.abc import Mapping
from statistics import fmean, median

from neardup.evaluation.huffman_study import (
    OF_URLS,
    PAPER_STEPS,
    SignalStudy,
    StepTimes,
    in_order,
    is_rendered,
    missing_of,
    pairs_caption,
    step_key,
)
from neardup.evaluation.sections import Cell, Plot, ResultTable, Section, count, figure, number, share, text
from neardup.report.plots import Axes, Series
from neardup.signals.learning import LearningOutcome

_F = share("F, average", "lower quartile", "median", "upper quartile")


def cost_section(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures F as signals are added.

    study: the labelled pairs. made: outcomes of the sets of the study, by name.
    """
    steps, measured = _by_steps(study, made), _as_measured(study, made)
    tables = [steps, measured, _step_times(study.steps)]
    plots = [*_plot(steps, "F by the paper's steps"), *_plot(measured, "F in the order of measured cost")]
    about = (
        "First the paper's steps: domain and title, body length, simhash, tf-idf, MCD, then rendered signals (here in "
        "the same order). Measured times would order signals otherwise, and change from run to run: they are the "
        "second table (ours). Bars: quartiles over seeds and learners."
    )
    return Section("costs", "F by cost", about, tables, plots, missing_of(study))


def _by_steps(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> ResultTable:
    """Tabulates F after each of the paper's steps."""
    rows: list[list[Cell]] = []
    for step in PAPER_STEPS:
        if outcome := made.get(step_key(step)):
            rows.append([("+ " if rows else "") + step, outcome.average[2], *outcome.quartiles()])
    return ResultTable("cost-steps", f"The paper's steps. {pairs_caption(study)}", text("added") | _F, rows)


def _as_measured(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> ResultTable:
    """Tabulates F as single signals are added in the order of their measured cost."""
    fetching, rendering = (fmean(times) if times else None for times in (study.steps.fetch, study.steps.render))
    rows: list[list[Cell]] = []
    for name in in_order(study.costs):
        if f"cost {name}" in made:
            outcome, cost = made[f"cost {name}"], study.costs[name]
            fetch = 0 if name in OF_URLS else fetching
            render = rendering if is_rendered(name) else 0
            times: list[Cell] = [fetch, render, cost.page, cost.pair]
            rows.append([("+ " if rows else "") + name, outcome.average[2], *outcome.quartiles(), *times])
    columns = text("added") | _F | number("ms to fetch", "ms to render", "ms a page", "ms a pair")
    note = (
        "Signals of URLs come first, those that need a browser last. A page is fetched, decoded and rendered once for "
        "all signals that need it."
    )
    return ResultTable("costs", f"Single signals by measured cost (ours). {pairs_caption(study)}", columns, rows, note)


def _plot(table: ResultTable, title: str) -> list[Plot]:
    """Plots the median of F with a bar between its quartiles."""
    points = [(float(place), float(row[3] or 0)) for place, row in enumerate(table.rows, 1)]
    spans = [(float(row[2] or 0), float(row[4] or 0)) for row in table.rows]
    hints = [f"{row[0]}: {row[3]:.2f}" for row in table.rows]
    series, axes = [Series("median F", points, "line", hints, spans=spans)], Axes("signals", "F", y_range=(0, 1))
    return figure(table.name, title, series, axes, table.columns, table.rows, legend=())


def _step_times(steps: StepTimes) -> ResultTable:
    """Tabulates the times of fetching, rendering and decoding a page."""
    rows: list[list[Cell]] = []
    for name, times in (("fetch", steps.fetch), ("render", steps.render)):
        rows.append([name, len(times), fmean(times) if times else None, median(times) if times else None])
    rows.append(["decode", steps.decoded, steps.decode, None])
    note = "Fetch and render: results with `fetch_ms` and `render_ms`. The crawler and `neardup render` write these."
    columns = text("step") | count("pages") | number("ms, mean", "ms, median")
    return ResultTable("steps", "Time of a page before its signals", columns, rows, note)
