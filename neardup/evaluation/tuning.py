"""Finds better decider numbers from labelled pairs: chosen on one half of the pairs, measured on the other.

Connected pages are in one half, so no article is in both. On the first half (S1) the change of one number that raises
F1 most is applied, then the next, as long as the gain is above 0 in 95 of 100 resamplings of S1. The second half (S2),
not used for choosing, measures all changes together.

Pairs are judged by their numbers alone, as in an evaluation. The number of a site's pages that share a name is unknown,
so numbers that depend on it cannot be tuned. The result is a proposal; nothing is changed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decider import Decider, Shapes, numbers, shaping
from neardup.errors import BadInput
from neardup.evaluation.labels import Judgement, LabelledPairs
from neardup.evaluation.measures import Interval, Measured, measure
from neardup.evaluation.study import Mask, groups_of
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import numbers_of_pairs
from neardup.rules import rule_of
from neardup.rules.records import NEAR_DUPLICATE, NO_KIND

ROUNDS = 1000
#: Most numbers changed together.
CHANGES_MAX = 4
#: Whole numbers up to this limit are tried one by one; numbers with these limits count bits of a simhash.
MANY, BITS = 64, (0, 384)
_NO_NUMBERS = ("scheme", "rule", "rule_version", "model", "sites")
#: Least number of labelled pairs of each kind: halves of fewer pairs measure nothing.
PAIRS_MIN = 20
#: Values that are tried beside the current one: for a share _SHARES, for a larger number multiples of the current one.
_SHARES = tuple(round(0.5 + 0.02 * step, 2) for step in range(25))
_MULTIPLES = (0, 0.5, 0.75, 1.25, 1.5, 2)


def tried_values(decider: Decider, name: str) -> list[float]:
    """Returns the values that are tried for a number, the current one included; all are within its limits."""
    number, now = numbers()[name], getattr(decider, name)
    low, high = number.limits
    if number.kind is float:
        return sorted({0.0, *_SHARES, 1.0, now})
    if high <= MANY:
        return sorted({*range(int(low), int(high) + 1), now})
    if number.limits == BITS:
        return sorted({*range(300, 385, 4), now})
    return sorted({min(max(int(low), round(now * by)), int(high)) for by in _MULTIPLES} | {now})


def tuned_names() -> list[str]:
    """Returns the names of the numbers that tuning tries: all that affect rulings."""
    return [name for name in shaping(Shapes.RULING) if numbers()[name].limits]


@dataclass(frozen=True)
class Tuned:
    """One proposed change. low, high: range of the best value in 95 of 100 resamplings of S1.

    gain: gain of F1 on S1, with 95% interval. It is overstated, because the change was chosen on S1.
    """

    name: str
    now: float
    then: float
    low: float
    high: float
    gain: Interval


class CurvePoint(NamedTuple):
    """The figures on S1 with one number at `value`, all others as they are now."""

    value: float
    precision: float
    recall: float
    f1: float


@dataclass
class Tuning:
    """The result of tuning.

    now, then: figures of the current and of the proposed decider on S2. gain: gain of F1 on S2.
    changes: changes in the order of choice. effective: numbers that change any ruling on S1, for better or worse.
    curves: the curve of each of these numbers, by ascending value.
    """

    decider: Decider
    proposed: Decider
    changes: list[Tuned]
    effective: list[str]
    curves: dict[str, list[CurvePoint]]
    chosen_on: int
    now: Measured
    then: Measured
    gain: Interval
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether F1 on S2 is no lower under the proposal."""
        return bool(self.changes) and (self.gain.value or 0.0) >= 0

    @property
    def sure(self) -> bool:
        """Whether the whole interval of the gain on S2 is above 0."""
        return bool(self.changes) and self.gain.low is not None and self.gain.low > 0

    @property
    def flags(self) -> list[str]:
        """Returns the command-line flags of the proposal over the rule's defaults; none if S2 contradicts it."""
        if not self.holds:
            return []
        usual = Decider(self.decider.scheme)
        names = [one.name for one in fields(Decider) if one.name not in _NO_NUMBERS]
        values = {name: getattr(self.proposed, name) for name in names}
        changed = {name: value for name, value in values.items() if value != getattr(usual, name)}
        return [part for name, value in changed.items() for part in ("--set", f"{name}={setting_text(value)}")]

    def to_json(self) -> dict[str, Any]:
        """Returns plain values only."""
        shares = ("precision", "recall", "f1")
        return {
            "rule": self.decider.rule,
            "chosen_on": self.chosen_on,
            "measured_on": self.now.pairs,
            "changes": [{**asdict(one), "gain": one.gain._asdict()} for one in self.changes],
            "effective": self.effective,
            "curves": {name: [point._asdict() for point in points] for name, points in self.curves.items()},
            "now": {name: getattr(self.now, name)._asdict() for name in shares},
            "then": {name: getattr(self.then, name)._asdict() for name in shares},
            "f1_gain": self.gain._asdict(),
            "holds": self.holds,
            "sure": self.sure,
            "flags": self.flags,
            "problems": self.problems,
        }


def setting_text(value: float) -> str:
    """Formats a number as settings read it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


class _Half:
    """Labelled pairs with the weights of their groups per resampling: float64[rounds, groups]."""

    def __init__(
        self, pairs: Sequence[Pair], correct: Mask, groups: npt.NDArray[np.int64], seed: int, content: bool
    ) -> None:
        self.pairs, self.correct, self._content = pairs, correct, content
        self._numbers = numbers_of_pairs(pairs)
        names, self._of = np.unique(groups, return_inverse=True)
        shares = np.full(len(names), 1 / max(1, len(names)))
        self._weights = np.random.default_rng(seed).multinomial(len(names), shares, size=ROUNDS).astype(float)

    def taken(self, decider: Decider) -> Mask:
        """Marks the pairs that a decider calls duplicates: bool[pairs]."""
        kinds = rule_of(decider).rulings(self._numbers, decider)["kind"]
        taken: Mask = kinds != NO_KIND if self._content else kinds == NEAR_DUPLICATE
        return taken

    def f1(self, taken: Mask) -> float:
        right, whole = int((taken & self.correct).sum()), int(taken.sum() + self.correct.sum())
        return 2 * right / whole if whole else 0.0

    def point(self, value: float, taken: Mask) -> CurvePoint:
        """Computes the figures of pairs that are called duplicates with a number at `value`."""
        right, called, all_correct = (int(mask.sum()) for mask in (taken & self.correct, taken, self.correct))
        return CurvePoint(value, right / called if called else 1.0, right / max(1, all_correct), self.f1(taken))

    def resampled(self, taken: Mask) -> npt.NDArray[np.float64]:
        """Computes F1 per resampling: float64[rounds]; every call uses the same resamplings."""
        table = np.zeros((self._weights.shape[1], 3))
        np.add.at(table, self._of, np.stack([taken & self.correct, taken, self.correct], axis=1).astype(float))
        counts = self._weights @ table
        whole = counts[:, 1] + counts[:, 2]
        return np.divide(2 * counts[:, 0], whole, out=np.zeros(len(counts)), where=whole > 0)

    def gain(self, before: Mask, after: Mask) -> Interval:
        """Computes the gain of F1 with its 95% interval; both rules use the same resamplings."""
        low, high = np.quantile(self.resampled(after) - self.resampled(before), [0.025, 0.975])
        return Interval(self.f1(after) - self.f1(before), float(low), float(high))


def tune(
    labels: LabelledPairs, pairs: Sequence[Pair], decider: Decider, *, seed: int = 0, content: bool = False
) -> Tuning:
    """Tunes the decider's rule. pairs: the numbers of each labelled pair, in the labels' order.

    content: same content also counts as a duplicate. Undecided pairs count as not correct. Raises BadInput for a rule
    without numbers, and for fewer than PAIRS_MIN pairs of either kind.
    """
    if decider.rule == "signals":
        raise BadInput("the rule signals is learned: train it again with `neardup train`")
    correct = np.array([label.label is Judgement.CORRECT for label in labels.labels], bool)
    if min(int(correct.sum()), int((~correct).sum())) < PAIRS_MIN:
        raise BadInput(
            f"{int(correct.sum()):,} pairs labelled correct and {int((~correct).sum()):,} others: at least {PAIRS_MIN} "
            "of each are needed; label more with `neardup label`"
        )
    groups = groups_of(labels)
    first = _first_half(groups, seed)
    s1, s2 = (
        _Half(list(compress(pairs, mask)), correct[mask], groups[mask], seed, content) for mask in (first, ~first)
    )
    proposed, changes, curves = _chosen(s1, decider)
    before, after = s2.taken(decider), s2.taken(proposed)
    now, then = (measure(taken, s2.correct, seed, groups=groups[~first]) for taken in (before, after))
    gain = s2.gain(before, after)
    chosen_on = int(first.sum())
    return Tuning(decider, proposed, changes, list(curves), curves, chosen_on, now, then, gain, labels.problems())


def _first_half(groups: npt.NDArray[np.int64], seed: int) -> Mask:
    """Selects half of the groups by the seed."""
    names, of = np.unique(groups, return_inverse=True)
    half: Mask = np.random.default_rng(seed).permutation(len(names))[of] < (len(names) + 1) // 2
    return half


def _chosen(half: _Half, decider: Decider) -> tuple[Decider, list[Tuned], dict[str, list[CurvePoint]]]:
    """Returns (proposed decider, its changes, curves of the numbers that change any ruling)."""
    proposed, changes = decider, list[Tuned]()
    curves: dict[str, list[CurvePoint]] = {}
    while len(changes) < CHANGES_MAX:
        before = half.taken(proposed)
        changed = {one.name for one in changes}
        tried = {
            name: {value: half.taken(replace(proposed, **{name: value})) for value in tried_values(proposed, name)}  # type: ignore[arg-type]
            for name in tuned_names()
            if name not in changed
        }
        moving = [name for name, masks in tried.items() if any((mask != before).any() for mask in masks.values())]
        curves = curves or {name: [half.point(*each) for each in tried[name].items()] for name in moving}
        best = [(name, *_best(half, getattr(proposed, name), tried[name])) for name in moving]
        name, value, f1 = max(best, key=lambda one: one[2], default=("", 0.0, 0.0))
        if f1 <= half.f1(before):
            break
        gain = half.gain(before, tried[name][value])
        if gain.low is None or gain.low <= 0:
            break
        changes.append(Tuned(name, getattr(decider, name), value, *_interval(half, value, tried[name]), gain))
        proposed = replace(proposed, **{name: value})  # type: ignore[arg-type]
    return proposed, changes, curves


def _best(half: _Half, now: float, tried: dict[float, Mask]) -> tuple[float, float]:
    """Returns the value with the greatest F1, ties nearest to the current value, and its F1."""
    scores = ((value, half.f1(taken)) for value, taken in tried.items())
    return max(scores, key=lambda one: (one[1], -abs(one[0] - now)))


def _interval(half: _Half, chosen: float, tried: dict[float, Mask]) -> tuple[float, float]:
    """Returns the range of the best value in 95 of 100 resamplings; ties nearest to the chosen value."""
    values = sorted(tried, key=lambda value: abs(value - chosen))
    scores = np.stack([half.resampled(tried[value]) for value in values])
    best = np.array(values, dtype=float)[scores.argmax(axis=0)]
    low, high = np.quantile(best, [0.025, 0.975], method="nearest")
    return float(low), float(high)
