"""The documentation site: every page in one navigation, a whole reference, links that lead somewhere, and search."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import neardup
from streams.commands.app import all_commands, options_of
from streams.config.settings import OPTIONS
from tests.test_documentation import NAMES

SITE = Path(__file__).parents[2] / "deploy" / "site"
#: Programs of a folder, no package.
sys.path.insert(0, str(SITE))

website: ModuleType = importlib.import_module("website")
navigation: ModuleType = importlib.import_module("navigation")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    assert website.build(folder / "built") == []
    return folder / "built"


def test_every_page_of_the_repository_is_in_the_navigation(site: Path) -> None:
    assert [name for name, _ in navigation.GROUPS] == ["Overview", "Tutorials", "How-to", "Reference", "Explanation"]
    assert {entry.source for entry in navigation.ENTRIES if entry.source} == set(NAMES)
    for entry in navigation.ENTRIES:
        page = (site / entry.file).read_text()
        assert all(f'<a href="{other.file}"' in page for other in navigation.ENTRIES)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("library", neardup.__all__),
        ("settings", [option.env for option in OPTIONS.values() if not option.name.startswith("decider.")]),
        ("decider", [option.parameter for option in OPTIONS.values() if option.name.startswith("decider.")]),
        ("commands", ["neardup scan", "neardup match", "neardup topics create", "--id-field"]),
        ("exit-codes", ["75", "143"]),
        ("verdict", ["kept_apart", "standing", "coordinates"]),
        ("metrics", ["neardup_verdicts_total", "neardup_verdict_latency_seconds", "neardup_ready"]),
        ("alert-rules", ["NeardupMatcherStuck", "neardup:rejected_share", "0.05"]),
        ("formats", ["fetched-at", "body_base64", "supershingles", "XXH64"]),
    ],
)
def test_the_reference_is_whole(site: Path, page: str, names: list[str]) -> None:
    text = (site / f"{page}.html").read_text()
    assert [name for name in names if name not in text] == []


def test_the_manual_page_has_every_command_and_option(site: Path) -> None:
    lines = (site / "neardup.1").read_text().split("\n")
    assert lines[0].startswith(".TH NEARDUP 1 ")
    text = "\n".join(lines).replace("\\-", "-")
    for name, command in all_commands().items():
        assert f".SS neardup {name}\n" in text
        assert [names for names, _ in options_of(command) if names[0] not in text] == []
    # A line that begins with a dot is a command of man(7).
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= {
        *(".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I", ".nf", ".fi")
    }
    assert (
        shutil.which("groff") is None
        or not subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", site / "neardup.1"], capture_output=True, text=True, check=True
        ).stderr
    )


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("# A page\n\n[a](none.md) [b](#no-heading) [c](page.md#a-page)\n")
    entry = navigation.Entry("A page", "page.html", "page.md")
    monkeypatch.setattr(website, "ROOT", tmp_path)
    monkeypatch.setattr(website, "_SITE_FILES", {"page.md": "page.html"})
    monkeypatch.setattr(website, "ENTRIES", (entry,))
    monkeypatch.setattr(website, "GROUPS", (("Group", (entry,)),))
    assert website.build(tmp_path / "built") == ["page.md: none.md", "page.md: no heading #no-heading in page.html"]


@pytest.mark.whole
@pytest.mark.parametrize("width", [1400, 390])
def test_search_and_navigation_work_from_files(site: Path, browser: Any, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.get_by_label("Search").fill("lost disk")
    page.locator("#hits a").first.wait_for()
    assert "Operate: Lost disk" in page.locator("#hits a").first.inner_text()
    page.locator("#hits a").first.click()
    page.wait_for_url(re.compile("operate.html#lost-disk"))
    assert page.locator("nav [aria-current]").text_content() == "Operate"
    for entry in navigation.ENTRIES:
        page.goto((site / entry.file).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), entry.file
        broken = page.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
        assert broken == []
        # Commands, and tables of at most four columns, are read without scrolling sideways.
        read = "pre:not(:has(.language-text)), .table:not(:has(th:nth-child(5)))"
        cut = f"[...document.querySelectorAll('{read}')].filter(part => part.scrollWidth > part.clientWidth)"
        assert page.evaluate(cut + ".map(part => part.textContent)") == [], entry.file
    assert problems == []
    page.close()
