"""Measures what Huffman 2007 measured of signals and classifiers, on labelled pairs, beside the paper's figures.

Precision, recall and F follow the paper's protocol: see `neardup.signals.learning`. The test across languages (its
split is ours) judges the pairs of one language by a model trained on the pairs of all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from neardup.evaluation.figures.plots import Axes, Contour, Series, plot
from neardup.evaluation.figures.sections import Cell, Plot, ResultTable, Section
from neardup.signals.learning import (
    FOLDS,
    LEARNERS,
    SEEDS,
    CrossValidation,
    Each,
    Examples,
    LearningOutcome,
    judge,
    measured,
    outcomes,
)
from neardup.signals.table import SETS, SIGNALS, group

#: (precision, recall) in the paper.
PAPER: Mapping[str, tuple[float, float]] = {
    "simhash": (0.91, 0.58),
    "F": (0.90, 0.68),
    "F+R": (0.91, 0.75),
    "F+R+FS+RS": (0.91, 0.77),
}
#: The paper's variant without MCD of whole bodies.
_LIGHT = "F+R+FS+RS, no body MCD"
#: Signals in the order of their cost, as the paper adds them.
COSTS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("domain, title", ("same_domain", "same_title_fetched")),
    ("body length", ("body_length_fetched",)),
    ("simhash", ("simhash_fetched",)),
    ("tf-idf", ("tfidf_fetched",)),
    ("MCD", ("mcd_fetched",)),
    ("rendered", ("same_title_rendered", "body_length_rendered", "simhash_rendered", "tfidf_rendered")),
    ("rendered MCD", ("mcd_rendered",)),
    ("snippets", group("FS", "RS")),
)
_CURVES = ("simhash", "F", "F+R+FS+RS")
_CONTOURS = (0.5, 0.6, 0.7, 0.8, 0.9)
_FEW = 20  # least number of pairs of a language, of each kind


@dataclass(frozen=True)
class SignalStudy:
    """Labelled pairs for the study.

    languages: of each pair, "" if its pages have two or none. rendered: whether any page was rendered.
    rules: decisions of the online rules by name: bool[pairs].
    """

    examples: Examples
    languages: Sequence[str]
    rendered: bool
    rules: Mapping[str, np.ndarray] = field(default_factory=dict)
    seeds: int = SEEDS
    folds: int = FOLDS
    each: Each = map

    def sets(self) -> dict[str, tuple[str, ...]]:
        """Returns all sets of signals to measure, by name."""
        light = tuple(name for name in SETS["F+R+FS+RS"] if not name.startswith("mcd_"))
        added = [name for _, names in COSTS for name in names]
        costs = {f"cost {title}": tuple(added[: added.index(names[-1]) + 1]) for title, names in COSTS}
        return {**{name: (name,) for name in SIGNALS}, **SETS, _LIGHT: light, **costs}

    def is_distinct(self, names: Sequence[str]) -> bool:
        """Tests whether a set differs from the others: without rendered bodies R repeats F."""
        return self.rendered or not any(name.endswith("_rendered") for name in names)


def signal_sections(study: SignalStudy) -> list[Section]:
    """Measures every table and plot. Raises BadInput if a class has fewer pairs than folds."""
    sets = {name: names for name, names in study.sets().items() if study.is_distinct(names)}
    made = dict(
        zip(
            sets,
            outcomes(study.examples, list(sets.values()), seeds=study.seeds, folds=study.folds, each=study.each),
            strict=True,
        )
    )
    return [
        _single(study, made),
        _sets(study, made),
        _curves(study, made),
        _costs(study, made),
        _languages(study),
        _rules(study, made),
    ]


def _missing(study: SignalStudy) -> str:
    return "" if study.rendered else "No page has a rendered body: signals over rendered bodies are left out."


def _single(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures each signal alone, by both learners."""
    rows: list[list[Cell]] = []
    for name in SIGNALS:
        if name not in made:
            continue
        outcome = made[name]
        tree, rules = (outcome.median(learner)[:3] for learner in LEARNERS)
        paper = PAPER["simhash"] if name == "simhash_fetched" else (None, None)
        rows.append([name, SIGNALS[name].group or "–", *tree, *rules, outcome.average[2], *paper])
    columns = ("signal", "group", *(f"{learner}: {what}" for learner in LEARNERS for what in ("P", "R", "F")))
    table = ResultTable(
        "signals",
        _caption(study),
        (*columns, "F, average", "paper: P", "paper: R"),
        ("text", "text", *["share"] * 9),
        rows,
        paper=(9, 10),
    )
    return Section("single", "Single signals", "Each signal alone.", [table], missing=_missing(study))


def _caption(study: SignalStudy) -> str:
    truth = study.examples.truth
    return (
        f"Of {len(truth):,} labelled pairs, {int(truth.sum()):,} of them duplicates; {study.folds} folds, the median "
        f"of {study.seeds} seeds"
    )


def _sets(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures sets of signals, with and without snippets."""
    rows: list[list[Cell]] = []
    for name in (*SETS, _LIGHT):
        if name in made:
            paper = PAPER.get(name, (None, None))
            rows.append([name, *made[name].average, *(made[name].median(learner).f for learner in LEARNERS), *paper])
    columns = (
        "set",
        "precision",
        "recall",
        "F",
        "F of the tree",
        "F of the rules",
        "paper: precision",
        "paper: recall",
    )
    table = ResultTable("sets", _caption(study), columns, ("text", *["share"] * 7), rows, paper=(6, 7))
    text = "The average of both learners. FS, RS: MCD of snippets around the query, over fetched and rendered bodies."
    return Section("sets", "Sets of signals", text, [table], missing=_missing(study))


def _curves(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Plots precision against recall of the trees, by the share of duplicates in the leaf."""
    truth = study.examples.truth
    series: list[Series] = []
    rows: list[list[Cell]] = []
    for name in _CURVES:
        if name in made:
            points = curve(made[name].median("tree"), truth)
            series.append(Series(name, points, "line"))
            rows += [[name, recall, precision] for recall, precision in points]
    contours = [Contour(f"F {f:g}", contour(f)) for f in _CONTOURS]
    axes = Axes("recall", "precision", x_range=(0, 1), y_range=(0, 1), contours=contours)
    section = Section("curve", "Precision against recall", "Grey lines: equal F.", missing=_missing(study))
    svg = plot("Precision against recall", series, axes)
    if svg is not None:
        legend = [(f"s{number}", one.name) for number, one in enumerate(series)]
        columns = ("set", "recall", "precision")
        section.plots.append(
            Plot("curve", "Trees, by the share of duplicates in a leaf", svg, columns, rows, legend=legend)
        )
    return section


def curve(run: CrossValidation, truth: np.ndarray) -> list[tuple[float, float]]:
    """Returns (recall, precision) by descending score; equal scores go together."""
    order = np.argsort(-run.scores, kind="stable")
    right = np.cumsum(truth[order])
    last = np.flatnonzero(np.append(np.diff(run.scores[order]) != 0, True))
    whole = max(1, int(truth.sum()))
    return [(float(right[at] / whole), float(right[at] / (at + 1))) for at in last.tolist()]


def contour(f: float) -> list[tuple[float, float]]:
    """Returns (recall, precision) with harmonic mean f: precision = f recall / (2 recall - f)."""
    recalls = np.linspace(f / (2 - f), 1, 30).tolist()
    return [(recall, min(1.0, f * recall / (2 * recall - f))) for recall in recalls]


def _costs(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures F as signals are added in the order of their cost."""
    rows: list[list[Cell]] = []
    for title, names in COSTS:
        if f"cost {title}" in made:
            outcome = made[f"cost {title}"]
            lower, median, upper = outcome.quartiles()
            rows.append([("+ " if rows else "") + title, len(names), outcome.average[2], lower, median, upper])
    columns = ("added", "signals", "F, average", "lower quartile", "median", "upper quartile")
    table = ResultTable("costs", _caption(study), columns, ("text", "count", *["share"] * 4), rows)
    section = Section(
        "costs", "F by cost", "Bars: quartiles over seeds and learners.", [table], missing=_missing(study)
    )
    points = [(float(number), float(row[4] or 0)) for number, row in enumerate(rows, 1)]
    spans = [(float(row[3] or 0), float(row[5] or 0)) for row in rows]
    hints = [f"{row[0]}: {row[4]:.2f}" for row in rows]
    svg = plot(
        "F as signals are added",
        [Series("median F", points, "line", hints, spans=spans)],
        Axes("kinds of signals", "F", y_range=(0, 1)),
    )
    if svg is not None:
        section.plots.append(Plot("costs", "F as signals are added", svg, columns, rows))
    return section


def _languages(study: SignalStudy) -> Section:
    """Judges one language by a model trained on the others."""
    section = Section("languages", "Across languages")
    languages = np.array(study.languages)
    names = [name for name in sorted(set(study.languages)) if name and _enough(study, languages == name)]
    if len(names) < 2:
        section.missing = f'Fewer than two languages have {_FEW} pairs of each kind: see "lang" of results.'
        return section
    examples = study.examples.of([name for name in SETS["F+R+FS+RS"] if study.is_distinct([name])])
    rows: list[list[Cell]] = []
    for name in names:
        inside = languages == name
        others = (languages != name) & (languages != "")
        learned, judged = examples.at(np.flatnonzero(others)), examples.at(np.flatnonzero(inside))
        runs = [measured(*judge(learned, judged, learner, 0), judged.truth) for learner in LEARNERS]
        average = [fmean(run[at] for run in runs) for at in range(3)]
        rows.append([name, len(judged.truth), int(judged.truth.sum()), *average])
    columns = ("language", "pairs", "duplicates", "precision", "recall", "F")
    kinds = ("text", "count", "count", "share", "share", "share")
    section.tables.append(ResultTable("languages", "Trained on the pairs of all other languages", columns, kinds, rows))
    return section


def _enough(study: SignalStudy, inside: np.ndarray) -> bool:
    truth = study.examples.truth[inside]
    return min(int(truth.sum()), int((~truth).sum())) >= _FEW


def _rules(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Compares the online rules with the learned classifiers on the same pairs."""
    best = max((name for name in SETS if name in made), key=lambda name: made[name].average[2])
    rows: list[list[Cell]] = [[f"learned: {best}", *made[best].average]]
    for name, accepted in study.rules.items():
        rows.append([name, *measured(accepted, accepted * 1.0, study.examples.truth)[:3]])
    columns = ("rule", "precision", "recall", "F")
    caption = "The best set as measured above; the online rules on the pairs' sketches"
    table = ResultTable("online", caption, columns, ("text", "share", "share", "share"), rows)
    text = "Online rules were not trained on these pairs; learned ones were judged on folds outside their training."
    return Section("online", "Beside the online rules", text, [table])
