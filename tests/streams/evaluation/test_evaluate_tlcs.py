"""`neardup evaluate tlcs` over a small crawl whose items are known."""

import json

import pytest

from tests.streams.partition.corpora import edited, entry, items, page, sentences, write
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
    assert list(systems) == ["tlcs", "cosine", "cosine, words segmented", "simhash64", "simhash64 at 58 bits"]
    assert systems["simhash64 at 58 bits"]["recall"] >= systems["simhash64"]["recall"]
    steps = sections["steps"]["tables"]["steps"]
    assert steps[0]["similar"] > 0.9
    assert steps[-1]["similar"] == systems["tlcs"]["precision"]
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


@pytest.mark.slow
def test_a_rewritten_release_is_no_duplicate_as_in_evaluate(shell: Shell) -> None:
    """Of three releases of each item the last is rewritten: one pair of each item is true, in both commands."""
    entries = []
    for item in range(6):
        lines = sentences(item)
        for release, text in (("1.0", lines), ("1.1", edited(lines, item)), ("2.0", sentences(100 + item))):
            entries.append(entry(f"https://s.example/{release}/{item}", page(text, f"Item {item}")))
    write(shell.folder / "crawl.jsonl", entries)
    given = ("crawl.jsonl", "--releases", "[0-9]+[.][0-9]", "--out", "ev", "--json")
    assert shell("evaluate", *given, "--labels-out", "labels.jsonl").code == 0
    labels = [json.loads(line) for line in (shell.folder / "labels.jsonl").read_text().splitlines()]
    assert sum(label["label"] == "correct" for label in labels) == 6
    found = {}
    for more in ((), ("--ratio", "0.001")):
        ended = shell("evaluate", "tlcs", *given, "--pairs", "10", "--workers", "1", *more)
        assert ended.code == 0, ended.err
        systems = json.loads(ended.out)["sections"]["systems"]["tables"]["systems"]
        found[more] = systems[0]["recall"]
    assert found == {(): 1.0, ("--ratio", "0.001"): pytest.approx((1 / 2 + 1 / 2 + 0) / 3)}
    assert "above 0" in shell("evaluate", "tlcs", *given, "--ratio", "0").err
