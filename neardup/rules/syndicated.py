"""Finds one article on two sites or hosts: a step of the default rule, for pages that its other steps keep apart.

Each site adds its name to the title, and menus, comments and teasers around the article, so titles, first words and
whole texts differ. The articles (`neardup.kernels.article`) must share one long stretch in one order that is most of
each article, and the pages must share a headline. Such pages are `same_content`, never duplicates.
"""

from typing import Any

from neardup.pairs.pair import Pair
from neardup.rules.base import Evidence, Ruling, accept, rule_kernel, score_and_demand, similarities
from neardup.rules.records import BY, SAME_CONTENT, DeciderRow, PairRow, RulingRow

SYNDICATED = BY.index("content: syndicated")
#: Version of the rules since which two hosts of one site are compared, too.
_HOSTS_SINCE = 2
#: Below the ranks of pairs that are decided by tapes of pages or of their main contents.
_RANK = 0


@rule_kernel
def accept_article(pair: PairRow, decider: DeciderRow, out: RulingRow) -> bool:
    """Accepts a pair for which `holds` is True -> True."""
    share = pair.article_run / max(pair.article_a, pair.article_b)
    return accept(SAME_CONTENT, SYNDICATED, _RANK, share, decider.syndicated_share_min, out)


@rule_kernel
def holds(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether two sites, or two hosts of one site, have one article under one headline.

    Departments and blogs of one registered domain are owners as sites are: each has a menu and a name of its own.
    """
    if pair.article_run == 0 or decider.syndicated_tokens_min == 0 or pair.heading_veto == 1:
        return False
    if pair.same_site and decider.rule_version < _HOSTS_SINCE:
        return False
    if pair.common_names < decider.syndicated_words_min or 2 * pair.common_names < pair.fewest_names:
        return False
    run, longest = pair.article_run, max(pair.article_a, pair.article_b)
    if run < decider.syndicated_share_min * longest:
        return False
    if run * float(1 << int(pair.article_level)) < decider.syndicated_tokens_min:
        return False
    # tapes leave out words that are repeated many times
    a, b = pair.article_tokens_a, pair.article_tokens_b
    return bool(min(a, b) >= decider.length_share_min * max(a, b))


def evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    """The evidence fields of a pair that this step accepted; else empty."""
    if ruling.by != BY[SYNDICATED]:
        return {}
    return {"article_share": round(ruling.score, 4), "article_tokens": pair.article_run << pair.article_level}


def sentences(evidence: Evidence) -> list[str]:
    """The sentences about a pair that this step accepted; else empty."""
    if evidence.get("by") != BY[SYNDICATED] or evidence.get("article_tokens") is None:
        return []
    shown, needed = score_and_demand(float(evidence["score"]), float(evidence["demand"]))
    text = f"{shown} of the longer article is one stretch of {evidence['article_tokens']} words, or about, in both"
    return [f"{text}; threshold {needed}.", "Two sites or hosts have it under one headline.", *similarities(evidence)]
