"""Holds the labelled pairs of a study of signals, the sets of signals that it measures, and the costs of signals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from neardup.evaluation.sections import Cell
from neardup.signals.learning import FOLDS, SEEDS, Each, Examples, LearningOutcome, outcomes
from neardup.signals.table import FINAL, MEASURED, SETS, SIGNALS

#: The steps of the paper's experiment on cost, and the signals that each step adds: those over fetched bodies by
#: increasing cost, then rendered ones (in the same order: ours). Body length is in this experiment alone.
PAPER_STEPS: Mapping[str, tuple[str, ...]] = {
    "same domain, same title": ("same_domain", "same_title_fetched"),
    "body length": ("body_length_fetched",),
    "simhash": ("simhash_fetched",),
    "tf-idf": ("tfidf_fetched",),
    "MCD": ("mcd_fetched",),
    "rendered title": ("same_title_rendered",),
    "rendered body length": ("body_length_rendered",),
    "rendered simhash": ("simhash_rendered",),
    "rendered tf-idf": ("tfidf_rendered",),
    "rendered MCD": ("mcd_rendered",),
}
#: Signals that need only the URLs, no page.
OF_URLS = ("same_domain", "url")


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
        steps = dict(zip(map(step_key, PAPER_STEPS), accumulate(PAPER_STEPS.values()), strict=True))
        return self.distinct({**fetched, **MEASURED, **steps, **costs, **self.without_one()})

    @property
    def final(self) -> str:
        """Returns the name of the paper's final model, or of set F without rendered bodies."""
        return FINAL if self.is_distinct(SETS[FINAL]) else "F"

    def without_one(self) -> dict[str, tuple[str, ...]]:
        """Returns the final model without each of its signals, by the name of the signal."""
        names = SETS[self.final]
        return {f"without {name}": tuple(one for one in names if one != name) for name in names}

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

    def outcomes_on(
        self, examples: Examples, sets: Sequence[tuple[str, ...]], learned: float = 1.0
    ) -> list[LearningOutcome]:
        """Measures sets of signals on other pairs. learned: share of the pairs of the other folds that is learned."""
        return outcomes(examples, sets, seeds=self.seeds, folds=self.folds, each=self.each, share=learned)


def step_key(step: str) -> str:
    """Returns the name of the set of signals of one of PAPER_STEPS and of the steps before it."""
    return f"step {step}"


def is_rendered(name: str) -> bool:
    return name.endswith("_rendered")


def in_order(costs: Mapping[str, SignalCost]) -> list[str]:
    """Orders signals by the last step that they need, then by measured cost for a page and a pair.

    The steps: none for signals of URLs, the fetch, the browser that makes rendered bodies. Each step costs more than
    all signals before it.
    """
    return sorted(
        costs, key=lambda name: (name not in OF_URLS, is_rendered(name), 2 * costs[name].page + costs[name].pair)
    )


def missing_of(study: SignalStudy) -> str:
    """Explains why rows of a section are missing; empty if none is."""
    return "" if study.any_rendered else "No page has a rendered body: signals over rendered bodies are left out."


def by_f(rows: list[list[Cell]], column: int) -> list[list[Cell]]:
    """Sorts rows by decreasing F; equal ones keep their order."""
    return sorted(rows, key=lambda row: -float(row[column] or 0))


def pairs_caption(study: SignalStudy) -> str:
    """Describes the pairs of a table and the protocol."""
    truth = study.examples.truth
    return (
        f"Of {len(truth):,} labelled pairs, {int(truth.sum()):,} of them duplicates; {study.folds} folds, the median "
        f"of {study.seeds} seeds"
    )
