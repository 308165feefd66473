"""What a rule is: one value with everything that somebody asks of it. And what it says of a pair."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.sketch.header import Header
from neardup.verdict import Kind

#: Families of the keys that a page posts, in their order, with how many of each.
Posts = tuple[tuple[KeyFamily, int], ...]
#: The `evidence` of a verdict, or its `nearest`: what is left of a pair when a person asks.
Evidence = Mapping[str, Any]
#: All of them: as many as a family has.
ALL = 64


class Ruling(NamedTuple):
    """kind: near_duplicate, same_content or None (not a duplicate). by: the step that decided, also when it said no.

    rank orders accepted candidates, greatest first; among equals the smallest page id wins. score: what was held
    against demand, in the unit of the step; of a pair that was refused before that: what would have been.
    """

    kind: Kind | None
    by: str
    rank: tuple[int, float] = (0, 0.0)
    score: float = 0.0
    demand: float = 0.0


class Refusal(NamedTuple):
    """Why a pair is not taken, for the `by` of a ruling without a kind. veto: no score outweighs it.

    plain: the step accepts pairs too, by the number that is told beside it.
    """

    words: str
    veto: bool = False
    plain: bool = False


class Columns:
    """The numbers of many pairs, by the names of `Pair`'s fields: float64[pairs] each."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        """numbers: float64[pairs, fields of a Pair]."""
        self._numbers = numbers

    if TYPE_CHECKING:

        def __getattr__(self, field: str) -> np.ndarray: ...


def _column(place: int) -> property:
    return property(lambda pairs: pairs._numbers[:, place])


# A property each: `__getattr__` costs three times as much, in what is done for every few pairs.
for _place, _field in enumerate(Pair._fields):
    setattr(Columns, _field, _column(_place))


class Decide(Protocol):
    def __call__(self, pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
        """crowd, siblings: pages like the new one that its site has, as far as the decider asks for them."""
        ...


@dataclass(frozen=True)
class Rule:
    """A rule, made in its own file; `neardup.rules` has all of them by name.

    name: in settings and deciders. posts: keys that a page posts and probes; others would need a new generation.
    possible: whether the rule may accept, whatever the pages' sites, crowds and siblings, bool[pairs]. A bound that
    costs little: of the candidates in a template nearly all are refused, and `decide` is asked about the others alone.
    It is never False where the rule accepts.
    nearness: what the rule looks at first, float64[pairs]; also asked of a single Pair. It tells which of the rejected
    candidates came nearest, and is the score that evidence has of it.

    For people: refusals: words for each `by` without a kind. told: what evidence says of the rule's own numbers, a
    sentence each. margin: how far a pair is above what was demanded of it, below 0 if it fell short, None where nothing
    was measured; in the rule's own unit. in_short: a pair's numbers, and those that are needed. evidence: what a
    verdict has of a pair. drawn: thresholds by field of the evidence, for charts.

    one_page: whether two pages of one digest are one; of their headers. kept_apart: whether the text of a pair that was
    refused agrees as well as the rule asks of any pair, so that something else told the pages apart.

    reads_tapes: thin pages are no candidates, nor are pages of too different a length. counts_siblings: whether it asks
    for siblings.
    """

    name: str
    decide: Decide
    posts: Callable[[Decider], Posts]
    possible: Callable[[Columns, Decider], np.ndarray]
    nearness: Callable[[Any], Any]
    refusals: Mapping[str, Refusal]
    told: Callable[[Evidence, Decider], list[str]]
    margin: Callable[[Evidence, Decider], float | None]
    in_short: Callable[[Pair, Decider, Ruling], tuple[str, str]]
    evidence: Callable[[Pair, Ruling], dict[str, Any]]
    drawn: Callable[[Decider], Mapping[str, float]] = lambda decider: {}
    kept_apart: Callable[[Pair, Ruling, Decider], bool] = lambda pair, ruling, decider: False
    one_page: Callable[[Header, Header, Decider], bool] = lambda header, other, decider: True
    reads_tapes: bool = False
    counts_siblings: Callable[[Decider], bool] = lambda decider: False


def refused(by: str, score: float, demand: float) -> Ruling:
    return Ruling(None, by, (0, 0.0), score, demand)


def evidence_of(
    pair: Pair, ruling: Ruling, more: Mapping[str, Any] | None = None, vetoes: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The numbers of a pair that evidence has under every rule. more, vetoes: those of one rule."""
    out: dict[str, Any] = {
        "by": ruling.by,
        "b_similarity": pair.b_similarity,
        "c_similarity": pair.c_similarity,
        "tape_score": round(pair.tape_score, 4),
        "content_score": round(pair.content_score, 4),
        "same_site": pair.same_site,
        "tokens": [pair.tokens_a, pair.tokens_b],
        **(more or {}),
    }
    names = {"title": pair.title_veto, "head": pair.head_veto, **(vetoes or {})}
    held = {name: "holds" if veto == 1 else "unproved" for name, veto in names.items() if veto}
    return out | {"vetoes": held} if held else out


def score_and_demand(score: float, demand: float) -> tuple[str, str]:
    """Both as percentages, with as many decimals as it takes to tell which is greater."""
    for decimals in (0, 1, 2, 3):
        texts = f"{score:.{decimals}%}", f"{demand:.{decimals}%}"
        if score == demand or texts[0] != texts[1]:
            break
    return texts


def similarities(evidence: Evidence, needed: str = "") -> list[str]:
    """The sentence of algorithms B and C. needed: what is asked of them, if anything."""
    b, c = evidence.get("b_similarity"), evidence.get("c_similarity")
    if b is None or c is None or evidence.get("by") == "digest":
        return []
    numbers = f"{int(b)} of 6 supershingles are equal and {int(c)} of 384 simhash bits agree"
    return [f"{numbers}; at least {needed} are needed." if needed else f"{numbers}."]
