"""Measures what Huffman 2007 names as further work: feature selection, the learning curve, when rendering pays.

How each is measured is ours. The paper's other further work, main content and URLs, are sets of signals in `huffman`.
"""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from neardup.evaluation.huffman_study import SignalStudy, by_f, missing_of, pairs_caption
from neardup.evaluation.sections import Cell, ResultTable, Section, count, figure, number, share, text
from neardup.report.plots import Axes, Series
from neardup.signals.learning import LearningOutcome, measured
from neardup.signals.table import FINAL, SETS

#: Shares of the pairs of the other folds that are learned.
LEARNED = (0.125, 0.25, 0.5, 0.75, 1.0)
#: Bands of scores by fetched signals around .5: half of their width.
BANDS = (0.1, 0.2, 0.3, 0.4, 0.45)


def selection_section(study: SignalStudy) -> Section:
    """Measures the final model without each of its signals."""
    whole = study.outcomes({"none": SETS[study.final]})["none"].average
    rows: list[list[Cell]] = [["none", *whole, None]]
    for name, outcome in study.outcomes(study.without_one()).items():
        rows.append([name.removeprefix("without "), *outcome.average, outcome.average[2] - whole[2]])
    columns = text("left out") | share("precision", "recall", "F") | number("difference")
    table = ResultTable(
        "selection", f"{study.final} without one signal. {pairs_caption(study)}", columns, by_f(rows, 3)
    )
    about = "Feature selection, the paper's further work: what each signal adds to all others of the final model."
    return Section("selection", "Feature selection", about, [table], missing=missing_of(study))


def learning_section(study: SignalStudy) -> Section:
    """Measures the final model learned from parts of the pairs, each judged on whole folds."""
    names = SETS[study.final]
    pairs = len(study.examples.truth) * (study.folds - 1) / study.folds
    rows: list[list[Cell]] = []
    section = Section("learning", "Learning curve", missing=missing_of(study))
    for part in LEARNED:
        if part == 1:
            outcome = study.outcomes({"all": names})["all"]
        else:
            (outcome,) = study.outcomes_on(study.examples, [names], part)
        rows.append([part, round(part * pairs), *outcome.average, *outcome.quartiles()])
    columns = number("share learned") | count("pairs learned") | share("precision", "recall", "F")
    columns |= share("lower quartile", "median", "upper quartile")
    section.text = (
        "The paper's further work: F by the number of pairs that are learned. Of the other folds a part of both kinds "
        "is drawn by seed; every fold is judged whole."
    )
    section.tables.append(ResultTable("learning", f"{study.final}. {pairs_caption(study)}", columns, rows))
    points = [(float(row[1] or 0), float(row[6] or 0)) for row in rows]
    spans = [(float(row[5] or 0), float(row[7] or 0)) for row in rows]
    series, axes = [Series("median F", points, "line", spans=spans)], Axes("pairs learned", "F", y_range=(0, 1))
    section.plots += figure("learning", "F by pairs learned", series, axes, columns, rows, legend=())
    return section


def rendering_section(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures trees that render only the pairs whose score by fetched signals lies in a band around .5.

    made: outcomes of the sets F and FINAL, by name. The score is the share of duplicates in a leaf of the tree.
    """
    section = Section("rendering", "When rendering pays", missing=missing_of(study))
    if not study.any_rendered:
        return section
    fetched, seen = (made[name].median("tree").scores for name in ("F", FINAL))
    bands = {f"{0.5 - half:.2f} to {0.5 + half:.2f}": np.abs(fetched - 0.5) <= half + 1e-9 for half in BANDS}
    never = np.zeros(len(fetched), np.bool_)
    render = fmean(study.steps.render) if study.steps.render else None
    rows: list[list[Cell]] = []
    for name, chosen in ({"never": never} | bands | {"always": ~never}).items():
        scores = np.where(chosen, seen, fetched)
        part = float(chosen.mean())
        figures = measured(scores > 0.5, scores, study.examples.truth)[:3]
        rows.append([name, part, None if render is None else 2 * render * part, *figures])
    columns = text("rendered if the score is") | share("pairs rendered") | number("ms a pair to render")
    columns |= share("precision", "recall", "F")
    section.text = (
        "The paper's further work. A tree over fetched signals decides the pairs that it is sure of. The others are "
        f"rendered, and the tree of {FINAL} decides. Two pages are rendered for a pair."
    )
    section.tables.append(ResultTable("rendering", pairs_caption(study), columns, rows))
    return section
