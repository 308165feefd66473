"""Rates of the stages of the stream are taken where all processes of the stage run."""

import math

import pytest

from tests.measure.bench.scale import rate_of

pytestmark = pytest.mark.whole


def test_rate_leaves_out_the_start_and_the_end_of_a_stage():
    even = [(1000 * second, 50) for second in range(100)]
    assert rate_of(even) == pytest.approx(50)
    slow_start = [(1_000 * second - 60_000, 1) for second in range(60)]
    slow_end = [(100_000 + 9_000 * number, 10) for number in range(10)]
    assert rate_of([*slow_start, *even, *slow_end]) == pytest.approx(50)


def test_rate_counts_pages_from_a_time_on():
    slow, fast = [(1000 * second, 10) for second in range(50)], [(50_000 + 100 * i, 10) for i in range(100)]
    assert rate_of([*slow, *fast], since_ms=50_000) == pytest.approx(100)
    assert math.isnan(rate_of(slow, since_ms=10**9))
