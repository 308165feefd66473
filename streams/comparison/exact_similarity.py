"""Computes the exact similarity of two texts, and the range of tape scores under other seeds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from neardup.evaluation.pairs.difference import common_ratio
from neardup.evaluation.pairs.texts import page_tokens
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare
from neardup.report.evidence_sentences import percent
from neardup.scheme import Scheme
from neardup.sketch.layout import RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch import Sketch

#: Number of other seeds: enough for a range, in a tenth of a second.
SEEDS = 16
#: Step limit of the exact comparison, half a second; longer texts are not compared.
_STEPS_MAX = 500_000_000


class ExactSimilarity(NamedTuple):
    """similarity: |LCS| / (|A| + |B| - |LCS|) of all words; None if the texts are too long.

    least, most: range of the tape scores under SEEDS other seeds; None if a tape is shorter than the rule requires.
    """

    similarity: float | None
    least: float
    most: float

    def to_json(self) -> dict[str, Any]:
        """Returns plain values only."""
        return {"similarity": self.similarity, "seeds": SEEDS, "tape_least": self.least, "tape_most": self.most}

    def sentence(self, sampled: float) -> str:
        """Formats the result. sampled: the pair's tape score."""
        seeds = f"with {SEEDS} other seeds the sample says {percent(self.least)} to {percent(self.most)}"
        if self.similarity is None:
            return f"The texts are too long to be compared as wholes; {seeds}."
        whole = f"Exactly, {percent(self.similarity)} of all words stand in the same order, where the sample says"
        return f"{whole} {percent(sampled)}; {seeds}."


def exact_of(pages: Sequence[Page], scheme: Scheme) -> ExactSimilarity | None:
    """Compares two pages; None if one has no text. Takes some tenths of a second."""
    a, b = (page_tokens(page, scheme).fp for page in pages)
    if not len(a) or not len(b):
        return None
    pairs = [pair_of_pages(pages, replace(scheme, seed=seed)) for seed in range(1, SEEDS + 1)]
    scores = [pair.tape_score for pair in pairs if pair is not None]
    return ExactSimilarity(common_ratio(a, b, _STEPS_MAX), min(scores), max(scores)) if scores else None


def pair_of_pages(pages: Sequence[Page], scheme: Scheme) -> Pair | None:
    """Sketches two pages and computes their numbers; None if one cannot be sketched as a page."""
    sketches = [Sketch(record) for record in sketch_pages(pages, scheme)]
    return compare(*sketches) if all(sketch.kind is RecordKind.PAGE for sketch in sketches) else None
