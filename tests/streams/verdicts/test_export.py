"""Verdicts as tables: each URL as it stands by a plain model, the same rows in each format, and bad input."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from neardup.standing import DUPLICATES, VerdictFields, standing_of
from neardup.urls import url_of_id
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.export import INTERNAL, SHOWN, TABLES, exported, rows
from streams.verdicts.shared_rows import write_table
from tests.streams.shell import Shell, words
from tests.streams.views.random_verdicts import random_verdicts


def whole(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With where each page was read."""
    return [
        verdict | {"coordinates": {"source": "ab", "partition": 0, "offset": verdict["page_id"], "position": 0}}
        for verdict in verdicts
    ]


def named(table: Any, verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(zip(TABLES[table], row, strict=True)) for row in rows(table, verdicts)]


@pytest.mark.parametrize("seed", range(4))
def test_standing_verdicts_equal_a_dictionary(seed: int) -> None:
    verdicts = whole(random_verdicts(600, seed))
    latest: dict[str, dict[str, Any]] = {}
    canonical: dict[int, str] = {}
    represents: dict[int, str | None] = {}
    for verdict in verdicts:
        latest[verdict["url"]] = verdict
        if "canonical" in verdict:
            canonical[verdict["cluster"]] = verdict["canonical"]
            held = VerdictFields.of(verdict).in_force()
            represents[verdict["cluster"]] = verdict["url"] if held.shown else held.representative
    shuffled = verdicts.copy()
    random.Random(seed).shuffle(shuffled)  # partitions of a topic come in any order

    found = {row["url"]: row for row in named("urls", shuffled)}
    first = {verdict["url"]: verdict["page_id"] for verdict in reversed(verdicts)}
    assert list(found) == sorted(latest, key=lambda url: (first[url], url)), "the order of the input"
    members: dict[int, list[str]] = {}
    for url, verdict in latest.items():
        answer = verdict.get("standing") or verdict
        kind = "unique" if verdict["verdict"] == "promoted" else answer["verdict"]
        cluster = answer.get("cluster")
        row = found[url]
        assert (row["verdict"], row["last"], row["cluster"]) == (kind, verdict["verdict"], cluster)
        assert row["shown"] == (kind in SHOWN)
        assert row["canonical"] == canonical.get(cluster)  # type: ignore[arg-type]
        own = VerdictFields.of(verdict).in_force().representative
        present = represents.get(cluster) if kind in DUPLICATES else None  # type: ignore[arg-type]
        assert row["representative"] == (own if present is None else present)
        assert (row["page_id"], row["n"], row["offset"]) == (verdict["page_id"], verdict["n"], verdict["page_id"])
        if cluster is not None and kind not in ("gone", "rejected"):
            members.setdefault(cluster, []).append(url)
    clusters = {row["cluster"]: row for row in named("clusters", shuffled)}
    assert {c: sorted(row["members"]) for c, row in clusters.items()} == {
        c: sorted(urls) for c, urls in members.items() if len(urls) > 1
    }
    assert all(row["size"] == len(row["members"]) for row in clusters.values())


def test_fields_of_verdicts_are_in_force_as_their_objects(scanned: Path) -> None:
    def plain(page: Any) -> Any:
        return page["url"] if isinstance(page, dict) else None

    for verdict in whole(random_verdicts(600, 1)):
        expected = standing_of(verdict)
        found = VerdictFields.of(verdict).in_force()
        assert found[:2] == expected[:2]
        assert found[2:] == (plain(expected.representative), plain(expected.content_of))
    with ScanDirectory.open(scanned) as state:
        fields = list(state.verdict_fields())
        assert fields == [VerdictFields.of(verdict) for verdict in state.verdicts()] != []
        for table in TABLES:
            assert list(rows(table, fields)) == list(rows(table, state.verdicts()))


def test_caused_verdicts_follow_the_verdict_of_their_page() -> None:
    gone = {"verdict": "near_duplicate", "page_id": 9, "n": 0, "url": "http://a.example/1", "fetched_at": 1}
    gone |= {"cluster": 3, "canonical": "http://a.example/old"}
    took = {**gone, "verdict": "promoted", "n": 1, "url": "http://a.example/2", "canonical": "http://a.example/2"}
    for verdicts in ([gone, took], [took, gone]):
        assert [row["canonical"] for row in named("clusters", whole(verdicts))] == ["http://a.example/2"]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_format_has_the_same_rows(shell: Shell, scanned: Path, table: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    for suffix in ("jsonl", "csv", "parquet"):
        result = shell("export", str(scanned), "--table", table, "--out", f"it's.{suffix}", "--all-columns")
        assert result.code == 0, result.err
    lines = [json.loads(line) for line in Path("it's.jsonl").read_text().splitlines()]
    assert len(lines) > 3
    assert all(line.keys() == TABLES[table].keys() for line in lines)  # type: ignore[index]
    read = duckdb.sql("SELECT * FROM 'it''s.parquet'")
    assert dict(zip(read.columns, map(str, read.types), strict=True)) == TABLES[table]  # type: ignore[index]
    assert list(lines[0]) == read.columns
    assert [dict(zip(read.columns, row, strict=True)) for row in read.fetchall()] == lines
    with Path("it's.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    plain = {True: "true", False: "false", None: ""}
    assert cells == [
        {
            name: plain[value]
            if value is None or isinstance(value, bool)
            else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            if isinstance(value, list)
            else str(value)
            for name, value in line.items()
        }
        for line in lines
    ]
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith((".it", "it"))) == [
        "it's.csv", "it's.jsonl", "it's.parquet",
    ]  # fmt: skip


def test_kept_urls_are_those_that_the_verdicts_keep(shell: Shell, scanned: Path) -> None:
    result = shell("export", str(scanned), "--out", "-")
    shown = {row["url"] for row in map(json.loads, result.out.splitlines()) if row["shown"]}
    with ScanDirectory.open(scanned) as state:
        kinds: dict[str, str] = {}
        for verdict in state.verdicts():
            kinds[verdict["url"]] = (verdict.get("standing") or verdict)["verdict"]
    assert shown == {url for url, kind in kinds.items() if kind in ("unique", "promoted", "same_content")}
    assert 0 < len(shown) < len(kinds)


def test_documents_are_named_by_their_ids(shell: Shell) -> None:
    texts = {"doc 17": words("a"), "b/ü?#%2F": words("a"), "": words("c"), "a/../b": words("d"), "9": words("d")}
    Path("texts.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in texts.items() if i))
    assert shell("scan", "texts.jsonl", "--id-field", "id", "--text-field", "text").code == 0

    def table(name: str) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in shell("export", "neardup-state", "--table", name, "--out", "-").out.splitlines()
        ]

    urls = {row["id"]: row for row in table("urls")}
    assert {i: row["representative_id"] for i, row in urls.items()} == {
        "doc 17": None, "b/ü?#%2F": "doc 17", "9": None, None: None,
    }  # fmt: skip
    assert urls["9"]["representative"] == urls[None]["url"], "no id is made up where dots were taken for a path's"
    assert [row["ids"] for row in table("clusters")] == [["doc 17", "b/ü?#%2F"], [None, "9"]]
    assert [row["representative_id"] for row in table("clusters")] == ["doc 17", None]
    assert [row["id"] for row in table("verdicts")] == ["doc 17", "b/ü?#%2F", None, "9"]


def test_columns_of_documents_begin_with_their_ids() -> None:
    (page,) = whole(random_verdicts(1))
    document = page | {"url": url_of_id("doc 1"), "site": "0000554b574367a8"}
    for verdict, first, last in (
        (document, ["id", "shown", "verdict", "representative_id"], "alike"),
        (page, ["url", "shown", "verdict", "representative"], "representative_id"),
    ):
        columns, (row,) = exported("urls", [verdict])
        assert (list(columns)[:4], list(columns)[-1]) == (first, last)
        assert set(columns) == set(TABLES["urls"]) - set(INTERNAL["urls"])
        found = dict(zip(columns, row, strict=True))
        assert (found["id"], found["site"]) == (("doc 1", None) if verdict is document else (None, page["site"]))
        everything, (row,) = exported("urls", [verdict], all_columns=True)
        assert list(everything) == [*columns, *INTERNAL["urls"]]
        assert dict(zip(everything, row, strict=True))["page_id"] == page["page_id"]
    for table in TABLES:
        columns, made = exported(table, [])
        assert (list(columns)[-1], list(made)) == ("representative_id", [])


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["--out", "x.txt"], "must end in .parquet, .csv, .jsonl"),
        (["--out", "x.csv", "--table", "pages"], 'Choose from: "urls", "clusters", "verdicts"'),
        (["--out", "no/such/folder/x.csv"], "there is no folder"),
    ],
)
def test_bad_wishes(shell: Shell, scanned: Path, arguments: list[str], about: str) -> None:
    result = shell("export", str(scanned), *arguments)
    assert (result.code, about in result.err) == (2, True), result.err


def test_lines_that_are_no_verdicts_leave_no_file(shell: Shell) -> None:
    Path("x.jsonl").write_text('{"verdict": "unique", "page_id": "many"}\n')
    for table in TABLES:
        result = shell("export", "x.jsonl", "--table", table, "--out", "y.csv")
        assert (result.code, "not a verdict of neardup" in result.err) == (1, True), result.err
    assert sorted(path.name for path in Path().iterdir() if "y.csv" in path.name) == []


def test_a_page_that_was_taken_down_has_no_title_any_more() -> None:
    secret = {
        **random_verdicts(1)[0],
        "url": "http://site1.example/1",
        "verdict": "unique",
        "title": "Secret",
        "lang": "en",
    }
    place = dict.fromkeys(("partition", "offset", "position"), 0) | {"source": "0" * 32}
    secret = {**secret, "coordinates": place}
    kept = ("url", "fetched_at", "scheme", "decider", "coordinates")
    gone = {**{name: secret[name] for name in kept}, "page_id": 9 << 12, "n": 1, "verdict": "gone"}
    gone["reason"] = "taken down"
    (row,) = rows("urls", [secret, gone])
    found = dict(zip(TABLES["urls"], row, strict=True))
    assert (found["shown"], found["verdict"], found["reason"]) == (False, "gone", "taken down")
    assert "Secret" not in row
    assert found["lang"] is None


def test_rows_of_a_table_are_the_json_objects_of_their_columns(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    columns = dict.fromkeys(("from", "a b", "column_0", "é"), "VARCHAR")
    made = [(None, 'a"\u2028\x00', [True, "x"], 1 << 62), ("", -1, [], "\U0001f600")]
    assert write_table(made, columns, "-") == 2
    assert [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()] == [
        dict(zip(columns, row, strict=True)) for row in made
    ]
