"""Measures the rates of Huang 2008 beside the paper's figures: figure 6, windows of the filtered sketch, figure 8."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from neardup.evaluation.huang_study import (
    UNKNOWN,
    WHOLE_WINDOW,
    Exhausted,
    TextPair,
    levels_of,
    mean_of,
    meeting,
    weighted_share,
)
from neardup.evaluation.measures import mean_share
from neardup.evaluation.sections import Cell, ResultTable, Section, count, figure, number, ratio, share, text
from neardup.partition.parameters import ROTATIONS_MAX, Parameters
from neardup.partition.texts import points
from neardup.partition.trustable import aligned, compare, filtered, resemblance
from neardup.report.plots import Axes, Series

WINDOWS = (2, 4, 8, 16, 32, 64, 100)
SLOPES = (0.02, 0.04, 0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20)
RECALL = 0.90
#: The paper's figures: strain-away and reserve rate at 16 bytes, precision at its best slope.
_WINDOW_PAPER = {16: (0.87, 0.975)}
_SLOPE_PAPER = {0.10: 0.948}
#: Seed of the resamplings for intervals.
_SEED = 0


def signature_section(pairs: Sequence[TextPair], exhausted: Exhausted) -> Section:
    """Measures figure 6: coverage and trustable rate by number of signatures, at all 16 numbers of rotations."""
    meets = [meeting(levels_of(pair.a), levels_of(pair.b)) for pair in pairs]
    rows: list[list[Cell]] = []
    for rotations in range(1, ROTATIONS_MAX + 1):
        here = [(pair, meet <= rotations) for pair, meet in zip(pairs, meets, strict=True)]
        covered = weighted_share((pair.weight, met) for pair, met in here if pair.near)
        trusted = weighted_share((pair.weight, pair.near) for pair, met in here if met)
        means = [
            mean_share(shares, _SEED) for rates in (_by_sets, _by_signatures) for shares in rates(exhausted, rotations)
        ]
        by_documents = [cell for mean in means for cell in (mean.value, mean.bounds)]
        rows.append([rotations * Parameters().subsets, *by_documents, covered, trusted])
    columns = count("signatures")
    for name in (f"{rate} rate, {by}" for by in ("sets", "shared") for rate in ("coverage", "trustable")):
        columns |= share(name) | text(f"{name}, 95%")
    columns |= share("coverage rate, pairs", "trustable rate, pairs")
    caption = (
        f"{len(exhausted.documents):,} documents against all of {exhausted.texts:,} texts, and {len(pairs):,} compared "
        "pairs"
    )
    note = "Intervals are 95% bootstrap percentiles over the drawn documents."
    table = ResultTable("signatures", caption, columns, rows, note)
    about = (
        "The paper's two rates are equal at 14 signatures. By sets, as in the paper: of a document's near-duplicates "
        "and itself, the share in its perhaps-similar sets, merged and absorbed (coverage), and of these sets, the "
        "share that are its near-duplicates or itself (trustable). By shared signatures (ours): the same over the "
        "other texts that have a signature in common with it. By pairs (ours): of the pairs that all signatures bring "
        "together, weighted to the collection."
    )
    names = list(columns)
    series = [Series(names[at], [(float(row[0] or 0), float(row[at] or 0)) for row in rows]) for at in (1, 3)]
    axes = Axes("signatures", "rate", y_range=(0, 1))
    plots = figure("signatures", "Rates by perhaps-similar sets", series, axes, columns, rows)
    return Section("signatures", "Figure 6: how many signatures", about, [table], plots)


def _by_sets(exhausted: Exhausted, rotations: int) -> tuple[list[float], list[float]]:
    """Computes the rates of each document in its perhaps-similar sets, the document itself counted."""
    coverage, trust = [], []
    for found, sets in zip(exhausted.documents, exhausted.sets, strict=True):
        others, right = sets[rotations - 1]
        coverage.append((right + 1) / (sum(near for near, _ in found) + 1))
        trust.append((right + 1) / (others + 1))
    return coverage, trust


def _by_signatures(exhausted: Exhausted, rotations: int) -> tuple[list[float], list[float]]:
    """Computes the rates of each document among the texts with a signature in common; itself does not count.

    A document without a near-duplicate has no coverage rate, one without such a text no trustable rate.
    """
    coverage, trust = [], []
    for found in exhausted.documents:
        met = [near for near, meet in found if meet <= rotations]
        if near := sum(near for near, _ in found):
            coverage.append(sum(met) / near)
        if met:
            trust.append(sum(met) / len(met))
    return coverage, trust


def window_section(pairs: Sequence[TextPair]) -> Section:
    """Measures strain-away and reserve rate by window, over pairs parted by the truth and by the decision of TLCS."""
    whole = [_trusted(pair, WHOLE_WINDOW) for pair in pairs]
    parts = [pair.same_item for pair in pairs], [pair.near for pair in pairs]
    rows: list[list[Cell]] = []
    for window in WINDOWS:
        away = [_strained_away(pair, window) for pair in pairs]
        reserved = [_trusted(pair, window) / most if most else None for pair, most in zip(pairs, whole, strict=True)]
        rates: list[Cell] = []
        for part in parts:
            for kind, values in ((False, away), (True, reserved)):
                rates.append(
                    _weighted_mean(
                        pairs, [value if one is kind else None for one, value in zip(part, values, strict=True)]
                    )
                )
        rows.append([window, *rates, *_WINDOW_PAPER.get(window, (None, None))])
    columns = count("window") | share("strain-away rate", "reserve rate")
    columns |= share("strain-away rate, own decision", "reserve rate, own decision")
    columns |= number("paper: strain-away", "paper: reserve")
    numbers = [sum(one is kind for one in part) for part in parts for kind in (False, True)]
    caption = (
        f"By the truth: {numbers[0]:,} pairs of two items and {numbers[1]:,} of one. By TLCS's own decision: "
        f"{numbers[2]:,} pairs that are no near-duplicates and {numbers[3]:,} that are"
    )
    about = (
        "Strain-away rate: share of the characters strained away, in pairs that are no duplicates. Reserve rate: TLCS "
        "with that window as a share of the TLCS of the whole texts, in duplicates. Pairs are parted as in the paper, "
        "there by people's judgement, here by the truth; beside it by TLCS's own decision (ours). Means are weighted "
        "to the collection."
    )
    table = ResultTable("windows", caption, columns, rows)
    return Section("windows", "Windows of the filtered sketch", about, [table])


def _strained_away(pair: TextPair, window: int) -> float:
    keep = filtered(points(pair.a), points(pair.b), window)
    return 1 - sum(int(kept.sum()) for kept in keep) / (len(pair.a) + len(pair.b))


def _weighted_mean(pairs: Sequence[TextPair], values: Sequence[float | None]) -> float | None:
    """Computes the mean of the known values, weighted by their pairs."""
    known = [(pair.weight, value) for pair, value in zip(pairs, values, strict=True) if value is not None]
    return ratio(sum(weight * value for weight, value in known), sum(weight for weight, _ in known))


def _trusted(pair: TextPair, window: int) -> int:
    parameters = Parameters(window_bytes=window, resemblance_min=0.0, containment_min=0.0)
    return compare(pair.a, pair.b, parameters).trusted


def slope_section(documents: Sequence[Sequence[TextPair]]) -> Section:
    """Measures figure 8: precision at a recall of .90 by slope. Varies the threshold of resemblance alone.

    documents: the compared pairs of each drawn document.
    """
    section = Section(
        "slopes",
        "Figure 8: slope of a trustable region",
        f"As in the paper: for each slope the threshold of resemblance is moved until recall is {RECALL:.2f}, "
        "containment counts for nothing, and precision and recall are means over documents.",
    )
    known = [
        (document, pair) for document, pairs in enumerate(documents) for pair in pairs if pair.same_item is not None
    ]
    if len({pair.same_item for _, pair in known}) < 2:
        section.missing = UNKNOWN
        return section
    scores = zip(*(_resemblances(pair) for _, pair in known), strict=True)
    rows: list[list[Cell]] = []
    for slope, of_slope in zip(SLOPES, scores, strict=True):
        found = [
            (score, document, bool(pair.same_item)) for score, (document, pair) in zip(of_slope, known, strict=True)
        ]
        rows.append([slope, *at_recall(found), _SLOPE_PAPER.get(slope)])
    columns = number("slope") | share(f"precision at recall {RECALL:.2f}", "recall", "resemblance at least")
    columns |= number("paper: precision")
    caption = f"Means over {len({document for document, _ in known}):,} documents with {len(known):,} compared pairs"
    section.tables.append(ResultTable("slopes", caption, columns, rows))
    return section


def _resemblances(pair: TextPair) -> list[float]:
    """Computes the resemblance at each slope from one alignment of the texts."""
    longer, shorter = sorted((points(pair.a), points(pair.b)), key=len, reverse=True)
    made = aligned(longer, shorter, 1, Parameters().window_bytes)
    return [resemblance(made, longer, shorter, Parameters(slope_max=slope)) for slope in SLOPES]


def at_recall(found: Sequence[tuple[float, int, bool]]) -> tuple[float | None, float, float]:
    """Finds (precision, recall, threshold) of the highest threshold whose mean recall over documents reaches RECALL.

    found: (score, document, whether the other text is of the document's item). Pairs of equal score are accepted
    together. A document without a pair of its item counts for precision only. A document without an accepted pair
    counts for recall only.
    """
    relevant = Counter(document for _, document, good in found if good)
    taken: Counter[int] = Counter()
    right: Counter[int] = Counter()
    recall = threshold = 0.0
    ordered = sorted(found, key=lambda one: -one[0])
    for place, (score, document, good) in enumerate(ordered):
        taken[document] += 1
        right[document] += good
        last = place + 1 == len(ordered) or ordered[place + 1][0] < score
        if last:
            threshold = score
            recall = fmean(right[document] / many for document, many in relevant.items())
            if recall >= RECALL:
                break
    return mean_of(right[document] / many for document, many in taken.items()), recall, threshold
