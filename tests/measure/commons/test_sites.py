"""Made-up sites are the same in each run, their truth is what they were built for, and the table shows the counts."""

import random
from collections import Counter

import pytest

from neardup.page import Page
from tests.measure.commons import run
from tests.measure.commons.sites import kinds, site_tables
from tests.measure.commons.sites.frame import Frame, ago
from tests.measure.commons.sites.site_truth import CrawledSite, read_judgements, section_of
from tests.measure.commons.truth import Relation

SIZE = 60


def test_a_made_site_is_measured_and_shown() -> None:
    stream = run.Stream("site: dates", "site: dates", "site", lambda: kinds.made("figures: dates", 0, SIZE))
    result = run.measured(stream, ["verified"])
    tally = Counter(result["counts"]["verified"])
    assert tally["pages"] == SIZE
    assert tally["distinct"] + tally["near"] + tally["reframed"] == SIZE
    assert tally["near"] > 0
    assert tally["near_found"] == tally["near"]
    assert tally["wrong"] == 0
    table = site_tables.report([result])
    assert f"| dates | {SIZE} |" in table
    assert f"| all | {SIZE} |" in table


def test_a_report_of_no_site_says_so() -> None:
    assert site_tables.report([]) == "No site is meant.\n"


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_a_generator_gives_pages_of_other_urls_the_same_in_each_run(kind: kinds.Kind) -> None:
    pages = kinds.pages_of(kind, 0, SIZE)
    random.seed(1)
    assert kinds.pages_of(kind, 0, SIZE) == pages
    assert len({page.url for page in pages}) == len(pages) > SIZE // 2
    assert len({page.item for page in pages}) > 1
    assert {page.url for page in pages}.isdisjoint(page.url for page in kinds.pages_of(kind, 1, SIZE))


def test_sites_that_are_kept_back_are_others() -> None:
    usual, kept = ([name for name, _, _ in kinds.streams(None, back)] for back in (False, True))
    assert len({*usual, *kept}) == 2 * len(kinds.KINDS)


def test_works_and_items_relate_the_pages_of_a_made_site() -> None:
    frame = Frame("release notes", 0, 4)
    words = " ".join(f"w{number}" for number in range(100))
    for path, main, item in (
        ("a", words, "1"),
        ("b", f"{words} x", "2"),
        ("c", f"{words} {words}", "3"),
        ("d", "y", "1"),
    ):
        frame.add(f"/{path}", "Notes", f"<p>{main}</p>", item, "notes")
    frame.add("/e", "Notes", f"<p>{words}</p>", "5", "others")
    frame.add("/f", "Notes", f"<p>{words[:300]}</p>", "6", "notes", loose=True)
    pages = [Page(page.url, page.body, "text/html") for page in frame.pages]
    truth = kinds.site_truth.MadeSite(frame.pages, pages)
    expected = {1: "same", 2: "other", 3: "same", 4: "other", 5: "edition"}
    assert {other: truth.of(0, other).value for other in expected} == expected
    assert truth.repeats[4] == ("distinct", [])
    assert truth.repeats[3] == ("reframed", [0])


def _crawled(path: str, title: str, main: str) -> Page:
    return Page(f"https://a.example/{path}", f"<title>{title}</title><p>{main}</p>".encode(), "text/html")


def test_titles_and_likeness_relate_the_pages_of_a_crawled_site() -> None:
    words = [f"w{number}" for number in range(100)]
    pages = [
        _crawled("1", "Notes 1", " ".join(words)),
        _crawled("2", "Notes 2", " ".join([*words, "x"])),
        _crawled("3", "Notes 3", " ".join(words[:80])),
        _crawled("4", "Notes 4", " ".join(words[:50])),
        _crawled("5", "Others", " ".join(words[:95])),
        _crawled("6", "Few", "a few words"),
        _crawled("7", "Few", "a few more words"),
        _crawled("8", "Others", " ".join(words[:96])),
    ]
    read = frozenset((pages[0].url, pages[7].url))
    truth = CrawledSite(pages, {read: Relation.OTHER})
    expected = {1: "same", 2: "edition", 3: "other", 4: "twin", 5: "other", 7: "other"}
    assert {other: truth.of(0, other).value for other in expected} == expected
    assert truth.repeats[1][1] == [0]
    assert section_of("https://a.example/x/15/y/z.html?q") == "a.example/x/y"
    assert set(read_judgements().values()) <= {Relation.SAME, Relation.EDITION, Relation.OTHER}


def test_ages_are_in_the_greatest_unit() -> None:
    assert [ago(minutes) for minutes in (0, 1, 59, 60, 1500, 90_000)] == [
        *("just now", "1 minute ago", "59 minutes ago", "1 hour ago", "1 day ago", "2 months ago"),
    ]
