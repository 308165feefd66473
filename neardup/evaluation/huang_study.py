"""Holds the compared texts and the sets that an evaluation after Huang 2008 measures.

README.md of `neardup.partition` has the terms.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from neardup.evaluation.sections import ratio
from neardup.partition.groups import absorb
from neardup.partition.parameters import ROTATIONS_MAX, Parameters
from neardup.partition.signatures import signatures_of
from neardup.partition.texts import sentences
from neardup.partition.trustable import compare

#: A clock: returns processor time in seconds.
Clock = Callable[[], float]
#: Number of rotations at which two texts meet that have no signature in common.
NEVER = ROTATIONS_MAX + 1
#: A window that strains away only characters that the other text lacks, so its LCS is that of the whole texts.
WHOLE_WINDOW = 1
UNKNOWN = "The truth of these pages is unknown, or all pairs are of one kind: see --releases and --items."


@dataclass(frozen=True)
class TextPair:
    """Two compared texts.

    near, step: the partition's decision, and the step that made it. same_item: the truth, None if unknown.
    weight: the number of compared pairs that this one stands for in its sample.
    """

    a: str
    b: str
    near: bool
    same_item: bool | None = None
    weight: float = 1.0
    step: str = "trustable"


@dataclass(frozen=True)
class SystemSets:
    """The result of a system. sets: number of the set of each document. seconds: run time."""

    sets: Mapping[str, int]
    seconds: float


@dataclass
class Exhausted:
    """Drawn documents, each compared with every other text by TLCS.

    texts: number of all texts.
    documents: per drawn document, (near, rotations) of each other text that is near or shares a signature with it.
    rotations: least number of rotations at which both texts have a common signature; NEVER if they have none.
    sets: per drawn document, for each number of rotations, (other documents of its perhaps-similar sets, those among
    them that are its near-duplicates).
    seconds: time of all comparisons in seconds. signing: seconds per document for its signatures.
    """

    texts: int
    documents: list[list[tuple[bool, int]]] = field(default_factory=list)
    sets: list[list[tuple[int, int]]] = field(default_factory=list)
    seconds: float = 0.0
    signing: float = 0.0

    @property
    def pairs(self) -> int:
        return len(self.documents) * (self.texts - 1)


def exhaust(texts: Sequence[str], drawn: int, clock: Clock) -> Exhausted:
    """Compares the first `drawn` texts with all others. texts: distinct, in random order."""
    out = Exhausted(len(texts))
    began = clock()
    levels = [levels_of(text) for text in texts]
    out.signing = (clock() - began) / ROTATIONS_MAX / max(1, len(texts))
    alike: list[set[int]] = []
    for place in range(min(drawn, len(texts))):
        others = [other for other in range(len(texts)) if other != place]
        began = clock()
        near = [compare(texts[place], texts[other], Parameters()).similar for other in others]
        out.seconds += clock() - began
        meet = [meeting(levels[place], levels[other]) for other in others]
        out.documents.append([one for one in zip(near, meet, strict=True) if one != (False, NEVER)])
        alike.append({other for other, one in zip(others, near, strict=True) if one})
    out.sets = [[] for _ in alike]
    for rotations in range(1, ROTATIONS_MAX + 1):
        together = perhaps_similar(levels, rotations)
        for place, near_ones in enumerate(alike):
            others_of = together.get(place, set()) - {place}
            out.sets[place].append((len(others_of), len(others_of & near_ones)))
    return out


def perhaps_similar(levels: Sequence[Mapping[tuple[int, int], int]], rotations: int) -> dict[int, set[int]]:
    """Makes the perhaps-similar sets of some texts: for each text in a set, all texts of its sets.

    As the partition makes them (README.md of `neardup.partition`, step 4): a signature's users are a list, lists of one
    representative are merged, and from the greatest representative down a list absorbs those whose representatives it
    holds. The greatest representative has the most signatures, then the greatest number. The guard against templates
    drops no signature: a sample has too few texts for it.

    levels: for each text, the least number of rotations of each of its signatures.
    """
    users: dict[tuple[int, int], list[int]] = {}
    counts = [0] * len(levels)
    for text, own in enumerate(levels):
        for signature, level in own.items():
            if level <= rotations:
                users.setdefault(signature, []).append(text)
                counts[text] += 1
    lists: dict[int, set[int]] = {}
    for texts in users.values():
        if len(texts) > 1:
            representative = max(texts, key=lambda text: (counts[text], text))
            lists.setdefault(representative, {representative}).update(texts)
    ordered = sorted(lists, key=lambda text: (counts[text], text), reverse=True)
    contained = ((rep, other) for rep in ordered for other in lists[rep] if other != rep and other in lists)
    owner = dict(absorb(contained, Parameters().absorbed))
    sets: dict[int, set[int]] = {}
    for rep, members in lists.items():
        sets.setdefault(owner.get(rep, rep), set()).update(members)
    together: dict[int, set[int]] = {}
    for members in sets.values():
        for text in members:
            together.setdefault(text, set()).update(members)
    return together


def levels_of(text: str) -> dict[tuple[int, int], int]:
    """Maps each signature of a text's sentences to the least number of rotations that produces it."""
    parameters = Parameters(passage_words=0)  # the paper's signatures alone
    found = sentences(text, parameters)
    levels: dict[tuple[int, int], int] = {}
    for rotations in range(1, ROTATIONS_MAX + 1):
        for high, low in signatures_of(found, replace(parameters, rotations=rotations)).tolist():
            levels.setdefault((high, low), rotations)
    return levels


def meeting(one: Mapping[tuple[int, int], int], other: Mapping[tuple[int, int], int]) -> int:
    return min((max(one[key], other[key]) for key in one.keys() & other.keys()), default=NEVER)


def weighted_share(weighed: Iterable[tuple[float, bool | None]]) -> float | None:
    """Computes the share of true values. weighed: (weight, value); None counts as false."""
    known = list(weighed)
    return ratio(sum(each for each, true in known if true), sum(each for each, _ in known))


def mean_of(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
