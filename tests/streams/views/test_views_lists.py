"""Lists, ranges and searches of the views; evidence of pages kept apart; long and right-to-left texts in a browser."""

import re
import runpy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.report import evidence_sentences
from streams.views import counts, lists, search, templates, url_pages
from streams.views.source import ScanSource
from streams.views.view_rows import apply
from tests.streams.shell import Shell
from tests.streams.views.random_verdicts import CLOSENESS, DECIDER, Held, random_verdicts
from tests.streams.views.test_views_web import Server

LONG = "https://long.example/" + "path/" * 370
BASE = next(verdict for verdict in random_verdicts(50) if verdict["verdict"] == "near_duplicate")
NEAR = {"page_id": 0, "url": "https://a.example/0", "title": "A", "fetched_at": 1, "by": "title",
        "score": 0.9, "demand": 0.74, "tape_score": 0.9,
        "same_site": True, "keys": {"wide": 2}, "title_flags": 3}  # fmt: skip


def unique(page_id: int, url: str, **more: Any) -> dict[str, Any]:
    return {**BASE, "verdict": "unique", "page_id": page_id, "url": url, "cluster": page_id, "cluster_size": 1,
            "evidence": {"candidates": 0}, "representative": {"page_id": page_id, "url": url}} | more  # fmt: skip


def apart(page_id: int, url: str) -> dict[str, Any]:
    return unique(page_id, url, evidence={"candidates": 3, "kept_apart": "title", "nearest": NEAR})


def test_a_page_kept_apart_shows_the_candidate_and_the_refusal() -> None:
    held = Held([apart(1, "https://a.example/1"), unique(2, "https://a.example/2")])
    facts = url_pages.url(held, "https://a.example/1", DECIDER)
    assert facts is not None
    text = " ".join(facts["words"])
    assert "kept apart from page 0" in text
    assert "https://a.example/0" in text
    assert "Both pages are on one site." in text
    alone = url_pages.url(held, "https://a.example/2", DECIDER)
    assert alone is not None
    assert alone["words"] == ["No earlier page shares an index key with it, so there was no candidate."]


def test_numbers_lead_to_the_pages_that_they_count() -> None:
    held = Held([*random_verdicts(300), apart(10_000, "https://a.example/1")])
    overview = counts.overview(held, None)
    assert not isinstance(overview, str)
    html = templates.html("overview", overview)
    for name, count in [*overview["kinds"].items(), (lists.KEPT_APART, 1)]:
        assert f'<a href="kind?name={name}">{count}</a>' in html
        found = counts.kind(held, name)
        assert not isinstance(found, str)
        assert found["verdicts"] == count
        assert len(found["items"]) == min(count, counts.ITEMS_SHOWN)
    assert isinstance(counts.kind(held, "nonsense"), str)


def test_the_largest_clusters_are_those_of_the_newest_verdicts() -> None:
    made = [{**BASE, "page_id": n, "cluster": n % 3, "cluster_size": size} for n, size in enumerate((9, 5, 2, 1, 7), 1)]
    found = counts.clusters(Held(made), 1)["clusters"]
    assert [(one["cluster"], one["size"]) for one in found] == [(2, 7), (0, 2)]


@pytest.mark.parametrize("wrong", ["x", "2026-13-01", "-1", "9" * 400, "2026-01-01T00"])
def test_a_wrong_range_is_refused(wrong: str) -> None:
    assert counts.overview(Held(random_verdicts(5)), None, start=wrong) == "A day must be given as YYYY-MM-DD"
    assert isinstance(counts.site(Held(random_verdicts(5)), "site0.example", end=wrong), str)


@pytest.mark.parametrize(
    ("start", "end"), [("0001-01-01", "9999-12-31"), ("2099-01-01", "2000-01-01"), ("", "1970-01-01")]
)
def test_any_range_is_answered_in_bounds(start: str, end: str) -> None:
    found = counts.overview(Held(random_verdicts(50)), None, start=start, end=end)
    if not isinstance(found, str):
        assert len(found["time"]["spans"]) <= max(counts.BARS_MAX, 24 * counts.HOURS_DAYS_MAX)
        templates.html("overview", found)


def test_a_search_finds_parts_of_urls_and_titles_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(
        [unique(1, "https://a.example/Wool", title="Von Schafen"), unique(2, "https://b.example/", title='"Ärger"')]
    )
    assert [one["url"] for one in held.search("wool")["items"]] == ["https://a.example/Wool"]
    assert [one["page_id"] for one in held.search("schaf")["items"]] == [1]
    assert [one["page_id"] for one in held.search('"ärger"')["items"]] == [2]
    assert held.search("nothing") == {"items": [], "rows": 2, "complete": True, "next": None}
    many = [
        (b"%d" % n, orjson.dumps({"verdict": unique(n, f"https://a.example/{n}")})) for n in range(search.FOUND_MAX + 1)
    ]
    assert search.search_rows(many, "example")["complete"] is False
    none = {"items": [], "rows": 0, "complete": False, "next": ""}
    assert search.search_rows(many, "example", seconds_max=-1) == none


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_search_goes_on_behind_its_last_url(partitions: int) -> None:
    """Each worker and partition may stop at another URL: none of those behind is left out."""
    urls = sorted(f"https://a.example/{n}" for n in range(400))
    held = [
        Held([unique(n, url) for n, url in enumerate(urls) if n % partitions == part]) for part in range(partitions)
    ]
    found, after = list[str](), ""
    while True:
        page = search.joined([part.search("a.example", after) for part in held])
        found += [one["url"] for one in page["items"]]
        assert len(page["items"]) <= search.FOUND_MAX
        if page["complete"]:
            break
        after = page["next"]
    assert found == urls


def test_a_search_is_narrowed_to_a_site_and_a_kind() -> None:
    held = Held(
        [
            unique(1, "https://a.example/wool", title="Von Schafen"),
            apart(2, "https://a.example/2"),
            {**BASE, "page_id": 3, "url": "https://b.example/wool", "site": "b.example"},
            {**unique(4, "https://b.example/4"), "verdict": "unchanged", "standing": {"verdict": "unique"}},
        ]
    )
    sites = {3: "b.example", 4: "b.example"}
    for row in held._rows.tables["urls"].values():
        row["verdict"]["site"] = sites.get(row["verdict"]["page_id"], "a.example")

    def found(text: str) -> list[int]:
        return [one["page_id"] for one in held.search(text)["items"]]

    assert found("site:a.example") == [2, 1]
    assert found("wool site:b.example") == [3]
    assert found("kind:unique") == [2, 1]
    assert found("kind:unchanged SITE:B.example") == [4]
    assert found(f"kind:{lists.KEPT_APART}") == [2]
    assert found("site:a.example kind:near_duplicate") == []
    assert found("von schafen") == [1]


def test_each_number_of_a_site_leads_to_the_pages_that_it_counts() -> None:
    held = Held(random_verdicts(300))
    site = counts.sites(held, 1)["sites"][0]["site"]
    facts = counts.site(held, site)
    assert not isinstance(facts, str)
    html = templates.html("site", facts)
    for name, count in facts["kinds"].items():
        assert f'<a href="kind?site={site}&amp;name={name}">{count}</a>' in html
        found = counts.kind(held, name, site)
        assert not isinstance(found, str)
        assert found["verdicts"] == count
        assert len(found["items"]) == min(count, counts.ITEMS_SHOWN)


def test_a_range_has_counts_of_its_own_by_kind() -> None:
    held = Held([*random_verdicts(300), apart(10_000, "https://a.example/1")])
    whole = counts.overview(held, None)
    assert not isinstance(whole, str)
    assert whole["time"]["kinds"] == whole["kinds"]
    assert "in the range" not in templates.html("overview", whole)
    day = whole["time"]["first"]
    part = counts.overview(held, None, start=day, end=day)
    assert not isinstance(part, str)
    assert sum(part["time"]["kinds"].values()) == sum(span["verdicts"] for span in part["time"]["spans"])
    if whole["time"]["last"] != day:
        assert "in the range" in templates.html("overview", part)


def test_a_long_url_is_cut_with_a_sign_and_can_be_read_whole() -> None:
    near = {**NEAR, "url": LONG + "0"}
    held = Held([unique(1, LONG + "1", evidence={"candidates": 3, "kept_apart": "title", "nearest": near})])
    facts = url_pages.url(held, LONG + "1", DECIDER)
    assert facts is not None
    assert all(len(words) < 2 * evidence_sentences.URL_CHARS_SHOWN for words in facts["words"])
    html = templates.html("url", facts)
    assert "<summary>Whole URL</summary>" in html
    assert LONG + "1" in html
    short = url_pages.url(Held([apart(1, "https://a.example/1")]), "https://a.example/1", DECIDER)
    assert "Whole URL" not in templates.html("url", short)


def test_lists_with_the_longest_urls_stay_below_a_message() -> None:
    made = [{**apart(n, f"{LONG}{n}"), "title": "W" * 5_000} for n in range(60)]
    made += [{**BASE, "page_id": 100 + n, "url": f"{LONG}{n}?d", "cluster": n, "cluster_size": 2} for n in range(300)]
    held = Held(made)
    for key, row in held._rows.tables["lists"].items():
        assert len(orjson.dumps(row)) < 1_000_000, key


def test_a_scan_shows_its_own_span(shell: Shell, tmp_path: Path) -> None:
    """Pages of years ago: one chart over the days that they have."""
    lines = [
        {"url": f"https://a.example/{n}", "body": f"word{n} " * 30, "fetched_at": 1_500_000_000_000 + n * 86_400_000}
        for n in range(10)
    ]
    (tmp_path / "pages.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert shell("scan", "pages.jsonl").code == 0
    facts = counts.overview(ScanSource(tmp_path / "neardup-state"), None)
    assert not isinstance(facts, str)
    assert (facts["time"]["from"], facts["time"]["to"]) == ("2017-07-14", "2017-07-23")
    assert sum(span["verdicts"] for span in facts["time"]["spans"]) == 10


def test_a_scan_shows_all_of_years_at_first_and_a_stream_the_last_month(monkeypatch: pytest.MonkeyPatch) -> None:
    day, began = 86_400_000, 1_700_000_000_000
    held = Held([])
    for n in range(4):
        apply(unique(n, f"https://a.example/{n}"), held._rows, began + n * 200 * day, CLOSENESS)
    for facts in (counts.overview(held, None), counts.site(held, str(BASE["site"]))):
        assert not isinstance(facts, str)
        assert (facts["time"]["from"], facts["time"]["to"]) == ("2023-11-14", "2025-07-06")
        assert sum(span["verdicts"] for span in facts["time"]["spans"]) == 4
        assert len(facts["time"]["spans"]) <= counts.BARS_MAX
    monkeypatch.setattr(held, "partitions", 1)
    facts = counts.overview(held, None)
    assert not isinstance(facts, str)
    assert (facts["time"]["from"], facts["time"]["to"]) == ("2025-06-07", "2025-07-06")


def test_closest_calls_lead_to_the_next_days_that_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    day, began = 86_400_000, 1_700_000_000_000
    held = Held([])
    close = (0, 3, 200, 207, 600)
    for n in (*close[:4], *range(208, 300), 600):
        verdict = (apart if n in close else unique)(n, f"https://a.example/{n}")
        apply(verdict, held._rows, began + n * day, CLOSENESS)
    seen, asked = [], ""
    while True:
        facts = counts.close(held, asked)
        assert not isinstance(facts, str)
        assert facts["items"] or facts["day"] in ("2024-08-09", "2024-07-09")  # as far as one search goes
        seen.append(facts["day"])
        if facts["before"] is None:
            break
        asked = facts["before"]
    assert facts["day"] == "2023-11-14"
    assert f'href="close?day={facts["after"]}"' in templates.html("close", facts)
    assert "before:" not in templates.html("close", facts)
    while facts["after"] is not None:
        facts = counts.close(held, facts["after"])
        assert not isinstance(facts, str)
    assert facts["day"] == seen[0] == "2025-07-06"
    assert facts["before"] == "2024-08-09", "one search ends behind DAYS_SEARCHED_MAX days"
    monkeypatch.setattr(counts, "DAYS_SEARCHED_MAX", 1_000)
    facts = counts.close(held, "2025-07-06")
    assert not isinstance(facts, str)
    assert facts["before"] == "2024-06-08"
    assert counts.close(Held([]), "")


@pytest.mark.whole
def test_a_long_url_leads_to_its_page_and_breaks_no_other_cell(browser: Any) -> None:
    made = [apart(n, f"{LONG}{n}") for n in range(3)]
    made += [
        {**BASE, "page_id": 9, "url": LONG + "9", "site": "long.example", "title": "\u05e9\u05dc\u05d5\u05dd " * 30}
    ]
    made += [{**BASE, "page_id": 11, "url": LONG + "x", "verdict": "rejected", "reason": "HTTP status 500"}]
    server = Server(Held(made))
    try:
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        for path in ("", "kind?name=kept_apart", "kind?name=near_duplicate", "site?name=long.example", "clusters"):
            page.goto(server.url + path)
            for link in page.locator("a[href^='url?url=https%3A//long']").all():
                assert server.get("/" + str(link.get_attribute("href")))[0] == 200
            for link in page.locator("a[href^='compare?']").all():
                assert server.get("/" + str(link.get_attribute("href")))[0] in (200, 404)
            page.set_viewport_size({"width": 360, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            page.set_viewport_size({"width": 1000, "height": 800})
            heights = page.evaluate(
                "[...document.querySelectorAll('td:not(.free):not(.number), thead th')].map(e => e.clientHeight)"
            )
            assert max(heights) < 400, "no cell is broken letter by letter"
        page.goto(server.url + "rejects?reason=" + quote("HTTP status 500"))
        assert page.locator("a[href^='url?']").count() == 1
        page.close()
    finally:
        server.close()


def test_rejected_pages_show_a_reason_only_if_it_has_details_of_a_page() -> None:
    rejected = {**BASE, "verdict": "rejected", "url": "https://a.example/1"}
    made = [{**rejected, "page_id": n, "reason": f"charset: {n}"} for n in (30, 31)]
    made += [{**rejected, "page_id": 32, "reason": "HTTP status 500"}]
    server = Server(Held(made))
    try:
        of = "/rejects?reason="
        plain, detailed = (server.get(of + quote(each))[2] for each in ("HTTP status 500", "charset"))
        assert 'class="wide">reason<' not in plain
        assert 'class="wide">reason<' in detailed
        assert "charset: 31" in detailed
    finally:
        server.close()


@pytest.mark.whole
def test_a_person_searches_and_chooses_a_range(browser: Any) -> None:
    server = Server(Held(random_verdicts(300)))
    try:
        page = browser.new_page()
        page.goto(server.url)
        page.get_by_role("textbox").first.fill("site3.exa")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Search results").wait_for()
        page.get_by_role("link", name="https://www.site3.example/3", exact=True).click()
        page.get_by_role("heading", name="Evidence").wait_for()
        page.get_by_role("textbox").first.fill("site3.example")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="site3.example").wait_for()
        page.get_by_role("button", name="Show").click()
        page.get_by_role("heading", name="site3.example").wait_for()
        assert "from=" in page.url
        page.close()
    finally:
        server.close()


def test_url_patterns_of_the_demo_site(tmp_path: Path, shell: Shell) -> None:
    """Its articles come again as printer versions, and under session ids."""
    demo = runpy.run_path(str(Path(__file__).parents[3] / "deploy" / "demo" / "site.py"))
    addresses = ["/articles/{}", "/print/{}", "/articles/{}?session=77{}"]
    urls = [address.format(n, n) for address in addresses for n in range(demo["ARTICLES"])]
    urls += [f"/product/{n}" for n in range(demo["ITEMS"])]
    with (tmp_path / "pages.jsonl").open("wb") as file:
        for url in urls:
            number = int(url.split("?")[0].rpartition("/")[2])
            title, body = demo["product" if "product" in url else "article"](number)
            html = demo["page"](title, body, surroundings="print" not in url).decode()
            file.write(orjson.dumps({"url": f"http://site.example{url}", "body": html}) + b"\n")
    assert shell("scan", str(tmp_path / "pages.jsonl"), "--state", str(tmp_path / "state")).code == 0
    server = Server(ScanSource(tmp_path / "state"))
    try:
        found = orjson.loads(server.get("/patterns.json?site=site.example")[2])["patterns"]
        named = {one["pattern"]: (one["pages"], one["repeats"]) for one in found}
        assert named == {"?session=": (demo["ARTICLES"],) * 2, "/print": (demo["ARTICLES"],) * 2}
        for one in found:
            assert sum(bool(re.search(one["regex"], url)) for url in urls) == one["pages"]
        _, _, page = server.get("/patterns")
        assert "/print" in page
        assert "URL patterns that yield repeats" in page
    finally:
        server.close()


def test_a_url_of_another_script_is_read_and_found() -> None:
    url = "https://ru.example/" + quote("шерсть") + "?a=%3Cscript%3E"
    held = Held([unique(1, url, title="")])
    html = templates.html("url", url_pages.url(held, url, DECIDER))
    assert "https://ru.example/шерсть?a=%3Cscript%3E" in html
    assert url in html, "whole, as it is fetched"
    assert [one["url"] for one in held.search("Шерсть")["items"]] == [url]
    assert "шерсть" in templates.html("kind", counts.kind(held, "unique"))
