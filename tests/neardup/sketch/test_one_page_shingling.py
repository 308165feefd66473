"""Algorithm B: against the oracle, against exact resemblance, and against the formula of what it finds."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.sketch import one_page_shingling as shingling
from tests.neardup.hostile import EXAMPLES
from tests.neardup.sketch.sketch_inputs import SEED, SHAPE, fingerprints
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

U64 = np.uint64
CHAIN = int(SHAPE.chains[0])


def sketch_b(tokens):
    low = shingling.minvalues(shingling.shingles(tokens, SHAPE.shingle), SHAPE.multiplier)
    return shingling.supershingles(low, 6, 14, CHAIN)


@pytest.mark.kernel
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 40])
def test_shingles_are_the_oracles(count):
    tokens = fingerprints(count, count)
    found = shingling.shingles(tokens, SHAPE.shingle)
    assert len(found) == (max(1, count - 7) if count else 0)
    assert set(found.tolist()) == oracle.shingles(tokens.tolist(), SEED)


@pytest.mark.kernel
@pytest.mark.parametrize("k", [1, 5, 7])
def test_other_lengths_of_shingles(k):
    tokens = fingerprints(30, k)
    factors = np.array([c | 1 for c in oracle.constants(SEED, "shingle", k)], dtype=U64)
    assert set(shingling.shingles(tokens, factors).tolist()) == oracle.shingles(tokens.tolist(), SEED, k)


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1])), max_size=40))
def test_minvalues_and_supershingles_are_the_oracles(words):
    tokens = np.array(words, dtype=U64)
    low = shingling.minvalues(tokens, SHAPE.multiplier)
    if words:
        assert low.tolist() == oracle.minvalues(set(words), SEED)
    else:
        assert set(low.tolist()) == {2**64 - 1}
    found = shingling.supershingles(low, 6, 14, CHAIN).tolist()
    assert found == oracle.supershingles(low.tolist(), 6, 14, CHAIN)


@pytest.mark.kernel
def test_functions_are_bijections():
    # equal minvalues mean a common shingle: neighbours of a word in each of its bits must map elsewhere
    words = np.array([0x9E3779B97F4A7C15 ^ (1 << bit) for bit in range(64)], dtype=U64)
    values = np.array([shingling.minvalues(words[i : i + 1], SHAPE.multiplier) for i in range(64)])
    assert all(len(set(column)) == 64 for column in values.T.tolist())


def test_shingles_do_not_wrap_and_keep_order():
    tokens = fingerprints(50, 1)
    turned = np.roll(tokens, 1)
    same = set(shingling.shingles(tokens, SHAPE.shingle)) & set(shingling.shingles(turned, SHAPE.shingle))
    assert len(same) == 42
    back = shingling.shingles(tokens[::-1].copy(), SHAPE.shingle)
    assert not set(shingling.shingles(tokens, SHAPE.shingle)) & set(back)


def test_frequency_does_not_count():
    tokens = np.tile(fingerprints(20, 2), 3)
    longer = np.concatenate([tokens, np.tile(fingerprints(20, 2), 2)])
    assert sketch_b(tokens).tolist() == sketch_b(longer).tolist()


def pairs_of_sets(jaccard, size, count, seed):
    """Pairs of sets of `size` words each that share so many that their resemblance is `jaccard`, nearly."""
    rng = np.random.default_rng(seed)
    common = round(2 * size * jaccard / (1 + jaccard))
    exact = common / (2 * size - common)
    for _ in range(count):
        words = rng.integers(0, 2**64, 2 * size - common, dtype=U64)
        yield exact, words[:size], words[size - common :]


@pytest.mark.parametrize("size", [60, 1000])
@pytest.mark.parametrize("jaccard", [0.2, 0.5, 0.8, 0.95])
def test_the_share_of_equal_minvalues_estimates_the_resemblance(jaccard, size):
    count, m = 600, 84
    errors = []
    for exact, a, b in pairs_of_sets(jaccard, size, count, seed=int(100 * jaccard) + size):
        low_a, low_b = (shingling.minvalues(x, SHAPE.multiplier) for x in (a, b))
        errors.append(np.mean(low_a == low_b) - exact)
    binomial = exact * (1 - exact) / m  # the variance of independent functions
    # five standard errors of mean and of variance: a wrong share of 2% or dependence of 30% would show
    assert abs(np.mean(errors)) < 5 * np.sqrt(binomial / count)
    assert abs(np.var(errors) / binomial - 1) < 5 * np.sqrt(2 / count)


def share_found(jaccard: float, functions: int = 84, supershingle: int = 14, least: int = 2) -> float:
    """Chance that two pages of this resemblance have at least `least` equal supershingles (Fetterly 2003, section 3).

    One is equal if all of its minvalues are: p = jaccard ** supershingle; their number is binomial.
    """
    n, p = functions // supershingle, jaccard**supershingle
    few: float = sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least))
    return 1 - few


@pytest.mark.parametrize(("jaccard", "size"), [(0.95, 200), (0.9, 200), (0.8, 200), (0.95, 2000), (0.9, 2000)])
def test_pairs_found_agree_with_the_formula(jaccard, size):
    count = 800
    found = 0
    pairs = list(pairs_of_sets(jaccard, size, count, seed=size + int(100 * jaccard)))
    for _, a, b in pairs:
        supers = [shingling.supershingles(shingling.minvalues(x, SHAPE.multiplier), 6, 14, CHAIN) for x in (a, b)]
        found += (supers[0] == supers[1]).sum() >= 2
    expected = share_found(pairs[0][0])
    assert abs(found / count - expected) < 5 * np.sqrt(max(expected * (1 - expected), 1 / count) / count)


def test_the_formula_of_the_share_found():
    assert share_found(1.0) == 1.0
    assert share_found(0.0) == 0.0
    assert share_found(0.95) == pytest.approx(0.8786, abs=0.0005)


def test_unsketchable_page_is_refused():
    low = np.zeros(84, U64)
    with pytest.raises(ValueError, match="supershingles"):
        shingling.supershingles(low, 6, 15, 1)
    with pytest.raises(ValueError, match="multipliers"):
        shingling.minvalues(low, SHAPE.multiplier[:8])


@pytest.mark.parametrize("period", [1, 2, 9, 700])
def test_texts_that_repeat_themselves(period):
    # the minimum comes again and again; then something new comes, in the middle of a group and in the last one
    tokens = np.concatenate([np.tile(fingerprints(period, 1), 9000 // period), fingerprints(50, 2)])
    shingled = shingling.shingles(tokens, SHAPE.shingle)
    assert shingling.minvalues(shingled, SHAPE.multiplier).tolist() == oracle.minvalues(set(shingled.tolist()), SEED)


@pytest.mark.kernel
@pytest.mark.parametrize("count", [511, 512, 513, 575, 576, 577, 641])
def test_minvalues_of_as_many_shingles_as_fill_blocks(count):
    words = fingerprints(count, count)
    assert shingling.minvalues(words, SHAPE.multiplier).tolist() == oracle.minvalues(set(words.tolist()), SEED)
