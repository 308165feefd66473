"""Fetch times in files: units and forms are read, and what was read otherwise is said."""

import json
import re
from pathlib import Path

import duckdb
import pytest

from streams.commands.scan_summary import summary
from streams.files.sources import times_text
from streams.scan.scan import scan
from streams.scan.scan_result import ScanResult
from tests.streams.archives import http, opened, record, verdicts_in
from tests.streams.shell import words

MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z


def write_lines(path: Path, times: list[object]) -> Path:
    pages = [{"url": "https://a.example/", "body": f"<p>{words(str(n), 40)}"} for n in range(len(times))]
    pages = [page if time is None else {**page, "fetched_at": time} for page, time in zip(pages, times, strict=True)]
    path.write_text("".join(json.dumps(page) + "\n" for page in pages))
    return path


def scanned(paths: list[Path], folder: Path, **options: object) -> tuple[ScanResult, list[dict[str, object]]]:
    with opened(folder / "state") as state:
        result = scan(paths, state, out=str(folder / "out"), **options)  # type: ignore[arg-type]
    return result, verdicts_in(folder / "out")


def test_units_of_fetch_times_are_chosen_for_each_value_and_reported(tmp_path: Path) -> None:
    """A second crawl with times in seconds: read as milliseconds, all its pages would be stale."""
    times = [MS, str(MS // 1000 + 100), MS / 1000 + 200.5, "2026-03-01T12:05:00Z", (MS + 400_000) * 1000, 5]
    result, verdicts = scanned([write_lines(tmp_path / "a.jsonl", times)], tmp_path)
    assert result.times == {"microseconds": 1, "numbers below 10^8": 1, "seconds": 2}
    assert [one["fetched_at"] for one in verdicts] == [MS, MS + 100_000, MS + 200_500, MS + 300_000, MS + 400_000, 5]
    assert [one["verdict"] for one in verdicts] == ["unique"] * 5 + ["stale"]
    assert times_text(result.times) == (
        "fetch times read as microseconds (1 page), as numbers below 10^8 (1 page), as seconds (2 pages)"
    )


def test_a_fetch_time_without_meaning_is_rejected_with_its_text(tmp_path: Path) -> None:
    result, verdicts = scanned([write_lines(tmp_path / "a.jsonl", ["soon", -1, 10**10, True, MS])], tmp_path)
    assert result.counts == {"unique": 1, "rejected": 4}
    assert list(result.reasons.values()) == [4]
    assert str(verdicts[0]["reason"]).endswith("'soon'")


def test_a_table_that_lacks_some_times_says_so(tmp_path: Path) -> None:
    none, _ = scanned([write_lines(tmp_path / "none.jsonl", [None, None])], tmp_path / "none")
    some, _ = scanned([write_lines(tmp_path / "some.jsonl", [MS, None])], tmp_path / "some")
    assert (none.times, some.times) == ({}, {"no date": 1})
    assert times_text(some.times) == "1 page without a readable fetch time, for which that of the file counts"


@pytest.mark.parametrize("merge", [False, True])
def test_a_malformed_warc_date_is_reported(tmp_path: Path, merge: bool) -> None:
    paths = []
    for name in ("a", "b"):
        parts = [record(f"https://{name}.example/{n}", http(f"<p>{words(str(n), 40)}".encode())) for n in range(2)]
        parts[1] = re.sub(rb"WARC-Date: [^\r]*", b"WARC-Date: yesterday", parts[1])
        paths.append(tmp_path / f"{name}.warc")
        paths[-1].write_bytes(b"".join(parts))
    result, _ = scanned(paths, tmp_path, merge=merge)
    assert result.times == {"no date": 2}


def test_typed_columns_of_parquet_are_fetch_times(tmp_path: Path) -> None:
    moment = "2026-03-01 12:00:00"
    kinds = {
        "TIMESTAMP": f"TIMESTAMP '{moment}'",
        "TIMESTAMP_S": f"TIMESTAMP_S '{moment}'",
        "TIMESTAMP_MS": f"TIMESTAMP_MS '{moment}'",
        "TIMESTAMP_NS": f"TIMESTAMP_NS '{moment}'",
        "TIMESTAMPTZ": f"TIMESTAMPTZ '{moment}+00'",
        "BIGINT": str(MS // 1000),
        "UBIGINT": f"{MS}000",
        "DOUBLE": f"{MS / 1000}::DOUBLE",
        "DECIMAL": f"{MS // 1000}.000::DECIMAL(18, 3)",
        "VARCHAR": f"'{moment}+00:00'",
        "DATE": "DATE '2026-03-01'",
    }
    for name, value in kinds.items():
        path = tmp_path / f"{name}.parquet"
        with duckdb.connect() as database:
            body = f"SELECT 'https://a.example/{name}' url, '<p>{words(name, 40)}' body, {value} fetched_at"
            database.execute(f"COPY ({body}) TO '{path}' (FORMAT parquet)")
    paths = [tmp_path / f"{name}.parquet" for name in kinds]
    _, verdicts = scanned(paths, tmp_path)
    expected = {name: MS - 43_200_000 if name == "DATE" else MS for name in kinds}
    assert {str(one["url"]).rpartition("/")[2]: one["fetched_at"] for one in verdicts} == expected


@pytest.mark.parametrize("moment", ["1970-02-01", "1972-01-01", "9999-12-31", "1969-12-31"])
def test_a_typed_time_of_parquet_is_not_read_as_another_unit(tmp_path: Path, moment: str) -> None:
    """Milliseconds of February 1970 are seconds of 2054: all later fetches of the page would be stale."""
    path = tmp_path / "a.parquet"
    with duckdb.connect() as database:
        body = f"SELECT 'https://a.example/' url, '<p>{words('a', 40)}' body, TIMESTAMP '{moment}' fetched_at"
        database.execute(f"COPY ({body}) TO '{path}' (FORMAT parquet)")
    result, verdicts = scanned([path], tmp_path)
    assert (result.times, result.counts) == ({}, {"rejected": 1})
    assert str(verdicts[0]["reason"]).endswith(f"'{moment}T00:00:00.000'")


def test_the_summary_has_one_line_of_fetch_times(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    summary(Console(width=200), ScanResult(times={"seconds": 4}), "")
    assert "fetch times read as seconds (4 pages)" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_table_with_fields_of_its_own_has_fetch_times(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    rows = [{"doc_id": f"d{n}", "text": words(str(n), 40), "fetched_at": MS // 1000 + n} for n in range(2)]
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if suffix == "jsonl":
        lines.rename(path)
    else:
        with duckdb.connect() as database:
            database.execute(f"COPY (SELECT * FROM '{lines}') TO '{path}'")
    result, verdicts = scanned([path], tmp_path)
    assert [one["fetched_at"] for one in verdicts] == [MS, MS + 1000]
    assert result.times == {"seconds": 2}
