"""The interface of a rule, and the ruling that it returns for a pair."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.sketch.header import Header
from neardup.verdict import Kind

#: Families of the keys that a page posts, in their order, with the number of keys of each.
Posts = tuple[tuple[KeyFamily, int], ...]
#: The `evidence` of a verdict, or its `nearest`.
Evidence = Mapping[str, Any]
#: More keys than any family has.
ALL = 64


class Ruling(NamedTuple):
    """What a rule decides about a pair.

    kind: near_duplicate, same_content or None (not a duplicate).
    by: the step that accepted the pair, or the name under which a step refused it (`Rule.refusals`).
    rank: orders accepted candidates, greatest first; ties go to the smallest page id.
    score: the number that the step compared with its threshold, in the unit of the step.
    demand: threshold of the step. A veto refuses a pair at any score, and its score and demand are those of the tapes.
        So a refused pair may have a score above the demand.
    """

    kind: Kind | None
    by: str
    rank: tuple[int, float] = (0, 0.0)
    score: float = 0.0
    demand: float = 0.0


class Refusal(NamedTuple):
    """Describes a refusal for users.

    words: the reason, as a phrase.
    veto: whether the step refuses a pair at any score.
    plain: whether the step also accepts pairs, by comparing the same number.
    """

    words: str
    veto: bool = False
    plain: bool = False


class Columns:
    """The numbers of many pairs: an attribute, float64[pairs], for each field of `Pair`."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        """numbers: float64[pairs, fields of a Pair]."""
        self._numbers = numbers

    if TYPE_CHECKING:

        def __getattr__(self, field: str) -> np.ndarray: ...


def _column(place: int) -> property:
    return property(lambda pairs: pairs._numbers[:, place])


# Properties, because `__getattr__` takes three times as long, and this code runs for every few pairs.
for _place, _field in enumerate(Pair._fields):
    setattr(Columns, _field, _column(_place))


class Decide(Protocol):
    def __call__(self, pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
        """siblings: counts of the pages of the new page's owner with the same name, if the rule counts them."""
        ...


@dataclass(frozen=True)
class Step:
    """One step of a rule that is a list of steps: the first step that returns a ruling decides.

    ask: function that returns a ruling, or None to pass the pair to the next step. No step changes the pair.
    words: sentence that describes the step to users.
    refusals: descriptions of the step's refusals, by `Ruling.by`.
    """

    name: str
    ask: Callable[[Pair, Decider, Siblings], Ruling | None]
    words: str
    refusals: Mapping[str, Refusal]


def decide_by(steps: Sequence[Step]) -> Decide:
    """Returns the `decide` of a list of steps. The last step must decide every pair."""
    asks = tuple(step.ask for step in steps)

    def decide(pair: Pair, decider: Decider, siblings: Siblings = NO_SIBLINGS) -> Ruling:
        for ask in asks:
            ruling = ask(pair, decider, siblings)
            if ruling is not None:
                return ruling
        raise AssertionError("the last step decides every pair")

    return decide


@dataclass(frozen=True)
class Rule:
    """One rule, defined in its own file; `neardup.rules` has all of them by name.

    decide: function that returns the ruling on a pair.
    posts: function that returns the keys which a page posts and probes. A rule with other keys needs a new generation.
    possible: function that returns bool[pairs], False only where `decide` refuses the pair, whatever the numbers of the
        pair's sites and its siblings are. A cheap bound, which excludes nearly all candidates of a template.
    nearness: function that returns the score which orders rejected candidates, float64[pairs]. It accepts a single
        Pair, too.

    Texts for users:
    refusals: descriptions of rulings without a kind, by `Ruling.by`.
    sentences: function that describes the rule's own numbers in the evidence.
    in_short: function that returns the numbers of a pair, and their thresholds, as two short texts.
    evidence: function that returns the fields of a verdict about a pair.
    drawn: function that returns thresholds by evidence field, for charts.

    one_page: function that tells from two headers whether two pages of one digest are one page.
    kept_apart: function that tells whether the texts of a refused pair are similar enough for a duplicate, so that only
        a veto or a higher demand kept the pages apart.
    steps: steps of a rule that is a list of steps, else empty.
    reads_tapes: whether thin pages and pages of very different lengths are excluded from the candidates.
    counts_siblings: whether the index keeps rows of names.
    """

    name: str
    decide: Decide
    posts: Callable[[Decider], Posts]
    possible: Callable[[Columns, Decider], np.ndarray]
    nearness: Callable[[Any], Any]
    refusals: Mapping[str, Refusal]
    sentences: Callable[[Evidence, Decider], list[str]]
    in_short: Callable[[Pair, Decider, Ruling], tuple[str, str]]
    evidence: Callable[[Pair, Ruling], dict[str, Any]]
    drawn: Callable[[Decider], Mapping[str, float]] = lambda decider: {}
    kept_apart: Callable[[Pair, Ruling, Decider], bool] = lambda pair, ruling, decider: False
    one_page: Callable[[Header, Header, Decider], bool] = lambda header, other, decider: True
    steps: tuple[Step, ...] = ()
    reads_tapes: bool = False
    counts_siblings: bool = False


def refusals_of(steps: Sequence[Step]) -> dict[str, Refusal]:
    return {by: refusal for step in steps for by, refusal in step.refusals.items()}


def refused(by: str, score: float, demand: float) -> Ruling:
    return Ruling(None, by, (0, 0.0), score, demand)


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
