"""The library examples of README.md and of its how-to page run, and print what their comments say."""

import re
from pathlib import Path

import pytest

from neardup import Page, Scheme, open_index

ROOT = Path(__file__).parents[1]


def run(page: str) -> None:
    """Runs the examples of a page one after the other, as in one program."""
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        exec(compile(code, page, "exec"), names)


#: What the page prints after its first example: verdicts on items of a shop and on texts, a new number, a ruling, and
#: verdicts on documents with ids.
LATER = [
    *("unique https://shop.example/red None", "unique https://shop.example/blue title veto"),
    *("unique None", "near_duplicate 0.9934"),
    *("0.9", r"near_duplicate tape 0\.99\d+ 0\.9", "unique doc 17", "near_duplicate doc 18"),
]


def test_the_example_of_a_table_prints_the_shown_output(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    page = "streams/library/deduplicate-a-table.md"
    run(page)
    assert capsys.readouterr().out == (ROOT / page).read_text().partition("```text\n")[2].partition("```")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "queried", "later"),
    [("README.md", [], []), ("neardup/use-as-a-library.md", ["unchanged"], LATER)],
)
def test_a_library_example_runs(
    page: str,
    queried: list[str],
    later: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)
    first, second, *rest = capsys.readouterr().out.splitlines()
    query, score, more = rest[: len(queried)], rest[len(queried)], rest[len(queried) + 1 :]
    assert first.startswith("unique https://a.example/")
    assert second.startswith("near_duplicate https://b.example/")
    assert query == queried
    assert score.startswith("0.99")
    if page == "README.md":
        shown = (ROOT / page).read_text().partition("```python\n")[2].partition("```text\n")[2].partition("```")[0]
        assert shown.splitlines() == [first, second, score]
    assert len(more) == len(later)
    for printed, expected in zip(more, later, strict=True):
        assert re.fullmatch(expected, printed)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_scan_of_the_readme_finds_a_near_duplicate_by_any_seed(seed: int) -> None:
    """The seed of a scan is random; a reader must see what the page shows."""
    text = (ROOT / "README.md").read_text()
    line = re.search(r"cp LICENSE pages/a.txt; sed 's/(\w+)/(\w+)/' LICENSE > pages/b.txt", text)
    assert line is not None
    license = (ROOT / "LICENSE").read_text()
    edited = "".join(each.replace(line[1], line[2], 1) for each in license.splitlines(keepends=True))
    pages = [
        Page(f"https://a.example/{name}.txt", body.encode(), content_type="text/plain; charset=utf-8")
        for name, body in (("a", license), ("b", edited))
    ]
    with open_index(scheme=Scheme(seed=seed)) as index:
        assert [verdict.verdict for verdict in index.add(pages)] == ["unique", "near_duplicate"]
