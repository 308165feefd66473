"""Manku 2007 with the parameters of Huang 2008: at least 59 bits agree of a 64-bit simhash (C's first 64 bits)."""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules.base import Pair, Ruling
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.simhash64_agree >= decider.simhash64_min else None
    return Ruling(kind, "simhash64", (0, float(pair.simhash64_agree)))
