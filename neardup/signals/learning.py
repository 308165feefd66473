"""Trains Huffman 2007's two learners and measures them by its protocol. The only module that needs learning libraries.

The paper's learners are C4.5 and RIPPER. The tree here is scikit-learn's by information gain, with leaves of at least
LEAF_PAIRS pairs and cost-complexity pruning instead of C4.5's (ours). RIPPER is wittgenstein's, which would cut numbers
into bins that it never joins. Its input is therefore boolean: whether each signal is at most each of some bounds
(ours), taken from a tree over that signal alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import floor
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import BadInput
from neardup.signals.model import STEPS, Branch, Columns, Condition, Leaf, Rule, Tree, along, any_rule

SEEDS, FOLDS = 9, 10
LEAF_PAIRS = 5
PRUNING = 0.002
#: Bins per signal for the rules; the bounds between them are one fewer.
BINS = 8
LEARNERS = ("tree", "rules")

Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Examples:
    """Labelled pairs. columns: float64[pairs] by signal. truth: bool[pairs], True for duplicates.

    groups: int64[pairs]; pairs of one group stay in one fold. None: each pair is a group.
    """

    columns: Columns
    truth: Truth
    groups: npt.NDArray[np.int64] | None = None

    def of(self, signals: Iterable[str]) -> "Examples":
        """Returns the same pairs with a subset of their signals."""
        return replace(self, columns={name: self.columns[name] for name in signals})

    def subset(self, places: npt.NDArray[np.int64]) -> "Examples":
        """Returns the pairs at some positions."""
        columns = {name: column[places] for name, column in self.columns.items()}
        return Examples(columns, self.truth[places], None if self.groups is None else self.groups[places])


def learn_tree(examples: Examples, seed: int) -> Tree:
    """Trains a decision tree."""
    from sklearn.tree import DecisionTreeClassifier

    names = list(examples.columns)
    made = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=LEAF_PAIRS, ccp_alpha=PRUNING, random_state=seed
    )
    made.fit(np.column_stack(list(examples.columns.values())), examples.truth)
    inner, at_duplicate = made.tree_, list(made.classes_).index(True) if True in made.classes_ else None

    def tree(node: int) -> Tree:
        if inner.children_left[node] < 0:
            pairs = int(inner.n_node_samples[node])
            share = 0.0 if at_duplicate is None else float(inner.value[node][0][at_duplicate])
            duplicates = round(share * pairs)
            return Leaf(2 * duplicates > pairs, pairs, duplicates)
        bound = _between_steps(float(inner.threshold[node]))
        then, otherwise = tree(int(inner.children_left[node])), tree(int(inner.children_right[node]))
        return Branch(names[int(inner.feature[node])], bound, then, otherwise)

    return tree(0)


def learn_rules(examples: Examples, seed: int) -> tuple[Rule, ...]:
    """Trains the rules of RIPPER."""
    import pandas
    from wittgenstein import RIPPER

    bounds: dict[str, tuple[str, float]] = {}
    table: dict[str, Any] = {}
    for name, column in examples.columns.items():
        for bound in _bounds(column, examples.truth, seed):
            bounds[key := f"{name} {bound!r}"] = name, bound
            table[key] = column <= bound
    if not table or examples.truth.all() or not examples.truth.any():
        return ((),) if examples.truth.all() else ()
    table["duplicate"] = examples.truth.astype(np.int64)
    made = RIPPER(random_state=seed)
    made.fit(pandas.DataFrame(table), class_feat="duplicate", pos_class=1)
    return tuple(
        tuple(Condition(bounds[each.feature][0], bool(each.val), bounds[each.feature][1]) for each in rule.conds)
        for rule in made.ruleset_.rules
    )


def _bounds(column: npt.NDArray[np.float64], truth: Truth, seed: int) -> list[float]:
    """Returns at most BINS - 1 bounds of one signal, ascending."""
    from sklearn.tree import DecisionTreeClassifier

    made = DecisionTreeClassifier(
        criterion="entropy", max_leaf_nodes=BINS, min_samples_leaf=LEAF_PAIRS, random_state=seed
    )
    inner = made.fit(column.reshape(-1, 1), truth).tree_
    return sorted({_between_steps(float(bound)) for bound in inner.threshold[inner.children_left >= 0]})


def _between_steps(bound: float) -> float:
    """Moves a bound to the middle of two steps: no signal equals it, whatever the precision of the comparison."""
    return (floor(bound * STEPS) + 0.5) / STEPS


class CrossValidation(NamedTuple):
    """The result of one cross-validation. scores: float64[pairs], confidence in a duplicate; 0 or 1 by rules."""

    precision: float
    recall: float
    f: float
    scores: npt.NDArray[np.float64]


class CrossValidationTask(NamedTuple):
    """One cross-validation to run. share: share of the pairs of the other folds that is learned."""

    examples: Examples
    learner: str
    seed: int
    folds: int
    share: float = 1.0


def cross_validate(task: CrossValidationTask) -> CrossValidation:
    """Judges each fold by a learner trained on the other folds."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    examples, learner, seed, folds, share = task
    predicted = np.zeros(len(examples.truth), np.bool_)
    scores = np.zeros(len(examples.truth))
    folding = StratifiedKFold if examples.groups is None else StratifiedGroupKFold
    cut = folding(folds, shuffle=True, random_state=seed)
    for learned, judged in cut.split(np.zeros(len(predicted)), examples.truth, examples.groups):
        part = learned if share == 1 else _part(learned, examples.truth, share, seed)
        predicted[judged], scores[judged] = judge(examples.subset(part), examples.subset(judged), learner, seed)
    return measured(predicted, scores, examples.truth)


def _part(places: npt.NDArray[np.int64], truth: Truth, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Draws a share of the pairs at some positions, of both kinds; at least one pair of a kind that is there."""
    random = np.random.default_rng(seed)
    kinds = [random.permutation(places[truth[places] == kind]) for kind in (True, False)]
    return np.sort(np.concatenate([kind[: max(1, round(share * len(kind)))] for kind in kinds]))


def judge(learned: Examples, judged: Examples, learner: str, seed: int) -> tuple[Truth, npt.NDArray[np.float64]]:
    """Trains a learner on some pairs and judges others: (duplicate, score)."""
    if learner == "tree":
        return along(learn_tree(learned, seed), judged.columns)
    found = any_rule(learn_rules(learned, seed), judged.columns)
    return found, found.astype(np.float64)


def measured(predicted: Truth, scores: npt.NDArray[np.float64], truth: Truth) -> CrossValidation:
    """Computes precision, recall and F of predictions; 0 if no duplicate was predicted correctly."""
    right = int((predicted & truth).sum())
    precision, recall = right / max(1, int(predicted.sum())), right / max(1, int(truth.sum()))
    return CrossValidation(precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0, scores)


@dataclass(frozen=True)
class LearningOutcome:
    """The paper's figure for a set of signals. runs: runs of each learner, one for each seed, ordered by F."""

    runs: dict[str, list[CrossValidation]]

    def median(self, learner: str) -> CrossValidation:
        """Returns the run with the median F."""
        return self.runs[learner][(len(self.runs[learner]) - 1) // 2]

    @property
    def average(self) -> tuple[float, float, float]:
        """Returns precision, recall and F, each the mean of both learners' median runs."""
        chosen = [self.median(learner) for learner in LEARNERS]
        return tuple(fmean(run[at] for run in chosen) for at in range(3))  # type: ignore[return-value]

    def quartiles(self) -> tuple[float, float, float]:
        """Returns the lower quartile, the median and the upper quartile of F over the runs of both learners."""
        f = [run.f for runs in self.runs.values() for run in runs]
        return tuple(float(np.quantile(f, share)) for share in (0.25, 0.5, 0.75))  # type: ignore[return-value]


#: Applies a function to tasks and returns results in their order: `map`, or a parallel equivalent.
Each = Callable[
    [Callable[[CrossValidationTask], CrossValidation], Iterable[CrossValidationTask]], Iterator[CrossValidation]
]


def outcomes(
    examples: Examples,
    sets: Sequence[Sequence[str]],
    *,
    seeds: int = SEEDS,
    folds: int = FOLDS,
    each: Each = map,
    share: float = 1.0,
) -> list[LearningOutcome]:
    """Runs the paper's protocol for some sets of signals. Raises BadInput if a class has fewer pairs than folds.

    share: share of the pairs of the other folds that is learned, of both kinds; by seed.
    """
    rarer = min(int(examples.truth.sum()), int((~examples.truth).sum()))
    if rarer < folds:
        raise BadInput(
            f"{rarer} labelled pairs of one kind: {folds} folds need {folds} of each; label more, or fewer folds"
        )
    if examples.groups is not None and (many := len(np.unique(examples.groups))) < folds:
        raise BadInput(f"{many} groups of pairs: {folds} folds need {folds}; label more, or fewer folds")
    tasks = [
        CrossValidationTask(examples.of(names), learner, seed, folds, share)
        for names in sets
        for learner in LEARNERS
        for seed in range(seeds)
    ]
    made = iter(each(cross_validate, tasks))
    return [
        LearningOutcome(
            {learner: sorted((next(made) for _ in range(seeds)), key=lambda run: run.f) for learner in LEARNERS}
        )
        for _ in sets
    ]


def require_learners() -> None:
    """Raises ModuleNotFoundError if a learner is not installed, before hours of work are spent."""
    import pandas  # noqa: F401
    import sklearn  # noqa: F401
    import wittgenstein  # noqa: F401


def versions() -> dict[str, str]:
    """Returns the versions a model was trained with. gzip's is included because signals depend on it."""
    import zlib

    names = ("neardup", "scikit-learn", "wittgenstein", "numpy")
    return {name: version(name) for name in names} | {"zlib": zlib.ZLIB_RUNTIME_VERSION}
