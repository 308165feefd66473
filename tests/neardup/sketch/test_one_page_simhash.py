"""Algorithm C: against the oracle, and the completeness of its blocks."""

import hashlib
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels import lanes as lanes_module
from neardup.kernels import planes as planes_module
from neardup.sketch.one_page_simhash import LOG_WEIGHTS, agreeing_bits, simhash
from tests.neardup.hostile import EXAMPLES
from tests.neardup.kernels.called import called
from tests.neardup.sketch.sketch_inputs import SEED, SHAPE, fingerprints
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

U64 = np.uint64


def check(tokens):
    raw, log = simhash(np.array(tokens, dtype=U64), SHAPE.offsets)
    assert raw.tolist() == oracle.simhash(tokens, SEED)
    assert log.tolist() == oracle.simhash(tokens, SEED, 3, oracle.log_weight)


@pytest.mark.kernel
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100])
def test_every_length_is_the_oracles(count):
    check(fingerprints(count, count).tolist())


@pytest.mark.kernel
@settings(max_examples=EXAMPLES // 5, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 40)), max_size=12), st.randoms())
def test_any_frequencies_in_any_order(words, rng):
    tokens = [token for token, count in words for _ in range(count)]
    rng.shuffle(tokens)
    check(tokens)


@pytest.mark.parametrize("count", [1000, 1024, 5000])
def test_long_pages(count):
    tokens = fingerprints(count, count)
    check(tokens[(np.arange(count) ** 2) % 997 % count].tolist())
    check(tokens.tolist())


@pytest.mark.parametrize("count", [255, 256, 65_535, 65_536, 70_001])
def test_one_token_many_times_among_others(count):
    few = fingerprints(40, 3).tolist()
    check([few[0]] * count + few[1:] * 3 + [few[1]] * (count - 1))


@pytest.mark.kernel
def test_a_zero_sum_gives_zero():
    # two tokens: where their projections differ the sum is zero
    a, b = fingerprints(2, 9)
    one, _ = simhash(np.array([a]), SHAPE.offsets)
    two, _ = simhash(np.array([b]), SHAPE.offsets)
    both, _ = simhash(np.array([a, b]), SHAPE.offsets)
    assert both.tolist() == (one & two).tolist()


@pytest.mark.kernel
def test_weights_do_not_change():
    assert hashlib.blake2b(bytes(LOG_WEIGHTS), digest_size=8).hexdigest() == "74ef932a3f52db4e"


@pytest.mark.kernel
def test_no_library_rounds_a_weight_otherwise():
    products = [8 * (1 + math.log(c)) for c in range(1, 256)]
    assert min(abs(product % 1 - 0.5) for product in products) > 7e-4


@pytest.mark.kernel
def test_order_does_not_count():
    tokens = fingerprints(60, 4)
    for mine, turned in zip(simhash(tokens, SHAPE.offsets), simhash(tokens[::-1].copy(), SHAPE.offsets), strict=True):
        assert mine.tolist() == turned.tolist()


def test_agreement_follows_the_angle():
    # Charikar 2002: expected agreement is b (1 - angle / pi); here cos(angle) is the share of common tokens
    size, b, trials = 400, 384, 60
    for common in (200, 360, 392):
        agreed = []
        for trial in range(trials):
            tokens = fingerprints(2 * size - common, trial)
            a, _ = simhash(tokens[:size].copy(), SHAPE.offsets)
            c, _ = simhash(tokens[size - common :].copy(), SHAPE.offsets)
            agreed.append(agreeing_bits(a, c))
        share = 1 - math.acos(common / size) / math.pi
        error = math.sqrt(b * share * (1 - share) / trials)
        assert abs(np.mean(agreed) - b * share) < 5 * error


def test_twelve_blocks_find_all_pairs_within_eleven_bits():
    rng = np.random.default_rng(5)
    base = rng.integers(0, 2**64, 6, dtype=U64)
    for differing in range(12):
        for _ in range(300):
            flips = np.zeros(384, bool)
            flips[rng.choice(384, differing, replace=False)] = True
            other = base ^ np.packbits(flips, bitorder="little").view(U64)
            assert agreeing_bits(base, other) == 384 - differing
            assert (base.view(np.uint32) == other.view(np.uint32)).any()
    spread = base.view(np.uint32) ^ np.uint32(1)  # twelve bits, one in each block
    assert not (base.view(np.uint32) == spread).any()


@pytest.mark.kernel
def test_wide_loads_check_their_range():
    # with bounds checks, and with the JIT off; unchecked code trusts its indices
    if not (numba.config.BOUNDSCHECK or numba.config.DISABLE_JIT):
        pytest.skip("part of make plain and make bounds")
    lanes, planes = called(lanes_module), called(planes_module)
    words, order = np.zeros(40, U64), np.zeros(20, np.uint32)
    planes.add_planes(words, 0, 2, 16, 3)
    for source, digits, target, top in ((0, 2, 24, 3), (-1, 2, 16, 3), (32, 2, 0, 2)):
        with pytest.raises(IndexError):
            planes.add_planes(words, source, digits, target, top)
    planes.add_tokens(words, order, 4, words, words, 4)
    for at, offsets, digits in ((5, words, 4), (-1, words, 4), (4, words[:7], 4), (4, words, 6)):
        with pytest.raises(IndexError):
            planes.add_tokens(words, order, at, offsets, words, digits)
    with pytest.raises(IndexError):
        planes.add_tokens(words[:0], order, 4, words, words, 4)
    planes.add_token(words, order, 19, words, words, 1)
    with pytest.raises(IndexError):
        planes.add_token(words, order, 20, words, words, 1)
    with pytest.raises(IndexError):
        lanes.shingle(words, 26, words, words)
    pieces, many = np.zeros(96, np.uint16), np.zeros(70, U64)
    lanes.least_pieces(many, 6, words, 32, pieces, 64, pieces, 0)
    for index, at, to, first in ((7, 0, 0, 0), (0, 33, 0, 0), (0, 0, 65, 0), (0, 0, 0, 65)):
        with pytest.raises(IndexError):
            lanes.least_pieces(many, index, words, at, pieces, to, pieces, first)
    with pytest.raises(IndexError):
        lanes.equal_pieces(pieces, 65, pieces, 0)
    with pytest.raises(IndexError):
        lanes.least_turned(many, 7, U64(1), U64(0))
    with pytest.raises(IndexError):
        lanes.lower(many, 63, words, 0, many, 0, 8)
