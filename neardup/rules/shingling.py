"""Henzinger 2006, algorithm B: at least 2 of 6 supershingles are equal."""

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Refusal, Rule, Ruling, evidence_of, similarities
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.b_similarity >= decider.b_min else None
    return Ruling(kind, "shingling", (0, float(pair.b_similarity)), pair.b_similarity, decider.b_min)


RULE = Rule(
    name="shingling",
    decide=decide,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
    possible=lambda pairs, decider: pairs.b_similarity >= decider.b_min,
    nearness=lambda pairs: pairs.b_similarity,
    refusals={"shingling": Refusal("too few equal supershingles", plain=True)},
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.b_min} supershingles"),
    in_short=lambda pair, decider, ruling: (f"B {pair.b_similarity} of 6", f"B {decider.b_min}"),
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min},
)
