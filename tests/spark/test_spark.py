"""The partition on Spark, with real executors on this machine: the sets of DuckDB, bit for bit. `make test-spark`."""

import os
from pathlib import Path

import duckdb
import pytest

from neardup.partition import Parameters
from streams.files.sources import ReadOptions
from streams.partition.partition_command import PartitionOptions, partition_command
from tests.streams.archives import Sample, write_folder
from tests.streams.partition.corpora import entry, items, page, sentences, write

pytestmark = pytest.mark.whole

#: Two executors of one core, in processes of their own.
CLUSTER = "local-cluster[2,1,1024]"


def test_executors_make_the_sets_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # workers of the cluster write their logs there
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    odd = [entry("https://a.example/error", page(sentences(1)), http_status=500), entry("https://a.example/empty", b"")]
    samples = [Sample(one["url"].split("//")[1] + ".html", one["body"].encode()) for one in items(5)]
    paths = [write(tmp_path / "crawl.jsonl", [*items(12), *odd]), write_folder(tmp_path / "pages", samples)]
    made, reading = {}, ReadOptions("https://f.example/")
    for name, master in (("duck", ""), ("spark", CLUSTER)):
        asked = PartitionOptions(tmp_path / name, memory_mb=700, master=master, reading=reading)
        made[name] = partition_command(paths, Parameters(), asked)
    assert made["spark"].counts == made["duck"].counts
    assert made["spark"].reasons == made["duck"].reasons
    assert (tmp_path / "spark" / "sets.jsonl").read_bytes() == (tmp_path / "duck" / "sets.jsonl").read_bytes()
    for table, order in (("documents", "doc"), ("pairs", "a desc, b desc")):
        one, other = (
            duckdb.sql(f"select * from '{tmp_path / name / table}.parquet' order by {order}").fetchall()
            for name in ("duck", "spark")
        )
        assert one == other
        assert one
