"""Measures variants of B and C that the paper leaves open on labelled pairs, beside two full-text yardsticks.

Each variant has its published threshold (scaled for fewer bits), and the threshold with the best F1 on one half of the
pairs with its F1 on the other half, so no threshold is measured on the pairs it was tuned on.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.evaluation.figures.sections import Cell, ResultTable, Section, count, number, share, text
from neardup.evaluation.henzinger.variants import B, C, jaccard
from neardup.evaluation.pairs.labels import Judgement
from neardup.evaluation.pairs.measures import measure
from neardup.evaluation.pairs.study import CrawlStudy, Mask
from neardup.evaluation.pairs.texts import PageTokens
from neardup.evaluation.rules.rule_tables import MEASURES, measures, not_measured, sites
from neardup.kernels import joins
from neardup.sketch import shingling

_Scores = npt.NDArray[np.float64]
_ONE = np.uint64(1)
#: Most labelled pairs that are read; larger sets are sampled by seed.
PAIRS_MAX = 5000


@dataclass(frozen=True)
class Variant:
    """A measure of similarity. scores: one per labelled pair. threshold: least score of similar pages."""

    name: str
    threshold: float
    scores: Callable[["_Pages"], _Scores]


class _Pages:
    """The labelled pairs whose two texts are readable, with cached sketches of their pages."""

    def __init__(self, study: CrawlStudy, places: list[int]) -> None:
        self.study = study
        self.a = [study.labels.a[place] for place in places]
        self.b = [study.labels.b[place] for place in places]
        self.same_site = study.same_site[places] if places else np.zeros(0, bool)
        self._sketches: dict[tuple[object, int], npt.NDArray[np.uint64] | None] = {}

    def tokens(self, page: int) -> PageTokens:
        found = self.study.texts.tokens(page)
        assert found is not None, "pairs of unreadable pages were left out"
        return found

    def sketch(self, variant: B | C, page: int) -> npt.NDArray[np.uint64] | None:
        key = (variant, page)
        if key not in self._sketches:
            self._sketches[key] = variant.sketch(self.tokens(page), self.study.texts.scheme)
        return self._sketches[key]

    def each(self, score: Callable[[int, int], float]) -> _Scores:
        return np.array([score(a, b) for a, b in zip(self.a, self.b, strict=True)], dtype=float)


def _b(variant: B) -> Callable[[_Pages], _Scores]:
    def score(pages: _Pages) -> _Scores:
        def one(a: int, b: int) -> float:
            x, y = pages.sketch(variant, a), pages.sketch(variant, b)
            return 0.0 if x is None or y is None else float((x == y).sum())

        return pages.each(one)

    return score


def _c(variant: C) -> Callable[[_Pages], _Scores]:
    def score(pages: _Pages) -> _Scores:
        def one(a: int, b: int) -> float:
            x, y = pages.sketch(variant, a), pages.sketch(variant, b)
            return 0.0 if x is None or y is None else float(variant.agreeing(x, y))

        return pages.each(one)

    return score


def _combined(b: B, c: C, b_min: int) -> Callable[[_Pages], _Scores]:
    """Returns the C-similarity of pairs that B calls similar, else 0."""
    return lambda pages: np.where(_b(b)(pages) >= b_min, _c(c)(pages), 0.0)


def _lcs(pages: _Pages) -> _Scores:
    return pages.each(lambda a, b: pages.study.texts.ratio(a, b) or 0.0)


def _jaccard(k: int) -> Callable[[_Pages], _Scores]:
    def score(pages: _Pages) -> _Scores:
        factors = pages.study.texts.scheme.constants("shingle", k) | _ONE
        made: dict[int, npt.NDArray[np.uint64]] = {}

        def shingles(page: int) -> npt.NDArray[np.uint64]:
            if page not in made:
                made[page] = np.unique(shingling.shingles(pages.tokens(page).fp, factors))
            return made[page]

        return pages.each(lambda a, b: jaccard(shingles(a), shingles(b)))

    return score


def _slower_on_one_site(pages: _Pages) -> _Scores:
    """Judges pairs on two sites by algorithm C (1 or 0), pairs on one site by the ratio of the full texts."""
    return np.where(pages.same_site, _lcs(pages), (_c(C())(pages) >= 372).astype(float))


VARIANTS: tuple[Variant, ...] = (
    Variant("B, as published (k 8, B >= 2)", 2, _b(B())),
    Variant("B, B >= 3", 3, _b(B())),
    Variant("B, k 5", 2, _b(B(k=5))),
    Variant("B, shingles by frequency", 2, _b(B(weighted=True))),
    Variant("B, main content only", 2, _b(B(content=True))),
    Variant("B, k 5, main content only", 2, _b(B(k=5, content=True))),
    Variant("C, as published (384 bits, C >= 372)", 372, _c(C())),
    Variant("C, 192 bits", 186, _c(C(bits=192))),
    Variant("C, 96 bits", 93, _c(C(bits=96))),
    Variant("C, 64 bits", 62, _c(C(bits=64))),
    Variant("C over shingles of 8", 372, _c(C(over="shingles"))),
    Variant("C over shingles of 5", 372, _c(C(over="shingles", k=5))),
    Variant("C over shingles of 2", 372, _c(C(over="shingles", k=2))),
    Variant("C, main content only", 372, _c(C(content=True))),
    Variant("combined, as published (B >= 2, C >= 355)", 355, _combined(B(), C(), 2)),
    Variant("combined, k 5", 355, _combined(B(k=5), C(), 2)),
    Variant("combined, main content only", 355, _combined(B(content=True), C(content=True), 2)),
    Variant("C on two sites, LCS ratio on one", 0.75, _slower_on_one_site),
    Variant("yardstick: exact Jaccard of 5-shingles", 0.8, _jaccard(5)),
    Variant("yardstick: LCS ratio of the full text", 0.75, _lcs),
)


def ablation_section(study: CrawlStudy) -> Section:
    """Measures all variants on the labelled pairs."""
    section = Section(
        "ablations",
        "Variants of the algorithms",
        "What the paper leaves open, computed again from the token sequences of the labelled pairs. Thresholds as "
        "published, for fewer bits scaled; at the right the threshold with the best F1 on one half of the pairs (S1) "
        "and its F1 on the other (S2). An undecided pair counts as not correct. The two yardsticks read whole texts; "
        "where labels were made by natural truth, the LCS ratio made them, and its row says nothing.",
    )
    correct = study.judged(Judgement.CORRECT)
    every = range(len(study.labels)) if study.labels.decided else ()
    places = [place for place in study.chosen(every, PAIRS_MAX) if _readable(study, place)]
    if len(every) > PAIRS_MAX:
        section.text += f" {PAIRS_MAX:,} labelled pairs are read, chosen by seed."
    section.missing = not_measured(study)
    if not places:
        section.missing = section.missing or "No labelled pair's texts can be read."
        return section
    pages = _Pages(study, places)
    truth = correct[places]
    half = np.array([_hash(study, place) & 1 for place in places], dtype=bool)
    scores = {variant.name: variant.scores(pages) for variant in VARIANTS}
    for where, mask in sites(study).items():
        here = mask[places]
        if not here.any() or (where != "all" and here.all()):
            continue
        groups = study.groups[places][here]
        rows = [
            _row(variant, scores[variant.name][here], truth[here], half[here], study.seed, groups)
            for variant in VARIANTS
        ]
        name = "ablations-" + where.replace(" ", "-")
        section.tables.append(ResultTable(name, f"Labelled pairs: {where}", _COLUMNS, rows))
    return section


_COLUMNS = text("variant") | number("threshold") | count("pairs") | MEASURES | number("best on S1") | share("F1 on S2")


def _row(
    variant: Variant, scores: _Scores, truth: Mask, half: Mask, seed: int, groups: npt.NDArray[np.int64]
) -> list[Cell]:
    found = measure(scores >= variant.threshold, truth, seed, groups=groups)
    best = best_threshold(scores[half], truth[half])
    f1_on_s2 = None if best is None else measure(scores[~half] >= best, truth[~half], seed, rounds=1).f1.value
    return [variant.name, variant.threshold, found.pairs, *measures(found), best, f1_on_s2]


def best_threshold(scores: _Scores, truth: Mask) -> float | None:
    """Returns the least score with the greatest F1; None if one class is missing or no score is above 0."""
    if not len(truth) or truth.all() or not truth.any():
        return None
    best, at = 0.0, None
    for value in np.unique(scores[scores > 0]):
        taken = scores >= value
        right = int((taken & truth).sum())
        f1 = 2 * right / (int(taken.sum()) + int(truth.sum()))
        if f1 > best:
            best, at = f1, float(value)
    return at


def _readable(study: CrawlStudy, place: int) -> bool:
    return (
        study.texts.tokens(study.labels.a[place]) is not None and study.texts.tokens(study.labels.b[place]) is not None
    )


def _hash(study: CrawlStudy, place: int) -> int:
    return int(joins.chosen(study.labels.a[place], study.labels.b[place], np.uint64(study.seed ^ 0xAB1A)))
