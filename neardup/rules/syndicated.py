"""One article on two sites, which the default rule asks for last: of pages that it would tell apart otherwise.

Each site puts its name into the title, and menus, comments and teasers about the article: so titles, beginnings and
texts as wholes differ. Their articles (`neardup.kernels.article`) must have one long stretch in common and in one
order, most of each; and the pages must go by one headline. They are never duplicates, but the same content.
"""

from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import Columns, Evidence, Ruling, score_and_demand, similarities
from neardup.verdict import Kind

BY = "content: syndicated"
#: Behind all pairs that are decided on tapes of pages or of their main contents.
_RANK = 0
#: Steps that refuse a pair for what may be the sites' own.
_SURROUNDINGS = frozenset(
    (
        "title veto",
        "head veto",
        "unproved veto",
        "tape",
        "short tape",
        "lengths",
        "content: too short",
        "content: too small a part",
    )
)


def ruled(pair: Pair, decider: Decider, ruling: Ruling) -> Ruling:
    """What becomes of a ruling: same content, where it refuses a pair for its surroundings; else the ruling itself."""
    if ruling.kind is not None or not pair.article_run or ruling.by not in _SURROUNDINGS or not holds(pair, decider):
        return ruling
    share = pair.article_run / max(pair.article_a, pair.article_b)
    return Ruling(Kind.SAME_CONTENT, BY, (_RANK, share), share, decider.syndicated_share_min)


def holds(pair: Any, decider: Decider) -> Any:
    """Whether two sites have one article under one headline. pair: a Pair, or many as `Columns`."""
    if not decider.syndicated_tokens_min:
        return pair.article_run < 0
    run, a, b = pair.article_run, pair.article_a, pair.article_b
    share = decider.syndicated_share_min
    headline = (pair.common_names >= decider.syndicated_words_min) & (2 * pair.common_names >= pair.fewest_names)
    stretch = (run >= share * a) & (run >= share * b)
    long = run * 2.0**pair.article_level >= decider.syndicated_tokens_min
    # tapes leave out words that are said again and again
    a, b, least = pair.article_tokens_a, pair.article_tokens_b, decider.length_share_min
    stuffed = (a < least * b) | (b < least * a)
    return headline & stretch & long & (stuffed == 0) & (pair.same_site == 0) & (pair.heading_veto != 1)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    """Of many pairs. Most have no stretch in common, and more is not asked of them."""
    out: np.ndarray = pairs.article_run > 0
    if out.any():
        out = out & holds(pairs, decider)
    return out


def evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    """What a verdict says besides, of a pair that was ruled on here; else nothing."""
    if ruling.by != BY:
        return {}
    return {"article_share": round(ruling.score, 4), "article_tokens": pair.article_run << pair.article_level}


def told(evidence: Evidence, decider: Decider) -> list[str]:
    """Of a pair that was ruled on here; else empty."""
    share = evidence.get("article_share")
    if evidence.get("by") != BY or share is None:
        return []
    shown, needed = score_and_demand(float(share), decider.syndicated_share_min)
    text = f"{shown} of the longer article is one stretch of {evidence['article_tokens']} words, or about, in both"
    return [f"{text}; threshold {needed}.", "Two sites have it under one headline.", *similarities(evidence)]
