"""URL patterns that yield repeats."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import BadInput
from neardup.report import url_patterns
from neardup.report.url_patterns import (
    Counts,
    RepeatingUrls,
    counter_of,
    described,
    patterns_of,
    yielding,
)

SITE = "a.example"


def verdict(url: str, original: str = "") -> dict[str, Any]:
    kind = "exact_duplicate" if original else "unique"
    return {"verdict": kind, "url": url, "representative": {"url": original or url}}


def tally(verdicts: list[dict[str, Any]], site: str = SITE) -> list[dict[str, Any]]:
    counts: Counts = {}
    for one in verdicts:
        if (count := counter_of(one, site)) is not None:
            counts = count(counts)
    return yielding(site, [counts])


def test_a_url_parameter_that_repeats_pages_is_named() -> None:
    lists = [verdict(f"http://a.example/{n}") for n in range(340)]
    sorted_lists = [verdict(f"http://a.example/{n}?sort=up", f"http://a.example/{n}") for n in range(338)]
    (found,) = tally([*lists, *sorted_lists, *(verdict(f"http://a.example/x{n}?sort=up") for n in range(2))])
    assert (found["pattern"], found["kind"], found["pages"], found["repeats"]) == ("?sort=", "parameter", 340, 338)
    assert found["url"] == found["original"] + "?sort=up"


@pytest.mark.parametrize(
    ("url", "original", "expected"),
    [
        ("http://a.example/l{}?id=7&sort=b", "http://a.example/l{}?id=7&sort=a", ["?sort="]),
        ("http://www.a.example/l{};sid=1", "http://a.example/l{}", [";sid="]),
        ("http://a.example/text/{}/print", "http://a.example/text/{}", ["/print"]),
        ("http://a.example/cal/2024/05/{}", "http://a.example/cal/2023/04/{}", ["/YYYY/MM"]),
        ("http://a.example/#/l{}?sort=b", "http://a.example/#/l{}", ["?sort="]),
        ("http://a.example/t{}#!/print", "http://a.example/t{}", ["/print"]),
        ("http://a.example/news/{}", "http://a.example/news/1{}", []),
        ("http://a.example/l{}?sort=b", "http://b.example/l{}", []),
        ("http://a.example/l{}?sort=b", "http://[a.example/l{}", []),
    ],
)
def test_repeat_counts_for_the_url_parts_its_original_lacks(url: str, original: str, expected: list[str]) -> None:
    found = tally([verdict(url.format(n), original.format(n)) for n in range(10, 16)])
    assert [one["pattern"] for one in found] == expected
    assert all((one["pages"], one["repeats"]) == (6, 6) for one in found)


def test_other_verdicts_and_few_repeats_count_nothing() -> None:
    again = {**verdict("http://a.example/1?s=1", "http://a.example/1"), "verdict": "unchanged"}
    assert tally([again] * 9) == []
    assert tally([verdict(f"http://a.example/{n}?s=1", f"http://a.example/{n}") for n in range(2)]) == []


def test_hostile_urls_stay_within_bounds_and_do_not_displace_a_pattern() -> None:
    counts: Counts = {}
    for n in range(2000):
        hostile = f"http://a.example/{'/'.join(f's{n}x{i}' for i in range(50))}?" + "&".join(
            f"p{n}x{i}={'v' * 40}" for i in range(50)
        )
        repeat = verdict(f"http://a.example/{n}?sort=1", f"http://a.example/{n}")
        for one in (verdict(hostile, "http://a.example/"), repeat):
            count = counter_of(one, SITE)
            assert count is not None
            counts = count(counts)
        assert len(counts) <= 2 * url_patterns.PATTERNS_KEPT + 3 * url_patterns.PER_URL_MAX
    assert sum(len(key) + len(each[2]) + len(each[3]) for key, each in counts.items()) < 100_000
    first = yielding(SITE, [counts])[0]
    assert (first["pattern"], first["pages"], first["repeats"]) == ("?sort=", 2000, 2000)


def test_counts_of_partitions_add_up() -> None:
    count = counter_of(verdict("http://a.example/1?s=1", "http://a.example/1"), SITE)
    assert count is not None
    halves = [count({}) for _ in range(4)]
    (found,) = yielding(SITE, halves)
    assert (found["pages"], found["repeats"], found["share"]) == (4, 4, 1.0)


@given(
    path=st.text("ab/;=.2-0é", max_size=30),
    query=st.text("ab&=;?/%é#!", max_size=30),
)
def test_the_expression_of_a_pattern_finds_it(path: str, query: str) -> None:
    url = f"http://a.example/{path}?{query}"
    for pattern in patterns_of(url):
        assert re.search(described(pattern).regex, url), pattern


@given(st.text(max_size=200))
def test_any_text_has_patterns_within_bounds(url: str) -> None:
    found = patterns_of(url)
    assert len(found) <= 3 * url_patterns.PER_URL_MAX
    assert all(len(name) <= url_patterns.NAME_CHARS_MAX + 2 for name in found)


def test_repeating_urls_are_those_with_a_pattern_of_the_page() -> None:
    def row(pattern: str, repeats: int, pages: int = 100, site: str = SITE) -> dict[str, Any]:
        share = round(repeats / pages, 4)
        return {"site": site, "pattern": pattern, "repeats": repeats, "pages": pages, "share": share, "regex": "x"}

    rows = [
        row("?sort=", 99),
        row("?item=", 40),
        row("/print", 95),
        row("?few=", 4, 4),
        row("/YYYY/MM", 90, site="b.c"),
    ]
    listed = orjson.dumps({"site": None, "patterns": rows, "page": 1, "pages": 1})
    skips = RepeatingUrls([listed], share_min=0.9, pages_min=20).pattern_of
    assert skips(f"http://{SITE}/list?item=3&sort=price") == "?sort="
    assert skips(f"https://www.{SITE}/print/7") == "/print"
    assert skips("http://x.b.c/2024/05/page") == "/YYYY/MM"
    for url in (
        f"http://{SITE}/list?item=3&few=1",
        f"http://{SITE}/2024/05/",
        f"http://other{SITE}/?sort=1",
        "http://[",
    ):
        assert skips(url) == "", url
    both = RepeatingUrls([listed, orjson.dumps({"patterns": [row("?q=", 100)]})], share_min=1.0, pages_min=1)
    assert (both.pattern_of(f"http://{SITE}/?q=1"), both.pattern_of(f"http://{SITE}/?few=1")) == ("?q=", "?few=")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"patterns": [{"site": "a.b"}]}', b'{"patterns": [1]}'])
def test_repeating_urls_of_another_file_are_refused(text: bytes) -> None:
    with pytest.raises(BadInput, match="patterns"):
        RepeatingUrls([text])
