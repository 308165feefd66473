"""A whole evaluation, cell by cell, beside the same tables counted in plain Python from pages and lines of labels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neardup.evaluation.evaluation_report import evaluate
from neardup.evaluation.labels import read_labels
from neardup.evaluation.runs import stream
from neardup.evaluation.sampling import draw
from neardup.evaluation.sections import by_name
from neardup.kernels.joins import chosen
from neardup.page import Page
from neardup.sketch.layout import HEADER
from neardup.sketch.make_sketches import sketch_pages
from tests.neardup.evaluation.crawl import SCHEME, Crawl, crawl_of, manual, page, words
from tests.oracle.evaluation import Evaluation
from tests.oracle.text import stream_words

REASONS = {
    "correct": [["own_url"], ["time_stamp"], ["own_url", "time_stamp"], ["rest"], ["visitor_count"]],
    "incorrect": [["main_item"], []],
    "undecided": [["prefilled_form"], ["minor_item"], ["prefilled_form", "cannot_evaluate"], []],
}
#: What an evaluation tells beyond the oracle: exponents, sums, rules that are not the papers'.
BEYOND = {
    "hosts": {"power-law exponent"},
    "1-graphs": {"power-law exponent"},
    **{f"5-differences-{name}": {"all"} for name in "bc"},
    **{f"rules-{sites}": {"tape", "verified"} for sites in ("all", "same-site", "different-sites")},
}


def fetched(pages: Sequence[Page]) -> list[dict[str, Any]]:
    """Pages as the oracle takes them. Sketches have an oracle of their own."""
    out = []
    for one, record in zip(pages, sketch_pages(pages, SCHEME), strict=True):
        head = np.frombuffer(record[: HEADER.itemsize], dtype=HEADER)[0]
        bits = sum(int(word) << 64 * at for at, word in enumerate(head["simhash"]))
        tokens = stream_words(one.body or b"", one.url.split("/")[2])
        out.append({"url": one.url, "tokens": tokens, "b": [int(key) for key in head["supershingles"]], "c": bits})
    return out


def label_lines(crawl: Crawl, path: Path, count: int, by_both: bool) -> list[dict[str, Any]]:
    """Two rounds of labels, of both graphs: some pairs of both; two people at odds, words taken back, strange pages."""
    graphs, urls, lines = crawl.study(), crawl.corpus.urls, []

    def say(pair: tuple[int, int], sample: str, labeller: str, salt: int = 0) -> None:
        at = int(chosen(*pair, np.uint64(77 + salt))) % 1000
        label = ("correct", "correct", "correct", "incorrect", "incorrect", "undecided")[at % 6]
        reasons = REASONS[label][at % len(REASONS[label])]
        ends = {"a": {"url": urls[pair[at % 2]]}, "b": {"url": urls[pair[1 - at % 2]]}}
        more = {"labeller": labeller, "labelled_at": len(lines), "sample": sample}
        lines.append({"version": 1, **ends, "label": label, "reasons": reasons, **more})

    for rule in "BC" if by_both else "B":
        for number, (a, b, sample, *_) in enumerate(
            draw(crawl.corpus, graphs.b, graphs.c, rule=rule, count=count, seed=5)
        ):
            say((a, b), sample, "ana")
            if number % 7 == 0:
                say((a, b), sample, "bob", salt=number)  # a draw: the pair is left out
            if number % 11 == 0:
                say((a, b), sample, "ana", salt=1)  # thought again
            if number % 13 == 0:
                lines.append({**lines[-1], "label": "withdrawn", "labelled_at": len(lines)})
    strange = {"version": 1, "a": {"url": "https://gone.example/"}, "b": {"url": urls[0]}, "label": "correct"}
    lines.append({**strange, "reasons": []})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def pages_of(name: str) -> list[Page]:
    if name == "of one site":
        return manual(items=8, sites=("manual.example",))
    if name == "without a similar pair":
        return [page(f"https://h{i}.example/{i}", f"Number {i}", words(i, 60)) for i in range(6)]
    pages = manual(items=14)
    twins = [page(f"{one.url}?twin", "", []) for one in pages[:3]]
    twins = [Page(twin.url, one.body, one.content_type) for twin, one in zip(twins, pages, strict=False)]
    again = page(pages[5].url, "Another text", words(500, 80))
    return [*pages, *twins, page("https://alone.example/", "Alone", words(99, 200)), again]


@pytest.mark.parametrize(
    ("name", "count", "by_both"),
    [
        pytest.param("of two sites", 70, True, marks=pytest.mark.whole),
        pytest.param("of two sites", 30, True, marks=pytest.mark.slow),  # some levels have too few labels
        pytest.param("of two sites", 70, False, marks=pytest.mark.slow),
        ("of one site", 20, True),
        ("without a similar pair", 0, False),
    ],
)
def test_every_cell_equals_the_count(name: str, count: int, by_both: bool, tmp_path: Path) -> None:
    pages = pages_of(name)
    crawl = crawl_of(pages)
    path = tmp_path / "labels.jsonl"
    lines = label_lines(crawl, path, count, by_both) if count else []
    run = stream(crawl.corpus.records, crawl.study().decider)
    study = crawl.study(read_labels(path) if lines else [], run=run, seed=3)
    tables = by_name(evaluate(study).sections)
    wanted = Evaluation(fetched(pages), lines, seed=3).tables(run.clusters, run.name)
    compared = 0
    for table, rows in wanted.items():
        if table not in tables:
            assert not lines or not study.labels.decided or table == "t-pairs", table
            continue
        found = {next(iter(row.values())): row for row in tables[table].to_json()}
        beyond = {str(row) for row in found} - {str(row) for row in rows}
        assert {row for row in beyond if ", same content" not in row} <= BEYOND.get(table, set()), table
        for row, cells in rows.items():
            if table == "t-pairs" and row not in found:
                continue  # not every level has a row
            for column, value in cells.items():
                assert found[row][column] == (None if value is None else pytest.approx(value)), (table, row, column)
                compared += 1
    assert compared > (500 if by_both else 100)
