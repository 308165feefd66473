"""Measures what Huffman 2007 measured of signals and classifiers, on labelled pairs, beside the paper's figures.

Precision, recall and F follow the paper's protocol: see `neardup.signals.learning`. The test across languages (its
split is ours) judges the pairs of one language by a model trained on the pairs of all others.
"""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import numpy as np

from neardup.errors import BadInput
from neardup.evaluation.huffman_costs import cost_section
from neardup.evaluation.huffman_further import learning_section, rendering_section, selection_section
from neardup.evaluation.huffman_study import SignalStudy, by_f, is_rendered, missing_of, pairs_caption
from neardup.evaluation.sections import Cell, ResultTable, Section, count, figure, number, share, text
from neardup.report.plots import Axes, Contour, Series
from neardup.signals.learning import LEARNERS, CrossValidation, Examples, LearningOutcome, judge, measured
from neardup.signals.table import FINAL, MEASURED, SETS, SIGNALS, VARIANT

#: (precision, recall) in the paper. Its best figures are those of its final model, whose curve and contour it draws.
PAPER: Mapping[str, tuple[float, float]] = {
    "simhash": (0.91, 0.58),
    "F": (0.90, 0.68),
    "F+R": (0.91, 0.75),
    FINAL: (0.91, 0.77),
}
_CURVES = ("simhash", "F", FINAL)
_CONTOURS = (0.5, 0.6, 0.7, 0.8, 0.9)
_FEW = 20  # least number of duplicates, and of other pairs, that a language needs


def signal_sections(study: SignalStudy) -> list[Section]:
    """Measures every table and plot. Raises BadInput if a class has fewer pairs than folds."""
    made = study.outcomes(study.sets())
    return [
        _single(study, made),
        _sets(study, made),
        _curves(study, made),
        cost_section(study, made),
        selection_section(study),
        learning_section(study),
        rendering_section(study, made),
        _languages(study),
        _rules(study, made),
    ]


def _single(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures each signal alone, by both learners; over rendered bodies on the pairs of two rendered pages."""
    both = np.flatnonzero(study.rendered)
    rendered, missing = study.examples.subset(both), missing_of(study)
    found = {name: made[name] for name in SIGNALS if name in made}
    if study.any_rendered:
        try:
            names = [name for name in SIGNALS if is_rendered(name)]
            found |= zip(names, study.outcomes_on(rendered, [(name,) for name in names]), strict=True)
        except BadInput as error:
            missing = f"Of {len(both):,} pairs both pages were rendered, too few for single rendered signals: {error}"
    rows: list[list[Cell]] = []
    for name, outcome in found.items():
        tree, rules = (outcome.median(learner)[:3] for learner in LEARNERS)
        pairs = len(both) if is_rendered(name) else len(study.examples.truth)
        paper = PAPER["simhash"] if name == "simhash_fetched" else (None, None)
        rows.append([name, SIGNALS[name].group or "–", pairs, outcome.average[2], *tree, *rules, *paper])
    learned = [f"{learner}: {what}" for learner in LEARNERS for what in ("P", "R", "F")]
    columns = text("signal", "group") | count("pairs") | share("F", *learned, "paper: P", "paper: R")
    table = ResultTable("signals", pairs_caption(study), columns, by_f(rows, 3))
    about = "Each signal alone; F is the average of both learners. main_content and url: the paper's further work."
    return Section("single", "Single signals", about, [table], missing=missing)


def _sets(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures sets of signals, with and without snippets."""
    rows: list[list[Cell]] = []
    for name in MEASURED:
        if name in made:
            paper = PAPER.get(name, (None, None))
            rows.append([name, *made[name].average, *(made[name].median(learner).f for learner in LEARNERS), *paper])
    columns = text("set") | share("precision", "recall", "F", "F of the tree", "F of the rules")
    columns |= share("paper: precision", "paper: recall")
    table = ResultTable("sets", pairs_caption(study), columns, by_f(rows, 3))
    about = (
        f"The average of both learners. FS, RS: MCD of snippets around the query. {FINAL}, with the MCD of bodies, is "
        f"the paper's final model; sets with FS are its side result. “{VARIANT}” is its section 5.3: the MCD of "
        "snippets stays, without body length. In the paper F falls without body MCD. Body length for body MCD is ours."
    )
    return Section("sets", "Sets of signals", about, [table], missing=missing_of(study))


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
    if f := made[study.final].average[2]:
        contours.append(Contour(f"{study.final}: F {f:.2f}", contour(f)))
    axes = Axes("recall", "precision", x_range=(0, 1), y_range=(0, 1), contours=contours)
    caption, columns = "Trees, by the share of duplicates in a leaf", ("set", "recall", "precision")
    plots = figure("curve", caption, series, axes, columns, rows)
    about = "Grey lines: equal F. The last is that of the final model, as in the paper: the average of both learners."
    return Section("curve", "Precision against recall", about, [], plots, missing_of(study))


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


def grouped_section(study: SignalStudy, groups: np.ndarray, by: str) -> Section:
    """Compares folds of pairs with folds of groups. groups: int64[pairs]. by: what the pairs of a group share."""
    plain = study.outcomes(study.distinct())
    grouped = study.outcomes_on(replace(study.examples, groups=groups), list(study.distinct().values()))
    rows: list[list[Cell]] = [
        [name, plain[name].average[2], *outcome.average, outcome.average[2] - plain[name].average[2]]
        for name, outcome in zip(plain, grouped, strict=True)
    ]
    shares = share("F, folds of pairs", "precision, grouped", "recall, grouped", "F, grouped")
    caption = f"{pairs_caption(study)}; {len(np.unique(groups)):,} groups by {by}"
    about = f"Pairs of one {by} stay in one fold, so no classifier is judged on a {by} that it learned from."
    table = ResultTable("grouped", caption, text("set") | shares | number("difference"), by_f(rows, 4))
    return Section("grouped", f"Folds grouped by {by}", about, [table])


def _judged(learned: Examples, judged: Examples) -> list[float]:
    """Trains on some pairs and judges others: precision, recall and F, each the mean of both learners."""
    runs = [measured(*judge(learned, judged, learner, 0), judged.truth) for learner in LEARNERS]
    return [fmean(run[at] for run in runs) for at in range(3)]


def transfer_section(learned: Examples, study: SignalStudy, judged: Examples) -> Section:
    """Trains on some pairs and judges those of the study, as the paper did across locations.

    judged: the pairs of the study, with the idf of the pages in `learned`.
    """
    inside = study.outcomes(study.distinct())
    rows: list[list[Cell]] = []
    for name, names in study.distinct().items():
        average = _judged(learned.of(names), judged.of(names))
        rows.append([name, *average, inside[name].average[2], average[2] - inside[name].average[2]])
    columns = text("set") | share("precision", "recall", "F", "F, learned here") | number("difference")
    caption = f"Learned from {len(learned.truth):,} other pairs; {pairs_caption(study)}"
    about = "Learned from the pages of --train, judged on these; beside it the cross-validation on these alone."
    table = ResultTable("transfer", caption, columns, by_f(rows, 3))
    return Section("transfer", "Learned there, judged here", about, [table])


def _languages(study: SignalStudy) -> Section:
    """Judges one language by a model trained on the others."""
    section = Section("languages", "Across languages")
    languages, truth = np.array(study.languages), study.examples.truth
    counts = {}
    for name in sorted({*study.languages} - {""}):
        pairs, duplicates = int((languages == name).sum()), int(truth[languages == name].sum())
        if min(duplicates, pairs - duplicates) >= _FEW:
            counts[name] = pairs, duplicates
    if len(counts) < 2:
        section.missing = f'Fewer than two languages have {_FEW} pairs of each kind: see "lang" of results.'
        return section
    examples = study.examples.of([name for name in SETS["F+R+FS+RS"] if study.is_distinct([name])])
    rows: list[list[Cell]] = []
    for name, (pairs, duplicates) in counts.items():
        others = examples.subset(np.flatnonzero((languages != name) & (languages != "")))
        rows.append([name, pairs, duplicates, *_judged(others, examples.subset(np.flatnonzero(languages == name)))])
    columns = text("language") | count("pairs", "duplicates") | share("precision", "recall", "F")
    section.tables.append(ResultTable("languages", "Trained on the pairs of all other languages", columns, rows))
    return section


def _rules(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Compares the online rules with the learned classifiers on the same pairs."""
    best = max((name for name in MEASURED if name in made), key=lambda name: made[name].average[2])
    rows: list[list[Cell]] = [[f"learned: {best}", *made[best].average]]
    for name, accepted in study.rules.items():
        rows.append([name, *measured(accepted, accepted * 1.0, study.examples.truth)[:3]])
    columns = text("rule") | share("precision", "recall", "F")
    caption = "The best set as measured above; the online rules on the pairs' sketches"
    table = ResultTable("online", caption, columns, rows)
    about = "Online rules were not trained on these pairs; learned ones were judged on folds outside their training."
    return Section("online", "Beside the online rules", about, [table])
