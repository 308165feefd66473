"""Henzinger 2006, section 5: B-similar pairs, filtered by C-similarity of at least 355."""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules.base import Pair, Ruling
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    if pair.b_similarity < decider.b_min:
        return Ruling(None, "combined: B")
    if pair.c_similarity < decider.combined_c_min:
        return Ruling(None, "combined: C")
    return Ruling(Kind.NEAR_DUPLICATE, "combined", (0, float(pair.c_similarity)))
