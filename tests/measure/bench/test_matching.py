"""Rows of the matcher on the crawl: small ones, that say what was found and void what was not."""

import pytest

from neardup.decider import Decider
from neardup.scheme import Scheme
from streams.pipeline.matcher import FOLD_BYTES_MAX
from tests.measure.bench import matching
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.matching import Live, Matching, digest, together

pytestmark = pytest.mark.whole

SCHEME = Scheme(seed=1)


def test_row_has_the_found_copies_and_is_void_if_some_were_missed():
    live = Live(SCHEME, 600, 600, 0.3)
    row = live.row(live.matched(), live.sketched())
    assert not row.void
    assert row.ours > row.peer > 0
    assert " exact, " in row.check
    assert row.notes["unique"] > 500
    live.verdicts = [line.replace(b"exact_duplicate", b"unique") for line in live.verdicts]
    assert live.row(1.0, 1.0).void


def test_digest_tells_whether_two_versions_emit_the_same_bytes():
    first, second = (Live(SCHEME, 300, 100, 0.5) for _ in range(2))
    first.matched()
    second.matched()
    assert digest(first.verdicts) == digest(second.verdicts) != digest(first.verdicts[1:])


def test_messages_are_folded_together_up_to_a_bound():
    messages = [(offset, b"x" * (FOLD_BYTES_MAX // 3)) for offset in range(7)]
    parts = list(together(messages))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert [message for part in parts for message in part] == messages


def test_filled_index_continues_with_the_next_message(tmp_path):
    crawl = Crawl(1_200)
    with Matching(tmp_path, Decider(scheme=SCHEME.digest)) as run:
        messages = crawl.messages(SCHEME)
        run.fill(messages, 600)
        assert 600 <= run.pages < crawl.count
        assert not run.verdicts
        assert run.take([next(messages)]) > 0
        assert run.verdicts


def test_larger_index_is_compared_with_the_smallest(monkeypatch):
    monkeypatch.setattr(matching, "MEASURED", 600)
    small, large = matching.growth(SCHEME, [600, 1200])
    assert (small.ratio, small.peer) == (1.0, small.ours)
    assert large.ratio == pytest.approx(small.ours / large.ours)
