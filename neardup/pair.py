"""What the online rules see of two pages."""

from typing import NamedTuple


class Pair(NamedTuple):
    """The numbers of a pair, made by `neardup.kernels.pairs` from two records: a the new page, b the candidate.

    tape_score and content_score are LJ = |LCS| / (|A| + |B| - |LCS|), 0 if two levels apart. tape_a, tape_b, content_a,
    content_b: bytes at the compared level. A veto is 0: none; 1: holds; 2: would hold were every token absent that a
    saturated filter cannot prove absent.
    """

    same_digest: bool
    same_site: bool
    same_hen_site: bool
    b_similarity: int
    c_similarity: int
    simhash64_agree: int
    tokens_a: int
    tokens_b: int
    tape_a: int
    tape_b: int
    tape_score: float
    content_tokens_a: int
    content_tokens_b: int
    content_a: int
    content_b: int
    content_score: float
    title_veto: int
    head_veto: int
