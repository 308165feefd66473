"""The walk of a data scientist, typed into a shell as `deploy/walks/README.md` has it."""

from pathlib import Path

import pytest

from tests.streams.archives import crawl, write_warc
from tests.streams.typist import ROOT, Typist, commands, strangers

pytestmark = pytest.mark.whole

duckdb = pytest.importorskip("duckdb")


@pytest.mark.slow
def test_a_corpus_loses_its_repeats_and_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "demo").mkdir()
    samples = crawl(12)
    write_warc(tmp_path / "demo" / "crawl.warc.gz", samples)
    *typed, look = commands("Data scientist")
    with Typist(tmp_path, {"NEARDUP_SEED": "7"}) as typist:
        for command in typed:
            typist(command)
        # Polars is the walker's own.
        result = typist(look.replace("duckdb, polars", "duckdb").replace('polars.read_parquet("kept.parquet")', "0"))
    assert "near_duplicate" in result
    assert strangers(tmp_path) == set()
    monkeypatch.chdir(tmp_path)
    kept = duckdb.sql("SELECT * FROM 'kept.parquet'")
    assert kept.columns == ["doc_id", "text"]
    repeats = [f"doc {n}" for n, sample in enumerate(samples) if sample.path.startswith(("copy", "edit"))]
    ids = [doc for doc, _ in kept.fetchall()]
    assert ids == [f"doc {n}" for n in range(len(samples)) if f"doc {n}" not in repeats]
    judged = duckdb.sql("SELECT id, representative_id FROM 'judged.parquet' WHERE NOT shown")
    assert [doc for doc, _ in judged.fetchall()] == repeats
    assert {instead for _, instead in judged.fetchall()} <= set(ids)
