"""Verdicts made from columns come to what the Python fold makes one by one, to the byte."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.clusters.verdict_columns import VERDICT, Form, VerdictColumns, verdicts_of
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.sketch.layout import field_at
from neardup.verdict import Kind
from tests import whole
from tests.neardup.clusters.test_plain_pages import joining, mixed
from tests.neardup.clusters.verdict_rows import Rows, recording
from tests.neardup.handmade import record
from tests.neardup.story import NEAR, SMALL, endless, slices_of, text
from tests.neardup.test_fold import DECIDERS, crawl


def judged(records, decider, size):
    """(the Python fold's verdicts, columns) of each batch."""
    store, by_id = MemoryStore(), dict(enumerate(records, 1))
    for batch in slices_of(records, endless(size)):
        with recording() as known:
            outcome = fold(batch, store, decider)
        store.write(outcome.writes)
        columns = Rows(by_id, decider, known).columns(batch, outcome.verdicts)
        yield outcome.verdicts, columns


def check(records, decider, size):
    """Counts of kinds and forms that were seen."""
    seen = Counter()
    for expected, columns in judged(records, decider, size):
        made = verdicts_of(columns, decider)
        assert [verdict.to_json() for verdict in made] == [verdict.to_json() for verdict in expected]
        assert made == expected
        seen.update(verdict.verdict for verdict in made)
        seen.update(map(Form, columns.rows["form"].tolist()))
        seen.update(name for verdict in made for name in verdict.evidence)
        seen.update(name for name in VERDICT.names if columns.rows[name].any())
    return seen


@pytest.mark.parametrize("name", whole.first([*DECIDERS], 3))
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1 << 32), size=st.sampled_from([1, 7, 60]))
def test_verdicts_of_columns_equal_the_folds(name, seed, size):
    check([*mixed(seed), *joining(seed, 6)], DECIDERS[name], size)
    check(crawl(seed, 120), DECIDERS[name], size)


def named():
    """Pages with one text: some with one name at several places of a site, others with names of their own."""
    one_name = [record(f"http://a.org/{i}", text((10, 1 + i)), title="Wool") for i in range(4)]
    at = field_at("tail")
    tails = [page[:at] + bytes([i]) + page[at + 1 :] for i, page in enumerate(one_name)]
    titled = [record(f"http://a.org/{name}", NEAR, title=name) for name in ("Tin", "Zinc")]
    copied = [f"tale{i}" for i in range(60)]
    added = [record("http://long.org/", " ".join(copied)), record("http://short.org/", " ".join(copied[:48]))]
    return [*tails, *titled, *added]


def test_verdicts_of_columns_have_every_kind_and_form():
    seen = Counter()
    for name in ("plain", "hot", "content", "combined"):
        seen += check([*mixed(2), *crawl(5), *named()], DECIDERS[name], 50)
    assert [kind for kind in Kind if not seen[kind]] == []
    assert [form for form in Form if not seen[form]] == []
    assert [name for name in VERDICT.names if not seen[name]] == []


def test_verdicts_of_no_columns_are_none():
    none = np.zeros(0)
    assert verdicts_of(VerdictColumns(np.zeros(0, VERDICT), none, none, none, none, ()), SMALL) == []
