"""Measures variants of B and C that the paper leaves open on labelled pairs, beside two full-text yardsticks.

The variants are computed offline from token sequences, with the scheme's constants: `B()` and `C()` with defaults equal
a sketch's supershingles and simhash. Each variant has its published threshold (scaled for fewer bits), and the
threshold with the best F1 on one half of the pairs with its F1 on the other half, so no threshold is measured on the
pairs it was tuned on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.evaluation.corpus_texts import PageTokens
from neardup.evaluation.labels import Judgement
from neardup.evaluation.measures import measure
from neardup.evaluation.rule_tables import MEASURES, measures, not_measured, sites
from neardup.evaluation.sections import Cell, ResultTable, Section, count, number, share, text
from neardup.evaluation.study import CrawlStudy, Mask
from neardup.kernels.lanes import LANES
from neardup.scheme import Scheme
from neardup.sketch import one_page_shingling as shingling
from neardup.sketch import one_page_simhash as simhash

_Words = npt.NDArray[np.uint64]
_Scores = npt.NDArray[np.float64]
#: Most labelled pairs that are read; larger sets are sampled by seed.
PAIRS_MAX = 5000
#: Odd constant that makes repeated occurrences of a shingle distinct.
_AGAIN = np.uint64(0x9E3779B97F4A7C15)
#: Index of the scheme's chain constant for B's supershingles.
CHAIN_B = 0


@dataclass(frozen=True)
class B:
    """Algorithm B. k: tokens per shingle. weighted: each occurrence of a shingle is an element of its own.

    content: only tokens of the main content; all tokens if there is none.
    """

    k: int = 8
    weighted: bool = False
    content: bool = False

    def sketch(self, page: PageTokens, scheme: Scheme) -> _Words | None:
        """Computes uint64[supershingles]; None for a page without tokens, which is similar to no page."""
        tokens = chosen_tokens(page, self.content)
        if not len(tokens):
            return None
        shingles = _shingles(tokens, self.k, scheme)
        if self.weighted:
            shingles = as_set(shingles)
        products = -(-scheme.minvalues // (4 * LANES)) * LANES
        multipliers = scheme.constants("minvalue multiplier", products) | np.uint64(1)
        low = shingling.minvalues(shingles, multipliers, scheme.minvalues)
        seed = int(scheme.constants("chain", 3)[CHAIN_B])
        return shingling.supershingles(low, scheme.supershingles, scheme.minvalues // scheme.supershingles, seed)

    def agreeing(self, a: _Words, b: _Words) -> int:
        """Counts equal supershingles."""
        return int((a == b).sum())


@dataclass(frozen=True)
class C:
    """Algorithm C. bits: the first of its 384 projections. over: tokens, or shingles of k tokens, by frequency."""

    bits: int = 384
    over: Literal["tokens", "shingles"] = "tokens"
    k: int = 8
    content: bool = False

    def sketch(self, page: PageTokens, scheme: Scheme) -> _Words | None:
        """Computes uint64[6], of which `bits` bits count; None for a page without tokens."""
        tokens = chosen_tokens(page, self.content)
        if not len(tokens):
            return None
        if self.over == "shingles":
            tokens = _shingles(tokens, self.k, scheme)
        return simhash.simhash(tokens, scheme.constants("simhash", 8))[0]

    def agreeing(self, a: _Words, b: _Words) -> int:
        """Counts agreeing bits among the first `bits`."""
        whole, rest = divmod(self.bits, 64)
        differing = int(np.bitwise_count(a[:whole] ^ b[:whole]).sum())
        if rest:
            differing += int(np.bitwise_count((a[whole] ^ b[whole]) & np.uint64((1 << rest) - 1)))
        return self.bits - differing


@dataclass(frozen=True)
class Jaccard:
    """The exact resemblance of the sets of shingles of k tokens."""

    k: int

    def sketch(self, page: PageTokens, scheme: Scheme) -> _Words:
        return np.unique(_shingles(page.fp, self.k, scheme))

    def agreeing(self, a: _Words, b: _Words) -> float:
        return jaccard(a, b)


def chosen_tokens(page: PageTokens, content: bool) -> _Words:
    """Returns the tokens that a variant reads."""
    if not content or not page.content.any():
        return page.fp
    return np.ascontiguousarray(page.fp[page.content])


def _shingles(tokens: _Words, k: int, scheme: Scheme) -> _Words:
    return shingling.shingles(tokens, scheme.constants("shingle", k) | np.uint64(1))


def as_set(shingles: _Words) -> _Words:
    """Turns a multiset into a set: the i-th occurrence of a shingle becomes a distinct element.

    The resemblance of two such sets is sum min(f, g) / sum max(f, g) of the shingles' frequencies.
    """
    order = np.argsort(shingles, kind="stable")
    ordered = shingles[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    occurrence = np.arange(len(ordered)) - np.repeat(starts, sizes)
    out = np.empty_like(shingles)
    out[order] = ordered ^ (occurrence.astype(np.uint64) * _AGAIN)
    return out


def jaccard(a: _Words, b: _Words) -> float:
    """Computes |A & B| / |A | B| of two sets of elements; 0 for two empty ones."""
    one, other = np.unique(a), np.unique(b)
    common = len(np.intersect1d(one, other, assume_unique=True))
    union = len(one) + len(other) - common
    return common / union if union else 0.0


class _Pairs:
    """The labelled pairs whose two texts are readable, with the scores of variants that were computed before."""

    def __init__(self, study: CrawlStudy, places: list[int]) -> None:
        self.texts, self.same_site = study.texts, study.same_site[places]
        self.pages = [(study.labels.a[place], study.labels.b[place]) for place in places]
        self._scores: dict[B | C | Jaccard, _Scores] = {}

    def scores(self, variant: B | C | Jaccard) -> _Scores:
        if variant not in self._scores:
            sketches = {page: self._sketch(variant, page) for pair in self.pages for page in pair}
            both = [(sketches[a], sketches[b]) for a, b in self.pages]
            alike = [0 if a is None or b is None else variant.agreeing(a, b) for a, b in both]
            self._scores[variant] = np.array(alike, dtype=float)
        return self._scores[variant]

    def _sketch(self, variant: B | C | Jaccard, page: int) -> _Words | None:
        tokens = self.texts.tokens(page)
        assert tokens is not None, "pairs of unreadable pages were left out"
        return variant.sketch(tokens, self.texts.scheme)

    def lcs_ratios(self) -> _Scores:
        return np.array([self.texts.ratio(a, b) or 0.0 for a, b in self.pages], dtype=float)


class Variant(NamedTuple):
    """A measure of similarity. threshold: least score of similar pages. scores: one per pair."""

    name: str
    threshold: float
    scores: Callable[[_Pairs], _Scores]


def _alone(variant: B | C | Jaccard) -> Callable[[_Pairs], _Scores]:
    return lambda pairs: pairs.scores(variant)


def _combined(b: B, c: C) -> Callable[[_Pairs], _Scores]:
    """Returns the C-similarity of pairs that B calls similar, else 0."""
    return lambda pairs: np.where(pairs.scores(b) >= 2, pairs.scores(c), 0.0)


def _slower_on_one_site(pairs: _Pairs) -> _Scores:
    """Judges pairs on two sites by algorithm C (1 or 0), pairs on one site by the ratio of the full texts."""
    return np.where(pairs.same_site, pairs.lcs_ratios(), (pairs.scores(C()) >= 372).astype(float))


VARIANTS: tuple[Variant, ...] = (
    Variant("B, as published (k 8, B >= 2)", 2, _alone(B())),
    Variant("B, B >= 3", 3, _alone(B())),
    Variant("B, k 5", 2, _alone(B(k=5))),
    Variant("B, shingles by frequency", 2, _alone(B(weighted=True))),
    Variant("B, main content only", 2, _alone(B(content=True))),
    Variant("B, k 5, main content only", 2, _alone(B(k=5, content=True))),
    Variant("C, as published (384 bits, C >= 372)", 372, _alone(C())),
    Variant("C, 192 bits", 186, _alone(C(bits=192))),
    Variant("C, 96 bits", 93, _alone(C(bits=96))),
    Variant("C, 64 bits", 62, _alone(C(bits=64))),
    Variant("C over shingles of 8", 372, _alone(C(over="shingles"))),
    Variant("C over shingles of 5", 372, _alone(C(over="shingles", k=5))),
    Variant("C over shingles of 2", 372, _alone(C(over="shingles", k=2))),
    Variant("C, main content only", 372, _alone(C(content=True))),
    Variant("combined, as published (B >= 2, C >= 355)", 355, _combined(B(), C())),
    Variant("combined, k 5", 355, _combined(B(k=5), C())),
    Variant("combined, main content only", 355, _combined(B(content=True), C(content=True))),
    Variant("C on two sites, LCS ratio on one", 0.75, _slower_on_one_site),
    Variant("yardstick: exact Jaccard of 5-shingles", 0.8, _alone(Jaccard(5))),
    Variant("yardstick: LCS ratio of the full text", 0.75, _Pairs.lcs_ratios),
)
_COLUMNS = text("variant") | number("threshold") | count("pairs") | MEASURES | number("best on S1") | share("F1 on S2")


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
    every = range(len(study.labels)) if study.labels.decided else ()
    places = [
        place
        for place in study.chosen(every, PAIRS_MAX)
        if all(study.texts.tokens(page) is not None for page in (study.labels.a[place], study.labels.b[place]))
    ]
    if len(every) > PAIRS_MAX:
        section.text += f" {PAIRS_MAX:,} labelled pairs are read, chosen by seed."
    section.missing = not_measured(study)
    if not places:
        section.missing = section.missing or "No labelled pair's texts can be read."
        return section
    pairs, truth, groups = _Pairs(study, places), study.judged(Judgement.CORRECT)[places], study.groups[places]
    half = (study.ranks(np.array(places), 0xAB1A) & np.uint64(1)).astype(bool)
    scores = {variant: variant.scores(pairs) for variant in VARIANTS}

    def row(variant: Variant, here: Mask) -> list[Cell]:
        found = measure(scores[variant][here] >= variant.threshold, truth[here], study.seed, groups=groups[here])
        s1, s2 = here & half, here & ~half
        best, f1_on_s2 = best_threshold(scores[variant][s1], truth[s1]), None
        if best is not None:
            f1_on_s2 = measure(scores[variant][s2] >= best, truth[s2], study.seed, rounds=1).f1.value
        return [variant.name, variant.threshold, found.pairs, *measures(found), best, f1_on_s2]

    for where, mask in sites(study).items():
        here = mask[places]
        if here.any() and (where == "all" or not here.all()):
            name = "ablations-" + where.replace(" ", "-")
            rows = [row(variant, here) for variant in VARIANTS]
            section.tables.append(ResultTable(name, f"Labelled pairs: {where}", _COLUMNS, rows))
    return section


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
