"""Henzinger 2006, section 3.5: B-similar pairs, filtered by C-similarity of at least 355."""

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Columns, Evidence, Refusal, Rule, Ruling, evidence_of, refused, similarities
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    """The ruling. Its score and demand are those of the algorithm that refused the pair, else of C."""
    if pair.b_similarity < decider.b_min:
        return refused("combined: B", pair.b_similarity, decider.b_min)
    if pair.c_similarity < decider.combined_c_min:
        return refused("combined: C", pair.c_similarity, decider.combined_c_min)
    rank = (0, float(pair.c_similarity))
    return Ruling(Kind.NEAR_DUPLICATE, "combined", rank, pair.c_similarity, decider.combined_c_min)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    alike: np.ndarray = (pairs.b_similarity >= decider.b_min) & (pairs.c_similarity >= decider.combined_c_min)
    return alike


def sentences(evidence: Evidence, decider: Decider) -> list[str]:
    return similarities(evidence, f"{decider.b_min} and {decider.combined_c_min}")


def in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    numbers = f"B {pair.b_similarity} of 6, C {pair.c_similarity} of 384"
    return numbers, f"B {decider.b_min}, C {decider.combined_c_min}"


RULE = Rule(
    name="combined",
    decide=decide,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
    possible=possible,
    nearness=lambda pairs: pairs.b_similarity,
    refusals={
        "combined: B": Refusal("too few equal supershingles"),
        "combined: C": Refusal("too few agreeing simhash bits"),
    },
    sentences=sentences,
    in_short=in_short,
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min, "c_similarity": decider.combined_c_min},
)
