"""What rules consist of: records of rulings, steps and their composition, and texts for users."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from neardup.decider import Decider
from neardup.kernels import lean_kernel
from neardup.pairs.pair import Pair
from neardup.rules.key_families import KeyFamily
from neardup.rules.records import BY, COUNTED, KINDS, NO_KIND, DeciderRow, PairRow, RulingRow, SiblingsRow
from neardup.verdict import Kind

#: Families of the keys that a page posts, in their order, with the number of keys of each.
Posts = tuple[tuple[KeyFamily, int], ...]
#: The `evidence` of a verdict, or its `nearest`.
Evidence = Mapping[str, Any]
#: More keys than any family has.
ALL = 64

_Function = TypeVar("_Function", bound=Callable[..., Any])


def rule_kernel(function: _Function) -> _Function:
    """Compiles a function on records; see `neardup.kernels`. Its source also runs uncompiled."""
    compiled: _Function = lean_kernel(function)
    return compiled


class Ruling(NamedTuple):
    """What a rule decides about a pair.

    kind: near_duplicate, same_content or None (not a duplicate).
    by: the step that accepted the pair, or the name under which a step refused it (`Rule.refusals`).
    rank: orders accepted candidates, greatest first; ties go to the smallest page id.
    score: the number that the step compared with its threshold, in the unit of the step.
    demand: threshold of the step. A veto refuses a pair at any score, and its score and demand are those of the tapes.
        So a refused pair may have a score above the demand.
    plain_demand: the tape score that the decider demands of long pages without a veto in doubt.
    kept_apart: whether the texts of a refused pair are similar enough for a duplicate, so that only a veto or a higher
        demand kept the pages apart. False for rules that read no tapes.
    added: share that the older page adds, in a ruling by `adds` or, of rule version 1, by `added`.
    """

    kind: Kind | None
    by: str
    rank: tuple[int, float] = (0, 0.0)
    score: float = 0.0
    demand: float = 0.0
    plain_demand: float = 0.0
    kept_apart: bool = False
    added: float = 0.0


def ruling_of(record: np.void) -> Ruling:
    """The ruling of an element of RULING[pairs]."""
    kind, by, rank, whole, kept_apart, rank_score, score, demand, plain_demand, _, added = record.item()
    if whole:
        score, demand = int(score), int(demand)
    return Ruling(KINDS[kind], BY[by], (rank, rank_score), score, demand, plain_demand, bool(kept_apart), added)


class Refusal(NamedTuple):
    """Describes a refusal for users.

    words: the reason, as a phrase.
    veto: whether the step refuses a pair at any score.
    plain: whether the step also accepts pairs, by comparing the same number.
    """

    words: str
    veto: bool = False
    plain: bool = False


# ---- rulings ---------------------------------------------------------------------------------------------------------

_IS_COUNTED = np.array([name in COUNTED for name in BY], np.uint8)


@rule_kernel
def accept(kind: int, by: int, rank: int, score: float, demand: float, out: RulingRow) -> bool:
    """Accepts a pair -> True. kind: one of `records.KINDS`; by: position in `records.BY`; rank: orders steps."""
    refuse(by, score, demand, out)
    out.kind, out.rank, out.rank_score = kind, rank, score
    return True


@rule_kernel
def refuse(by: int, score: float, demand: float, out: RulingRow) -> bool:
    """Refuses a pair -> True. by: position in `records.BY`."""
    out.kind, out.by, out.rank, out.rank_score = NO_KIND, by, 0, 0.0
    out.score, out.demand, out.whole, out.added = score, demand, _IS_COUNTED[by], 0.0
    return True


#: Function of (pair, siblings, decider, out): writes the ruling to `out` and returns True, or returns False.
Decides = Callable[[PairRow, SiblingsRow, DeciderRow, RulingRow], bool]


@dataclass(frozen=True)
class Step:
    """One step of a rule that is a list of steps: the first step that returns True has decided.

    decides: kernel that writes a ruling and returns True, or returns False to pass the pair to the next step. It calls
        no other step, and changes nothing else.
    words: sentence that describes the step to users.
    refusals: descriptions of the step's refusals, by `Ruling.by`.
    """

    name: str
    decides: Decides
    words: str
    refusals: Mapping[str, Refusal]


def first_of(steps: Sequence[Step]) -> Decides:
    """Composes steps into one kernel. The last step must decide every pair."""
    decides = steps[-1].decides
    for position in reversed(range(len(steps) - 1)):
        decides = _or_else(steps[position].decides, 1 << position, decides)
    return decides


def _or_else(step: Decides, bit: int, rest: Decides) -> Decides:
    """The step, unless `left_out` has its bit, or else the rest."""

    @rule_kernel
    def _decides(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
        if not decider.left_out & bit and step(pair, siblings, decider, out):
            return True
        return rest(pair, siblings, decider, out)

    return _decides


@dataclass(frozen=True)
class Rule:
    """One rule, defined in its own file; `neardup.rules` has all of them by name.

    decides: kernel that writes the ruling on a pair to `out`, and `nearness`: the score which orders rejected
        candidates. A rule whose vetoes keep similar texts apart sets `kept_apart` to 1; it is 0 before.
    posts: function that returns the keys which a page posts and probes. A rule with other keys needs a new generation.

    Texts for users:
    refusals: descriptions of rulings without a kind, by `Ruling.by`.
    sentences: function that describes the rule's own numbers in the evidence.
    in_short: function that returns the numbers of a pair, and their thresholds, as two short texts.
    evidence: function that returns the fields of a verdict about a pair.
    drawn: function that returns thresholds by evidence field, for charts.

    steps: steps of a rule that is a list of steps, else empty.
    left_out: positions of steps that are left out, as bits, to measure the effect of a step.
    reads_tapes: whether thin pages and pages of very different lengths are excluded from the candidates.
    counts_siblings: whether the index keeps rows of names.
    tells_equal_pages: whether pages of one site with equal words are two pages if their titles, or the signs at the
        ends of their URLs, differ. `operator*` and `operator+` are.
    """

    name: str
    decides: Callable[..., bool]
    posts: Callable[[Decider], Posts]
    refusals: Mapping[str, Refusal]
    sentences: Callable[[Evidence, Decider], list[str]]
    in_short: Callable[[Pair, Decider, Ruling], tuple[str, str]]
    evidence: Callable[[Pair, Ruling], dict[str, Any]]
    drawn: Callable[[Decider], Mapping[str, float]] = lambda decider: {}
    steps: tuple[Step, ...] = ()
    left_out: int = 0
    reads_tapes: bool = False
    counts_siblings: bool = False
    tells_equal_pages: bool = False

    def without(self, *names: str) -> Self:
        """The rule without some of its steps, to measure their effect. The last step stays."""
        bits = sum(1 << position for position, step in enumerate(self.steps) if step.name in names)
        return replace(self, left_out=self.left_out | bits)


def refusals_of(steps: Sequence[Step]) -> dict[str, Refusal]:
    return {by: refusal for step in steps for by, refusal in step.refusals.items()}


def evidence_of(
    pair: Pair, ruling: Ruling, more: Mapping[str, Any] | None = None, vetoes: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The evidence fields that all rules have. more, vetoes: further fields and vetoes of one rule."""
    out: dict[str, Any] = {
        "by": ruling.by,
        "score": _rounded(ruling.score, ruling.demand),
        "demand": ruling.demand,
        "b_similarity": pair.b_similarity,
        "c_similarity": pair.c_similarity,
        "tape_score": round(pair.tape_score, 4),
        "content_score": round(pair.content_score, 4),
        "same_site": pair.same_site,
        "tokens": [pair.tokens_a, pair.tokens_b],
        **(more or {}),
    }
    names = {"title": pair.title_veto, **(vetoes or {})}
    held = {name: "holds" if veto == 1 else "unproved" for name, veto in names.items() if veto}
    return out | {"vetoes": held} if held else out


def _rounded(score: float, demand: float) -> float:
    """The score with 4 decimals, on the same side of the demand."""
    near = round(score, 4)
    return near if (near >= demand) == (score >= demand) else math.floor(score * 10_000) / 10_000


def margin(evidence: Evidence) -> float | None:
    """How far the score is above the demand, as a share of the demand; negative below it. None for exact duplicates.

    Steps have different units (shares, bits, supershingles), so only shares of the demand can be ordered together.
    """
    score, demand = evidence.get("score"), evidence.get("demand")
    if not isinstance(score, int | float) or not isinstance(demand, int | float):
        return None
    return (score - demand) / demand if demand else float(score)


def score_and_demand(score: float, demand: float) -> tuple[str, str]:
    """Both as percentages, with as many decimals as show which is greater."""
    for decimals in (0, 1, 2, 3):
        texts = f"{score:.{decimals}%}", f"{demand:.{decimals}%}"
        if score == demand or texts[0] != texts[1]:
            break
    return texts


def similarities(evidence: Evidence, needed: str = "") -> list[str]:
    """Return the sentence about algorithms B and C.

    Args:
        evidence: fields of a verdict about a pair.
        needed: thresholds of the two algorithms as text; empty if the rule has none.
    """
    b, c = evidence.get("b_similarity"), evidence.get("c_similarity")
    if b is None or c is None or evidence.get("by") == "digest":
        return []
    numbers = f"{int(b)} of 6 supershingles are equal and {int(c)} of 384 simhash bits agree"
    return [f"{numbers}; at least {needed} are needed." if needed else f"{numbers}."]
