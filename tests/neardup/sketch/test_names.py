"""The filter of a page's tokens: proves absence, and knows when it cannot."""

import numpy as np
import pytest

from tests.neardup.sketch.parts import is_saturated, make_filter, may_hold
from tests.neardup.sketch.sketch_inputs import fingerprints
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")


@pytest.mark.kernel
@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 64), (64, 64), (65, 128), (128, 128), (129, 256)])
def test_small_filters_are_the_oracles(count, size):
    tokens = fingerprints(count, count)
    data = make_filter(tokens)
    assert len(data) == size
    assert data == oracle.bloom(tokens.tolist())


@pytest.mark.parametrize("count", [1000, 1024, 1025, 20_000])
def test_filters_stop_growing(count):
    tokens = fingerprints(count, count)
    data = make_filter(tokens)
    assert len(data) == 1024
    assert data == oracle.bloom(tokens.tolist())


def test_a_token_of_the_page_is_never_absent_and_few_others_seem_present():
    tokens = fingerprints(1000, 7)
    data = make_filter(tokens)
    assert all(may_hold(data, token) for token in tokens.tolist())
    others = fingerprints(4000, 8).tolist()
    expected = (1 - np.exp(-4 * 1000 / 8192)) ** 4
    seeming = sum(may_hold(data, token) for token in others) / len(others)
    assert seeming == pytest.approx(expected, abs=5 * np.sqrt(expected / len(others)))


@pytest.mark.kernel
def test_an_empty_page_holds_nothing():
    assert not may_hold(b"", 5)
    assert not is_saturated(b"")


@pytest.mark.kernel
def test_more_than_half_of_the_bits_saturate():
    assert not is_saturated(b"\x0f" * 64)
    assert is_saturated(b"\x0f" * 63 + b"\x1f")
    assert is_saturated(b"\xff" * 64)


def test_pages_of_less_than_1400_tokens_are_not_saturated():
    assert not is_saturated(make_filter(fingerprints(1350, 1)))
    assert is_saturated(make_filter(fingerprints(1500, 1)))
