"""Chooses thresholds as the paper does: t for algorithm C, and the cutoff of the combined algorithm.

Henzinger 2006, sections 3.1 to 3.5.

**t**: the C-similarity at which algorithm C returns as many correct pairs as algorithm B. Both numbers are estimates:
pairs of each level of similarity in the whole graph, times the share of correct ones among that level's labelled pairs.
In a range of C-similarities whose pairs are all labelled, the correct ones of each C-similarity are counted.
If samples have equal numbers of pairs on one site and on two, both parts are estimated separately. A level with fewer
than LABELS_MIN labelled pairs is merged with the next ones.

**Cutoff**: the labelled B pairs are split at random into halves S1 and S2. On S1 each cutoff has a precision (correct
among the pairs kept, undecided ones included) and R (correct pairs kept, of all correct ones of S1). The knee is the
cutoff whose point (R, precision), both scaled to 0..1 over the range of the curve, lies farthest above the straight
line between the curve's ends; of equal ones the lowest. Cutoffs that keep fewer than KEPT_MIN pairs are ignored. S2,
not used for choosing, measures the cutoff. The knee depends on the halves that were drawn, so it is chosen again for
DRAWS draws (ours), whose middle 95% are its interval.

**Site split**: it has no sample of its own and is estimated from its parts: the pairs of each part in the whole graph,
times the share of correct ones among the part's labelled pairs (for the combined algorithm, those of S2).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.evaluation.graphs import Graph
from neardup.evaluation.henzinger_published import C_LEVELS, C_MIN, COMBINED_CUTOFF
from neardup.evaluation.labels import Judgement
from neardup.evaluation.sampling import SAME_SITE, TWO_SITES
from neardup.evaluation.sections import ratio
from neardup.evaluation.study import CrawlStudy, Mask

#: A precision over fewer pairs is noise.
KEPT_MIN = 10
#: Labelled pairs that a level of similarity needs before its own share of correct ones is used.
LABELS_MIN = 5
#: Cutoffs that are tried.
CUTOFFS = range(300, 385)
#: Draws of halves for the interval of the knee.
DRAWS = 200
#: A knee is warned of below half of the paper's 1,910 labelled B pairs, and if its interval is wider than two of the
#: paper's ranges of C-similarity (3 bits each).
KNEE_PAIRS_MIN, KNEE_BITS_MAX = 955, 6
_Counts = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]


class Cutoff(NamedTuple):
    """One cutoff on one half: pairs kept, their precision, R; None if undefined."""

    cutoff: int
    kept: int
    precision: float | None
    r: float | None


@dataclass(frozen=True)
class Knee:
    """s1, s2: masks over the labelled pairs. curve: S1's cutoffs in order.

    chosen: the knee's cutoff, None without a knee.
    """

    s1: Mask
    s2: Mask
    curve: list[Cutoff]
    chosen: int | None


def halves(study: CrawlStudy, draw: int = 0) -> tuple[Mask, Mask]:
    """Splits the labelled B pairs into two halves by a hash of pages, seed and number of the draw."""
    places = np.flatnonzero(study.of_b)
    one = np.zeros(len(study.labels), bool)
    ranks = study.ranks(places, 0x51 + (draw << 8))
    one[places[np.argsort(ranks, kind="stable")][: (len(places) + 1) // 2]] = True
    return one, study.of_b & ~one


def curve(study: CrawlStudy, mask: Mask) -> list[Cutoff]:
    """Measures each cutoff on the labelled pairs in mask."""
    correct = study.judged(Judgement.CORRECT)
    levels = np.maximum(study.c_similarity, 0)
    kept, right = (
        np.cumsum(np.bincount(levels[pairs], minlength=385)[::-1])[::-1].tolist() for pairs in (mask, mask & correct)
    )
    return [Cutoff(at, kept[at], ratio(right[at], kept[at]), ratio(right[at], right[0])) for at in CUTOFFS]


def knee_draws(study: CrawlStudy) -> list[Knee]:
    """Finds the knee for each of DRAWS draws of halves; the first is that of `find_knee`."""
    return [find_knee(study, draw) for draw in range(DRAWS)]


def knee_warnings(study: CrawlStudy) -> list[str]:
    """Warns of a knee that depends on the draw or comes from a small sample; empty if there is no knee."""
    pairs = int(study.of_b.sum())
    knees = [knee.chosen for knee in knee_draws(study) if knee.chosen is not None] if pairs else []
    if not knees:
        return []
    low, high = np.quantile(knees, (0.025, 0.975)).tolist()
    if pairs >= KNEE_PAIRS_MIN and high - low <= KNEE_BITS_MAX:
        return []
    return [
        f"The cutoff of the combined algorithm hangs on few labels: with {pairs:,} labelled B pairs the knee lies at "
        f"{low:g} to {high:g} in 95% of {DRAWS} draws of halves. Label more, or keep the paper's {COMBINED_CUTOFF}."
    ]


def find_knee(study: CrawlStudy, draw: int = 0) -> Knee:
    """Finds the cutoff on S1, as the module describes; none if the curve has fewer than three distinct points.

    draw: number of the draw of halves.
    """
    s1, s2 = halves(study, draw)
    points = curve(study, s1)
    usable = [p for p in points if p.kept >= KEPT_MIN and p.precision is not None and p.r is not None]
    return Knee(s1, s2, points, _knee(usable))


def _knee(points: list[Cutoff]) -> int | None:
    distinct = {(p.precision, p.r) for p in points}
    if len(distinct) < 3:
        return None
    r = np.array([p.r for p in points], dtype=float)
    precision = np.array([p.precision for p in points], dtype=float)
    if np.ptp(r) == 0 or np.ptp(precision) == 0:
        return None
    x = (r - r.min()) / np.ptp(r)
    y = (precision - precision.min()) / np.ptp(precision)
    # signed distance from the line through both ends; above it both are better than a mixture of the ends
    along = np.array([x[-1] - x[0], y[-1] - y[0]])
    if not along.any():
        return None
    across = along[0] * (y - y[0]) - along[1] * (x - x[0])
    if x[-1] < x[0]:
        across = -across  # the curve runs from great R to small R
    best = int(np.argmax(across))
    return points[best].cutoff if across[best] > 1e-12 else None


class Estimate(NamedTuple):
    """Pairs of a crawl, the labelled ones among them, and the estimated number of correct ones; None without labels."""

    pairs: int
    labelled: int
    correct: float | None


def together(one: Estimate, other: Estimate) -> Estimate:
    """Adds two parts."""
    both = None if one.correct is None or other.correct is None else one.correct + other.correct
    return Estimate(one.pairs + other.pairs, one.labelled + other.labelled, both)


def estimates(study: CrawlStudy, s2: Mask, cutoff: int) -> dict[str, tuple[Estimate, Estimate]]:
    """Estimates algorithms B, C and the combined one: (pairs on one site, pairs on two)."""
    correct = study.judged(Judgement.CORRECT)

    def one(graph: Graph, drawn: Mask, same: bool, least: int) -> Estimate:
        labelled = drawn & (study.same_site == same) & (study.c_similarity >= least)
        pairs, n = int(graph.joint[int(same), :, least:].sum()), int(labelled.sum())
        share = ratio(int((labelled & correct).sum()), n)
        return Estimate(pairs, n, 0.0 if not pairs else None if share is None else pairs * share)

    parts = {"B": (study.b, study.of_b, 0), "C": (study.c, study.of_c, 0), "combined": (study.b, s2, cutoff)}
    return {
        name: (one(graph, drawn, True, least), one(graph, drawn, False, least))
        for name, (graph, drawn, least) in parts.items()
    }


@dataclass(frozen=True)
class EqualCorrect:
    """t: the C-similarity at which C has as many correct pairs as B; None if unknown, with the reason in why_not.

    b_correct: estimated correct pairs of the B graph. table: (t, pairs of C-similarity >= t, estimated correct ones).
    """

    t: int | None
    b_correct: float | None
    table: list[tuple[int, int, float | None]]
    why_not: str = ""


def equal_correct(study: CrawlStudy) -> EqualCorrect:
    """Estimates t from the labelled pairs of both graphs."""
    graph = study.wide or study.c
    for name, samples in (("B", ("B",)), ("C", ("C", "wide"))):
        if not study.stands_for(*samples):
            reason = f"no labelled pair was drawn from the {name} graph as such, so none can stand for it"
            return EqualCorrect(None, None, [], reason)
    # A sample with as many pairs of each level does not represent several levels together.
    uniform = not any("-similarity" in label.sample for label in study.labels.labels)
    down = slice(384, graph.least - 1, -1)
    totals = np.cumsum(graph.joint.sum(axis=(0, 1))[down]).tolist()
    # The sum is unknown from the first level on that has too few labels.
    correct = np.cumsum(_c_correct(study, graph, uniform)[down]).tolist()
    levels = range(384, graph.least - 1, -1)
    table = [(*row, _known(right)) for *row, right in zip(levels, totals, correct, strict=True)]
    return _equal(_known(_b_correct(study, uniform)), table)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _b_correct(study: CrawlStudy, uniform: bool) -> float:
    """Estimates the correct pairs of the B graph, NaN if labels are missing."""
    correct, found = study.judged(Judgement.CORRECT), 0.0
    levels = slice(study.b.least, 7)
    for sites, joint in _strata(study, study.b):
        pairs, labelled = joint.sum(axis=1)[levels], study.drawn("B") & sites
        counts = (np.bincount(study.b_similarity[mask], minlength=7)[levels] for mask in (labelled, labelled & correct))
        found = sum((pairs * _shares(pairs, *counts, merge=uniform)).tolist(), found)
    return found


def _c_correct(study: CrawlStudy, graph: Graph, uniform: bool) -> _Numbers:
    """Estimates the correct pairs of each C-similarity: float64[385], NaN where labels are missing."""
    drawn, correct = study.drawn("C", "wide"), study.judged(Judgement.CORRECT)
    out = np.zeros(385)
    for sites, joint in _strata(study, graph):
        pairs, masks = joint.sum(axis=0), (drawn & sites, drawn & sites & correct)
        n, right = (np.bincount(study.c_similarity[mask], minlength=385) for mask in masks)
        # Pairs from C_MIN on come from both samples, pairs below C_MIN from `wide` alone. Ranges below C_MIN are not
        # merged, because a range across C_MIN would give its upper pairs too much weight.
        for ranges, merge in zip(_ranges(graph.least), (uniform, False), strict=True):
            counts = [np.array([each[part].sum() for part in ranges], np.int64) for each in (pairs, n, right)]
            shares = _shares(*counts, merge=merge)
            for part, share, all_labelled in zip(ranges, shares, counts[0] == counts[1], strict=True):
                out[part] += right[part] if all_labelled else pairs[part] * share
    return out


def _strata(study: CrawlStudy, graph: Graph) -> list[tuple[Mask, _Counts]]:
    """Splits a graph into evenly sampled parts: labelled pairs, and pairs by B- and C-similarity."""
    if any(SAME_SITE in label.sample or TWO_SITES in label.sample for label in study.labels.labels):
        return [(study.same_site, graph.joint[1]), (~study.same_site, graph.joint[0])]
    return [(np.ones(len(study.labels), bool), graph.joint.sum(axis=0))]


def _ranges(least: int) -> tuple[list[slice], list[slice]]:
    """Returns ranges of C-similarity from 384 down to `least`: those of the paper, and below C_MIN."""
    upper = (*C_LEVELS[:-1], (C_MIN, C_LEVELS[-1][1]))
    lower = ((low, low + 2) for low in range(C_MIN - 3, least - 3, -3))

    def slices(ranges: Iterable[tuple[int, int]]) -> list[slice]:
        return [slice(max(low, least), high + 1) for low, high in ranges if high >= least]

    return slices(upper), slices(lower)


def _shares(pairs: _Counts, labelled: _Counts, correct: _Counts, *, merge: bool) -> _Numbers:
    """Estimates the share of correct pairs per level, 0 for a level without pairs; NaN for too few labels.

    Args:
        pairs: number of pairs of the whole graph per level.
        labelled, correct: numbers of labelled pairs, and of correct labelled pairs, per level.
        merge: whether levels with too few labelled pairs are merged with the next level, and the last levels with the
            level before, so that a rare level does not prevent the whole estimate.
    """

    def enough(group: list[int]) -> bool:
        return bool(labelled[group].sum() >= min(LABELS_MIN, pairs[group].sum()))  # all labelled: always enough

    groups: list[list[int]] = [[]]
    for level in np.flatnonzero(pairs).tolist():
        groups[-1].append(level)
        if not merge or enough(groups[-1]):
            groups.append([])
    last = groups.pop()
    while groups and not enough(last):
        last = groups.pop() + last
    out = np.where(pairs > 0, np.nan, 0.0)
    for group in filter(None, [*groups, last]):
        if enough(group):
            out[group] = correct[group].sum() / labelled[group].sum()
    return out


def _equal(b_correct: float | None, table: list[tuple[int, int, float | None]]) -> EqualCorrect:
    estimated = [(level, right) for level, _, right in table if right is not None]
    if b_correct is None:
        why = f"too few labelled pairs stand for the B graph: a level needs {LABELS_MIN}"
        return EqualCorrect(None, None, table, why)
    if not b_correct:
        return EqualCorrect(None, b_correct, table, "algorithm B has no correct pair")
    if not estimated or estimated[-1][1] < b_correct:
        least = estimated[-1][0] if estimated else 384
        return EqualCorrect(
            None, b_correct, table, f"down to C-similarity {least}, as far as labels reach, C has fewer correct pairs"
        )
    reached = next(i for i, (_, right) in enumerate(estimated) if right >= b_correct)
    if reached and b_correct - estimated[reached - 1][1] < estimated[reached][1] - b_correct:
        reached -= 1
    return EqualCorrect(estimated[reached][0], b_correct, table)
