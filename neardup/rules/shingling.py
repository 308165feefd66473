"""Henzinger 2006, algorithm B: at least 2 of 6 supershingles are equal."""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules.base import Pair, Ruling
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.b_similarity >= decider.b_min else None
    return Ruling(kind, "shingling", (0, float(pair.b_similarity)))
