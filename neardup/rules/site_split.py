"""Henzinger 2006, section 5: pairs on different sites by algorithm C, pairs on one site by the combined algorithm."""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules import combined, simhash
from neardup.rules.base import Pair, Ruling


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    rule = combined.decide if pair.same_hen_site else simhash.decide
    return rule(pair, decider)
