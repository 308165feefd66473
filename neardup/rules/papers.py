"""The rules of Henzinger 2006 (`shingling`, `simhash`, `combined`, `site-split`) and of Manku 2007 (`simhash64`).

Algorithm B is Broder's (supershingles), algorithm C is Charikar's (simhash).
"""

from operator import attrgetter
from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import ALL, Columns, Evidence, Refusal, Rule, Ruling, evidence_of, refused, similarities
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind


def _rule_of_one_number(name: str, number: str, needed: str, family: KeyFamily, refusal: str, **texts: Any) -> Rule:
    """Return a rule that compares one number of a pair with one number of the decider.

    Args:
        name: name of the rule.
        number: field of `Pair` with the number.
        needed: field of `Decider` with the threshold.
        family: family of the keys that a page posts.
        refusal: description of the refusal of a pair below the threshold.
        texts: texts for users, as fields of `Rule`.
    """
    score, demand = attrgetter(number), attrgetter(needed)

    def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
        kind = Kind.NEAR_DUPLICATE if score(pair) >= demand(decider) else None
        return Ruling(kind, name, (0, float(score(pair))), score(pair), demand(decider))

    return Rule(
        name=name,
        decide=decide,
        posts=lambda decider: ((family, ALL),),
        possible=lambda pairs, decider: score(pairs) >= demand(decider),
        nearness=score,
        refusals={name: Refusal(refusal, plain=True)},
        **texts,
    )


# ---- shingling -------------------------------------------------------------------------------------------------------
# Henzinger 2006, algorithm B: at least 2 of 6 supershingles are equal.

SHINGLING = _rule_of_one_number(
    "shingling",
    number="b_similarity",
    needed="b_min",
    family=KeyFamily.SUPERSHINGLE,
    refusal="too few equal supershingles",
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.b_min} supershingles"),
    in_short=lambda pair, decider, ruling: (f"B {pair.b_similarity} of 6", f"B {decider.b_min}"),
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min},
)


# ---- simhash ---------------------------------------------------------------------------------------------------------
# Henzinger 2006, algorithm C: at least 372 of 384 bits agree. Candidates share a block of 32 bits.

SIMHASH = _rule_of_one_number(
    "simhash",
    number="c_similarity",
    needed="c_min",
    family=KeyFamily.BLOCK,
    refusal="too few agreeing simhash bits",
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.c_min} bits"),
    in_short=lambda pair, decider, ruling: (f"C {pair.c_similarity} of 384", f"C {decider.c_min}"),
    evidence=evidence_of,
    drawn=lambda decider: {"c_similarity": decider.c_min},
)


# ---- combined --------------------------------------------------------------------------------------------------------
# Henzinger 2006, section 3.5: B-similar pairs, filtered by C-similarity of at least 355.


def _decide_combined(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    """The ruling. Its score and demand are those of the algorithm that refused the pair, else of C."""
    if pair.b_similarity < decider.b_min:
        return refused("combined: B", pair.b_similarity, decider.b_min)
    if pair.c_similarity < decider.combined_c_min:
        return refused("combined: C", pair.c_similarity, decider.combined_c_min)
    rank = (0, float(pair.c_similarity))
    return Ruling(Kind.NEAR_DUPLICATE, "combined", rank, pair.c_similarity, decider.combined_c_min)


def _possible_combined(pairs: Columns, decider: Decider) -> np.ndarray:
    alike: np.ndarray = (pairs.b_similarity >= decider.b_min) & (pairs.c_similarity >= decider.combined_c_min)
    return alike


def _sentences_combined(evidence: Evidence, decider: Decider) -> list[str]:
    return similarities(evidence, f"{decider.b_min} and {decider.combined_c_min}")


def _in_short_combined(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    numbers = f"B {pair.b_similarity} of 6, C {pair.c_similarity} of 384"
    return numbers, f"B {decider.b_min}, C {decider.combined_c_min}"


COMBINED = Rule(
    name="combined",
    decide=_decide_combined,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
    possible=_possible_combined,
    nearness=lambda pairs: pairs.b_similarity,
    refusals={
        "combined: B": Refusal("too few equal supershingles"),
        "combined: C": Refusal("too few agreeing simhash bits"),
    },
    sentences=_sentences_combined,
    in_short=_in_short_combined,
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min, "c_similarity": decider.combined_c_min},
)


# ---- site-split ------------------------------------------------------------------------------------------------------
# Henzinger 2006, section 3.5: pairs on different sites by algorithm C, pairs on one site by the combined algorithm.


def _site_split_of_pair(pair: Pair) -> Rule:
    return COMBINED if pair.same_hen_site else SIMHASH


def _site_split_of_evidence(evidence: Evidence) -> Rule | None:
    """The rule of the deciding step; evidence does not contain the sites in Henzinger's sense."""
    by = str(evidence.get("by", ""))
    if by.startswith("combined"):
        return COMBINED
    return SIMHASH if by == "simhash" else None


def _decide_site_split(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    return _site_split_of_pair(pair).decide(pair, decider)


def _possible_site_split(pairs: Columns, decider: Decider) -> np.ndarray:
    return np.where(pairs.same_hen_site != 0, _possible_combined(pairs, decider), SIMHASH.possible(pairs, decider))


def _nearness_site_split(pairs: Any) -> Any:
    """Nearness of one pair or of many. Arithmetic, because it applies to both, and keeps integers."""
    return pairs.same_hen_site * pairs.b_similarity + (1 - pairs.same_hen_site) * pairs.c_similarity


def _sentences_site_split(evidence: Evidence, decider: Decider) -> list[str]:
    rule = _site_split_of_evidence(evidence)
    return rule.sentences(evidence, decider) if rule else []


def _in_short_site_split(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return _site_split_of_pair(pair).in_short(pair, decider, ruling)


SITE_SPLIT = Rule(
    name="site-split",
    decide=_decide_site_split,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL), (KeyFamily.BLOCK, ALL)),
    possible=_possible_site_split,
    nearness=_nearness_site_split,
    refusals={**COMBINED.refusals, **SIMHASH.refusals},
    sentences=_sentences_site_split,
    in_short=_in_short_site_split,
    evidence=evidence_of,
)


# ---- simhash64 -------------------------------------------------------------------------------------------------------
# Manku 2007 with the parameters of Huang 2008: at least 59 bits agree of a 64-bit simhash (C's first 64 bits).


def _sentences_simhash64(evidence: Evidence, decider: Decider) -> list[str]:
    agree = evidence.get("simhash64_agree")
    own = [] if agree is None else [f"{agree} of 64 simhash bits agree; at least {decider.simhash64_min} are needed."]
    return [*own, *similarities(evidence)]


SIMHASH64 = _rule_of_one_number(
    "simhash64",
    number="simhash64_agree",
    needed="simhash64_min",
    family=KeyFamily.MANKU,
    refusal="too few agreeing bits of 64",
    sentences=_sentences_simhash64,
    in_short=lambda pair, decider, ruling: (f"{pair.simhash64_agree} of 64 bits", f"{decider.simhash64_min}"),
    evidence=lambda pair, ruling: evidence_of(pair, ruling, {"simhash64_agree": pair.simhash64_agree}),
)
