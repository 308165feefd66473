"""Henzinger 2006, section 3.5: pairs on different sites by algorithm C, pairs on one site by the combined algorithm."""

from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import combined, simhash
from neardup.rules.base import ALL, Columns, Evidence, Rule, Ruling, evidence_of
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings


def _of_pair(pair: Pair) -> Rule:
    return combined.RULE if pair.same_hen_site else simhash.RULE


def _of_evidence(evidence: Evidence) -> Rule | None:
    """The rule of the deciding step; evidence does not contain the sites in Henzinger's sense."""
    by = str(evidence.get("by", ""))
    if by.startswith("combined"):
        return combined.RULE
    return simhash.RULE if by == "simhash" else None


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    return _of_pair(pair).decide(pair, decider)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    return np.where(pairs.same_hen_site != 0, combined.possible(pairs, decider), simhash.possible(pairs, decider))


def nearness(pairs: Any) -> Any:
    """Nearness of one pair or of many. Arithmetic, because it applies to both, and keeps integers."""
    return pairs.same_hen_site * pairs.b_similarity + (1 - pairs.same_hen_site) * pairs.c_similarity


def _sentences(evidence: Evidence, decider: Decider) -> list[str]:
    rule = _of_evidence(evidence)
    return rule.sentences(evidence, decider) if rule else []


def _in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return _of_pair(pair).in_short(pair, decider, ruling)


RULE = Rule(
    name="site-split",
    decide=decide,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL), (KeyFamily.BLOCK, ALL)),
    possible=possible,
    nearness=nearness,
    refusals={**combined.RULE.refusals, **simhash.RULE.refusals},
    sentences=_sentences,
    in_short=_in_short,
    evidence=evidence_of,
)
