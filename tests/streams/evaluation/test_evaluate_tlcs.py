"""`neardup evaluate tlcs` over a small crawl whose items are known."""

import json

import pytest

from tests.streams.partition.corpora import items, write
from tests.streams.shell import Shell


@pytest.mark.slow
def test_all_measurements_are_made(shell: Shell) -> None:
    entries = items(8)
    write(shell.folder / "crawl.jsonl", entries)
    known = [{"url": one["url"], "item": one["url"].split("/")[3]} for one in entries]
    write(shell.folder / "items.jsonl", known)
    ended = shell(
        *("evaluate", "tlcs", "crawl.jsonl", "--items", "items.jsonl", "--out", "ev", "--pairs", "10"),
        *("--workers", "1", "--json"),
    )
    assert ended.code == 0, ended.err
    sections = json.loads(ended.out)["sections"]
    assert list(sections) == ["systems", "steps", "signatures", "windows", "slopes", "mistakes"]
    systems = {row["system"]: row for row in sections["systems"]["tables"]["systems"]}
    assert list(systems) == ["tlcs", "cosine", "simhash64"]
    assert systems["tlcs"]["precision"] == systems["tlcs"]["recall"] == 1.0
    assert systems["tlcs"]["paper: precision"] == 0.95
    page = (shell.folder / "ev" / "evaluation.html").read_text()
    assert "After L. Huang" in page
    assert "Henzinger" not in page
    assert (shell.folder / "ev" / "table-windows.csv").read_text().startswith("window,")


@pytest.mark.slow
def test_tables_that_need_truth_are_left_out_without_it(shell: Shell) -> None:
    write(shell.folder / "crawl.jsonl", items(3))
    ended = shell("evaluate", "tlcs", "crawl.jsonl", "--pairs", "5", "--workers", "1")
    assert ended.code == 0, ended.err
    assert "The truth of these pages is unknown" in ended.err
    assert "strain-away rate" in " ".join(ended.out.split())
    assert shell("evaluate", "tlcs", "crawl.jsonl", "--releases", "x", "--items", "crawl.jsonl").code == 2
