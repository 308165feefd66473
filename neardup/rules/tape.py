"""Decides by tapes (samples of both texts that keep the order), unless titles or first words name different things.

Equal digests are decided before any rule. The default rule uses some of these steps, and demands more of pages of one
site. All thresholds are numbers of `neardup.decider.Decider`.
"""

from collections.abc import Sequence

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.base import (
    Decides,
    Evidence,
    Posts,
    Refusal,
    Rule,
    Ruling,
    Step,
    accept,
    evidence_of,
    first_of,
    refusals_of,
    refuse,
    rule_kernel,
    score_and_demand,
    similarities,
)
from neardup.rules.key_families import KeyFamily
from neardup.rules.records import (
    BY,
    NEAR_DUPLICATE,
    SAME_CONTENT,
    DeciderRow,
    PairRow,
    RulingRow,
    SiblingsRow,
)

TAPE, _SHORT_TAPE, _UNPROVED = BY.index("tape"), BY.index("short tape"), BY.index("unproved veto")
_BY_CONTENTS, _CONTENT_TOO_SHORT = BY.index("content"), BY.index("content: too short")
_THIN, _TITLE_VETO, _HEAD_VETO = BY.index("thin"), BY.index("title veto"), BY.index("head veto")
#: Ranks of accepted candidates: pairs that whole texts decided come before pairs that main contents decided.
BY_TAPE, BY_CONTENT = 2, 1
#: What the tapes of whole texts decide: nothing, a near-duplicate, or a refusal by a higher demand alone.
UNDECIDED, ALIKE, DEMANDING = 0, 1, 2


@rule_kernel
def plain_demand(pair: PairRow, decider: DeciderRow) -> float:
    """The required tape score of long pages without a veto in doubt."""
    demand: float = decider.tape_min if pair.same_site else decider.two_sites_tape_min
    return demand


@rule_kernel
def demanded(pair: PairRow, decider: DeciderRow, doubtful: bool) -> tuple[float, int]:
    """The required tape score, and the `by` of a refusal below it. doubtful: a veto is in doubt."""
    if doubtful:
        return decider.strict_tape_min, _UNPROVED
    if min(pair.tokens_a, pair.tokens_b) < decider.short_tokens:
        return decider.short_tape_min, _SHORT_TAPE
    return plain_demand(pair, decider), TAPE


@rule_kernel
def compare_texts(pair: PairRow, decider: DeciderRow, doubtful: bool) -> int:
    """What the tapes of the whole texts decide: ALIKE, DEMANDING or UNDECIDED. doubtful: a veto is in doubt.

    The main contents of a pair that fails only a higher demand are not compared.
    """
    if pair.tape_score >= demanded(pair, decider, doubtful)[0]:
        return ALIKE
    return DEMANDING if doubtful or pair.tape_score >= plain_demand(pair, decider) else UNDECIDED


@rule_kernel
def contents_agree(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether the main contents are long enough and alike."""
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    return bool(pair.content_score >= decider.content_tape_min and fewest >= decider.short_tokens)


@rule_kernel
def _is_doubtful(pair: PairRow) -> bool:
    """Whether a veto is in doubt, because a saturated filter cannot prove a word absent."""
    return bool(pair.title_veto == 2 or pair.head_veto == 2)


# ---- steps ---------------------------------------------------------------------------------------------------------


@rule_kernel
def thin(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    fewest = min(pair.tokens_a, pair.tokens_b)
    return fewest < decider.thin_tokens and refuse(_THIN, fewest, decider.thin_tokens, out)


@rule_kernel
def _title(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return pair.title_veto == 1 and _veto(_TITLE_VETO, pair, decider, out)


@rule_kernel
def _head(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return pair.head_veto == 1 and _veto(_HEAD_VETO, pair, decider, out)


@rule_kernel
def _veto(by: int, pair: PairRow, decider: DeciderRow, out: RulingRow) -> bool:
    return refuse(by, pair.tape_score, demanded(pair, decider, _is_doubtful(pair))[0], out)


@rule_kernel
def _tape(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return by_tape(pair, decider, _is_doubtful(pair), out)


@rule_kernel
def by_tape(pair: PairRow, decider: DeciderRow, doubtful: bool, out: RulingRow) -> bool:
    """Accepts a pair with the required score; refuses one that fails only a higher demand."""
    demand, by = demanded(pair, decider, doubtful)
    texts = compare_texts(pair, decider, doubtful)
    if texts == ALIKE:
        return accept(NEAR_DUPLICATE, TAPE, BY_TAPE, pair.tape_score, demand, out)
    return texts == DEMANDING and refuse(by, pair.tape_score, demand, out)


@rule_kernel
def _content(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return by_content(pair, decider, out)


@rule_kernel
def by_content(pair: PairRow, decider: DeciderRow, out: RulingRow) -> bool:
    """Accepts a pair with main contents that agree; refuses one whose contents are too short."""
    score, demand = pair.content_score, decider.content_tape_min
    if contents_agree(pair, decider):
        return accept(SAME_CONTENT, _BY_CONTENTS, BY_CONTENT, score, demand, out)
    return score >= demand and refuse(_CONTENT_TOO_SHORT, score, demand, out)


@rule_kernel
def unlike(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    return refuse(TAPE, pair.tape_score, demanded(pair, decider, False)[0], out)


def by_steps(steps: Sequence[Step]) -> Decides:
    """The kernel of a rule that is a list of steps, on tapes."""
    first = first_of(steps)

    @rule_kernel
    def _decides(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
        out.nearness, out.kept_apart = pair.tape_score, 1
        return first(pair, siblings, decider, out)

    return _decides


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
        _content,
        "Main contents that agree in `content_tape_min` (74%) are the same content.",
        CONTENT_REFUSALS,
    ),
    UNLIKE,
)


def posts(decider: Decider) -> Posts:
    return (
        (KeyFamily.HEAD, 1),
        (KeyFamily.CONTENT_START, decider.content_starts_posted),
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
    if ruling.by == "canonical":
        return f"tape {pair.tape_score:.0%}, contained {score}", f"contained {needed}"
    if ruling.by.startswith("content"):
        return f"tape {pair.tape_score:.0%}, content {score}", f"content {needed}"
    return f"tape {score}", f"tape {needed}"


RULE = Rule(
    name="tape",
    decides=by_steps(STEPS),
    posts=posts,
    refusals=REFUSALS,
    sentences=sentences,
    in_short=in_short,
    evidence=lambda pair, ruling: evidence_of(pair, ruling, vetoes={"head": pair.head_veto}),
    drawn=lambda decider: {"tape_score": decider.tape_min},
    steps=STEPS,
    reads_tapes=True,
)
