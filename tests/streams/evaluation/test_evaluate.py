"""`neardup evaluate` on files and state directories: the same figures, labels, natural truth, bad input."""

import gzip
import json
import os
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.labels import Judgement, label_of, read_labels
from neardup.evaluation.runs import run_of
from neardup.evaluation.sampling import draw
from neardup.evaluation.sections import by_name
from neardup.scheme import Scheme
from streams.commands.options import SEED_MAX
from streams.evaluation.evaluate import SCHEME, _read_run, evaluate_command, open_crawl
from streams.evaluation.label import LabelFile, label_command
from streams.files.sources import ReadOptions
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.neardup.evaluation.crawl import manual
from tests.streams.shell import Shell


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("crawl") / "site", items=8)


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With some forty pairs in each graph."""
    return written(tmp_path_factory.mktemp("larger") / "site", items=36)


def written(root: Path, items: int) -> Path:
    for page in manual(items=items, sites=("manual.example",)):
        path = root / page.url.split("/", 3)[3]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page.body or b"")
    return root


BASE = "https://manual.example/"


def test_a_folder_is_evaluated_by_natural_truth(folder: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    evaluation = evaluate_command(
        [folder],
        base_url=BASE,
        natural=True,
        out=tmp_path / "out",
        progress=lambda phase, done, total: seen.append(phase),
    )
    assert evaluation.counts.pages == 24 - evaluation.counts.repeats
    assert evaluation.labels["correct"] > 5
    assert evaluation.labels["incorrect"] > 5
    assert any("natural truth" in note for note in evaluation.notes)
    kept = tmp_path / "labels.jsonl"
    evaluate_command([folder], base_url=BASE, natural=True, labels_out=kept)
    assert {"B", "C", "wide", "run", "items", "others"} == set().union(*(one.samples for one in read_labels(kept)))
    assert (tmp_path / "out" / "evaluation.html").stat().st_size > 20_000
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["labels"] == evaluation.labels
    assert {"sketch", "join", "read", "write"} <= set(seen)
    again = evaluate_command([folder], base_url=BASE, natural=True, threads=2)
    assert again.to_json() == evaluation.to_json()


@pytest.mark.slow
def test_a_state_directory_gives_the_same_figures(folder: Path, tmp_path: Path) -> None:
    with ScanDirectory.open(tmp_path / "state", scheme=Scheme(seed=SCHEME.seed)) as state:
        scan([folder], state, reading=ReadOptions(BASE))
    from_state = evaluate_command(state=tmp_path / "state", natural=True)
    from_files = evaluate_command([folder], base_url=BASE, natural=True)
    one, other = by_name(from_state.sections), by_name(from_files.sections)
    assert one.keys() == other.keys()
    for name in one:
        for row, same in zip(one[name].rows, other[name].rows, strict=True):
            # The run of the state directory, and the one made in memory, differ in name alone.
            assert row[1:] == same[1:], name
    assert one["rules-all"].rows[-1][0] == "the run of state: verified"
    assert other["rules-all"].rows[-1][0] == "verified, as a stream"


def test_a_state_with_records_that_no_url_is_known_of_is_evaluated_and_labelled(tmp_path: Path) -> None:
    """A line that is no JSON has a verdict, `rejected`, of no URL."""
    text = " ".join(f"word{i}" for i in range(200))
    lines = [{"url": f"http://{host}.example/", "body": f"{text} {host}"} for host in "ab"]
    (tmp_path / "a.jsonl").write_text("\n".join(["{", *map(json.dumps, lines), '{"body": "x"}']))
    with ScanDirectory.open(tmp_path / "state", scheme=Scheme(seed=SCHEME.seed)) as state:
        scan([tmp_path / "a.jsonl"], state, out=str(tmp_path / "verdicts.jsonl"))
    made = evaluate_command(state=tmp_path / "state")
    assert (made.counts.fetches, made.counts.rejected) == (4, 2)
    reported: list[str] = []

    def ready(url: str) -> None:
        reported.append(url)
        os.kill(os.getpid(), signal.SIGTERM)

    label_command(state=tmp_path / "state", labels=tmp_path / "labels.jsonl", port=0, ready=ready)
    assert len(reported) == 1
    verdicts = tmp_path / "verdicts.jsonl"
    for run in (run_of("", map(json.loads, verdicts.read_bytes().splitlines())), _read_run(verdicts)):
        assert (run.kinds["rejected"], run.unreadable, len(run.clusters)) == (2, 0, 2)


def test_labels_of_people_go_before_natural_truth(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    pair = f"{BASE}1.0/item1.html", f"{BASE}1.1/item1.html"
    path.write_bytes(label_of(*pair, Judgement.UNDECIDED, labeller="ana").to_json())
    evaluation = evaluate_command([folder], base_url=BASE, labels=[path], natural=True)
    assert evaluation.labels["undecided"] == 1
    kept = tmp_path / "all.jsonl"
    evaluate_command([folder], base_url=BASE, labels=[path], natural=True, labels_out=kept)
    again = evaluate_command([folder], base_url=BASE, labels=[kept])
    assert again.labels == evaluation.labels
    alone = evaluate_command([folder], base_url=BASE, labels=[path])
    assert alone.labels == {"correct": 0, "incorrect": 0, "undecided": 1}


@pytest.mark.slow
def test_labels_of_people_shrink_no_table_of_natural_truth(larger: Path, tmp_path: Path) -> None:
    kept, path = tmp_path / "all.jsonl", tmp_path / "labels.jsonl"
    before = evaluate_command([larger], base_url=BASE, natural=True, labels_out=kept)
    made = [label for label in read_labels(kept) if label.samples & {"B", "C"}]
    assert len(made) > 20
    # Ana agrees on some; on others two people cannot agree.
    values = [replace(label, labeller="ana", sample="") for label in made[::3]]
    values += [label_of(label.a, label.b, Judgement.UNDECIDED, labeller="ana") for label in made[1::9]]
    values += [label_of(label.a, label.b, Judgement.CORRECT, labeller="bob") for label in made[1::9]]
    path.write_bytes(b"".join(label.to_json() for label in values))
    beside = evaluate_command([larger], base_url=BASE, labels=[path], natural=True, labels_out=kept)
    for name in ("3-b-judged", "4-c-judged"):
        counts = [[row[1] for row in by_name(one.sections)[name].rows] for one in (before, beside)]
        assert counts[0] == counts[1]
        assert counts[0][0] > 10
    again = evaluate_command([larger], base_url=BASE, labels=[kept])
    assert by_name(again.sections)["4-c-judged"].rows == by_name(beside.sections)["4-c-judged"].rows


def test_a_label_of_a_twin_is_not_outvoted_by_natural_truth(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(folder, site)
    (site / "2.0" / "twin.html").write_bytes((site / "2.0" / "item1.html").read_bytes())
    path = tmp_path / "labels.jsonl"
    path.write_bytes(
        label_of(f"{BASE}1.0/item1.html", f"{BASE}2.0/twin.html", Judgement.UNDECIDED, labeller="ana").to_json()
    )
    found = evaluate_command([site], base_url=BASE, labels=[path], natural=True)
    assert found.labels["undecided"] == 1
    assert not any("contradict" in note for note in found.notes)


def test_two_rounds_of_labelling_fill_both_tables(larger: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    drawn = {}
    with open_crawl([larger], base_url=BASE) as crawl:
        graphs = b_graph(crawl.corpus), c_graph(crawl.corpus)
        for rule, graph in zip("BC", graphs, strict=True):
            pairs = draw(crawl.corpus, *graphs, rule=rule, count=18)
            drawn[rule] = len(pairs)
            assert len(pairs) <= graph.edges
            file = LabelFile(path)
            labelling = Labelling(pairs, crawl.corpus, file.labels, file.append)
            while (place := labelling.next_for("ana")) is not None:
                one, other = (crawl.corpus.urls[page].rpartition("/")[2] for page in pairs[place][:2])
                labelling.record("ana", place, "correct" if one == other else "incorrect", [], place)
            file.close()
    assert len(read_labels(path)) < sum(drawn.values()), "some pairs are of both"
    found = evaluate_command([larger], base_url=BASE, labels=[path])
    tables = by_name(found.sections)
    assert tables["3-b-judged"].rows[0][1] == drawn["B"]
    assert tables["4-c-judged"].rows[0][1] == drawn["C"]


@pytest.mark.slow
def test_a_file_of_verdicts_is_evaluated_alone_or_beside_its_pages(folder: Path, tmp_path: Path) -> None:
    verdicts, kept = tmp_path / "verdicts.jsonl", tmp_path / "all.jsonl"
    with ScanDirectory.open(tmp_path / "state", scheme=Scheme(seed=SCHEME.seed)) as state:
        scan([folder], state, reading=ReadOptions(BASE), out=str(verdicts))
    whole = evaluate_command(state=tmp_path / "state", natural=True, labels_out=kept)
    beside = evaluate_command([folder], base_url=BASE, natural=True, verdicts=verdicts)
    alone = evaluate_command(verdicts=verdicts, labels=[kept], out=tmp_path / "out")
    tables = [by_name(evaluation.sections) for evaluation in (whole, beside, alone)]
    rows = [made["rules-all"].rows[-1] for made in tables]
    assert [row[0] for row in rows[1:]] == ["the run of verdicts.jsonl"] * 2
    assert rows[0][1:] == rows[1][1:] == [*rows[2][1:], None]
    assert tables[0]["run-steps"].rows == tables[1]["run-steps"].rows == tables[2]["run-steps"].rows
    keys = [section.key for section in alone.sections]
    assert keys == ["rules", "run", "hosts", *map(str, range(1, 12)), "t", "ablations"]
    found = {section.key: section.missing for section in alone.sections}
    assert all("Name the files" in found[key] for key in ("1", "7", "8", "10", "t", "ablations"))
    assert "Not available from verdicts" in (tmp_path / "out" / "evaluation.html").read_text()
    unlabelled = evaluate_command(verdicts=verdicts)
    assert by_name(unlabelled.sections).keys() >= {"run-kinds", "run-steps", "2-b-similarity"}
    with pytest.raises(BadInput, match="natural truth reads pages"):
        evaluate_command(verdicts=verdicts, natural=True)
    with pytest.raises(BadInput, match="no verdict"):
        evaluate_command(verdicts=kept)
    other = tmp_path / "other.jsonl"
    other.write_bytes(verdicts.read_bytes().replace(b"manual.example", b"elsewhere.example"))
    with pytest.raises(BadInput, match="verdicts are of other pages"):
        evaluate_command([folder], base_url=BASE, verdicts=other)
    with pytest.raises(BadInput, match=r"no label fits these verdicts.*manual\.example"):
        evaluate_command(verdicts=other, labels=[kept])


def test_a_file_of_items_labels_pairs(folder: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    names = sorted(path.relative_to(folder) for path in folder.rglob("*.html"))
    items.write_text("".join(f'{{"url": "{BASE}{name}", "item": "{name.name}"}}\n' for name in names))
    found = evaluate_command([folder], base_url=BASE, items=items)
    # Each of the eight items has its pages in three releases, and by the file's word they say the same.
    assert found.labels["correct"] >= evaluate_command([folder], base_url=BASE, natural=True).labels["correct"] > 0
    assert any("the file of items" in note for note in found.notes)
    with pytest.raises(BadInput, match="choose one"):
        evaluate_command([folder], base_url=BASE, items=items, releases="x")
    with pytest.raises(BadInput, match="other pages"):
        evaluate_command([folder], base_url="https://elsewhere.example/", items=items)


def test_labels_of_another_crawl_are_refused_and_single_ones_reported(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(label_of("https://x.example/1", "https://x.example/2", Judgement.CORRECT).to_json())
    with pytest.raises(BadInput, match=r"no label fits.*x\.example"):
        evaluate_command([folder], base_url=BASE, labels=[path])
    with path.open("ab") as file:
        file.write(label_of(f"{BASE}1.0/item1.html", f"{BASE}1.1/item1.html", Judgement.CORRECT).to_json())
    notes = evaluate_command([folder], base_url=BASE, labels=[path]).notes
    assert any("labels of pages that are not in this crawl: 1, as https://x" in note for note in notes)


def test_one_page_and_one_release_are_enough_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("<title>One</title>" + "words " * 50)
    evaluation = evaluate_command([tmp_path / "one.html"])
    assert any("no pairs to evaluate" in note for note in evaluation.notes)
    with pytest.raises(BadInput, match="at least two releases"):
        evaluate_command([tmp_path / "one.html"], natural=True)


def test_unreadable_input_is_reported_and_empty_input_refused(folder: Path, tmp_path: Path) -> None:
    line = b'{"url": "https://a.example/", "body": "<p>one two three"}\n'
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(line) + gzip.compress(line * 1000)[:40])
    pages = tmp_path / "pages.jsonl"
    evaluation = evaluate_command([cut])
    assert evaluation.unread == 1
    assert any("that could not be read: 1, as " in note for note in evaluation.notes)
    assert evaluate_command([folder], base_url=BASE).unread == 0
    pages.write_text('{"version": 1, "verdict": "unique", "url": "https://a.example/"}\n')
    with pytest.raises(BadInput, match=r"no page could be read.*--verdicts"):
        evaluate_command([pages])


def test_bad_input_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name either"):
        evaluate_command([])
    with pytest.raises(BadInput, match="name either"):
        evaluate_command([folder], state=tmp_path)
    with pytest.raises(BadInput, match="no such file"):
        evaluate_command([tmp_path / "nowhere"])
    with pytest.raises(BadInput, match="no state directory"):
        evaluate_command(state=tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "scheme.json").write_text("{}")
    with pytest.raises(BadInput, match="the stream's matcher"):
        evaluate_command(state=tmp_path)
    assert not (tmp_path / "log").exists()
    with pytest.raises(BadInput, match="cannot read the verdicts"):
        evaluate_command(verdicts=tmp_path)
    with pytest.raises(BadInput, match="--ratio"):
        evaluate_command([folder], ratio_min=0)
    with pytest.raises(BadInput, match="no regular expression"):
        evaluate_command([folder], releases="(")
    with pytest.raises(BadInput, match="more than 5 pages"), open_crawl([folder], pages_max=5):
        pass


def _decider(numbers: dict[str, int], scheme: Scheme) -> Decider:
    return Decider(scheme=scheme.digest, **numbers)


@pytest.mark.slow
def test_a_run_with_thresholds_of_its_own_is_evaluated(folder: Path, tmp_path: Path) -> None:
    for name, value in {"b_min": 1, "c_min": 380}.items():
        with ScanDirectory.open(tmp_path / name, scheme=SCHEME, decider=partial(_decider, {name: value})) as state:
            scan([folder], state, reading=ReadOptions(BASE))
    evaluation = evaluate_command(state=tmp_path / "b_min", natural=True, seed=9)
    assert "at least 1 of 6 supershingles equal" in evaluation.fetched
    assert "by seed 9." in evaluation.to_json()["made"]
    tables = by_name(evaluation.sections)
    assert [row[0] for row in tables["2-b-similarity"].rows] == [1, 2, 3, 4, 5, 6, "all"]
    assert tables["2-b-similarity"].rows[0][4] is None, "the paper has no such pairs"
    tables = by_name(evaluate_command(state=tmp_path / "c_min", natural=True).sections)
    assert [row[0] for row in tables["9-b-for-c"].rows] == ["382-384", "380-381", "all"]


def test_files_of_an_earlier_evaluation_do_not_stay(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "table-mine.csv").write_text("somebody's own")
    evaluate_command([folder], base_url=BASE, natural=True, out=tmp_path)
    assert (tmp_path / "table-rules-all.csv").exists()
    assert (tmp_path / "plot-10-r.svg").exists()
    evaluate_command([folder], base_url=BASE, out=tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert {"evaluation.html", "table-mine.csv", "table-1-graphs.csv"} <= left
    assert not {"table-rules-all.csv", "plot-10-r.svg", "plot-10-r.csv"} & left
    with pytest.raises(BadInput, match="cannot write"):  # before anything is read
        evaluate_command([tmp_path / "nowhere"], out=tmp_path / "evaluation.html")


def test_agreement_is_reported_where_several_label(folder: Path, tmp_path: Path) -> None:
    paths = []
    for name, expected in (("ana", "ccci"), ("bob", "ccii")):
        judgements = [Judgement.CORRECT if one == "c" else Judgement.INCORRECT for one in expected]
        lines = [
            label_of(f"{BASE}1.0/item{i}.html", f"{BASE}2.0/item{i}.html", judgement, labeller=name).to_json()
            for i, judgement in enumerate(judgements)
        ]
        paths.append(tmp_path / name)
        paths[-1].write_bytes(b"".join(lines))
    evaluation = evaluate_command([folder], base_url=BASE, labels=paths)
    assert by_name(evaluation.sections)["labellers"].rows == [["ana and bob", 4, pytest.approx(0.5)]]
    assert "labellers" not in by_name(evaluate_command([folder], base_url=BASE, labels=paths[:1]).sections)


def test_lines_without_an_end_and_files_without_a_line(folder: Path, tmp_path: Path) -> None:
    for wanted in ({"labels": [Path("/dev/zero")]}, {"items": Path("/dev/zero")}):
        with pytest.raises(BadInput, match=r"zero:1: .*more than 64000 bytes"):
            evaluate_command([folder], base_url=BASE, **wanted)  # type: ignore[arg-type]
    verdict = b'{"version": 1, "verdict": "unique", "url": "https://a.example/", "cluster": 1}\n'
    (tmp_path / "verdicts").write_bytes(b"x" * 3_000_000 + b"\n" + verdict)
    section = next(one for one in evaluate_command(verdicts=tmp_path / "verdicts").sections if one.key == "run")
    assert "Skipped lines that are no verdicts: 1" in section.missing
    (tmp_path / "empty").write_bytes(b"\n")
    notes = evaluate_command([folder], base_url=BASE, labels=[tmp_path / "empty"]).notes
    assert [note for note in notes if "holds no label" in note] == [f"{tmp_path / 'empty'} holds no label"]


def test_seeds_are_in_the_range_of_the_kernels(folder: Path, shell: Shell) -> None:
    for command in (["evaluate", str(folder)], ["label", str(folder), "--labels", "labels"]):
        ended = shell(*command, "--base-url", BASE, "--seed", "-1")
        assert ended.code == 2
        assert "--seed" in ended.err.splitlines()[-1]
    evaluate_command([folder], base_url=BASE, natural=True, seed=SEED_MAX)


def test_a_file_that_changes_meanwhile_is_reported_not_measured(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    for path in folder.rglob("*.html"):
        target = copy / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    with open_crawl([copy], base_url=BASE) as crawl:
        (copy / "1.0" / "item0.html").write_text("other words now")
        number = crawl.corpus.find(f"{BASE}1.0/item0.html")
        assert number is not None
        assert crawl.texts.tokens(number) is None
        assert any("another text" in problem for problem in crawl.texts.problems)
