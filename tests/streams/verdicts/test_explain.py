"""Explaining a verdict: the log's prefix is folded again, and what was weighed is shown."""

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from neardup.errors import BadInput, InvariantBroken
from neardup.scheme import Scheme
from streams.files.sources import ReadOptions
from streams.scan.scan import scan
from streams.scan.scan_report import write_report
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.explain import Explanation, explain_command
from tests.streams.archives import Sample, html, text, write_folder

BASE = "http://a.example/"


def crawl() -> list[Sample]:
    return [
        Sample("a0.html", html("Item amber", text(1))),
        Sample("a1.html", html("Item amber", text(1) + " visited 7 times today")),
        Sample("a2.html", html("Item basin", text(1))),
        Sample("a3.html", html("Item amber", text(1))),
        Sample("a4.html", html("Cedar", text(4))),
        Sample("a5.html", html("Thin", "a word or two")),
    ]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ScanDirectory]:
    write_folder(tmp_path / "site", crawl())
    with ScanDirectory.open(tmp_path / "state", scheme=Scheme(seed=7)) as opened:
        scan([tmp_path / "site"], opened, reading=ReadOptions(BASE))
        yield opened


def shown(explanation: Explanation) -> str:
    out = io.StringIO()
    Console(file=out, width=150).print(explanation)
    return out.getvalue()


def kinds(state: ScanDirectory) -> dict[str, str]:
    return {verdict["url"].removeprefix(BASE): verdict["verdict"] for verdict in state.verdicts()}


def test_crawl_has_the_verdicts_to_explain(state: ScanDirectory) -> None:
    assert kinds(state) == {
        "a0.html": "unique",
        "a1.html": "near_duplicate",
        "a2.html": "unique",
        "a3.html": "exact_duplicate",
        "a4.html": "unique",
        "a5.html": "unique",
    }


def test_a_near_duplicate_names_its_candidate_and_numbers(state: ScanDirectory) -> None:
    result = explain_command(state, BASE + "a1.html")
    chosen = next(one for one in result.trace.candidates if one.page_id == result.winner)
    assert chosen.url == BASE + "a0.html"
    values = shown(result)
    assert "NEAR DUPLICATE" in values
    assert "near duplicate by tape, chosen" in values
    assert f"{chosen.pair.tape_score:.4f}" in values


def test_a_vetoed_candidate_is_shown_with_the_veto(state: ScanDirectory) -> None:
    result = explain_command(state, BASE + "a2.html")
    assert result.winner is None
    assert [one.ruling.by for one in result.trace.candidates] == ["title veto"]
    assert "nearest candidate: page 0, http://a.example/a0.html" in shown(result)
    words = " ".join(shown(result).split())
    assert "title veto: the titles name different things" in words
    assert "Similar, but kept apart from page 0: the titles name different things." in words
    assert "Nothing earlier" not in words
    assert result.verdict["evidence"]["kept_apart"] == "title veto"


def test_an_exact_duplicate_is_settled_by_its_digest(state: ScanDirectory) -> None:
    values = shown(explain_command(state, BASE + "a3.html"))
    assert "Page 0 has the same words, which settles it before any candidate is scored." in values


def test_pages_without_candidates(state: ScanDirectory) -> None:
    assert "No earlier page shares an index key" in shown(explain_command(state, BASE + "a4.html"))
    assert "too few words for anything but exact copies" in shown(explain_command(state, BASE + "a5.html"))


def test_later_pages_have_no_part_in_it(state: ScanDirectory) -> None:
    # a1 to a3 repeat a0, but came after it.
    assert explain_command(state, BASE + "a0.html").trace.candidates == []


def test_every_verdict_is_judged_again_the_same(state: ScanDirectory) -> None:
    for verdict in list(state.verdicts()):
        result = explain_command(state, verdict["url"], page_id=verdict["page_id"])
        assert dict(result.verdict) == verdict
        json.dumps(result.to_json())
        assert shown(result)


def test_the_url_may_be_written_otherwise(state: ScanDirectory) -> None:
    assert explain_command(state, "HTTP://A.example:80/x/../a1.html#top").trace.url == BASE + "a1.html"


def test_json_says_which_candidate_was_chosen(state: ScanDirectory) -> None:
    value = json.loads(json.dumps(explain_command(state, BASE + "a1.html").to_json()))
    assert [(one["url"], one["chosen"]) for one in value["candidates"]] == [(BASE + "a0.html", True)]
    assert value["verdict"]["verdict"] == "near_duplicate"


def test_differences_are_reported_while_both_pages_are_readable(tmp_path: Path) -> None:
    write_folder(
        tmp_path / "site",
        [Sample(f"a{i}.html", html("Item amber", f"{text(1)} Last updated on {i + 1} May 2024")) for i in range(2)],
    )
    with ScanDirectory.open(tmp_path / "state", scheme=Scheme(seed=7)) as state:
        scan([tmp_path / "site"], state, reading=ReadOptions(BASE))
        result = explain_command(state, BASE + "a1.html")
        assert result.to_json()["difference"] == {
            "page_id": 0,
            "url": BASE + "a0.html",
            "kind": "time_stamp",
            "kinds": ["time_stamp"],
            "changes": 1,
        }
        assert "The difference looks like a time stamp." in shown(result)
        seen: list[tuple[str, int, int]] = []
        write_report(state, tmp_path / "report.html", lambda *step: seen.append(step))
        assert seen == [("verdicts", 0, 1), ("samples", 1, 1)], "progress counts messages of the log"
        assert "The difference looks like a time stamp." in (tmp_path / "report.html").read_text()
    (tmp_path / "site" / "a0.html").unlink()
    with ScanDirectory.open(tmp_path / "state") as state:
        assert explain_command(state, BASE + "a1.html").to_json()["difference"] is None


def test_history_and_an_earlier_fetch(tmp_path: Path, state: ScanDirectory) -> None:
    folder = tmp_path / "later"
    changed = html("Item amber", text(1) + " visited 9 times today")
    write_folder(folder, [Sample("a0.html", changed, ms=1_600_000_000_000)])
    scan([folder], state, reading=ReadOptions(BASE))
    latest = explain_command(state, BASE + "a0.html")
    assert [kind for _, kind in latest.history] == ["unique", "edited"]
    assert latest.verdict["verdict"] == "edited"
    assert "Against its" in shown(latest)
    assert "unique (page 0), edited" in shown(latest)
    first = explain_command(state, BASE + "a0.html", page_id=0)
    assert first.verdict["verdict"] == "unique"


def test_absent_url_and_page_are_named(state: ScanDirectory) -> None:
    with pytest.raises(BadInput, match="no verdict about http:"):
        explain_command(state, BASE + "none")
    with pytest.raises(BadInput, match=r"no verdict of page 99 .* there are 1"):
        explain_command(state, BASE + "a1.html", page_id=99)
    with pytest.raises(BadInput, match="no verdict about nonsense"):
        explain_command(state, "nonsense")


def test_a_verdict_that_cannot_be_repeated_is_an_alarm(state: ScanDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered() -> Iterator[dict[str, Any]]:
        for verdict in verdicts():
            yield orjson.loads(orjson.dumps(verdict).replace(b'"by":"tape"', b'"by":"content"'))

    verdicts = state.verdicts
    monkeypatch.setattr(state, "verdicts", altered)
    with pytest.raises(InvariantBroken, match=r"page 1 .* gets another verdict than before: evidence was"):
        explain_command(state, BASE + "a1.html")


def test_a_url_that_was_fetched_again_says_where_it_stands(state: ScanDirectory, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(tmp_path / "site" / "a1.html", again)
    scan([again], state, reading=ReadOptions(BASE))
    values = shown(explain_command(state, BASE + "a1.html"))
    assert values.startswith("UNCHANGED")
    assert f"The URL stands as: near duplicate, represented by page 0, {BASE}a0.html" in values
