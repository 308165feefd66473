"""`neardup evaluate --propose`: a proposal, what it would change, and nothing changed by it."""

import json
import re
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.evaluation.evaluate import evaluate_command
from streams.evaluation.tune import tune_command
from streams.files.sources import ReadOptions
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.neardup.evaluation.crawl import manual
from tests.streams.shell import Shell

BASE = "https://manual.example/"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty items in three releases, of which later ones differ more and more."""
    root = tmp_path_factory.mktemp("tune") / "site"
    for page in manual(items=60, sites=("manual.example",)):
        path = root / page.url.split("/", 3)[3]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page.body or b"")
    return root


@pytest.fixture(scope="module")
def labels(site: Path) -> Path:
    """Two releases are one item if half of their text is the same: less than the rule asks for."""
    out = site.parent / "labels.jsonl"
    evaluate_command([site], base_url=BASE, natural=True, ratio_min=0.5, labels_out=out)
    return out


@pytest.fixture(scope="module")
def state(site: Path) -> Path:
    path = site.parent / "state"
    with ScanDirectory.open(path, scheme=Scheme(seed=3), decider=_strict) as opened:
        scan([site], opened, reading=ReadOptions(BASE))
    return path


def _strict(scheme: Scheme) -> Decider:
    return Decider(scheme.digest, rule="tape", tape_min=0.98)


def files(folder: Path) -> dict[str, bytes]:
    """What a scan keeps but for its index, which opening alone may rewrite."""
    kept = (path for path in folder.rglob("*") if path.is_file() and "index" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}


def test_tune_proposes_changes_for_the_labels_of_a_scan(labels: Path, state: Path) -> None:
    before = files(state)
    found = tune_command([labels], state=state)
    tuning = found.tuning
    assert "tape_min" in {one.name for one in tuning.changes}
    assert tuning.proposed.tape_min < 0.98
    assert tuning.holds
    assert found.changed is not None
    assert found.changed.pages == 180
    assert found.changed.changed > 10
    assert files(state) == before
    with ScanDirectory.open(state) as opened:
        assert opened.decider == _strict(opened.scheme)


@pytest.mark.slow
def test_printed_flags_give_the_reported_result(
    labels: Path, state: Path, site: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_SEED", "3")
    made = shell("evaluate", "--state", str(state), "--labels", str(labels), "--propose", "--json")
    output = json.loads(made.out)["proposal"]
    assert output["holds"]
    again = shell(
        *("scan", str(site), "--base-url", BASE, "--state", str(state.parent / "other"), "--rule", "tape", "-q"),
        *output["flags"],
    )
    assert again.code == 0, again.err
    compared = json.loads(shell("diff", str(state), str(state.parent / "other"), "--json").out)
    assert compared == output["diff"]


def test_files_are_enough(labels: Path, site: Path) -> None:
    found = tune_command([labels], [site], base_url=BASE)
    assert found.changed is None
    assert found.tuning.decider.rule == "verified"
    assert json.dumps(found.to_json())


@pytest.mark.slow
def test_tune_prints_a_report_for_people(labels: Path, state: Path, shell: Shell) -> None:
    made = shell("evaluate", "--state", str(state), "--labels", str(labels), "--propose")
    assert made.code == 0, made.err
    text = re.sub(r"\s+", " ", made.out)
    assert "on the other pairs" in text
    assert re.search(r"tape_min [▁▂▃▄▅▆▇█]+ 0 1 ", text)
    assert f"--state {state} --new-decider --rule tape --set tape_min=" in text
    assert " changed (" in text


def test_labels_of_other_pages_are_refused(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "labels.jsonl"
    other.write_text('{"a": {"url": "http://x.example/1"}, "b": {"url": "http://x.example/2"}, "label": "correct"}\n')
    with pytest.raises(BadInput, match="no label fits"):
        tune_command([other], [site], base_url=BASE)
