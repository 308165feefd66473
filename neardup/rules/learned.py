"""Decides by a learned model, as Huffman 2007 does, on signals that sketches provide (ours).

`neardup train --signals sketches` learns the model, and the decider contains it. `neardup partition --method
signals:MODEL` and comparisons use this rule; scans and streams do not offer it. Without a model, and among thin pages,
only equal digests are duplicates.
"""

from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import tape
from neardup.rules.base import Columns, Evidence, Refusal, Rule, Ruling, evidence_of, refused, similarities
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.signals.model import HALF
from neardup.signals.of_sketches import online_model, sketch_columns, sketch_signals
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    found = online_model(decider.model).decide(sketch_signals(pair))
    if min(pair.tokens_a, pair.tokens_b) < decider.thin_tokens:
        return refused("thin", found.score, HALF)
    if not found.duplicate:
        return refused("signals", found.score, HALF)
    return Ruling(Kind.NEAR_DUPLICATE, "signals", (0, pair.tape_score), found.score, HALF)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    model = online_model(decider.model)
    thick: np.ndarray = np.minimum(pairs.tokens_a, pairs.tokens_b) >= decider.thin_tokens
    if not model.signals:
        thick &= model.decide({}).duplicate
    else:
        thick &= model.duplicates(sketch_columns(pairs, model.signals))
    return thick


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
    decide=decide,
    posts=tape.posts,
    possible=possible,
    nearness=lambda pairs: pairs.tape_score,
    refusals={
        "signals": Refusal("the learned model says so", plain=True),
        "thin": tape.REFUSALS["thin"],
    },
    sentences=_sentences,
    in_short=_in_short,
    evidence=_evidence,
    reads_tapes=True,
)
