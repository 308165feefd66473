"""The rules of Henzinger 2006 (`shingling`, `simhash`, `combined`, `site-split`) and of Manku 2007 (`simhash64`).

Algorithm B is Broder's (supershingles), algorithm C is Charikar's (simhash).
"""

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import (
    ALL,
    Evidence,
    Refusal,
    Rule,
    Ruling,
    accept,
    evidence_of,
    refuse,
    rule_kernel,
    similarities,
)
from neardup.rules.key_families import KeyFamily
from neardup.rules.records import BY, NEAR_DUPLICATE, DeciderRow, PairRow, RulingRow, SiblingsRow

_SHINGLING, _SIMHASH, _SIMHASH64 = BY.index("shingling"), BY.index("simhash"), BY.index("simhash64")
_COMBINED, _COMBINED_B, _COMBINED_C = BY.index("combined"), BY.index("combined: B"), BY.index("combined: C")


@rule_kernel
def _compare(by: int, score: float, demand: float, out: RulingRow) -> bool:
    """Decides by one number -> True. It also orders rejected candidates."""
    out.nearness = score
    return accept(NEAR_DUPLICATE, by, 0, score, demand, out) if score >= demand else refuse(by, score, demand, out)


# ---- shingling -------------------------------------------------------------------------------------------------------
# Henzinger 2006, algorithm B: at least 2 of 6 supershingles are equal.


@rule_kernel
def _shingling(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return _compare(_SHINGLING, pair.b_similarity, decider.b_min, out)


SHINGLING = Rule(
    name="shingling",
    decides=_shingling,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
    refusals={"shingling": Refusal("too few equal supershingles", plain=True)},
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.b_min} supershingles"),
    in_short=lambda pair, decider, ruling: (f"B {pair.b_similarity} of 6", f"B {decider.b_min}"),
    evidence=evidence_of,
    drawn=lambda decider: {"b_similarity": decider.b_min},
)


# ---- simhash ---------------------------------------------------------------------------------------------------------
# Henzinger 2006, algorithm C: at least 372 of 384 bits agree. Candidates share a block of 32 bits.


@rule_kernel
def _simhash(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return _compare(_SIMHASH, pair.c_similarity, decider.c_min, out)


SIMHASH = Rule(
    name="simhash",
    decides=_simhash,
    posts=lambda decider: ((KeyFamily.BLOCK, ALL),),
    refusals={"simhash": Refusal("too few agreeing simhash bits", plain=True)},
    sentences=lambda evidence, decider: similarities(evidence, f"{decider.c_min} bits"),
    in_short=lambda pair, decider, ruling: (f"C {pair.c_similarity} of 384", f"C {decider.c_min}"),
    evidence=evidence_of,
    drawn=lambda decider: {"c_similarity": decider.c_min},
)


# ---- combined --------------------------------------------------------------------------------------------------------
# Henzinger 2006, section 3.5: B-similar pairs, filtered by C-similarity of at least 355.


@rule_kernel
def _combined(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    """Score and demand are those of the algorithm that refused the pair, else of C."""
    out.nearness = pair.b_similarity
    if pair.b_similarity < decider.b_min:
        return refuse(_COMBINED_B, pair.b_similarity, decider.b_min, out)
    if pair.c_similarity < decider.combined_c_min:
        return refuse(_COMBINED_C, pair.c_similarity, decider.combined_c_min, out)
    return accept(NEAR_DUPLICATE, _COMBINED, 0, pair.c_similarity, decider.combined_c_min, out)


def _sentences_combined(evidence: Evidence, decider: Decider) -> list[str]:
    return similarities(evidence, f"{decider.b_min} and {decider.combined_c_min}")


def _in_short_combined(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    numbers = f"B {pair.b_similarity} of 6, C {pair.c_similarity} of 384"
    return numbers, f"B {decider.b_min}, C {decider.combined_c_min}"


COMBINED = Rule(
    name="combined",
    decides=_combined,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL),),
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


@rule_kernel
def _site_split(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if pair.same_hen_site:
        return _combined(pair, siblings, decider, out)
    return _simhash(pair, siblings, decider, out)


def _sentences_site_split(evidence: Evidence, decider: Decider) -> list[str]:
    rule = _site_split_of_evidence(evidence)
    return rule.sentences(evidence, decider) if rule else []


def _in_short_site_split(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    return _site_split_of_pair(pair).in_short(pair, decider, ruling)


SITE_SPLIT = Rule(
    name="site-split",
    decides=_site_split,
    posts=lambda decider: ((KeyFamily.SUPERSHINGLE, ALL), (KeyFamily.BLOCK, ALL)),
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


@rule_kernel
def _simhash64(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return _compare(_SIMHASH64, pair.simhash64_agree, decider.simhash64_min, out)


SIMHASH64 = Rule(
    name="simhash64",
    decides=_simhash64,
    posts=lambda decider: ((KeyFamily.MANKU, ALL),),
    refusals={"simhash64": Refusal("too few agreeing bits of 64", plain=True)},
    sentences=_sentences_simhash64,
    in_short=lambda pair, decider, ruling: (f"{pair.simhash64_agree} of 64 bits", f"{decider.simhash64_min}"),
    evidence=lambda pair, ruling: evidence_of(pair, ruling, {"simhash64_agree": pair.simhash64_agree}),
)
