"""Lists figures of Henzinger 2006 for comparison: 1.6 billion pages, labelled by hand."""

from collections.abc import Mapping
from typing import NamedTuple

#: The cutoff of C-similarity in the combined algorithm, and the threshold t of algorithm C (bits of 384).
COMBINED_CUTOFF, C_MIN = 355, 372
#: Ranges of C-similarity, both ends included.
C_LEVELS = ((382, 384), (379, 381), (376, 378), (0, 375))


class PaperRow(NamedTuple):
    """Labelled pairs and the shares of correct, not correct and undecided ones; forms: prefilled forms, undecided."""

    pairs: int
    correct: float
    incorrect: float
    undecided: float
    forms: float | None = None

    @property
    def with_forms(self) -> float | None:
        """Returns the share of correct pairs if prefilled, erasable forms count as correct, as in the paper."""
        return None if self.forms is None else round(self.correct + self.forms, 2)


#: Sections 3.1 to 3.4, algorithm B and algorithm C.
B_ROWS = {
    "all": PaperRow(1910, 0.38, 0.53, 0.09, 0.04),
    "same site": PaperRow(1758, 0.34, 0.57, 0.09, 0.04),
    "different sites": PaperRow(152, 0.86, 0.06, 0.08, 0.01),
    "B-similarity 2": PaperRow(1032, 0.24, 0.68, 0.08, 0.03),
    "B-similarity 3": PaperRow(389, 0.42, 0.48, 0.10, 0.04),
    "B-similarity 4": PaperRow(240, 0.55, 0.36, 0.09, 0.05),
    "B-similarity 5": PaperRow(143, 0.71, 0.23, 0.06, 0.02),
    "B-similarity 6": PaperRow(106, 0.85, 0.05, 0.10, 0.08),
}
C_ROWS = {
    "all": PaperRow(1872, 0.50, 0.27, 0.23, 0.18),
    "same site": PaperRow(1393, 0.36, 0.34, 0.30, 0.25),
    "different sites": PaperRow(479, 0.90, 0.05, 0.05, 0.0),
    "C-similarity >= 382": PaperRow(179, 0.47, 0.37, 0.16, 0.10),
    "C-similarity 379-381": PaperRow(407, 0.40, 0.37, 0.23, 0.18),
    "C-similarity 376-378": PaperRow(532, 0.37, 0.27, 0.35, 0.30),
    "C-similarity < 376": PaperRow(754, 0.62, 0.19, 0.19, 0.12),
}
#: Section 3.5: pairs of S2 that the combined algorithm keeps; R: of B's correct pairs, how many it keeps.
COMBINED_ROWS = {
    "all": PaperRow(363, 0.79, 0.15, 0.06),
    "same site": PaperRow(296, 0.74, 0.19, 0.07),
    "different sites": PaperRow(65, 0.99, 0.00, 0.01),
}
COMBINED_R = 0.79


def b_share(level: int) -> float | None:
    """Returns the share of the paper's labelled B pairs with this B-similarity; its sample was drawn from all B pairs.

    None below 2, where pairs are not B-similar.
    """
    if level < 2:
        return None
    return round(B_ROWS[f"B-similarity {level}"].pairs / B_ROWS["all"].pairs, 3)


def c_share(low: int, high: int) -> float:
    """Returns the share of the paper's labelled C pairs in one of C_LEVELS."""
    return round(C_ROWS[c_level_name(low, high)].pairs / C_ROWS["all"].pairs, 3)


def same_site_share(rows: Mapping[str, PaperRow]) -> float:
    """Returns the share of the paper's labelled pairs of an algorithm on one site."""
    return round(rows["same site"].pairs / rows["all"].pairs, 3)


def c_level_name(low: int, high: int) -> str:
    """Returns the name of a range of C-similarity in the paper's table."""
    if high == 384:
        return f"C-similarity >= {low}"
    return f"C-similarity {low}-{high}" if low else f"C-similarity < {high + 1}"
