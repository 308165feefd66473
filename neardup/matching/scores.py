"""The numbers of pages against their candidates, as arrays; a `Pair` is made of those that somebody looks at."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from neardup.decider import Decider
from neardup.index.keys import TAPE_RULES
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import pair_of

_AT = {name: place for place, name in enumerate(Pair._fields)}


class Numbers:
    """The numbers of all pairs of a batch, in the order in which they were worked out, and what follows from them."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._blocks: list[np.ndarray] = []
        self._ends: list[int] = []
        self.possible: list[bool] = []
        self.nearness: list[float] = []

    def __len__(self) -> int:
        return len(self.possible)

    def add(self, numbers: np.ndarray) -> None:
        """numbers: float64[pairs, fields of a Pair]."""
        self.possible += possible(numbers, self._decider).tolist()
        self.nearness += nearness(numbers, self._decider).tolist()
        self._blocks.append(numbers)
        self._ends.append(len(self))

    def pair(self, place: int) -> Pair:
        block = bisect_right(self._ends, place)
        return pair_of(self._blocks[block][place - self._ends[block]])


class Scores:
    """The numbers of one page against others."""

    __slots__ = ("_all", "_hopeless", "_places")

    def __init__(self, numbers: Numbers) -> None:
        self._all = numbers
        self._places: dict[int, int] = {}
        self._hopeless = True  # none of them may be accepted

    def __contains__(self, other: int) -> bool:
        return other in self._places

    def lacking(self, others: Sequence[int]) -> list[int]:
        """Those of `others` that are not among them."""
        return [other for other in others if other not in self._places]

    def add(self, others: Sequence[int], first: int) -> None:
        """The pairs with `others` begin at this place of all numbers."""
        last = first + len(others)
        self._places.update(zip(others, range(first, last), strict=True))
        self._hopeless = self._hopeless and True not in self._all.possible[first:last]

    def pair(self, other: int) -> Pair:
        return self._all.pair(self._places[other])

    def possible(self, others: Sequence[int]) -> list[int]:
        """Those of `others` that the rule may accept, in their order."""
        if self._hopeless:
            return []
        may, places = self._all.possible, self._places
        return [other for other in others if may[places[other]]]

    def nearest(self, others: Sequence[int]) -> int:
        """Of others that are not accepted the one nearest to it: by its score to four digits, then the oldest."""
        near, places = self._all.nearness, self._places
        scores = [near[places[other]] for other in others]
        most = max(scores)
        if min(scores) == most:  # of unrelated pages nothing is alike
            return min(others)
        least = most - _ROUNDED_APART
        # Rounding in Python alone: numpy rounds other numbers up.
        return -max((round(score, 4), -other) for score, other in zip(scores, others, strict=True) if score >= least)[1]


#: Scores that are farther apart than this differ in their first four digits.
_ROUNDED_APART = 1.1e-4


def nearness(numbers: np.ndarray, decider: Decider) -> np.ndarray:
    """What the rule looks at first, float64[pairs]. numbers: float64[pairs, fields of a Pair]."""
    if decider.rule in TAPE_RULES:
        return _of(numbers, "tape_score")
    if decider.rule == "simhash64":
        return _of(numbers, "simhash64_agree")
    if decider.rule == "simhash":
        return _of(numbers, "c_similarity")
    if decider.rule == "site-split":
        combined = _of(numbers, "same_hen_site") != 0
        return np.where(combined, _of(numbers, "b_similarity"), _of(numbers, "c_similarity"))
    return _of(numbers, "b_similarity")


def possible(numbers: np.ndarray, decider: Decider) -> np.ndarray:
    """Whether the rule may accept, whatever the pages' sites, crowds and siblings: bool[pairs].

    A bound that costs nothing: of the candidates in a template nearly all are refused, and the rule itself is asked
    about the others alone. It is never False where the rule accepts.
    """
    if decider.rule in TAPE_RULES:
        fewest = np.minimum(_of(numbers, "tokens_a"), _of(numbers, "tokens_b"))
        one_address = (_of(numbers, "same_address") != 0) | (_of(numbers, "same_canonical") != 0)
        named_alike = (_of(numbers, "title_veto") != 1) | one_address
        free = named_alike & (_of(numbers, "head_veto") != 1) & (fewest >= decider.thin_tokens)
        least = min(decider.tape_min, decider.short_tape_min, decider.strict_tape_min, decider.noise_tape_min)
        short = np.minimum(_of(numbers, "tape_a"), _of(numbers, "tape_b")) < decider.tape_bytes_min
        alike: np.ndarray = _of(numbers, "tape_score") >= least
        alike |= _of(numbers, "content_score") >= decider.content_tape_min
        alike |= short & _combined(numbers, decider)
        alike &= free
        return alike
    if decider.rule == "simhash64":
        return _of(numbers, "simhash64_agree") >= decider.simhash64_min
    if decider.rule == "shingling":
        return _of(numbers, "b_similarity") >= decider.b_min
    if decider.rule == "combined":
        return _combined(numbers, decider)
    similar = _of(numbers, "c_similarity") >= decider.c_min
    if decider.rule == "site-split":
        return np.where(_of(numbers, "same_hen_site") != 0, _combined(numbers, decider), similar)
    return similar


def _combined(numbers: np.ndarray, decider: Decider) -> np.ndarray:
    b = _of(numbers, "b_similarity") >= decider.b_min
    return b & (_of(numbers, "c_similarity") >= decider.combined_c_min)


def _of(numbers: np.ndarray, field: str) -> np.ndarray:
    column: np.ndarray = numbers[:, _AT[field]]
    return column
