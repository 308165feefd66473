"""Ids that belong to a file: which field they are in, which documents they name, and that none replaces another."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from neardup import BadInput, open_index
from neardup.urls import id_of, url_of_id
from streams.files import row_ids
from streams.files.not_read import NotRead
from streams.files.sources import ReadOptions, SourceRecord, open_sources
from streams.formats.json import ROW, Fields
from streams.state.scan_directory import ScanDirectory
from streams.views import url_pages
from streams.views.source import ScanSource
from tests.streams.shell import Shell, words

FORMS = ["jsonl", "jsonl.gz", "parquet"]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("NEARDUP_SEED", "7")
    return Shell(tmp_path, monkeypatch, capsys)


def written(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".parquet":
        duckdb = pytest.importorskip("duckdb")
        lines = path.with_suffix(".rows")
        lines.write_text(text)
        duckdb.sql(f"COPY (SELECT * FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
        lines.unlink()
    else:
        path.write_text(text)
    return path


def text(name: str) -> str:
    return words(f"{name}x", 60)


def shard(number: int, rows: int = 5) -> list[dict[str, Any]]:
    return [{"id": row, "text": text(f"s{number}r{row}")} for row in range(rows)]


def shards(shell: Shell, form: str = "jsonl") -> list[str]:
    return [written(shell.folder / f"shard-{number}.{form}", shard(number)).name for number in (0, 1)]


def counts(shell: Shell, *given: str, code: int = 0) -> dict[str, int]:
    ended = shell("scan", *given, "--json")
    assert ended.code == code, ended.err
    found: dict[str, int] = json.loads(ended.out)["counts"]
    return found


def kept(shell: Shell, form: str = "jsonl", *more: str) -> int:
    out = f"kept.{form}"
    assert shell("copy", "neardup-state", "--out", out, *more).code == 0
    if form == "parquet":
        import duckdb

        return int(duckdb.sql(f"SELECT count(*) FROM '{shell.folder / out}'").fetchall()[0][0])
    return len((shell.folder / out).read_bytes().splitlines())


def settled(path: Path, fields: Fields | None = None, **more: Any) -> SourceRecord:
    (source,) = open_sources(
        path, ReadOptions(fields=fields or Fields(), **more), body_bytes_max=100_000, not_read=NotRead()
    )
    source.settle_ids()
    return source.record


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", [(), ("--merge",), ("--merge", "--threads", "2")], ids=" ".join)
def test_ids_that_start_again_in_each_file_are_documents_of_their_own(
    shell: Shell, form: str, how: tuple[str, ...]
) -> None:
    assert counts(shell, *shards(shell, form), *how) == {"unique": 10}
    if not how:
        out = "parquet" if form == "parquet" else "jsonl"
        assert kept(shell, out) == 10
        assert kept(shell, out, "--only", f"shard-1.{form}") == 5


def test_ids_of_a_file_stay_when_it_is_moved_scanned_again_or_read_on(shell: Shell) -> None:
    files = shards(shell)
    assert counts(shell, *files) == {"unique": 10}
    assert counts(shell, *files, "--again") == {"unchanged": 10}
    (shell.folder / files[0]).rename(shell.folder / "moved.jsonl")
    assert counts(shell, "moved.jsonl", "--again") == {"unchanged": 5}
    assert counts(shell, "moved.jsonl") == {}
    assert kept(shell) == 10
    assert shell("explain", "moved.jsonl#3", "neardup-state").code == 0


def test_ids_of_standard_input_depend_on_its_bytes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    for number in (0, 1):
        data = "".join(json.dumps(row) + "\n" for row in shard(number)).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert counts(shell, "-") == {"unique": 5}


def test_ids_across_files_name_one_document(shell: Shell) -> None:
    files = shards(shell)
    found = counts(shell, *files, "--ids-across-files")
    assert sum(found.values()) == 10
    assert kept(shell) == 5  # the second crawl's
    assert counts(shell, files[1], "--again") == {"unchanged": 5}  # the record keeps it
    out = shell("scan", *files, "--state", "other", "--ids-across-files").out
    assert "the id of a document in all files is its id" in out


def test_a_source_of_a_former_version_keeps_its_ids(shell: Shell) -> None:
    files = shards(shell)
    counts(shell, files[0], "--ids-across-files")
    (file,) = (shell.folder / "neardup-state" / "sources").iterdir()
    record = json.loads(file.read_text())
    for name in ("digest", "ids_across_files", "repeats", "ids_refused", "ids_problem"):
        del record[name]
    by_file = settled(shell.folder / files[0]).content  # also the name that a former version gave
    record |= {"content": by_file, "finished": True}
    file.write_text(json.dumps(record))
    for option in ([], ["--ids-across-files"]):
        assert counts(shell, files[0], *option) == {}
        assert counts(shell, files[0], "--again", *option) == {"unchanged": 5}
    assert shell("explain", "3", "neardup-state").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.jsonl").code == 0
    assert counts(shell, files[1]) == {"unique": 5}  # of this version


@pytest.mark.parametrize("form", FORMS)
def test_an_id_that_repeats_with_another_text_is_named_and_both_are_kept(shell: Shell, form: str) -> None:
    rows = [*shard(0), {"id": 3, "text": text("other")}, {"id": 1, "text": shard(0)[1]["text"]}]
    file = written(shell.folder / f"a.{form}", rows).name
    ended = shell("scan", file)
    assert ended.code == 3
    assert "row 5 has the id '3' of row 3 and another text: both are kept" in " ".join(ended.out.split())
    assert counts(shell, file, "--again", code=3) == {"unchanged": 7}
    out = "parquet" if form == "parquet" else "jsonl"
    assert kept(shell, out) == 6  # of seven rows; one text is there twice under its id
    ended = shell("explain", "3", "neardup-state")
    assert ended.code == 1
    urls = [word.strip("(),") for word in ended.err.split() if "id://" in word]
    assert len(urls) == 2
    assert [shell("explain", url, "neardup-state").code for url in urls] == [0, 0]
    assert shell("explain", "2", "neardup-state").code == 0


def test_an_id_that_repeats_is_kept_where_a_scan_went_on_and_by_a_partition(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": row % 20, "text": text(f"r{row}")} for row in range(40)]
    file = written(shell.folder / "a.jsonl", rows)
    with ScanDirectory.open(shell.folder / "state") as state:
        (source,) = open_sources(file, body_bytes_max=state.scheme.body_bytes_max, not_read=NotRead())
        state.enlist(source)
        whole = [one.page.url for one in source.read()]
        assert len(set(whole)) == 40
        sourced = list(source.read())
        at = sourced[24].coordinates
        assert [one.page.url for one in source.read(25, at.position)] == whole[25:]
        page = source.read_at(sourced[30].coordinates)
        assert page is not None
        assert page.url == whole[30]
    assert {id_of(url) for url in whole} == {str(row) for row in range(20)}
    monkeypatch.chdir(shell.folder)
    pytest.importorskip("duckdb")
    ended = shell("partition", "a.jsonl", "--out", "sets", "--method", "tlcs", "--workers", "1")
    assert ended.code == 3, ended.err
    assert "another text" in ended.out


def test_a_file_with_many_repeats_has_the_numbers_of_its_rows_as_ids(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_ids, "REPEATS_MAX", 3)
    file = written(shell.folder / "a.jsonl", ({"id": "same", "text": text(f"r{row}")} for row in range(6))).name
    ended = shell("scan", file)
    assert ended.code == 3
    assert "the number of its row, the text its text; id is no id: rows 0 and 1, and others, share one" in ended.out
    assert kept(shell) == 6
    assert shell("explain", "4", "neardup-state").code == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_ids_has_the_numbers_of_its_rows(shell: Shell, form: str) -> None:
    rows = [{"text": text(f"r{row}"), "label": row % 2} for row in range(4)]
    file = written(shell.folder / f"a.{form}", rows).name
    ended = shell("scan", file)
    assert ended.code == 0
    assert "the id of a document is the number of its row, the text its text" in ended.out
    assert kept(shell, "parquet" if form == "parquet" else "jsonl") == 4
    assert shell("explain", "2", "neardup-state").out.startswith("UNIQUE  2\n")
    assert counts(shell, written(shell.folder / f"b.{form}", reversed(rows)).name) == {"exact_duplicate": 4}


def test_html_is_guessed_as_the_text(tmp_path: Path) -> None:
    record = settled(written(tmp_path / "a.jsonl", [{"html": "<p>wool", "label": 1}]))
    assert record.fields == Fields("html", ROW)


@pytest.mark.parametrize(
    ("rows", "taken", "refused"),
    [
        ([("u", 1), ("u", 2)], "id", "url is no id: rows 0 and 1 share one"),
        ([("u", 1), ("v", 2)], None, ""),
        ([("u", 1), ("u", 1)], None, "url is no id: rows 0 and 1 share one"),  # checked below: neither is one
        ([(None, 1), ("v", 2)], "id", "url is no id: 1 of 2 rows lack it"),
        ([("u", None), ("v", 2)], None, ""),
        ([("u", 1.5), ("u", 2.5)], ROW, "url is no id"),
    ],
)
@pytest.mark.parametrize("body", ["text", "body"])
def test_the_field_of_the_id_is_one_that_names_one_text(
    rows: list[tuple[Any, Any]], taken: str | None, refused: str, body: str, tmp_path: Path
) -> None:
    made = [
        {"url": url and f"https://a.example/{url}", "id": given, body: text(f"r{row}")}
        for row, (url, given) in enumerate(rows)
    ]
    record = settled(written(tmp_path / "a.jsonl", made))
    assert record.ids_refused.startswith(refused)
    if rows == [("u", 1), ("u", 1)]:
        assert (record.id_field, record.repeats) == ("id", [(1, 0)])
    else:
        assert (record.id_field, record.repeats) == (taken, [])


def test_a_url_that_repeats_far_behind_the_sample_is_no_id(tmp_path: Path) -> None:
    rows = [{"id": row, "url": f"https://a.example/{min(row, 300)}", "text": text(f"r{row}")} for row in range(302)]
    record = settled(written(tmp_path / "a.jsonl", rows))
    assert record.id_field == "id"
    assert "rows 300 and 301" in record.fields_taken


def test_a_crawl_of_one_url_field_may_fetch_a_url_twice(shell: Shell) -> None:
    rows = [{"url": "https://a.example/", "body": text(name)} for name in "ab"]
    file = written(shell.folder / "a.jsonl", rows).name
    ended = shell("scan", file)
    assert ended.code == 0
    assert "1 page replaces an earlier fetch of the same URL, which had other content" in ended.out
    assert kept(shell) == 1
    assert json.loads(shell("scan", file, "--memory", "--json").out)["replaced"] == 1
    assert "replace" not in shell("scan", written(shell.folder / "b.jsonl", rows[:1]).name, "--memory").out


def test_a_required_field_of_ids_that_are_urls_stays_one_of_urls(tmp_path: Path) -> None:
    rows = [{"doc": "https://a.example/", "text": text(name)} for name in "ab"]
    record = settled(written(tmp_path / "a.jsonl", rows), Fields("text", "doc"))
    assert (record.id_field, record.repeats) == ("doc", [])


ANCHORED = [f"https://a.example/wiki/wool{anchor}" for anchor in ("", "#0", "#1", "#spinning", "#/route", "#/route#2")]


@pytest.mark.parametrize("form", FORMS)
def test_ids_that_are_urls_with_anchors_are_documents_of_their_own(shell: Shell, form: str) -> None:
    rows = [{"id": given, "text": text(f"r{row}")} for row, given in enumerate(ANCHORED)]
    files = [written(shell.folder / f"{name}.{form}", some).name for name, some in (("a", rows), ("b", rows[::-1]))]
    assert counts(shell, files[0]) == {"unique": 6}
    assert kept(shell, "parquet" if form == "parquet" else "jsonl") == 6
    assert shell("explain", ANCHORED[2], "neardup-state").out.startswith(f"UNIQUE  {ANCHORED[2]}\n")
    assert shell("explain", ANCHORED[0], "neardup-state").out.startswith(f"UNIQUE  {ANCHORED[0]}\n")
    ended = shell("forget", "--id", f"{files[0]}#{ANCHORED[1]}", "--state", "neardup-state")
    assert ended.code == 0, ended.err
    assert shell("explain", ANCHORED[1], "neardup-state").code == 1
    assert counts(shell, *files, "--ids-across-files", "--state", "across") == {"unique": 6, "unchanged": 6}


@pytest.mark.parametrize("markup", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_anchors_of_the_url_field_name_documents_if_texts_differ(tmp_path: Path, markup: bool, same: bool) -> None:
    name = "html" if markup else "text"
    rows = [{"url": url, name: text("same" if same else url[-4:])} for url in ANCHORED]
    file = written(tmp_path / "a.jsonl", rows)
    (source,) = open_sources(file, body_bytes_max=100_000, not_read=NotRead())
    urls = [page.page.url for page in source.read()]
    ids = [None, *(ANCHORED[at] for at in (1, 2, 3)), None, ANCHORED[5]]
    assert [id_of(url) for url in urls] == (6 * [None] if markup or same else ids)
    assert source.record.repeats == []


def test_a_url_whose_anchors_differ_beside_an_id_is_no_id(tmp_path: Path) -> None:
    rows = [{"id": row, "url": url, "text": text(f"r{row}")} for row, url in enumerate(ANCHORED[1:])]
    record = settled(written(tmp_path / "a.jsonl", rows))
    assert record.id_field == "id"
    assert record.ids_refused.startswith("url is no id: rows 0 and 1, and others, share one")


@pytest.mark.parametrize("command", ["explain", "rows", "forget"])
def test_an_id_of_several_files_is_a_choice(shell: Shell, command: str) -> None:
    counts(shell, *shards(shell))

    def run(name: str) -> tuple[int, str]:
        how = {
            "explain": ("explain", name, "neardup-state"),
            "rows": ("explain", "--rows", name, "neardup-state"),
            "forget": ("forget", "--id", name, "--state", "neardup-state"),
        }
        code, out, err = shell(*how[command])
        return code, out + err

    code, said = run("3")
    assert code == 1
    assert "3 names 2 documents; name one of them" in said
    assert "shard-0.jsonl#3" in said
    assert "shard-1.jsonl#3" in said
    assert run("shard-1.jsonl#3")[0] == 0
    assert run(str(shell.folder / "shard-0.jsonl") + "#3")[0] == 0


def test_the_library_finds_documents_of_files(shell: Shell) -> None:
    counts(shell, *shards(shell), "--state", "index")
    with open_index(shell.folder / "index") as index:
        with pytest.raises(BadInput, match="names 2 documents"):
            index.cluster("3")
        one, other = (index.cluster(f"shard-{number}.jsonl#3") for number in (0, 1))
        assert one is not None
        assert other is not None
        assert one.representative != other.representative
        assert id_of(one.representative) == id_of(other.representative) == "3"


def test_labels_and_items_name_documents_of_files(shell: Shell) -> None:
    rows = shard(0)
    rows.append({"id": "copy", "text": rows[3]["text"] + " more"})
    written(shell.folder / "shard-0.jsonl", rows)
    written(shell.folder / "shard-1.jsonl", shard(1))
    counts(shell, "shard-0.jsonl", "shard-1.jsonl")

    def labels(*pair: str) -> None:
        line = {"version": 1, "a": {"url": pair[0]}, "b": {"url": pair[1]}, "label": "correct"}
        (shell.folder / "labels.jsonl").write_text(json.dumps(line) + "\n")

    for how in (("--state", "neardup-state"), ("shard-0.jsonl", "shard-1.jsonl")):
        labels("shard-0.jsonl#3", "copy")
        ended = shell("evaluate", *how, "--labels", "labels.jsonl", "--out", "ev")
        assert ended.code == 0, ended.err
        assert "labelled pairs: 1 correct" in ended.out
        labels("3", "copy")
        ended = shell("evaluate", *how, "--labels", "labels.jsonl", "--out", "ev")
        assert ended.code == 1
        assert "3 names 2 documents" in ended.err
    items = [{"url": name, "item": "i"} for name in ("shard-0.jsonl#3", "copy")]
    (shell.folder / "items.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items))
    how = ("--state", "neardup-state", "--items", "items.jsonl", "--out", "ev2", "--labels-out", "own.jsonl")
    ended = shell("evaluate", *how)
    assert ended.code == 0, ended.err
    found = json.loads((shell.folder / "own.jsonl").read_text().splitlines()[0])
    assert {id_of(found[side]["url"]) for side in "ab"} == {"3", "copy"}


def test_an_export_has_the_ids_of_both_files(shell: Shell) -> None:
    counts(shell, *shards(shell))
    assert shell("export", "neardup-state", "--table", "urls", "--out", "urls.csv").code == 0
    rows = (shell.folder / "urls.csv").read_text().splitlines()
    assert len(rows) == 11


def test_url_of_id_of_a_file() -> None:
    urls = {url_of_id("17"), url_of_id("17", "ab"), url_of_id("17", "cd"), url_of_id("17", "ab", 5)}
    assert len(urls) == 4
    assert {id_of(url) for url in urls} == {"17"}
    assert url_of_id("17") == "id://" + url_of_id("17").partition("://")[2]
    assert id_of(url_of_id("17", "ab").replace("ab.", "cd.")) is None
    assert url_of_id("https://a.example/", "ab") == "https://a.example/"


def test_views_offer_the_documents_of_an_id(shell: Shell) -> None:
    counts(shell, *shards(shell))
    source = ScanSource(shell.folder / "neardup-state")
    with pytest.raises(BadInput, match=r"names 2 documents.*shard-0\.jsonl#3.*shard-1\.jsonl#3"):
        url_pages.url(source, "3", source.decider)
    found = url_pages.url(source, "shard-1.jsonl#3", source.decider)
    assert found is not None
    assert id_of(found["url"]) == "3"


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json"])
def test_damage_of_a_corpus_is_a_problem_and_no_defect(
    shell: Shell, name: str, threads: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = json.dumps(shard(0, 60)).encode()
    if name == "a.jsonl.gz":
        data = gzip.compress("".join(json.dumps(row) + "\n" for row in shard(0, 60)).encode())
    (shell.folder / name).write_bytes(data[: len(data) // 2])
    ended = shell("scan", name, "--memory", "--json", "--threads", threads)
    assert ended.code == 3, ended.err
    (problem,) = json.loads(ended.out)["problems"]
    assert problem.endswith("the rest is not read")
    assert "failed with" not in problem
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert "defect" not in ended.err
