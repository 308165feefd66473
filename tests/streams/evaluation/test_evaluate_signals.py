"""`neardup evaluate signals` over results with labels, and over pages of several releases."""

import json

import pytest

from tests.measure.gate.results import write_results
from tests.streams.batch.corpora import items, write
from tests.streams.shell import Shell

FEW = ("--seeds", "1", "--folds", "2", "--workers", "1")


@pytest.mark.slow
def test_all_sections_are_made_of_labelled_results(shell: Shell) -> None:
    write_results(shell.folder, 6, 2, judges=True)
    given = ("evaluate", "signals", "results.jsonl", "--labels", "labels.jsonl")
    ended = shell(*given, "--adjudicator", "max", "--out", "ev", "--json", *FEW)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert list(told["sections"]) == ["single", "sets", "curve", "costs", "languages", "online", "judges"]
    judges = {row["judge"]: row for row in told["sections"]["judges"]["tables"]["judges"]}
    assert list(judges) == ["ana", "bob", "eve", "max"]
    assert judges["max"]["F"] == 1
    assert all(0.7 < judges[name]["F"] < 1 for name in ("ana", "bob", "eve"))
    assert len(told["sections"]["judges"]["tables"]["labellers"]) == 6
    assert "--adjudicator who: no label" in shell(*given, "--adjudicator", "who", *FEW).err
    rows = {row["set"]: row for row in told["sections"]["sets"]["tables"]["sets"]}
    assert rows["F+R"]["F"] > rows["simhash"]["F"]
    assert told["labels"]["correct"] > 20
    page = (shell.folder / "ev" / "evaluation.html").read_text()
    assert "Precision against recall" in page
    assert "After S. Huffman" in page
    assert "Henzinger" not in page
    assert "F 0.9" in page
    assert (shell.folder / "ev" / "plot-costs.svg").exists()


def test_natural_truth_labels_pages_of_several_releases(shell: Shell) -> None:
    entries = items(8)
    write(shell.folder / "crawl.jsonl", entries)
    known = [{"url": one["url"], "item": one["url"].split("/")[3], "edition": one["url"][-1]} for one in entries]
    write(shell.folder / "items.jsonl", known)
    command = ("evaluate", "signals", "crawl.jsonl", "--items", "items.jsonl", "--pairs", "60", *FEW)
    ended = shell(*command)
    assert ended.code == 0, ended.err
    assert "No page has a rendered body" in ended.err
    assert "learned: " in ended.out
    for name in ("simhash_fetched", "same_title_fetched"):  # whole, however narrow the terminal is
        assert name in ended.out
    assert "name files of them by --labels" in shell("evaluate", "signals", "crawl.jsonl", *FEW).err
