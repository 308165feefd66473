"""The signature that all online rules share: two sketches' numbers in, a ruling out."""

from typing import NamedTuple, Protocol

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.pairs.pair import Pair
from neardup.verdict import Kind

__all__ = ["Pair", "Rule", "Ruling"]


class Ruling(NamedTuple):
    """kind: near_duplicate, same_content or None (not a duplicate). by: the step that decided, also when it said no.

    rank orders accepted candidates, greatest first; among equals the smallest page id wins.
    """

    kind: Kind | None
    by: str
    rank: tuple[int, float] = (0, 0.0)


class Rule(Protocol):
    """One file each. FAMILIES are the index keys it posts and probes (`neardup.index.keys.KeyFamily`)."""

    def __call__(self, pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling: ...
