"""`neardup train`: from results and labels to a model that decides by itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.measure.gate.results import write_results
from tests.streams.shell import Shell

FEW = ("--seeds", "1", "--folds", "2", "--workers", "1")
#: Runs a command where nothing that learns can be imported.
UNLEARNED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "wittgenstein", "pandas", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from streams.commands import main
main()
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, 10, 3)
    return folder


@pytest.mark.whole
@pytest.mark.slow
def test_a_model_is_learned_measured_and_reported(shell: Shell, results: Path) -> None:
    given = (str(results / "results.jsonl"), "--labels", str(results / "labels.jsonl"))
    ended = shell("train", *given, "--out", "model.json", "--signals", "F+R", *FEW)
    assert ended.code == 0, ended.err
    assert "tree:\n" in ended.out
    assert "average: precision" in ended.out
    model = json.loads((shell.folder / "model.json").read_text())
    assert model["measured"]["average"]["f"] > 0.5
    assert model["idf"]["documents"] > 50
    assert model["signals"][0] == "same_domain"
    assert set(model["versions"]) >= {"scikit-learn", "wittgenstein"}
    assert shell("train", *given, "--out", "again.json", "--signals", "F+R", *FEW).code == 0
    assert (shell.folder / "again.json").read_bytes() == (shell.folder / "model.json").read_bytes()


@pytest.mark.whole
@pytest.mark.slow
def test_scoring_needs_nothing_that_learns(shell: Shell, results: Path) -> None:
    given = (str(results / "results.jsonl"), "--labels", str(results / "labels.jsonl"))
    assert shell("train", *given, "--out", "m.json", "--signals", "same_title_fetched,mcd_fetched", *FEW).code == 0
    for name in ("a", "b"):
        (shell.folder / f"{name}.html").write_text("<title>x</title>some words")
    command = [sys.executable, "-c", UNLEARNED, "signals", "a.html", "b.html", "--model", "m.json", "--json"]
    ended = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["decision"]["rule"]
    without = [sys.executable, "-c", UNLEARNED, "train", *given, "--out", "n.json", *FEW]
    ended = subprocess.run(without, cwd=shell.folder, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "needs it: pip install '.[signals]' in a clone" in ended.stderr


@pytest.mark.slow
def test_sketches_are_enough_for_a_model_of_their_own(shell: Shell, results: Path) -> None:
    given = (str(results / "results.jsonl"), "--labels", str(results / "labels.jsonl"))
    ended = shell("train", *given, "--out", "m.json", "--signals", "sketches", "--by", "rules", "--json", *FEW)
    assert ended.code == 0, ended.err
    output = json.loads(ended.out)
    assert output["pairs"] > 200
    model = json.loads((shell.folder / "m.json").read_text())
    assert model["by"] == "rules"
    assert model["idf"] == {"documents": 0, "terms": {}}
    assert "tape" in model["signals"]


def test_unusable_labels_are_reported(shell: Shell) -> None:
    pages = [{"url": f"https://a.example/{i}", "body": f"page {i}"} for i in range(3)]
    lines = [*map(json.dumps, pages), '{"url": "https://a.example/9"', '{"url": "nowhere", "body": "x"}']
    (shell.folder / "results.jsonl").write_text("\n".join(lines) + "\n")

    def labels(*expected: tuple[str, str, str]) -> None:
        values = [{"a": {"url": a}, "b": {"url": b}, "label": label} for a, b, label in expected]
        (shell.folder / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in values))

    command = ("train", "results.jsonl", "--labels", "labels.jsonl", *FEW)
    labels(("https://b.example/", "https://b.example/2", "correct"))
    ended = shell(*command)
    assert ended.code == 1
    assert "none of the labels is of two pages that were read; first problem: " in ended.err
    assert "results.jsonl:4: not JSON" in ended.err
    labels(("https://a.example/0", "https://a.example/1", "correct"))
    assert "0 labelled pairs of one kind" in shell(*command).err
    assert "there is simhash, tf-idf" in shell(*command, "--signals", "luck").err
    assert "there is no folder" in shell(*command, "--out", "none/m.json").err


def test_scans_do_not_offer_a_learned_rule(shell: Shell) -> None:
    (shell.folder / "crawl.jsonl").write_text('{"url": "https://a.example/", "body": "x"}\n')
    assert "must be one of shingling" in shell("scan", "crawl.jsonl", "--rule", "signals:m.json").err
