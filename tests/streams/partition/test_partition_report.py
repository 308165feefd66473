"""The report of a partition: figures, sets, and pairs with what differs, from files that strangers wrote."""

import html
import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from neardup.report.partition_report import partition_report
from streams.partition.partition_results import Summary
from streams.partition.steps import PartitionCounts
from tests.streams.partition.corpora import edited, entry, items, page, sentences, write
from tests.streams.shell import Shell

HOSTILE = '"><script>alert(1)</script>'


def text(report: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", report.read_text(encoding="utf-8")))


def test_a_later_partition_of_a_process_reads_its_own_texts(shell: Shell) -> None:
    """Its folder may be that of an earlier one, with files of the same names and other contents."""
    for entries in (items(12)[:18], items(12)[18:]):
        write(shell.folder / "crawl", entries)
        assert shell("partition", "crawl", "--out", "sets", "--method", "tlcs", "--workers", "1", "--quiet").code == 0
        assert "100% of 18 documents are in 6 sets" in " ".join(text(shell.folder / "sets" / "report.html").split())
        shutil.rmtree(shell.folder / "sets")


@pytest.mark.parametrize("kind", ["lines", "folder"])
def test_the_report_shows_sets_and_pairs(shell: Shell, kind: str) -> None:
    entries = items(6)
    if kind == "lines":
        write(shell.folder / "crawl", entries)
    else:
        for one in entries:
            file = shell.folder / "crawl" / one["url"].replace("https://", "").replace("/", "-")
            file.parent.mkdir(exist_ok=True)
            file.with_name(file.name + ".html").write_text(one["body"])
    ended = shell("partition", "crawl", "--out", "sets", "--method", "tlcs", "--workers", "1", "--quiet")
    assert ended.code == 0, ended.err
    values = text(shell.folder / "sets" / "report.html")
    assert "100% of 18 documents are in 6 sets of two or more." in " ".join(values.split())
    sets = [json.loads(line) for line in (shell.folder / "sets" / "sets.jsonl").read_text().splitlines()]
    scores = sorted(member["score"] for one in sets for member in one["members"] if "score" in member)
    shown = re.findall(r"Resemblance (\d+%)", values)
    assert set(shown) <= {f"{score:.0%}" for score in scores}
    assert {f"{score:.0%}" for score in scores[:2]} <= set(shown)  # the least alike ones
    assert "a sentence of edition" in values
    assert "cannot be shown" not in values


def test_hostile_texts_are_escaped(shell: Shell) -> None:
    lines = [f"{HOSTILE} {line}" for line in sentences(1)]
    pages = [page(lines, HOSTILE), page(edited(lines, 5), HOSTILE)]
    url = "https://a.example/?q=" + HOSTILE
    write(shell.folder / "crawl.jsonl", [entry(f"{url}{at}", body) for at, body in enumerate(pages)])
    assert shell("partition", "crawl.jsonl", "--out", "sets", "--method", "tlcs", "--workers", "1", "--quiet").code == 0
    report = (shell.folder / "sets" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in report
    assert "default-src 'none'" in report


def test_an_online_rules_partition_has_one_too(shell: Shell) -> None:
    write(shell.folder / "crawl.jsonl", items(4))
    command = ("partition", "crawl.jsonl", "--out", "sets", "--method", "verified", "--workers", "1", "--quiet")
    assert shell(*command).code == 0
    words = " ".join(text(shell.folder / "sets" / "report.html").split())
    assert "documents are in" in words
    assert "method verified" in words
    assert "decided by tape" in words
    assert "a sentence of edition" in words


def test_pages_that_are_gone_are_marked() -> None:
    place = {"source": "0" * 32, "offset": 0}
    member = {"url": "https://a.example/2", "near": "https://a.example/1", "score": 0.5, "containment": 0.6, **place}
    line = {"representative": {"url": "https://a.example/1", **place}, "size": 2, "members": [member]}
    values = asdict(Summary(sets=1, in_sets=2, counts=PartitionCounts(documents=2), sizes={2: 1}))
    report = partition_report(values, [line], lambda places: {})
    assert report.count("its source is gone or has changed") == 2
