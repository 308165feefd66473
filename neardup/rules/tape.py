"""Decides by tapes (samples of both texts that keep the order), unless titles or first words name different things.

Equal digests are decided before any rule. The default rule `verified` uses some of these steps, and demands more of
pages of one site.
"""

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import (
    Columns,
    Evidence,
    Posts,
    Refusal,
    Rule,
    Ruling,
    Step,
    decide_by,
    evidence_of,
    refusals_of,
    refused,
    score_and_demand,
    similarities,
)
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import Siblings
from neardup.verdict import Kind

#: Ranks of accepted candidates: pairs that whole texts decided come before pairs that main contents decided.
BY_TAPE, _BY_CONTENT = 2, 1


def unproved(pair: Pair) -> bool:
    """Whether a veto is in doubt, because a saturated filter cannot prove a word absent."""
    return pair.title_veto == 2 or pair.head_veto == 2


def demanded(pair: Pair, decider: Decider, doubtful: bool) -> tuple[float, str]:
    """The required tape score, and the `by` of a refusal below it. doubtful: a veto is in doubt."""
    if doubtful:
        return decider.strict_tape_min, "unproved veto"
    if min(pair.tokens_a, pair.tokens_b) < decider.short_tokens:
        return decider.short_tape_min, "short tape"
    return plain_demand(pair, decider), "tape"


def plain_demand(pair: Pair, decider: Decider) -> float:
    """The required tape score of long pages without a veto in doubt."""
    return decider.tape_min if pair.same_site else decider.two_sites_tape_min


def least_demanded(pairs: Columns, decider: Decider) -> np.ndarray:
    """The lowest tape score that may suffice for each pair: float64[pairs]."""
    least = min(decider.short_tape_min, decider.strict_tape_min)
    one, two = min(least, decider.tape_min), min(least, decider.two_sites_tape_min)
    return np.where(pairs.same_site != 0, one, two)


# ---- steps ---------------------------------------------------------------------------------------------------------


def thin(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    fewest = min(pair.tokens_a, pair.tokens_b)
    return refused("thin", fewest, decider.thin_tokens) if fewest < decider.thin_tokens else None


def _title(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    return refused("title veto", pair.tape_score, _demand(pair, decider)) if pair.title_veto == 1 else None


def _head(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    return refused("head veto", pair.tape_score, _demand(pair, decider)) if pair.head_veto == 1 else None


def _demand(pair: Pair, decider: Decider) -> float:
    return demanded(pair, decider, unproved(pair))[0]


def _tape(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    return by_tape(pair, decider, unproved(pair))


def by_tape(pair: Pair, decider: Decider, doubtful: bool) -> Ruling | None:
    """Accept a pair with the required score. Refuse one that fails only a higher demand; None for others."""
    demand, by = demanded(pair, decider, doubtful)
    if pair.tape_score >= demand:
        return Ruling(Kind.NEAR_DUPLICATE, "tape", (BY_TAPE, pair.tape_score), pair.tape_score, demand)
    if pair.tape_score >= plain_demand(pair, decider) or doubtful:
        return refused(by, pair.tape_score, demand)
    return None


def content(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    score, needed = pair.content_score, decider.content_tape_min
    if score < needed:
        return None
    if min(pair.content_tokens_a, pair.content_tokens_b) < decider.short_tokens:
        return refused("content: too short", score, needed)
    return Ruling(Kind.SAME_CONTENT, "content", (_BY_CONTENT, score), score, needed)


def unlike(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    demand = demanded(pair, decider, False)[0]
    return refused("tape", pair.tape_score, demand)


THIN = Step(
    "thin",
    thin,
    "Below `thin_tokens` (20) words only exact duplicates count.",
    {"thin": Refusal("too few words for anything but an exact duplicate")},
)
TAPE_REFUSALS = {
    "unproved veto": Refusal("names may differ (a long page's filter cannot prove it), so a closer match was demanded"),
    "short tape": Refusal("a short page, for which a closer match is demanded"),
}
CONTENT_REFUSALS = {
    "content: too short": Refusal("the text differs, and the main content is too short to judge by"),
}
UNLIKE = Step(
    "unlike",
    unlike,
    "Every other pair is two pages.",
    {"tape": Refusal("too little of the text is the same in the same order", plain=True)},
)
STEPS = (
    THIN,
    Step(
        "title",
        _title,
        "Titles that name different things tell pages apart.",
        {"title veto": Refusal("the titles name different things", veto=True)},
    ),
    Step(
        "head",
        _head,
        "First words that name different things tell pages apart.",
        {"head veto": Refusal("the beginnings name different things", veto=True)},
    ),
    Step("tape", _tape, "Tapes that agree in `tape_min` (74%) make a near-duplicate.", TAPE_REFUSALS),
    Step(
        "content",
        content,
        "Main contents that agree in `content_tape_min` (74%) are the same content.",
        CONTENT_REFUSALS,
    ),
    UNLIKE,
)


# ---- bounds, keys --------------------------------------------------------------------------------------------------


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    return possible_from(
        least_demanded(pairs, decider), (pairs.title_veto != 1) & (pairs.head_veto != 1), pairs, decider
    )


def possible_from(least: np.ndarray, named_alike: np.ndarray, pairs: Columns, decider: Decider) -> np.ndarray:
    """least: lowest tape score that may suffice, float64[pairs]; named_alike: no veto by names, bool[pairs]."""
    fewest = np.minimum(pairs.tokens_a, pairs.tokens_b)
    free = named_alike & (fewest >= decider.thin_tokens)
    alike: np.ndarray = pairs.tape_score >= least
    alike |= pairs.content_score >= decider.content_tape_min
    alike &= free
    return alike


def kept_apart(pair: Pair, ruling: Ruling, decider: Decider) -> bool:
    return ruling.kind is None and pair.tape_score >= plain_demand(pair, decider)


def posts(decider: Decider) -> Posts:
    return (
        (KeyFamily.HEAD, 1),
        (KeyFamily.WIDE, decider.supershingles_posted),
        (KeyFamily.LOGTF, decider.blocks_posted),
    )


# ---- in words ------------------------------------------------------------------------------------------------------

#: All refusals of the rule.
REFUSALS = refusals_of(STEPS)


def sentences(evidence: Evidence, decider: Decider) -> list[str]:
    return sentences_of(evidence, decider, REFUSALS)


def sentences_of(evidence: Evidence, decider: Decider, refusals: dict[str, Refusal]) -> list[str]:
    """Return the sentences about the score and the demand in the evidence.

    Args:
        evidence: fields of a verdict about a pair.
        decider: the rule with its numbers.
        refusals: descriptions of the rule's refusals, by `Ruling.by`.
    """
    by, score, demand = str(evidence.get("by", "")), evidence.get("score"), evidence.get("demand")
    if score is None or demand is None or by in ("digest", "never_merge"):
        return similarities(evidence)
    if by == "thin":
        return [f"The shorter page has {score} words; at least {demand} are needed.", *similarities(evidence)]
    shown, needed = score_and_demand(score, demand)
    if by.startswith("content"):
        return [f"{shown} of the sampled main content in the same order; threshold {needed}.", *similarities(evidence)]
    enough = score >= demand
    veto = by in refusals and refusals[by].veto
    ending = (", but a veto stands" if enough else "") if veto else f", which is {'' if enough else 'not '}enough"
    return [
        f"{shown} of the sampled text in the same order; threshold {needed}{ending}.",
        *similarities(evidence),
    ]


def in_short(pair: Pair, decider: Decider, ruling: Ruling) -> tuple[str, str]:
    if ruling.by == "thin":
        return f"words {ruling.score:.0f}", f"words {ruling.demand:.0f}"
    score, needed = score_and_demand(ruling.score, ruling.demand)
    if ruling.by.startswith("content"):
        return f"tape {pair.tape_score:.0%}, content {score}", f"content {needed}"
    return f"tape {score}", f"tape {needed}"


RULE = Rule(
    name="tape",
    decide=decide_by(STEPS),
    posts=posts,
    possible=possible,
    nearness=lambda pairs: pairs.tape_score,
    refusals=REFUSALS,
    sentences=sentences,
    in_short=in_short,
    evidence=lambda pair, ruling: evidence_of(pair, ruling, vetoes={"head": pair.head_veto}),
    drawn=lambda decider: {"tape_score": decider.tape_min},
    kept_apart=kept_apart,
    steps=STEPS,
    reads_tapes=True,
)
