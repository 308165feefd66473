"""The report in a real browser: it loads nothing, runs nothing, and fits."""

from pathlib import Path

import pytest

from neardup.report.run_report import build_report
from tests import whole
from tests.neardup.report.test_report import HOSTILE, INFO
from tests.neardup.verdict_stream import MadeUpCrawl


@pytest.fixture(scope="module", params=whole.only(["friendly", "hostile", "empty"], "hostile"))
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    crawl = MadeUpCrawl(0 if request.param == "empty" else 600, hostile=HOSTILE if request.param == "hostile" else "")
    path = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    verdicts = list(crawl.verdicts())
    if request.param == "hostile":
        for verdict in verdicts[::3]:
            verdict["url"] = "https://" + "a" * 2000 + ".example/"
            verdict["title"] = "W" * 500 + HOSTILE
    path.write_text(build_report(verdicts, crawl.read_page, INFO), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("width", "scripts"),
    whole.first([(360, True), (1200, False), (1200, True), (360, False)], 2),
)
def test_loads_nothing_runs_nothing_and_fits(browser, report: Path, width: int, scripts: bool) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=scripts)
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    assert complaints == []
    assert requests == [report.as_uri()]
    for name in (
        "Summary",
        "Scores",
        "Closest calls",
        "Samples",
        "Largest clusters",
        "Sites by duplicates",
        "This run",
    ):
        assert page.get_by_role("heading", name=name, exact=True).is_visible()
    if scripts:
        assert page.evaluate("window.hurt") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for target in page.eval_on_selector_all("nav a", "links => links.map(a => a.getAttribute('href'))"):
            assert page.locator(target).count() == 1
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background
    context.close()


def test_differences_do_not_depend_on_colour(browser, tmp_path: Path) -> None:
    crawl = MadeUpCrawl(300)
    path = tmp_path / "report.html"
    path.write_text(build_report(crawl.verdicts(), crawl.read_page, INFO), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    for element, line in (("del", "wavy"), ("ins", "double")):
        style = page.locator(element).nth(3).evaluate("e => getComputedStyle(e).textDecoration")
        assert line in style
    page.close()


def test_samples_and_clusters_of_one_site_or_verdict_alone(browser, tmp_path: Path) -> None:
    crawl = MadeUpCrawl(600)
    path = tmp_path / "report.html"
    path.write_text(build_report(crawl.verdicts(), crawl.read_page, INFO), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    cards, rows = page.locator("article.card"), page.locator("#clusters tbody tr")
    count = page.locator("article.card:visible").count
    everything = count()

    page.get_by_label("Verdict").select_option(label="near duplicate")
    near = count()
    assert 0 < near < everything
    assert cards.locator("visible=true").locator(".tag:first-child", has_text="near duplicate").count() == near
    assert not page.get_by_role("heading", name="Unchanged", exact=True).is_visible()

    page.get_by_label("Site").select_option(label="site1.example")
    assert 0 < count() < near
    for card in cards.locator("visible=true").all():
        assert "site1.example/" in card.locator(".who .url").first.inner_text()
    assert 0 < rows.locator("visible=true").count() < rows.count()
    for row in rows.locator("visible=true").all():
        assert "site1.example/" in row.locator(".mono").first.inner_text()

    for label in ("Verdict", "Site"):
        page.get_by_label(label).select_option(label="all")
    assert count() == everything
    context.close()
