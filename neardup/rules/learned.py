"""Decides by a learned model, as Huffman 2007 does, on signals that sketches provide (ours).

`neardup train --signals sketches` learns the model, and the decider contains it. `neardup partition --method
signals:MODEL` and comparisons use this rule; scans and streams do not offer it. Without a model, and among thin pages,
only equal digests are duplicates.
"""

from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import tape
from neardup.rules.base import (
    Evidence,
    Refusal,
    Rule,
    Ruling,
    accept,
    evidence_of,
    refuse,
    rule_kernel,
    similarities,
)
from neardup.rules.records import BY, NEAR_DUPLICATE, NODE, DeciderRow, PairRow, RulingRow
from neardup.signals.model import HALF, STEPS, Leaf, Model, Tree
from neardup.signals.of_sketches import OF_SKETCHES, online_model, sketch_signals

_SIGNALS, _THIN = BY.index("signals"), BY.index("thin")
_POSITIONS = {name: position for position, name in enumerate(OF_SKETCHES)}


@rule_kernel
def decide_by_model(pair: PairRow, nodes: np.ndarray, decider: DeciderRow, out: RulingRow) -> bool:
    """Decides by a learned model -> True. nodes: NODE[nodes] of the decider's model."""
    out.nearness = pair.tape_score
    at = 0
    while nodes[at].signal >= 0:
        value = floor(_signal(pair, nodes[at].signal) * STEPS + 0.5) / STEPS
        at = nodes[at].then if value <= nodes[at].bound else nodes[at].otherwise
    leaf = nodes[at]
    if min(pair.tokens_a, pair.tokens_b) < decider.thin_tokens:
        refuse(_THIN, leaf.score, HALF, out)
    elif not leaf.duplicate:
        refuse(_SIGNALS, leaf.score, HALF, out)
    else:
        accept(NEAR_DUPLICATE, _SIGNALS, 0, leaf.score, HALF, out)
        out.rank_score = pair.tape_score
    out.whole = 0  # it compares no counts
    return True


def _any_of(signals: list[Callable[[Any], Any]]) -> Callable[[PairRow, int], float]:
    """The kernel that computes a signal of a pair by its position."""
    compute: Any = _no_signal
    for position, signal in enumerate(signals):
        compute = _or_else(position, rule_kernel(signal), compute)
    return compute  # type: ignore[no-any-return]


@rule_kernel
def _no_signal(pair: PairRow, position: int) -> float:
    return 0.0


def _or_else(position: int, signal: Callable[[Any], Any], others: Callable[[PairRow, int], float]) -> object:
    @rule_kernel
    def _compute(pair: PairRow, wanted: int) -> float:
        if wanted == position:
            return float(signal(pair))
        return others(pair, wanted)

    return _compute


_signal = _any_of(list(OF_SKETCHES.values()))


def nodes_of(model: Model) -> np.ndarray:
    """The deciding part of a model, NODE[nodes]."""
    nodes: list[tuple[float, ...]] = []
    if model.by == "tree":
        _add_tree(nodes, model.tree)
    else:
        _add_rules(nodes, model)
    return np.array(nodes, NODE)


def _add_tree(nodes: list[tuple[float, ...]], tree: Tree) -> None:
    if isinstance(tree, Leaf):
        nodes.append((-1, 0.0, 0, 0, tree.duplicate, tree.share))
        return
    at = len(nodes)
    nodes.append(())
    _add_tree(nodes, tree.then)
    otherwise = len(nodes)
    _add_tree(nodes, tree.otherwise)
    nodes[at] = (_POSITIONS[tree.signal], tree.bound, at + 1, otherwise, 0, 0.0)


def _add_rules(nodes: list[tuple[float, ...]], model: Model) -> None:
    """A node for each condition, and a leaf after those of a rule; a condition that fails leads to the next rule."""
    for rule in model.rules:
        after = len(nodes) + len(rule) + 1
        for condition in rule:
            ways = (len(nodes) + 1, after) if condition.at_most else (after, len(nodes) + 1)
            nodes.append((_POSITIONS[condition.signal], condition.bound, *ways, 0, 0.0))
        nodes.append((-1, 0.0, 0, 0, True, 1.0))
    nodes.append((-1, 0.0, 0, 0, False, 0.0))


def _sentences(evidence: Evidence, decider: Decider) -> list[str]:
    values = evidence.get("signals")
    model = online_model(decider.model)
    if not values or not set(model.signals) <= set(values):
        return similarities(evidence)
    found = model.decide(values)
    return [f"The learned model is sure of a duplicate by {found.score:.1%}: {found.rule}.", *similarities(evidence)]


def _in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return f"learned {ruling.score:.1%}", f"{HALF:.0%}"


def _evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    return evidence_of(pair, ruling, {"learned_score": round(ruling.score, 4), "signals": sketch_signals(pair)})


RULE = Rule(
    name="signals",
    decides=decide_by_model,
    posts=tape.posts,
    refusals={
        "signals": Refusal("the learned model says so", plain=True),
        "thin": tape.REFUSALS["thin"],
    },
    sentences=_sentences,
    in_short=_in_short,
    evidence=_evidence,
    reads_tapes=True,
)
