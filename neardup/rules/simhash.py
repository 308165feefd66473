"""Henzinger 2006, algorithm C: at least 372 of 384 bits agree. Candidates share a block of 32 bits."""

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Columns, Refusal, Rule, Ruling, evidence_of, similarities
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.c_similarity >= decider.c_min else None
    return Ruling(kind, "simhash", (0, float(pair.c_similarity)), pair.c_similarity, decider.c_min)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    return pairs.c_similarity >= decider.c_min


def in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return f"C {pair.c_similarity} of 384", f"C {decider.c_min}"


RULE = Rule(
    name="simhash",
    decide=decide,
    posts=lambda decider: ((KeyFamily.BLOCK, ALL),),
    possible=possible,
    nearness=lambda pairs: pairs.c_similarity,
    refusals={"simhash": Refusal("too few agreeing simhash bits", plain=True)},
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.c_min} bits"),
    in_short=in_short,
    evidence=evidence_of,
    drawn=lambda decider: {"c_similarity": decider.c_min},
)
