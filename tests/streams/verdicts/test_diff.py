"""Two histories side by side: what changed is counted, by kind and by site, and shown with both verdicts."""

import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.scheme import Scheme
from neardup.urls import url_of_id
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.diff import CHANGED, SAMPLES, Change, diff
from streams.verdicts.diff_command import changed_rows, history_of, shown
from tests.streams.shell import Shell

KINDS = ("unique", "exact_duplicate", "near_duplicate", "same_content", "rejected")


def place(offset: int) -> dict[str, Any]:
    return {"source": "ab", "partition": offset % 3, "offset": offset, "position": 0}


def verdict(offset: int, kind: str, of: int | None = None, **more: Any) -> dict[str, Any]:
    fields = {"verdict": kind, "page_id": offset, "n": 0, "url": f"http://s{offset % 5}.example/{offset}"}
    fields |= {"coordinates": place(offset), "site": f"s{offset % 5}.example"}
    if of is not None:
        fields["representative"] = {"page_id": of, "url": f"http://x/{of}", "coordinates": place(of)}
    return fields | more


def test_against_plain_dictionaries() -> None:
    chance = random.Random(5)
    before = {o: (chance.choice(KINDS), chance.randrange(4)) for o in range(400) if chance.random() < 0.9}
    after = {
        o: before[o] if o in before and chance.random() < 0.7 else (chance.choice(KINDS), chance.randrange(4))
        for o in range(400)
        if chance.random() < 0.9
    }

    def output(history: dict[int, tuple[str, int]], order: int) -> Iterator[dict[str, Any]]:
        offsets = sorted(history, key=lambda o: o * order % 401)
        for o in offsets:
            yield verdict(o, history[o][0], history[o][1], page_id=o * order)
            yield verdict(o, "promoted", n=1)

    found = diff(lambda: output(before, 1), lambda: output(after, 7))
    wanted: Counter[Change] = Counter()
    for o in before.keys() | after.keys():
        one, other = before.get(o), after.get(o)
        if one != other:
            wanted[Change(one[0] if one else "(none)", other[0] if other else "(none)")] += 1
    assert found.pages == len(before.keys() | after.keys())
    assert found.changes == wanted
    assert sum(counts.total() for counts in found.sites.values()) == found.changed == wanted.total()
    for change, count in wanted.items():
        samples = found.samples[change]
        assert len(samples) == min(count, SAMPLES)
        for one in samples:
            assert change == Change(
                one.before["verdict"] if one.before else "(none)", one.after["verdict"] if one.after else "(none)"
            )


def test_verdicts_of_one_kind_differ_by_their_reference_alone() -> None:
    before = [verdict(1, "near_duplicate", 0), verdict(2, "near_duplicate", 0)]
    after = [verdict(1, "near_duplicate", 0, page_id=99), verdict(2, "near_duplicate", 3)]
    found = diff(lambda: before, lambda: after)
    assert found.changes == {Change("near_duplicate", "near_duplicate"): 1}
    assert str(next(iter(found.changes))) == "near_duplicate of another page"


@pytest.mark.parametrize("both", [False, True])
def test_a_page_listed_twice_is_refused(both: bool) -> None:
    twice = [verdict(1, "unique"), verdict(1, "gone")]
    once = [verdict(1, "unique")]
    with pytest.raises(BadInput, match="two verdicts about"):
        diff(lambda: twice if not both else once, lambda: twice)


@pytest.mark.slow
def test_another_rule_on_one_log(shell: Shell, scanned: Path, tmp_path: Path) -> None:
    assert "0 changed" in shell("diff", str(scanned), str(scanned)).err
    other = tmp_path / "other.jsonl"
    result = shell("replay", str(scanned), "--rule", "shingling", "--set", "b_min=6", "--out", str(other))
    assert result.code == 0, result.err
    html = tmp_path / "diff.html"
    assert shell("diff", str(scanned), str(other), "--html", str(html)).code == 0
    found = json.loads(shell("diff", str(scanned), str(other), "--json").out)
    lost = [one for one in found["changes"] if (one["before"], one["after"]) == ("near_duplicate", "unique")]
    assert found["changed"] >= lost[0]["pages"] > 0
    page = html.read_text()
    assert "near_duplicate -&gt; unique" in page
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)
    assert not [cell for cell in cells if "{" in cell or "&#34;" in cell], "no raw JSON"
    assert "in the same order" in page
    for suffix in ("parquet", "jsonl", "csv"):
        result = shell("diff", str(scanned), str(other), "--pages", f"changed.{suffix}")
        assert result.code == 0, result.err
    rows = duckdb.sql("SELECT * FROM 'changed.parquet'").fetchall()
    assert [dict(zip(CHANGED, row, strict=True)) for row in rows] == [
        json.loads(line) for line in Path("changed.jsonl").read_text().splitlines()
    ]
    counts = Counter((row[5], row[7]) for row in rows)
    assert counts == {(one["before"], one["after"]): one["pages"] for one in found["changes"]}
    urls = [verdict["url"] for verdict in map(json.loads, other.read_text().splitlines())]
    assert all(urls[row[4]] == row[0] for row in rows)
    assert all(row[6] and not row[8] for row in rows if (row[5], row[7]) == ("near_duplicate", "unique"))
    assert "must end in .parquet" in shell("diff", str(scanned), str(other), "--pages", "x.txt").err


@pytest.mark.slow
def test_the_page_has_both_texts_and_links_into_the_views(shell: Shell, scanned: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with ScanDirectory.open(
        other, scheme=Scheme(seed=7), decider=lambda s: Decider(scheme=s.digest, rule="shingling")
    ) as state:
        scan([tmp_path / "a.warc"], state)
    html = tmp_path / "diff.html"
    written = ("diff", str(scanned), str(other), "--html", str(html), "--views", "http://v.example:8379")
    assert shell(*written).code == 0
    page = html.read_text()
    assert "Ruled out" in page or "supershingles are equal" in page
    assert "b similarity" not in page
    assert "<del>" in page
    assert 'href="http://v.example:8379/url?url=http' in page
    assert 'href="http://v.example:8379/compare?a=http' in page
    assert shell(*written[:-1], "javascript:alert(1)").code == 2


def test_a_page_of_either_side_alone_is_reported() -> None:
    rows: list[tuple[Any, ...]] = []
    diff(lambda: [verdict(1, "unique")], lambda: [verdict(2, "near_duplicate", 0)], changed=rows.append)
    assert sorted(rows, key=str) == sorted(
        [
            ("http://s2.example/2", "s2.example", "ab", 2, 2, None, None, "near_duplicate", "ab/0/0"),
            ("http://s1.example/1", "s1.example", "ab", 1, 1, "unique", None, None, None),
        ],
        key=str,
    )


def test_pages_of_other_sources_are_joined_by_their_names() -> None:
    """One corpus as JSON lines and as Parquet: other sources, other places, ids of files."""

    def history(source: str, step: int, **kinds: str) -> list[dict[str, Any]]:
        def at(number: int, name: str) -> dict[str, Any]:
            where = {"source": source * 32, "partition": 0, "offset": number * step, "position": 0}
            return {"url": url_of_id(name, source * 16), "page_id": number * step, "coordinates": where}

        out = []
        for number, name in enumerate(("a", "b", "c", "c", "d")):
            kind = kinds.get(f"{name}{number}", "unique")
            more = {"representative": at(0, "a")} if kind == "near_duplicate" else {}
            out.append({"verdict": kind, "n": 0, "site": "0" * 16, **at(number, name), **more})
        return out

    before, after = history("1", 1, b1="near_duplicate"), history("2", 7, b1="near_duplicate", c3="rejected")
    found = diff(lambda: before, lambda: [*after, after[0] | {"coordinates": place(9), "url": url_of_id("e")}])
    assert found.pages == 6
    assert found.changes == {Change("unique", "rejected"): 1, Change("(none)", "unique"): 1}
    assert found.sites.keys() == {""}, "a document is on no site"
    (sample,) = found.samples[Change("unique", "rejected")]
    assert (sample.before, sample.after) == (before[3], after[3])
    alone = diff(lambda: before, lambda: after[:3]).changes
    assert alone == {Change("unique", "(none)"): 3, Change("(none)", "unique"): 1}, "c occurs twice in one alone"


def test_another_fetch_of_one_source_is_another_page() -> None:
    one, other = verdict(1, "unique", url="http://a/"), verdict(2, "unchanged", url="http://a/")
    assert diff(lambda: [one], lambda: [other]).changes.total() == 2


def test_diff_shows_differences_alone() -> None:
    one = verdict(1, "unique", evidence={"candidates": 3, "tape_score": 0.5, "keys": {"wide": 2}, "lang": ["en", "de"]})
    other = verdict(1, "unique", evidence={"candidates": 4, "tape_score": 0.5, "keys": {"wide": 2}, "same_site": True})
    assert changed_rows(one, other) == (
        [("candidates", "3"), ("lang", "en, de")],
        [("candidates", "4"), ("same site", "yes")],
    )
    assert changed_rows(None, one)[0] == [("verdict", "none")]


def test_diff_shows_no_sentence_that_both_verdicts_have() -> None:
    """The numbers of a pair that was a duplicate, and is a rejected candidate now, have another label."""
    pair = {"by": "tape", "same_site": True, "tape_score": 0.9}
    decider = Decider(scheme="", rule="tape").digest
    one = verdict(1, "near_duplicate", 0, decider=decider, evidence=pair)
    other = verdict(1, "unique", decider=decider, evidence={"nearest": {**pair, "url": "http://x/0"}})
    before, after = changed_rows(one, other)
    assert before == [("verdict", "near duplicate"), ("representative", "http://x/0")]
    assert after == [("verdict", "unique"), ("nearest candidate", "http://x/0")]
    other["evidence"]["nearest"]["same_site"] = False
    before, after = changed_rows(one, other)
    assert ("evidence", "Both pages are on one site.") in before
    assert len(after) == 3


def test_a_later_fetch_differs_by_its_standing() -> None:
    def fetch(offset: int, kind: str, of: int | None) -> dict[str, Any]:
        standing: dict[str, Any] = {"verdict": kind}
        if of is not None:
            standing["representative"] = {"page_id": of, "url": f"http://x/{of}", "coordinates": place(of)}
        return verdict(offset, "unchanged", standing=standing)

    before = [fetch(1, "near_duplicate", 0), fetch(2, "near_duplicate", 0), fetch(3, "unique", None)]
    after = [fetch(1, "unique", None), fetch(2, "near_duplicate", 9), fetch(3, "unique", None)]
    found = diff(lambda: before, lambda: after)
    assert {str(change): count for change, count in found.changes.items()} == {
        "unchanged: near_duplicate -> unique": 1,
        "unchanged: near_duplicate of another page": 1,
    }
    assert [(one["change"], one["before"], one["after"]) for one in found.to_json()["changes"]] == [
        ("unchanged: near_duplicate -> unique", "unchanged", "unchanged"),
        ("unchanged: near_duplicate of another page", "unchanged", "unchanged"),
    ]


def test_diff_shows_whole_urls(shell: Shell) -> None:
    url = "http://a.example/" + "folder/" * 80 + "end.html"
    Path("a.jsonl").write_text(json.dumps(verdict(1, "near_duplicate", 0, url=url)) + "\n")
    Path("b.jsonl").write_text(json.dumps(verdict(1, "unique", url=url)) + "\n")
    assert url in shell("diff", "a.jsonl", "b.jsonl", "--html", "diff.html").out
    page = Path("diff.html").read_text()
    assert page.count(url) == 1
    assert 'class="clamped"' not in page
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(shown(diff(lambda: history_of("a.jsonl")(), lambda: history_of("b.jsonl")())))
    assert url in re.sub(r"\s", "", console.export_text())


@pytest.mark.parametrize(
    ("kind", "of", "words"),
    [
        ("near_duplicate", 0, "neither history is the state directory of a scan"),
        ("unique", None, "no other page was compared with it"),
    ],
)
def test_diff_says_why_there_are_no_texts(shell: Shell, kind: str, of: int | None, words: str) -> None:
    Path("a.jsonl").write_text(json.dumps(verdict(1, "rejected")) + "\n")
    Path("b.jsonl").write_text(json.dumps(verdict(1, kind, of)) + "\n")
    assert shell("diff", "a.jsonl", "b.jsonl", "--html", "diff.html").code == 0
    assert f"No texts: {words}" in Path("diff.html").read_text()


def test_diff_reads_texts_in_the_directory_that_has_them(shell: Shell, scanned: Path, tmp_path: Path) -> None:
    """Of a source that the first history has not, or that is gone."""
    other = str(tmp_path / "other.jsonl")
    assert shell("replay", str(scanned), "--rule", "shingling", "--set", "b_min=6", "--out", other).code == 0
    assert shell("diff", other, str(scanned), "--html", "diff.html").code == 0
    assert "<del>" in Path("diff.html").read_text()
    (tmp_path / "a.warc").unlink()
    assert shell("diff", other, str(scanned), "--html", "diff.html").code == 0
    page = Path("diff.html").read_text()
    assert "No texts: The text of this page cannot be shown: " in page
    assert "<del>" not in page


def test_diff_escapes_texts_of_pages(shell: Shell, tmp_path: Path) -> None:
    evil = "http://a.example/<script>alert(1)</script>\u202e"
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps(verdict(1, "unique", url=evil)) + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps(verdict(1, "rejected", url=evil, reason="<b>\x1b[31m")) + "\n")
    html = tmp_path / "diff.html"
    result = shell("diff", str(lines), "b.jsonl", "--html", str(html))
    assert "\x1b" not in result.out
    assert "<script>" not in html.read_text()
    assert "\u202e" not in html.read_text() + result.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "x.jsonl: no such file or folder"),
        ("{", "line 1 is no JSON"),
        ("\x1f\x8b", "is no file of verdicts, as `neardup scan --out` writes them: line 1 is no JSON"),
        ('{"a": 1}', "line 1 is no verdict"),
    ],
)
def test_bad_input(shell: Shell, scanned: Path, text: str | None, words: str) -> None:
    if text is not None:
        Path("x.jsonl").write_text(text)
    result = shell("diff", str(scanned), "x.jsonl")
    assert (result.code, words in result.err) == (1 if text else 2, True), result.err
