"""Measures what Huffman 2007 measured of signals and classifiers, on labelled pairs, beside the paper's figures.

Precision, recall and F follow the paper's protocol: see `neardup.signals.learning`. The test across languages (its
split is ours) judges the pairs of one language by a model trained on the pairs of all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from neardup.errors import BadInput
from neardup.evaluation.sections import Cell, ResultTable, Section, count, figure, number, share, text
from neardup.report.plots import Axes, Contour, Series
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


#: Signals that need only the URLs, no page.
_OF_URLS = ("same_domain", "url")


@dataclass(frozen=True)
class StepTimes:
    """Times of the steps before signals, in ms. decode: mean over `decoded` pages.

    fetch, render: one time for each page for which the crawler (fetch) or the browser (render) measured it.
    """

    decode: float = 0.0
    decoded: int = 0
    fetch: Sequence[float] = ()
    render: Sequence[float] = ()


class SignalCost(NamedTuple):
    """Cost of one signal in ms: per decoded page, and per pair of such pages."""

    page: float
    pair: float


@dataclass(frozen=True)
class SignalStudy:
    """Labelled pairs for the study.

    languages: common language of the two pages of each pair; "" if a language is unknown or the languages differ.
    rendered: whether a browser rendered both pages, bool[pairs]. any_rendered: whether a browser rendered any page.
    costs: costs of each signal, in the order in which signals are added. steps: times of the steps before signals.
    rules: decisions of the online rules by name: bool[pairs]. _known: outcomes of sets on `examples`, measured so far.
    """

    examples: Examples
    languages: Sequence[str]
    rendered: np.ndarray
    any_rendered: bool
    costs: Mapping[str, SignalCost]
    steps: StepTimes = field(default_factory=StepTimes)
    rules: Mapping[str, np.ndarray] = field(default_factory=dict)
    seeds: int = SEEDS
    folds: int = FOLDS
    each: Each = map
    _known: dict[tuple[str, ...], LearningOutcome] = field(default_factory=dict)

    def sets(self) -> dict[str, tuple[str, ...]]:
        """Returns all sets of signals to measure, by name."""
        added = [name for name in in_order(self.costs) if self.is_distinct([name])]
        costs = {f"cost {name}": tuple(added[: place + 1]) for place, name in enumerate(added)}
        fetched = {name: (name,) for name in SIGNALS if not is_rendered(name)}
        return self.distinct({**fetched, **MEASURED, **costs})

    def is_distinct(self, names: Sequence[str]) -> bool:
        """Tests whether a set differs from all others. Without rendered bodies, set R has the values of set F."""
        return self.any_rendered or not any(map(is_rendered, names))

    def distinct(self, sets: Mapping[str, tuple[str, ...]] = MEASURED) -> dict[str, tuple[str, ...]]:
        return {name: names for name, names in sets.items() if self.is_distinct(names)}

    def outcomes(self, sets: Mapping[str, tuple[str, ...]]) -> dict[str, LearningOutcome]:
        """Measures sets of signals on the pairs, each set once for all tables. Raises BadInput as `outcomes`."""
        fresh = list(dict.fromkeys(names for names in sets.values() if names not in self._known))
        self._known.update(zip(fresh, self.outcomes_on(self.examples, fresh), strict=True))
        return {name: self._known[names] for name, names in sets.items()}

    def outcomes_on(self, examples: Examples, sets: Sequence[tuple[str, ...]]) -> list[LearningOutcome]:
        return outcomes(examples, sets, seeds=self.seeds, folds=self.folds, each=self.each)


def is_rendered(name: str) -> bool:
    return name.endswith("_rendered")


def in_order(costs: Mapping[str, SignalCost]) -> list[str]:
    """Orders signals by the last step that they need, then by measured cost for a page and a pair.

    The steps: none for signals of URLs, the fetch, the browser that makes rendered bodies. Each step costs more than
    all signals before it.
    """
    return sorted(
        costs, key=lambda name: (name not in _OF_URLS, is_rendered(name), 2 * costs[name].page + costs[name].pair)
    )


def signal_sections(study: SignalStudy) -> list[Section]:
    """Measures every table and plot. Raises BadInput if a class has fewer pairs than folds."""
    made = study.outcomes(study.sets())
    return [
        _single(study, made),
        _sets(study, made),
        _curves(study, made),
        _costs(study, made),
        _languages(study),
        _rules(study, made),
    ]


def _missing(study: SignalStudy) -> str:
    return "" if study.any_rendered else "No page has a rendered body: signals over rendered bodies are left out."


def _single(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures each signal alone, by both learners; over rendered bodies on the pairs of two rendered pages."""
    both = np.flatnonzero(study.rendered)
    rendered, missing = study.examples.subset(both), _missing(study)
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
    table = ResultTable("signals", _caption(study), columns, _by_f(rows, 3))
    about = "Each signal alone; F is the average of both learners. main_content and url: the paper's further work."
    return Section("single", "Single signals", about, [table], missing=missing)


def _by_f(rows: list[list[Cell]], column: int) -> list[list[Cell]]:
    """Sorts rows by decreasing F; equal ones keep their order."""
    return sorted(rows, key=lambda row: -float(row[column] or 0))


def _caption(study: SignalStudy) -> str:
    truth = study.examples.truth
    return (
        f"Of {len(truth):,} labelled pairs, {int(truth.sum()):,} of them duplicates; {study.folds} folds, the median "
        f"of {study.seeds} seeds"
    )


def _sets(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Measures sets of signals, with and without snippets."""
    rows: list[list[Cell]] = []
    for name in MEASURED:
        if name in made:
            paper = PAPER.get(name, (None, None))
            rows.append([name, *made[name].average, *(made[name].median(learner).f for learner in LEARNERS), *paper])
    columns = text("set") | share("precision", "recall", "F", "F of the tree", "F of the rules")
    columns |= share("paper: precision", "paper: recall")
    table = ResultTable("sets", _caption(study), columns, _by_f(rows, 3))
    about = (
        f"The average of both learners. FS, RS: MCD of snippets around the query. {FINAL}, with the MCD of bodies, is "
        f"the paper's final model; sets with FS are its side result. “{VARIANT}” is its section 5.3: the MCD of "
        "snippets stays, without body length. In the paper F falls without body MCD. Body length for body MCD is ours."
    )
    return Section("sets", "Sets of signals", about, [table], missing=_missing(study))


def _curves(study: SignalStudy, made: Mapping[str, LearningOutcome]) -> Section:
    """Plots precision against recall of the trees, by the share of duplicates in the leaf."""
    truth = study.examples.truth
    series: list[Series] = []
    rows: list[list[Cell]] = []
    final = FINAL if FINAL in made else "F"
    for name in _CURVES:
        if name in made:
            points = curve(made[name].median("tree"), truth)
            series.append(Series(name, points, "line"))
            rows += [[name, recall, precision] for recall, precision in points]
    contours = [Contour(f"F {f:g}", contour(f)) for f in _CONTOURS]
    if f := made[final].average[2]:
        contours.append(Contour(f"{final}: F {f:.2f}", contour(f)))
    axes = Axes("recall", "precision", x_range=(0, 1), y_range=(0, 1), contours=contours)
    caption, columns = "Trees, by the share of duplicates in a leaf", ("set", "recall", "precision")
    plots = figure("curve", caption, series, axes, columns, rows)
    about = "Grey lines: equal F. The last is that of the final model, as in the paper: the average of both learners."
    return Section("curve", "Precision against recall", about, [], plots, _missing(study))


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
    """Measures F as signals are added in the order of their measured cost."""
    fetching, rendering = (fmean(times) if times else None for times in (study.steps.fetch, study.steps.render))
    rows: list[list[Cell]] = []
    for name in in_order(study.costs):
        if f"cost {name}" in made:
            outcome, cost = made[f"cost {name}"], study.costs[name]
            fetch = 0 if name in _OF_URLS else fetching
            render = rendering if is_rendered(name) else 0
            times: list[Cell] = [fetch, render, cost.page, cost.pair]
            rows.append([("+ " if rows else "") + name, *times, outcome.average[2], *outcome.quartiles()])
    columns = text("added") | number("ms to fetch", "ms to render", "ms a page", "ms a pair")
    columns |= share("F, average", "lower quartile", "median", "upper quartile")
    note = (
        "Signals of URLs come first, those that need a browser last. A page is fetched, decoded and rendered once for "
        "all signals that need it. The paper adds domain and title, body length, simhash, tf-idf, MCD, then rendered "
        "signals."
    )
    tables = [ResultTable("costs", _caption(study), columns, rows, note), _step_times(study.steps)]
    points = [(float(place), float(row[7] or 0)) for place, row in enumerate(rows, 1)]
    spans = [(float(row[6] or 0), float(row[8] or 0)) for row in rows]
    hints = [f"{row[0]}: {row[7]:.2f}" for row in rows]
    series, axes = [Series("median F", points, "line", hints, spans=spans)], Axes("signals", "F", y_range=(0, 1))
    plots = figure("costs", "F as signals are added", series, axes, columns, rows, legend=())
    return Section("costs", "F by cost", "Bars: quartiles over seeds and learners.", tables, plots, _missing(study))


def _step_times(steps: StepTimes) -> ResultTable:
    """Tabulates the times of fetching, rendering and decoding a page."""
    rows: list[list[Cell]] = []
    for name, times in (("fetch", steps.fetch), ("render", steps.render)):
        rows.append([name, len(times), fmean(times) if times else None, median(times) if times else None])
    rows.append(["decode", steps.decoded, steps.decode, None])
    note = "Fetch and render: results with `fetch_ms` and `render_ms`. The crawler and `neardup render` write these."
    columns = text("step") | count("pages") | number("ms, mean", "ms, median")
    return ResultTable("steps", "Time of a page before its signals", columns, rows, note)


def grouped_section(study: SignalStudy, groups: np.ndarray, by: str) -> Section:
    """Compares folds of pairs with folds of groups. groups: int64[pairs]. by: what the pairs of a group share."""
    plain = study.outcomes(study.distinct())
    grouped = study.outcomes_on(replace(study.examples, groups=groups), list(study.distinct().values()))
    rows: list[list[Cell]] = [
        [name, plain[name].average[2], *outcome.average, outcome.average[2] - plain[name].average[2]]
        for name, outcome in zip(plain, grouped, strict=True)
    ]
    shares = share("F, folds of pairs", "precision, grouped", "recall, grouped", "F, grouped")
    caption = f"{_caption(study)}; {len(np.unique(groups)):,} groups by {by}"
    about = f"Pairs of one {by} stay in one fold, so no classifier is judged on a {by} that it learned from."
    table = ResultTable("grouped", caption, text("set") | shares | number("difference"), _by_f(rows, 4))
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
    caption = f"Learned from {len(learned.truth):,} other pairs; {_caption(study)}"
    about = "Learned from the pages of --train, judged on these; beside it the cross-validation on these alone."
    table = ResultTable("transfer", caption, columns, _by_f(rows, 3))
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
