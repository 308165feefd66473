"""The documentation site: gathered whole, with nothing of the code left out, and links that lead somewhere."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import neardup
from streams.config.settings import OPTIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gather", ROOT / "deploy" / "site" / "gather.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    site.gather(folder / "made")
    return folder / "made" / "pages"


def test_every_part_of_the_readme_is_on_a_page(site: ModuleType) -> None:
    wanted = set(site.sections((ROOT / "README.md").read_text())) - {"", "What is where"}
    used = {source[1:] for _, _, sources in site.PAGES for source in sources if source.startswith("#")}
    assert wanted <= used


def test_the_reference_is_whole(pages: Path) -> None:
    library = (pages / "library.md").read_text()
    assert all(f"### `{name}" in library for name in neardup.__all__)
    settings = (pages / "settings.md").read_text()
    assert all(f"`{option.env}`" in settings for option in OPTIONS.values())
    commands = (pages / "commands.md").read_text()
    assert {"neardup scan", "neardup match", "neardup topics create"} <= set(re.findall("## `(.*)`", commands))
    assert "--id-field" in commands


def test_links_lead_somewhere_and_one_that_does_not_is_found(site: ModuleType, pages: Path) -> None:
    assert site.broken(pages) == []
    page = pages / "changes.md"
    text = page.read_text()
    page.write_text(text + "[nowhere](none.md)")
    assert site.broken(pages) == ["changes.md: none.md"]
    page.write_text(text)
