"""Henzinger 2006, algorithm B: at least 2 of 6 supershingles are equal."""

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Columns, Evidence, Refusal, Rule, Ruling, evidence_of, similarities
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.b_similarity >= decider.b_min else None
    return Ruling(kind, "shingling", (0, float(pair.b_similarity)), pair.b_similarity, decider.b_min)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    return pairs.b_similarity >= decider.b_min


def _sentences(evidence: Evidence, decider: Decider) -> list[str]:
    return similarities(evidence, f"{decider.b_min} supershingles")


def _in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return f"B {pair.b_similarity} of 6", f"B {decider.b_min}"


RULE = Rule(
    name="shingling",
    decide=decide,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
    possible=possible,
    nearness=lambda pairs: pairs.b_similarity,
    refusals={"shingling": Refusal("too few equal supershingles", plain=True)},
    sentences=_sentences,
    in_short=_in_short,
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min},
)
