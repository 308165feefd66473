"""The bits of a sketch, pinned: on every CPU, with the JIT off, and for ever (see tests/golden/sketches.py)."""

import json

import pytest

from neardup.scheme import Scheme
from tests.golden import sketches as golden

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

GOLDEN = json.loads(golden.PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", GOLDEN["pages"], ids=range(len(GOLDEN["pages"])))
def test_sketches_have_the_golden_bits(page):
    assert golden.sketch_of(golden.record_of(page)) == page["sketch"]


@pytest.mark.parametrize("case", GOLDEN["pairs"], ids=lambda case: f"{case['a']}-{case['b']}")
def test_pairs_have_the_golden_numbers(case):
    a, b = (golden.record_of(GOLDEN["pages"][case[which]]) for which in "ab")
    assert golden.pair_of(a, b) == case["pair"]


def test_the_vectors_are_of_this_seed_and_scheme():
    assert GOLDEN["seed"] == golden.SEED
    assert Scheme(seed=golden.SEED).digest == "ec779aa982aaf66077d650c00c9a0a8a"
