"""The numbers of pages against their candidates, as arrays. A `Pair` is made on demand."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import pair_of
from neardup.rules import rule_of
from neardup.rules.records import NO_KIND

#: Fewer rows than this are copied one by one.
_FEW = 65


class Numbers:
    """The numbers of all pairs of a batch in the order of their computation, and the rulings without siblings and
    sites.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._blocks: list[np.ndarray] = []
        self._rulings: list[np.ndarray] = []
        self._ends: list[int] = []
        self.possible: list[bool] = []
        self.nearness: list[float] = []
        self._pairs: dict[int, Pair] = {}  # by place, those that were made

    def __len__(self) -> int:
        return len(self.possible)

    def add(self, numbers: np.ndarray) -> None:
        """numbers: float64[pairs, fields of a Pair]."""
        rulings = rule_of(self._decider).rulings(numbers, self._decider)
        if self._decider.sites:  # their numbers may refuse a pair, or accept it as another kind
            self.possible += [True] * len(rulings)
        else:
            self.possible += (rulings["kind"] != NO_KIND).tolist()
        self.nearness += rulings["nearness"].tolist()
        self._blocks.append(numbers)
        self._rulings.append(rulings)
        self._ends.append(len(self))

    def rows(self, at: Sequence[int]) -> np.ndarray:
        """float64[at, fields of a Pair]."""
        if len(at) < _FEW:
            return np.array([self._of(self._blocks, place) for place in at]).reshape(len(at), len(Pair._fields))
        rows: np.ndarray = np.concatenate(self._blocks)[list(at)]
        return rows

    def ruling(self, at: int) -> np.void:
        """The ruling without siblings and sites, an element of RULING[pairs]."""
        ruling: np.void = self._of(self._rulings, at)
        return ruling

    def pair(self, at: int) -> Pair:
        pair = self._pairs.get(at)
        if pair is None:
            pair = self._pairs[at] = pair_of(self._of(self._blocks, at))
        return pair

    def _of(self, blocks: Sequence[np.ndarray], at: int) -> Any:
        block = bisect_right(self._ends, at)
        return blocks[block][at - self._ends[block]]


class Scores:
    """The numbers of one page against others."""

    __slots__ = ("_all", "_at", "_hopeless")

    def __init__(self, numbers: Numbers) -> None:
        self._all = numbers
        self._at: dict[int, int] = {}
        self._hopeless = True  # none of them may be accepted

    def __contains__(self, other: int) -> bool:
        return other in self._at

    def lacking(self, others: Sequence[int]) -> list[int]:
        """Those of `others` that are not among them."""
        return [other for other in others if other not in self._at]

    def add(self, others: Sequence[int], first: int) -> None:
        """The pairs with `others` begin there in all numbers."""
        last = first + len(others)
        self._at.update(zip(others, range(first, last), strict=True))
        self._hopeless = self._hopeless and True not in self._all.possible[first:last]

    def pair(self, other: int) -> Pair:
        return self._all.pair(self._at[other])

    def ruling(self, other: int) -> np.void:
        """The ruling without siblings and sites, an element of RULING[pairs]."""
        return self._all.ruling(self._at[other])

    def numbers(self, others: Sequence[int]) -> np.ndarray:
        """float64[others, fields of a Pair]."""
        return self._all.rows(self.places(others))

    def places(self, others: Sequence[int]) -> list[int]:
        """Of the pairs with `others`, their places in all numbers."""
        return [self._at[other] for other in others]

    def possible(self, others: Sequence[int]) -> list[int]:
        """Those of `others` that the rule may accept, in their order: siblings only refuse more."""
        if self._hopeless:
            return []
        may, at = self._all.possible, self._at
        return [other for other in others if may[at[other]]]

    def nearest(self, others: Sequence[int]) -> int:
        """Of others that are not accepted the one nearest to it: by nearness to four digits, then the oldest."""
        near, at = self._all.nearness, self._at
        scores = [near[at[other]] for other in others]
        most = max(scores)
        if min(scores) == most:  # of unrelated pages nothing is alike
            return min(others)
        least = most - _ROUNDED_APART
        # Rounding in Python alone: numpy rounds other numbers up.
        return -max((round(score, 4), -other) for score, other in zip(scores, others, strict=True) if score >= least)[1]


#: Scores that are farther apart than this differ in their first four digits.
_ROUNDED_APART = 1.1e-4
