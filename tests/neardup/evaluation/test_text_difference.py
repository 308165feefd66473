"""Term differences and the longest common subsequence, against the textbook's table."""

import numpy as np
import pytest

from neardup.evaluation import text_difference
from neardup.evaluation.text_difference import common_ratio, common_tokens, ratio_at_most
from tests.oracle.lcs import lcs

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("edits", [400, 3])  # Myers alone, and the bits after it has given up
def test_both_ways_agree_with_the_table(seed: int, edits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_difference, "_EDITS", edits)
    rng = np.random.default_rng(seed)
    for n, m, letters in ((0, 5, 3), (1, 1, 1), (64, 64, 4), (65, 130, 9), (150, 40, 3), (200, 190, 60)):
        a, b = rng.integers(0, letters, n, dtype=np.uint64), rng.integers(0, letters, m, dtype=np.uint64)
        both = lcs(a.tolist(), b.tolist())
        assert common_tokens(a, b) == both
        assert ratio_at_most(a, b) >= common_ratio(a, b)
        assert common_ratio(a, b) == (both / (n + m - both) if both else 0)


def test_a_carry_crosses_words_without_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_difference, "_EDITS", 3)
    a = np.arange(1000, 1192, dtype=np.uint64)
    a[[1, 150]] = 7  # in the first and the third word of 64 places, none in the second
    assert common_tokens(a, np.array([7], np.uint64)) == 1
    assert common_tokens(a, np.array([7, 7, 7], np.uint64)) == 2


def test_a_bound_by_occurrences() -> None:
    a, b = np.array([1, 2, 2, 3], np.uint64), np.array([3, 2, 1, 4], np.uint64)
    assert ratio_at_most(a, b) == 3 / 5
    assert ratio_at_most(a[:0], b) == 0


def test_sequences_too_long_are_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_difference, "_EDITS", 3)
    a, b = np.arange(300, dtype=np.uint64), np.arange(300, dtype=np.uint64)[::-1].copy()
    assert common_tokens(a, b) == 1
    assert common_tokens(a, b, steps_max=100) is None
    assert common_ratio(a, b, 100) is None
