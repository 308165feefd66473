"""Reads, writes and applies a learned classifier of pairs, as readable JSON; needs no learner.

    {"version": 1, "signals": [...], "by": "tree",
     "tree": {"signal": "mcd_fetched", "at_most": 0.31, "then": {"duplicate": true, "pairs": 40, "duplicates": 39},
              "else": {...}},
     "rules": [[{"signal": "mcd_fetched", "at_most": 0.31}, {"signal": "same_domain", "above": 0.5}], ...],
     "idf": {"documents": ..., "terms": {...}}, "measured": {...}, "versions": {...}}

by: whether the tree or the rules decide. A leaf counts the training pairs that reached the leaf. A pair is a duplicate
by rules if the pair fulfils all conditions of at least one rule. measured and versions are for people.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from neardup.errors import BadInput, OtherVersion
from neardup.signals.idf import Idf

MODEL_VERSION = 1
#: Limits of a model from a file, since its size costs time for every pair.
DEPTH_MAX, NODES_MAX, RULES_MAX, CONDITIONS_MAX = 64, 10_000, 1000, 100
MODEL_BYTES_MAX = 16_000_000


#: A pair with at least this score is a duplicate.
HALF = 0.5
#: Signals are rounded to steps of 1 / STEPS, so a threshold between two values decides alike in every learner.
STEPS = 10_000


def in_steps(value: float) -> float:
    """Rounds to the nearest step, by sums that numpy computes alike."""
    return floor(value * STEPS + 0.5) / STEPS


class Condition(NamedTuple):
    """A condition on one signal: at most `bound`, or above it."""

    signal: str
    at_most: bool
    bound: float

    def holds(self, value: Any) -> Any:
        """Tests one number, or a numpy array of numbers."""
        return value <= self.bound if self.at_most else value > self.bound

    def to_json(self) -> dict[str, Any]:
        return {"signal": self.signal, "at_most" if self.at_most else "above": self.bound}

    def __str__(self) -> str:
        return f"{self.signal} {'<=' if self.at_most else '>'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a tree. pairs, duplicates: counts of the training pairs that reached it."""

    duplicate: bool
    pairs: int = 0
    duplicates: int = 0

    @property
    def share(self) -> float:
        """Estimates the share of duplicates by Laplace's rule, kept on the leaf's side of one half."""
        share = (self.duplicates + 1) / (self.pairs + 2)
        return max(share, HALF) if self.duplicate else min(share, HALF - 0.001)


@dataclass(frozen=True, slots=True)
class Branch:
    """An inner node. then: the subtree if the signal is at most `bound`. otherwise: the subtree if it is above."""

    signal: str
    bound: float
    then: "Tree"
    otherwise: "Tree"


Tree = Leaf | Branch
Rule = tuple[Condition, ...]


Columns = Mapping[str, npt.NDArray[np.float64]]


class ModelDecision(NamedTuple):
    """The decision for a pair. rule: the conditions that decided, as text.

    score: confidence 0 to 1; 1 or 0 by rules.
    """

    duplicate: bool
    rule: str
    score: float


@dataclass(frozen=True)
class Model:
    """A learned classifier. Raises BadInput for a condition on a signal that is not in `signals`."""

    signals: tuple[str, ...]
    tree: Tree
    rules: tuple[Rule, ...] = ()
    by: str = "tree"
    idf: Idf = field(default_factory=Idf)
    measured: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def decide(self, values: Mapping[str, float]) -> ModelDecision:
        """Decides a pair by its signals."""
        if self.by == "rules":
            fired = next((rule for rule in self.rules if all(each.holds(values[each.signal]) for each in rule)), None)
            return ModelDecision(
                fired is not None, rule_text(fired) if fired is not None else "no rule holds", float(fired is not None)
            )
        path, leaf = _way(self.tree, values)
        return ModelDecision(leaf.duplicate, rule_text(path), leaf.share)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": MODEL_VERSION,
            "signals": list(self.signals),
            "by": self.by,
            "tree": _tree_json(self.tree),
            "rules": [[each.to_json() for each in rule] for rule in self.rules],
            "idf": self.idf.to_json(),
            "measured": dict(self.measured),
            "versions": dict(self.versions),
        }

    def text(self) -> str:
        """Formats both classifiers for people, one rule per line."""
        lines = ["tree:"]
        for path, leaf in _leaves(self.tree, ()):
            verdict = "duplicate" if leaf.duplicate else "different"
            lines.append(f"  {verdict} if {rule_text(path)}   ({leaf.duplicates} of {leaf.pairs} were duplicates)")
        lines.append("rules, duplicate if one holds:")
        lines += [f"  {rule_text(rule)}" for rule in self.rules] or ["  no rule was learned"]
        return "\n".join(lines)

    def decided_by(self, by: str) -> "Model":
        """Returns the same model, decided by its tree or its rules. Raises BadInput for another name."""
        if by not in ("tree", "rules"):
            raise BadInput(f"a model decides by its tree or its rules, not by {by!r}")
        return replace(self, by=by)


def along(tree: Tree, columns: Columns) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Returns (duplicate, share) of the leaf that each pair reaches: bool[pairs], float64[pairs]."""
    many = len(next(iter(columns.values())))
    duplicate, share = np.zeros(many, np.bool_), np.zeros(many)
    waiting = [(tree, np.arange(many))]
    while waiting:
        node, at = waiting.pop()
        if isinstance(node, Leaf):
            duplicate[at], share[at] = node.duplicate, node.share
            continue
        below = columns[node.signal][at] <= node.bound
        waiting += [(node.then, at[below]), (node.otherwise, at[~below])]
    return duplicate, share


def any_rule(rules: Sequence[Rule], columns: Columns) -> npt.NDArray[np.bool_]:
    """Tests whether any rule holds: bool[pairs]."""
    found = np.zeros(len(next(iter(columns.values()))), np.bool_)
    for rule in rules:
        holds = np.ones(len(found), np.bool_)
        for each in rule:
            holds &= each.holds(columns[each.signal])
        found |= holds
    return found


def rule_text(rule: Rule) -> str:
    """Formats the conditions of a rule; a rule without conditions always holds."""
    return " and ".join(map(str, _shortest(rule))) or "always"


def read_model(path: Path) -> Model:
    """Reads a model from a file. Raises BadInput, and OtherVersion for an unknown version."""
    try:
        with path.open("rb") as file:
            data = file.read(MODEL_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if len(data) > MODEL_BYTES_MAX:
        raise BadInput(f"{path}: a model has at most {MODEL_BYTES_MAX:,} bytes")
    return model_of(data, str(path))


def model_of(data: bytes | str, where: str) -> Model:
    """Parse a model from JSON. where: file or other source of the model, which errors name.

    Raises the errors of `read_model`.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{where}: not a model, not JSON: {error}") from error
    if not isinstance(value, dict) or "tree" not in value:
        raise BadInput(f"{where}: not a model; `neardup train` makes one")
    if value.get("version") != MODEL_VERSION:
        raise OtherVersion(f"{where}: a model of version {value.get('version')}; this program knows {MODEL_VERSION}")
    signals = value.get("signals")
    if not isinstance(signals, list) or not all(isinstance(name, str) for name in signals):
        raise BadInput(f'{where}: "signals" is not a list of names')
    reader = _Reader(where, frozenset(signals))
    notes = [value.get(name, {}) for name in ("measured", "versions")]
    if not all(isinstance(one, dict) for one in notes):
        raise BadInput(f'{where}: "measured" or "versions" is not an object')
    model = Model(
        tuple(signals),
        reader.tree(value["tree"], 0),
        reader.rules(value.get("rules", [])),
        "tree",
        Idf.from_json(value["idf"], where) if "idf" in value else Idf(),
        *notes,
    )
    return model.decided_by(value.get("by", "tree"))


class _Reader:
    """Reads the parts of a model within the limits. Raises BadInput that names the file."""

    def __init__(self, where: str, signals: frozenset[str]) -> None:
        self._where, self._signals, self._nodes = where, signals, 0

    def _error(self, text: str) -> BadInput:
        return BadInput(f"{self._where}: {text}")

    def tree(self, value: Any, depth: int) -> Tree:
        self._nodes += 1
        if depth > DEPTH_MAX or self._nodes > NODES_MAX:
            raise self._error(f"a tree has at most {NODES_MAX:,} nodes, {DEPTH_MAX} deep")
        if isinstance(value, dict) and isinstance(value.get("duplicate"), bool):
            counts = value.get("pairs", 0), value.get("duplicates", 0)
            if not all(type(count) is int for count in counts) or not 0 <= counts[1] <= counts[0]:
                raise self._error(f"a leaf of {counts[1]!r} duplicates among {counts[0]!r} pairs")
            return Leaf(value["duplicate"], *counts)
        try:
            signal, bound, then, otherwise = (value[name] for name in ("signal", "at_most", "then", "else"))
        except (TypeError, KeyError):
            raise self._error('a node of the tree is neither a leaf nor "at_most", "then", "else"') from None
        return Branch(*self._bounded(signal, bound), self.tree(then, depth + 1), self.tree(otherwise, depth + 1))

    def rules(self, value: Any) -> tuple[Rule, ...]:
        if not isinstance(value, list) or len(value) > RULES_MAX:
            raise self._error(f'"rules" is not a list of at most {RULES_MAX:,} rules')
        for rule in value:
            if not isinstance(rule, list) or len(rule) > CONDITIONS_MAX:
                raise self._error(f"a rule is not a list of at most {CONDITIONS_MAX} conditions")
        return tuple(tuple(map(self._condition, rule)) for rule in value)

    def _condition(self, value: Any) -> Condition:
        for name in ("at_most", "above"):
            if isinstance(value, dict) and name in value:
                signal, bound = self._bounded(value.get("signal"), value[name])
                return Condition(signal, name == "at_most", bound)
        raise self._error('a condition has neither "at_most" nor "above"')

    def _bounded(self, signal: Any, bound: Any) -> tuple[str, float]:
        if signal not in self._signals:
            raise self._error(f"{signal!r} is not among the model's signals")
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise self._error(f"a bound is not a number: {bound!r}")
        return str(signal), float(bound)


def _way(tree: Tree, values: Mapping[str, float]) -> tuple[Rule, Leaf]:
    path: list[Condition] = []
    while isinstance(tree, Branch):
        below = values[tree.signal] <= tree.bound
        path.append(Condition(tree.signal, below, tree.bound))
        tree = tree.then if below else tree.otherwise
    return tuple(path), tree


def _shortest(path: Rule) -> Rule:
    """Drops conditions that others imply, and orders the rest by first use of their signals."""
    bounds: dict[tuple[str, bool], float] = {}
    for signal, at_most, bound in path:
        key, better = (signal, at_most), min if at_most else max
        bounds[key] = better(bounds.get(key, bound), bound)
    return tuple(Condition(signal, at_most, bound) for (signal, at_most), bound in bounds.items())


def _leaves(tree: Tree, path: Rule) -> Iterator[tuple[Rule, Leaf]]:
    if isinstance(tree, Leaf):
        yield path, tree
        return
    for at_most, below in ((True, tree.then), (False, tree.otherwise)):
        yield from _leaves(below, (*path, Condition(tree.signal, at_most, tree.bound)))


def _tree_json(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"duplicate": tree.duplicate, "pairs": tree.pairs, "duplicates": tree.duplicates}
    return {
        "signal": tree.signal,
        "at_most": tree.bound,
        "then": _tree_json(tree.then),
        "else": _tree_json(tree.otherwise),
    }
