"""Tapes and their comparison, against a plain dynamic program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.neardup.hostile import EXAMPLES
from tests.neardup.pairs.tapes import Tape, compare_tapes
from tests.neardup.sketch.parts import make_tape
from tests.neardup.sketch.sketch_inputs import edited, fingerprints, words_of
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

U64 = np.uint64


def tokens_of(words):
    return np.array(oracle.fingerprints(words, 1), dtype=U64)


@pytest.mark.kernel
@pytest.mark.parametrize(("count", "bytes_max"), [(0, 5), (1, 5), (5, 5), (6, 5), (100, 5), (100, 40), (100, 0)])
def test_small_tapes_are_the_oracles(count, bytes_max):
    words = words_of(count, count, vocabulary=30)
    tokens = tokens_of(words)
    assert make_tape(tokens, bytes_max) == oracle.tape(tokens.tolist(), bytes_max)


@pytest.mark.parametrize("count", [499, 500, 501, 1000, 4000, 40_000])
def test_long_tapes_are_the_oracles(count):
    tokens = fingerprints(count, count)
    repeated = tokens[np.random.default_rng(count).geometric(20 / count, count) % count]
    for page in (tokens, repeated):
        made = make_tape(page, 500)
        assert made == oracle.tape(page.tolist(), 500)
        assert len(made.data) <= 500


@pytest.mark.kernel
def test_a_frequent_token_does_not_empty_the_tape():
    rare = fingerprints(60, 1)
    page = np.concatenate([np.repeat(rare[:1], 100), rare])
    assert len(make_tape(page, 70).data) == 8 + 59


@pytest.mark.kernel
def test_thinning_gives_the_tape_of_the_next_level():
    tokens = fingerprints(120, 2)
    level, data = make_tape(tokens, 120)
    assert level == 0
    at_one = [g for g in (oracle.splitmix(t) for t in tokens.tolist()) if g % 2 == 0]
    assert [x >> 1 for x in data if not x & 1] == [g >> 57 for g in at_one]


@pytest.mark.kernel
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 3), st.integers(0, 3), st.integers(1, 255))
def test_any_two_tapes_score_as_the_dynamic_program_says(a, b, level_a, level_b, mask):
    # few different bytes: runs repeat
    a, b = (Tape(level, bytes(x & mask for x in data)) for level, data in ((level_a, a), (level_b, b)))
    found = compare_tapes(a, b)
    size_a, size_b, score = oracle.tape_score(a, b)
    assert found == (pytest.approx(score, abs=1e-15), size_a, size_b)
    swapped = compare_tapes(b, a)
    assert swapped == (found.lj, found.b, found.a)


@pytest.mark.parametrize("seed", range(40))
def test_tapes_of_edited_pages_score_as_the_dynamic_program_says(seed):
    words = words_of(200 + 150 * (seed % 12), seed)
    share = (0, 0.01, 0.1, 0.4)[seed % 4]
    a, b = (make_tape(tokens_of(x), 500) for x in (words, edited(words, share, seed)))
    size_a, size_b, score = oracle.tape_score(a, b)
    assert compare_tapes(a, b) == (pytest.approx(score, abs=1e-15), size_a, size_b)


@pytest.mark.kernel
def test_two_levels_apart_never_match():
    data = bytes(range(2, 80, 2))
    assert compare_tapes(Tape(3, data), Tape(3, data)).lj == 1.0
    assert compare_tapes(Tape(3, data), Tape(5, data)) == (0.0, len(data), len(data))


@pytest.mark.kernel
def test_empty_tapes_score_zero():
    assert compare_tapes(Tape(0, b""), Tape(0, b"")) == (0.0, 0, 0)
    assert compare_tapes(Tape(0, b"abcd"), Tape(0, b"")) == (0.0, 4, 0)
    assert compare_tapes(Tape(0, b"ab"), Tape(0, b"ab")) == (0.0, 2, 2)


@pytest.mark.parametrize("size", [63, 64, 65, 127, 128, 129, 500, 1500])
def test_lengths_around_machine_words(size):
    rng = np.random.default_rng(size)
    a = rng.integers(0, 4, size, dtype=np.uint8).tobytes()
    b = rng.integers(0, 4, size, dtype=np.uint8).tobytes()
    _, _, score = oracle.tape_score((0, a), (0, b))
    assert compare_tapes(Tape(0, a), Tape(0, b)).lj == pytest.approx(score, abs=1e-15)
