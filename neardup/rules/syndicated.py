"""Finds one article on two sites: a step of the default rule, for pages that its other steps keep apart.

Each site adds its name to the title, and menus, comments and teasers around the article, so titles, first words and
whole texts differ. The articles (`neardup.kernels.article`) must share one long stretch in one order that is most of
each article, and the pages must share a headline. Such pages are `same_content`, never duplicates.
"""

from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import Columns, Evidence, Ruling, score_and_demand, similarities
from neardup.verdict import Kind

BY = "content: syndicated"
#: Below the ranks of pairs that are decided by tapes of pages or of their main contents.
_RANK = 0


def ruling(pair: Pair, decider: Decider) -> Ruling:
    """The ruling on a pair for which `holds` is True."""
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
    # tapes leave out words that are repeated many times
    a, b, least = pair.article_tokens_a, pair.article_tokens_b, decider.length_share_min
    stuffed = (a < least * b) | (b < least * a)
    return headline & stretch & long & (stuffed == 0) & (pair.same_site == 0) & (pair.heading_veto != 1)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    """`holds` of many pairs; False at once if no pair has a stretch in common, as is usual."""
    out: np.ndarray = pairs.article_run > 0
    if out.any():
        out = out & holds(pairs, decider)
    return out


def evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    """The evidence fields of a pair that this step accepted; else empty."""
    if ruling.by != BY:
        return {}
    return {"article_share": round(ruling.score, 4), "article_tokens": pair.article_run << pair.article_level}


def sentences(evidence: Evidence) -> list[str]:
    """The sentences about a pair that this step accepted; else empty."""
    if evidence.get("by") != BY or evidence.get("article_tokens") is None:
        return []
    shown, needed = score_and_demand(float(evidence["score"]), float(evidence["demand"]))
    text = f"{shown} of the longer article is one stretch of {evidence['article_tokens']} words, or about, in both"
    return [f"{text}; threshold {needed}.", "Two sites have it under one headline.", *similarities(evidence)]
