"""Henzinger 2006, algorithm C: at least 372 of 384 bits agree. That they share a block is how they were found."""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules.base import Pair, Ruling
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.c_similarity >= decider.c_min else None
    return Ruling(kind, "simhash", (0, float(pair.c_similarity)))
