"""The worst cases of the matcher are what they say."""

import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.scheme import Scheme
from tests.measure.bench import worst_matching
from tests.measure.bench.generated import Log
from tests.measure.bench.store_rows import by_field, enough_room
from tests.measure.bench.table import Row
from tests.measure.bench.worst_matching import CASES, _judge

pytestmark = pytest.mark.whole

DECIDER = Decider(scheme=Scheme(seed=1).digest)


@pytest.mark.parametrize(
    ("make", "scored", "hot", "kinds"),
    [
        (worst_matching.hot, 0, 10, {"unique"}),
        (worst_matching.template, 0, 9, {"unique"}),
        (worst_matching.crowded, 60, 0, {"unique"}),
        (worst_matching.one_text, 0, 0, {"exact_duplicate"}),
        (worst_matching.one_near, 1, 0, {"near_duplicate"}),
    ],
)
def test_a_late_page_of_a_case(make, scored, hot, kinds):
    store = MemoryStore()
    records = make(Log().records(0, 288), 0)
    early = fold(list(enumerate(records[:256], 1)), store, DECIDER)
    store.write(early.writes)
    late = fold(list(enumerate(records[256:], 1000)), store, DECIDER)
    assert early.hot_turned == hot
    assert {verdict.verdict for verdict in late.verdicts} == kinds
    assert late.scored_by_page[-1] >= scored
    if not scored:
        assert late.scored == 0


def test_row_names_exceeded_factors_and_growth():
    row = Row("x", "us a page", 300.0, 100.0)
    _judge(row, CASES[0], 2.0)
    assert "3.00 of the mean page's cost, OVER 1" in row.check
    assert "GROWS" in row.check
    row = Row("x", "us a page", 90.0, 100.0)
    _judge(row, CASES[0], 1.0)
    assert "within 1" in row.check
    assert "GROWS" not in row.check


def test_an_index_that_does_not_fit_is_refused_before_it_is_begun(tmp_path):
    enough_room(tmp_path, 10)
    with pytest.raises(BadInput, match="GB free"):
        enough_room(tmp_path, 10**12)


@pytest.mark.slow
def test_the_fields_make_up_the_record():
    for row in by_field(Scheme(seed=1)):
        assert sum(row.notes.values()) == pytest.approx(row.ours, abs=8)


@pytest.mark.slow
def test_promotions_are_those_of_one_cluster(monkeypatch):
    monkeypatch.setattr(worst_matching, "_LOOKS", 3)
    (row,) = worst_matching.promotions(Scheme(seed=1), members=800, gone=600)
    assert row.name == "matcher: a promotion, 600 of 800 pages gone"
    assert row.ours > 0
