"""`neardup evaluate signals` over results with labels, and over pages of several releases."""

import json
import re
from collections import Counter

import pytest

from neardup.evaluation.huang_study import SystemSets
from neardup.evaluation.huang_systems import system_section
from neardup.evaluation.item_truth import ItemTruth
from neardup.evaluation.sections import ResultTable, share, text
from streams.commands.output import print_table
from tests.measure.gate.results import write_results
from tests.streams.partition.corpora import items, write
from tests.streams.shell import Shell

FEW = ("--seeds", "1", "--folds", "2", "--workers", "1")


# The tables are tested in test_huffman; here, that options reach them.
@pytest.mark.whole
@pytest.mark.slow
def test_all_sections_are_made_of_labelled_results(shell: Shell) -> None:
    write_results(shell.folder, 4, 2, judges=True)
    given = ("evaluate", "signals", "results.jsonl", "--labels", "labels.jsonl")
    ended = shell(*given, "--adjudicator", "max", "--out", "ev", "--json", *FEW)
    assert ended.code == 0, ended.err
    output = json.loads(ended.out)
    assert list(output["sections"]) == [
        *("single", "sets", "curve", "costs", "selection", "learning", "rendering", "languages", "online", "judges")
    ]
    judges = {row["judge"]: row for row in output["sections"]["judges"]["tables"]["judges"]}
    assert list(judges) == ["ana", "bob", "eve", "max"]
    assert judges["max"]["F"] == 1
    assert all(0.7 < judges[name]["F"] < 1 for name in ("ana", "bob", "eve"))
    assert len(output["sections"]["judges"]["tables"]["labellers"]) == 6
    assert "--adjudicator who: no label" in shell(*given, "--adjudicator", "who", *FEW).err
    rows = {row["set"]: row for row in output["sections"]["sets"]["tables"]["sets"]}
    assert rows["F+R"]["F"] > rows["simhash"]["F"]
    assert output["labels"]["correct"] > 20
    page = (shell.folder / "ev" / "evaluation.html").read_text()
    assert "Precision against recall" in page
    assert "After S. Huffman" in page
    assert "Henzinger" not in page
    assert "F 0.9" in page
    assert (shell.folder / "ev" / "plot-costs.svg").exists()


@pytest.mark.slow
@pytest.mark.whole
def test_learn_there_judge_here_and_grouped_folds(shell: Shell) -> None:
    for name, seed in (("here", 1), ("there", 2)):
        (shell.folder / name).mkdir()
        write_results(shell.folder / name, 3, seed)
    labels = [option for name in ("here", "there") for option in ("--labels", f"{name}/labels.jsonl")]
    files = ("--train", "there/results.jsonl", "--judge", "here/results.jsonl")
    ended = shell("evaluate", "signals", *files, *labels, "--group", "query", "--json", *FEW)
    assert ended.code == 0, ended.err
    sections = json.loads(ended.out)["sections"]
    rows = {row["set"]: row for row in sections["transfer"]["tables"]["transfer"]}
    inside = {row["set"]: row for row in sections["sets"]["tables"]["sets"]}
    assert rows["F+R"]["F, learned here"] == inside["F+R"]["F"]
    assert rows["F+R"]["F"] > 0.3
    grouped = {row["set"]: row for row in sections["grouped"]["tables"]["grouped"]}
    assert grouped["F+R"]["F, folds of pairs"] == inside["F+R"]["F"]
    costs = sections["costs"]["tables"]["costs"]
    assert all(row["ms a page"] >= 0 and row["ms a pair"] > 0 for row in costs)


def test_headings_are_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A table that is too wide is printed in parts, each with the first column."""
    monkeypatch.setenv("COLUMNS", "80")
    shares = share(*(f"{name}: relative precision {number}" for number in range(6) for name in ("ours", "paper")))
    row = ["simhash of rendered bodies", *[0.25] * 12]
    print_table(ResultTable("t", "A wide table", text("system") | shares, [row]))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("precision") == 12 == out.count("0.25")
    assert out.count("simhash of rendered bodies") == out.count("system") == out.count("A wide table") > 1


@pytest.mark.parametrize("width", [40, 72, 80, 81, 100, 160])
def test_headings_of_paper_tables_break_between_words(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rich leaves out letters of a heading when widths add up to those of the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    systems = {name: SystemSets({"a": 1, "b": 1}, 1234.5) for name in ("tlcs", "cosine", "simhash64")}
    truth, sites = ItemTruth(dict.fromkeys("ab", "x")), dict.fromkeys("ab", "s")
    (table,) = system_section(systems, truth, sites).tables
    print_table(table)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    found = Counter(re.findall(r"[a-z:]{4,}", out))
    for word, count in Counter(
        word for name in list(table.columns)[1:] for word in re.findall(r"[a-z:]{4,}", name)
    ).items():
        assert found[word] >= count, word


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
