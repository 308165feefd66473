"""Manku 2007 with the parameters of Huang 2008: at least 59 bits agree of a 64-bit simhash (C's first 64 bits)."""

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Columns, Evidence, Refusal, Rule, Ruling, evidence_of, similarities
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    kind = Kind.NEAR_DUPLICATE if pair.simhash64_agree >= decider.simhash64_min else None
    return Ruling(kind, "simhash64", (0, float(pair.simhash64_agree)), pair.simhash64_agree, decider.simhash64_min)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    return pairs.simhash64_agree >= decider.simhash64_min


def _sentences(evidence: Evidence, decider: Decider) -> list[str]:
    agree = evidence.get("simhash64_agree")
    own = [] if agree is None else [f"{agree} of 64 simhash bits agree; at least {decider.simhash64_min} are needed."]
    return [*own, *similarities(evidence)]


RULE = Rule(
    name="simhash64",
    decide=decide,
    posts=lambda decider: ((KeyFamily.MANKU, ALL),),
    possible=possible,
    nearness=lambda pairs: pairs.simhash64_agree,
    refusals={"simhash64": Refusal("too few agreeing bits of 64", plain=True)},
    sentences=_sentences,
    in_short=lambda pair, decider, ruling: (f"{pair.simhash64_agree} of 64 bits", f"{decider.simhash64_min}"),
    evidence=lambda pair, ruling: evidence_of(pair, ruling, {"simhash64_agree": pair.simhash64_agree}),
)
