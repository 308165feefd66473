"""How a report reads the pages that it shows again from their sources."""

import gzip
from pathlib import Path

import duckdb
import pytest

from neardup.verdict import Coordinates
from streams.files.sources import LocalSource
from streams.scan import scan_report
from streams.scan.scan import scan
from streams.scan.scan_report import write_report
from streams.state import scan_reader
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_json_lines, write_warc


def source_of(folder: Path, name: str) -> Path:
    """The sample crawl in a file of this name; several records share a gzip member of `shared.warc.gz`."""
    path = folder / name
    if name.endswith(".parquet"):
        lines = write_json_lines(folder / "a.jsonl", crawl())
        duckdb.sql(f"COPY (SELECT * FROM '{lines}') TO '{path}' (FORMAT parquet)")
    elif name.startswith("shared"):
        write_warc(folder / "a.warc", crawl())
        path.write_bytes(gzip.compress((folder / "a.warc").read_bytes()))
    elif ".warc" in name:
        write_warc(path, crawl())
    else:
        write_json_lines(path, crawl())
    return path


@pytest.mark.parametrize(
    ("name", "singly"),
    [("a.parquet", False), ("a.jsonl.gz", False), ("shared.warc.gz", False), ("a.jsonl", True), ("a.warc.gz", True)],
)
def test_a_report_reads_pages_together_where_one_costs_as_much_as_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, singly: bool
) -> None:
    monkeypatch.setattr(scan_report, "now_ms", lambda: 0)
    read: list[Coordinates] = []
    read_at = LocalSource.read_at

    def counted(self: LocalSource, coordinates: Coordinates) -> object:
        read.append(coordinates)
        return read_at(self, coordinates)

    monkeypatch.setattr(LocalSource, "read_at", counted)
    with ScanDirectory.open(tmp_path / "state") as state:
        scan([source_of(tmp_path, name)], state)
        write_report(state, tmp_path / "together.html")
        assert bool(read) == singly
        read.clear()
        monkeypatch.setattr(scan_reader, "AHEAD_BYTES_MAX", 0)
        write_report(state, tmp_path / "singly.html")
        assert read
    assert (tmp_path / "together.html").read_text() == (tmp_path / "singly.html").read_text()
    assert "cannot be shown" not in (tmp_path / "singly.html").read_text()


def test_a_report_says_why_pages_read_together_are_not_shown(tmp_path: Path) -> None:
    source = source_of(tmp_path, "a.parquet")
    with ScanDirectory.open(tmp_path / "state") as state:
        scan([source], state)
        source.write_bytes(source.read_bytes()[:-20])
        write_report(state, tmp_path / "report.html")
    assert "has changed since it was scanned" in (tmp_path / "report.html").read_text()
