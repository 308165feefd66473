"""The crawl of the bench has the proportions that it names, and what is planted in it can be found."""

import numpy as np
import orjson
import pytest

from neardup.decider import Decider
from neardup.index.memory import MemoryStore
from neardup.page import Page
from neardup.scheme import Scheme
from streams.pipeline.matcher import Matcher
from tests.measure.bench.crawl import SHARES, Crawl, What, found, merged_by

SCHEME = Scheme(seed=1)


@pytest.mark.parametrize("repeats", SHARES)
def test_crawl_has_its_share_of_repeats(repeats):
    crawl = Crawl(20_000, repeats=repeats)
    share = np.bincount(crawl.what, minlength=len(What)) / crawl.count
    assert share[What.COPY] == pytest.approx(repeats / 2, abs=0.01)
    assert share[What.EDITED_COPY] == pytest.approx(repeats / 2, abs=0.01)
    assert share[[What.UNCHANGED, What.EDITED, What.REPLACED, What.STALE, What.GONE]].sum() == pytest.approx(
        0.1, abs=0.01
    )
    assert share[What.TEMPLATE] == pytest.approx(0.1, abs=0.01)


def test_longer_crawl_begins_with_the_shorter_one():
    short, long = Crawl(1_000), Crawl(2_000)
    for column in ("what", "origin", "content", "planted"):
        assert (getattr(short, column) == getattr(long, column)[:1_000]).all(), column
    for number in (0, 400, 999):
        assert short.page(number) == long.page(number)


def test_crawl_repeats_earlier_pages_alone():
    crawl = Crawl(3_000, repeats=0.5)
    assert (crawl.origin <= np.arange(crawl.count)).all()
    sources = crawl.what[crawl.origin[crawl.origin < np.arange(crawl.count)]]
    assert set(sources) == {What.NEW, What.TEMPLATE}


def test_template_is_used_by_several_sites():
    crawl = Crawl(2_000)
    numbers = np.flatnonzero(crawl.what == What.TEMPLATE).tolist()
    same = [number for number in numbers if crawl.words(number)[:20] == crawl.words(numbers[0])[:20]]
    assert len({crawl.url(number).split("/")[2] for number in same}) == 5


def test_copies_of_a_crawl_are_found():
    crawl, matcher, verdicts = Crawl(1_500), Matcher(MemoryStore(), Decider(SCHEME.digest)), []
    for message in crawl.messages(SCHEME):
        prepared = matcher.prepare([message])
        verdicts += map(orjson.loads, prepared.verdicts.lines())
        matcher.apply(prepared)
    checked = found(crawl, merged_by(verdicts))
    assert checked.exact == checked.exact_of > 150
    assert checked.edited >= 0.95 * checked.edited_of > 100
    assert checked.wrong == 0
    own = [verdict for verdict in verdicts if not verdict["n"]]
    for what, kinds in (
        (What.UNCHANGED, {"unchanged", "edited"}),
        (What.STALE, {"stale"}),
        (What.GONE, {"gone"}),
        (What.REPLACED, {"unique"}),
    ):
        assert {verdict["verdict"] for verdict, is_ in zip(own, crawl.what, strict=True) if is_ == what} <= kinds, what


def test_answers_are_checked_against_the_planted_copies():
    crawl = Crawl(1_000)
    number = int(np.flatnonzero(crawl.planted & (crawl.what == What.COPY))[0])
    new = int(np.flatnonzero(crawl.what == What.NEW)[-1])
    right = int(crawl.origin[number])
    assert found(crawl, {}).share == 0
    assert (found(crawl, {number: right}).exact, found(crawl, {number: right}).wrong) == (1, 0)
    assert (found(crawl, {number: right + 1}).exact, found(crawl, {number: right + 1}).wrong) == (0, 1)
    assert found(crawl, {new: 0}).wrong == 1


def test_pages_are_html_or_plain_text():
    crawl = Crawl(200)
    page = crawl.page(0, html=False)
    assert page == Page(page.url, crawl.text(0).encode(), "text/plain; charset=utf-8", page.fetched_at)
    assert crawl.page(0).body.startswith(b"<!doctype html>")
    (gone,) = {crawl.page(number).body for number in range(200) if crawl.what[number] == What.GONE}
    assert gone is None
