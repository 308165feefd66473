"""An order-keeping sample of both texts decides, unless names of title and head say that they are about different
things. Equal digests are common to all rules and settled before. `verified` asks more of pages of one site.
"""

from dataclasses import replace

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import combined
from neardup.rules.base import (
    Columns,
    Evidence,
    Posts,
    Refusal,
    Rule,
    Ruling,
    evidence_of,
    refused,
    score_and_demand,
    similarities,
)
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.verdict import Kind

#: Order of accepted candidates: pairs decided on tapes, then by `combined`, then by main content.
BY_TAPE, _BY_COMBINED, _BY_CONTENT = 3, 2, 1


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    fewest = min(pair.tokens_a, pair.tokens_b)
    unproved = 2 in (pair.title_veto, pair.head_veto)
    demand, why = demanded(decider, fewest, unproved, crowd)
    if fewest < decider.thin_tokens:
        return refused("thin", pair.tape_score, demand)
    if pair.title_veto == 1:
        return refused("title veto", pair.tape_score, demand)
    if pair.head_veto == 1:
        return refused("head veto", pair.tape_score, demand)
    if min(pair.tape_a, pair.tape_b) < decider.tape_bytes_min:
        return _by_combined(pair, decider, fewest)
    if pair.tape_score >= demand:
        return Ruling(Kind.NEAR_DUPLICATE, "tape", (BY_TAPE, pair.tape_score), pair.tape_score, demand)
    if pair.tape_score >= decider.tape_min or unproved:
        return refused(why, pair.tape_score, demand)
    return _by_content(pair, decider, demand)


def demanded(decider: Decider, fewest: int, unproved: bool, crowd: int) -> tuple[float, str]:
    """The tape score that is demanded, and by which step. fewest: tokens of the shorter page.

    unproved: a veto would hold if a saturated filter could prove it.
    """
    if unproved:
        return decider.strict_tape_min, "unproved veto"
    if decider.crowd_min and crowd >= decider.crowd_min:
        return decider.strict_tape_min, "crowd"
    if fewest < decider.short_tokens:
        return decider.short_tape_min, "short tape"
    return decider.tape_min, "tape"


def demanded_of(pair: Pair, decider: Decider, crowd: int) -> float:
    """The same of a pair."""
    unproved = 2 in (pair.title_veto, pair.head_veto)
    return demanded(decider, min(pair.tokens_a, pair.tokens_b), unproved, crowd)[0]


def _by_combined(pair: Pair, decider: Decider, fewest: int) -> Ruling:
    ruling = combined.decide(pair, decider)
    if ruling.kind is None:
        return ruling
    bits = _bits(decider, fewest)
    if pair.c_similarity < bits:
        return refused("combined: C of a short page", pair.c_similarity, bits)
    return ruling._replace(rank=(_BY_COMBINED, float(pair.c_similarity)), demand=bits)


def _bits(decider: Decider, fewest: int) -> int:
    """Agreeing bits that are demanded where there are no tapes to speak of."""
    return max(decider.c_min, decider.combined_c_min) if fewest < decider.short_tokens else decider.combined_c_min


def _by_content(pair: Pair, decider: Decider, demand: float) -> Ruling:
    score, needed = pair.content_score, decider.content_tape_min
    if score < needed:
        return refused("tape", pair.tape_score, demand)
    if min(pair.content_tokens_a, pair.content_tokens_b) < decider.content_tokens_min:
        return refused("content: too short", score, needed)
    smaller, page = min((pair.content_tokens_a, pair.tokens_a), (pair.content_tokens_b, pair.tokens_b))
    if smaller < decider.content_share_min * page:
        return refused("content: too small a part", score, needed)
    return Ruling(Kind.SAME_CONTENT, "content", (_BY_CONTENT, score), score, needed)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    least = min(decider.tape_min, decider.short_tape_min, decider.strict_tape_min)
    return possible_from(least, (pairs.title_veto != 1) & (pairs.head_veto != 1), pairs, decider)


def possible_from(least: float | np.ndarray, named_alike: np.ndarray, pairs: Columns, decider: Decider) -> np.ndarray:
    """least: the least tape score that may be enough, of all or of each; named_alike: no veto by names, bool[pairs]."""
    fewest = np.minimum(pairs.tokens_a, pairs.tokens_b)
    free = named_alike & (fewest >= decider.thin_tokens)
    short = np.minimum(pairs.tape_a, pairs.tape_b) < decider.tape_bytes_min
    alike: np.ndarray = pairs.tape_score >= least
    alike |= pairs.content_score >= decider.content_tape_min
    alike |= short & combined.possible(pairs, decider)
    alike &= free
    return alike


def kept_apart(pair: Pair, ruling: Ruling, decider: Decider) -> bool:
    if ruling.kind is not None or min(pair.tape_a, pair.tape_b) < decider.tape_bytes_min:
        return False
    return pair.tape_score >= decider.tape_min


def posts(decider: Decider) -> Posts:
    return (
        (KeyFamily.HEAD, 1),
        (KeyFamily.WIDE, decider.supershingles_posted),
        (KeyFamily.LOGTF, decider.blocks_posted),
    )


# ---- in words ------------------------------------------------------------------------------------------------------

REFUSALS = {
    "thin": Refusal("too few words for anything but an exact duplicate"),
    "title veto": Refusal("the titles name different things", veto=True),
    "head veto": Refusal("the beginnings name different things", veto=True),
    "unproved veto": Refusal("names may differ (a long page's filter cannot prove it), so a closer match was demanded"),
    "crowd": Refusal("many siblings of this template, so a closer match was demanded"),
    "tape": Refusal("too little of the text is the same in the same order", plain=True),
    "short tape": Refusal("a short page, for which a closer match is demanded"),
    "content: too short": Refusal("the text differs, and the main content is too short to judge by"),
    "content: too small a part": Refusal("the text differs, and the main content is too small a part of the page"),
    "combined: C of a short page": Refusal("too few agreeing simhash bits for a short page"),
    **combined.RULE.refusals,
}


def held(evidence: Evidence, decider: Decider) -> tuple[float, float] | None:
    """The tape score of a pair and what was demanded of it; None where tapes were not asked."""
    by, score = str(evidence.get("by", "")), evidence.get("tape_score")
    if score is None or by in ("", "digest", "thin") or by.startswith("combined"):
        return None
    unproved = "unproved" in (evidence.get("vetoes") or {}).values()
    # Accepted with less, or by its main content: another view of one page, whose title does not count.
    if by.startswith("content") or (by == "tape" and score < decider.strict_tape_min):
        unproved = False
    fewest = min(evidence.get("tokens") or [decider.short_tokens])
    if by == "short tape":
        fewest = decider.short_tokens - 1
    crowd = decider.crowd_min if by == "crowd" else evidence.get("crowd") or 0
    return float(score), demanded(decider, fewest, unproved or by == "unproved veto", crowd)[0]


def told(evidence: Evidence, decider: Decider) -> list[str]:
    return told_of(held(evidence, decider), evidence, decider, REFUSALS)


def told_of(
    found: tuple[float, float] | None, evidence: Evidence, decider: Decider, refusals: dict[str, Refusal]
) -> list[str]:
    """found: the tape score, and what was demanded of it."""
    by, content = str(evidence.get("by", "")), evidence.get("content_score")
    out: list[str] = []
    if by.startswith("combined"):
        out.append("Too little text for a sample of it; the combined rule decides.")
        bits = _bits(decider, min(evidence.get("tokens") or [decider.short_tokens]))
        return out + combined.RULE.told(evidence, replace(decider, combined_c_min=bits))
    if found is not None:
        score, demand = found
        veto = by in refusals and refusals[by].veto
        holds = "which is enough" if score >= demand else "which is not enough"
        ending = "" if veto and score < demand else (", but a veto stands" if veto else f", {holds}")
        shown, needed = score_and_demand(score, demand)
        out.append(f"{shown} of the sampled text in the same order; threshold {needed}{ending}.")
    if content is not None and by.startswith("content"):
        shown, needed = score_and_demand(content, decider.content_tape_min)
        out.append(f"{shown} of the sampled main content in the same order; threshold {needed}.")
    return out + similarities(evidence)


def margin(evidence: Evidence, decider: Decider) -> float | None:
    found = held(evidence, decider)
    return None if found is None else found[0] - found[1]


def in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    if ruling.by.startswith("combined"):
        bits = _bits(decider, min(pair.tokens_a, pair.tokens_b))
        return combined.RULE.in_short(pair, replace(decider, combined_c_min=bits), ruling)
    score, needed = score_and_demand(ruling.score, ruling.demand)
    if ruling.by.startswith("content"):
        return f"tape {pair.tape_score:.0%}, content {score}", f"content {needed}"
    return f"tape {score}", f"tape {needed}"


RULE = Rule(
    name="tape",
    decide=decide,
    posts=posts,
    possible=possible,
    nearness=lambda pairs: pairs.tape_score,
    refusals=REFUSALS,
    told=told,
    margin=margin,
    in_short=in_short,
    evidence=evidence_of,
    drawn=lambda decider: {"tape_score": decider.tape_min},
    kept_apart=kept_apart,
    reads_tapes=True,
)
