"""What verdicts tell of a run: clusters at its end, its merges, lines that are none."""

from typing import Any

import orjson
import pytest

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.evaluation_report import evaluate, evaluate_run
from neardup.evaluation.labels import Judgement, join_labels, label_of
from neardup.evaluation.run_tables import RunPages, RunStudy, run_section
from neardup.evaluation.runs import CrawlRun, read_run, run_of, stream
from neardup.evaluation.sections import by_name
from neardup.evaluation.truth import Items
from tests.neardup.evaluation.crawl import SCHEME, crawl_of, manual


def verdict(kind: str, name: str, cluster: int | None = None, **more: Any) -> dict[str, Any]:
    out = {"version": 1, "verdict": kind, "page_id": 0, "n": 0, "url": f"https://{name}", **more}
    return out if cluster is None else {**out, "cluster": cluster}


def near(name: str, other: str, cluster: int, b: int = 3, c: int = 376, by: str = "tape") -> dict[str, Any]:
    evidence = {"b_similarity": b, "c_similarity": c, "by": by}
    return verdict("near_duplicate", name, cluster, representative={"url": f"https://{other}"}, evidence=evidence)


def test_last_verdict_of_a_url_counts() -> None:
    run = run_of(
        "r",
        [
            verdict("unique", "a.example/", 1),
            near("b.example/", "a.example/", 1),
            verdict("unique", "c.example/", 3),
            verdict("unchanged", "b.example/", standing={"verdict": "near_duplicate", "cluster": 1}),
            verdict("stale", "b.example/", standing={"verdict": "unique", "cluster": 9}),
            near("d.example/", "c.example/", 3),
            verdict("gone", "a.example/"),
            verdict("promoted", "b.example/", 1),
            verdict("unique", "d.example/", 8),
            verdict("rejected", "e.example/", reason="empty"),
        ],
    )
    assert run.clusters == {"https://b.example/": 1, "https://c.example/": 3, "https://d.example/": 8}
    assert run.says("https://c.example/", "https://d.example/") is False  # d has other content by now
    assert run.says("https://a.example/", "https://b.example/") is None
    assert [merge.same_site for merge in run.merges] == [False, False]
    assert run.kinds["near_duplicate"] == 2


def test_lines_that_are_no_verdicts_are_counted() -> None:
    bad: list[Any] = [1, [], {}, verdict("perhaps", "a.example/"), verdict("unique", "", 1), near("a", "b", 1, b=7)]
    bad += [near("x.example/", "b.example/", 1, c=900), verdict("near_duplicate", "a.example/", 1)]
    lines = [orjson.dumps(line) for line in bad] + [b"{", b'"\xff"', orjson.dumps(near("B.example", "a.example/", 1))]
    run = read_run([*lines, b"\n"], "r", "file")
    assert (run.name, len(run.merges), run.unreadable) == ("r", 1, len(bad) + 2)
    assert run.clusters == {"https://b.example/": 1}
    with pytest.raises(BadInput, match=r"file:2.*version 2"):
        read_run([b"\n", orjson.dumps({**verdict("unique", "a.example/", 1), "version": 2})], "r", "file")
    with pytest.raises(BadInput, match="holds no verdict"):
        read_run([b"\n"], "r", "file")


def test_figures_of_a_run_alone_by_hand() -> None:
    a, b, c, d = (f"https://{name}.example/" for name in "abcd")
    run = run_of(
        "r",
        [
            verdict("unique", "a.example/", 1),
            near("b.example/", "a.example/", 1, b=2, c=360),
            near("c.example/", "a.example/", 1, b=6, c=384, by="renamed"),
            verdict("unique", "d.example/", 4),
        ],
    )
    pages = RunPages(run)
    names = {(a, b): Judgement.INCORRECT, (a, c): Judgement.CORRECT, (b, d): Judgement.CORRECT}
    names |= {(c, d): Judgement.INCORRECT, (b, c): Judgement.UNDECIDED}
    labels = join_labels([label_of(*pair, one, labeller="ana") for pair, one in names.items()], pages.find)
    tables = by_name(evaluate_run(RunStudy(run, pages, labels)).sections)
    # Of the labelled pairs it merged (a, b), (a, c) and (b, c), the undecided one; (b, d) is missed.
    rules = dict(zip(tables["rules-all"].columns, tables["rules-all"].rows[0], strict=True))
    assert [rules[name] for name in ("pairs", "correct", "accepted")] == [5, 2, 3]
    assert [rules[name] for name in ("precision", "recall", "F1")] == [pytest.approx(1 / 3), 0.5, 0.4]
    steps = {row[0]: row[1:7] for row in tables["run-steps"].rows}
    assert steps == {"all": [2, 0, 1, 1, 0, 0.5], "tape": [1, 0, 0, 1, 0, 0], "renamed": [1, 0, 1, 0, 0, 1]}
    levels = {row[0]: row[1:6] for row in tables["2-b-similarity"].rows}
    assert levels["2"] == [1, 0.5, 0, 360, 0]
    assert levels["6"] == [1, 0.5, 0, 384, 1]
    judged = {row[0]: row[1:4] for row in tables["3-b-judged"].rows}
    assert judged["all"] == [2, 0.5, 0.5]
    assert judged["B-similarity 6"] == [1, 1, 0]
    assert {row[0]: row[1] for row in tables["4-c-judged"].rows}["all"] == 1
    assert {row[0]: row[1] for row in tables["11-sites-b"].rows} == {"a.example": 1, "b.example": 1}
    # Of all labelled pairs (c, d) is incorrect, too: the run did not merge it.
    every = {row[0]: row[1:] for row in tables["11-sites-all"].rows}
    assert every["c.example"] == [1, 0.5, 3, pytest.approx(1 / 3), 0.2]
    assert every.keys() == {"a.example", "b.example", "c.example", "d.example"}
    assert {row[0]: row[1] for row in tables["hosts"].rows}["hosts"] == 4
    sizes = [row[1] for row in tables["run-clusters"].rows]
    assert sizes == [4, 2, 1, 3, 2]


def test_pages_by_item() -> None:
    pages = [near(f"{name}.example/", "a.example/", 1) for name in "bcd"]
    exact = verdict("exact_duplicate", "e.example/", 1)
    run = run_of("r", [verdict("unique", "a.example/", 1), *pages, exact, verdict("unique", "f.example/", 6)])
    about = {"a": "x", "b": "x", "c": "y", "e": "x", "f": "x"}
    items = Items({f"https://{name}.example/": (item, "") for name, item in about.items()})
    table = run_section(run, None, items).tables[-1]
    # Of x are a, b and f, of y c; nothing is known of d, and e is a copy word for word.
    assert [row[1:] for row in table.rows] == [[2, None], [2, None], [1, 0.5], [1, 0.5], [0, 0]]


def test_a_run_without_merges_and_without_labels_divides_by_nothing() -> None:
    run = run_of("r", [verdict("gone", "a.example/")])
    pages = RunPages(run)
    made = evaluate_run(RunStudy(run, pages, join_labels([], pages.find)))
    found = {section.key: section for section in made.sections}
    assert "found no near-duplicates" in found["run"].missing
    assert [row[1] for row in found["run"].tables[1].rows] == [0, 0, 0, 0, None]
    assert found["rules"].missing.startswith("No labelled pair")


def test_a_stream_in_memory_counts_as_a_run() -> None:
    crawl = crawl_of(manual(items=8))
    run = stream(crawl.corpus.records, Decider(scheme=SCHEME.digest))
    assert set(run.clusters) == set(crawl.corpus.urls)
    assert 0 < len(run.merges) < len(crawl.corpus)
    pairs = [(crawl.corpus.find(merge.url), crawl.corpus.find(merge.other)) for merge in run.merges]
    labels = [label_of(merge.url, merge.other, Judgement.CORRECT, sample="B") for merge in run.merges[::2]]
    study = crawl.study(labels, run=run)
    row = by_name(evaluate(study).sections)["rules-all"].rows[-1]
    assert row[:4] == ["verified, as a stream", len(labels), len(labels), len(labels)]
    assert all(a is not None and b is not None and b < a for a, b in pairs)
    assert isinstance(study.run, CrawlRun)
