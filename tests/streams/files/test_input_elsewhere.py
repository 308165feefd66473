"""Input from where data lies: URLs, standard input, WACZ, Parquet, and fields with names of their own."""

import io
import json
import random
import zipfile
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pytest

from neardup.errors import BadInput
from neardup.page import Page
from streams.files.fetching import fetched
from streams.files.jsonl_and_parquet import ParquetRows
from streams.files.not_read import NotRead
from streams.files.parts import SourcePart
from streams.files.sources import LocalSource, ReadOptions, open_sources
from streams.formats.json import Fields
from streams.formats.parquet import ParquetDamaged, columns_of, spans_of
from streams.scan.scan import scan
from tests.streams.archives import crawl, opened, verdicts_in, write_json_lines, write_warc
from tests.streams.shell import Shell, words


@pytest.fixture
def store() -> Iterator[fsspec.AbstractFileSystem]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


def documents(count: int = 4) -> list[dict[str, Any]]:
    """Texts with ids that are no URLs; each second one repeats the one before, but for a few words."""
    return [{"doc": f"Doc {i}/ä", "text": words(f"w{i // 2}x") + (" x y z" if i % 2 else "")} for i in range(count)]


def parquet(path: Path, rows: list[dict[str, Any]], columns: str = "*") -> Path:
    lines = path.with_suffix(".rows")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    duckdb.sql(f"COPY (SELECT {columns} FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
    return path


def source_of(path: Path, fields: Fields | None = None) -> LocalSource:
    (source,) = open_sources(path, ReadOptions(fields=fields or Fields()), not_read=NotRead(), body_bytes_max=10_000)
    return source


def test_a_crawl_in_a_store_is_judged_as_its_file_is(
    shell: Shell, store: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARDUP_SEED", "7")
    file = write_warc(shell.folder / "crawl.warc.gz", crawl())
    store.pipe("/bucket/crawl.warc.gz", file.read_bytes())
    assert shell("scan", "crawl.warc.gz", "--memory", "--out", "here.jsonl").code == 0
    ended = shell("scan", "memory://bucket/crawl.warc.gz", "--out", "there.jsonl")
    assert ended.code == 0, ended.err
    assert verdicts_in(shell.folder / "there.jsonl") == verdicts_in(shell.folder / "here.jsonl")
    again = json.loads(shell("scan", "memory://bucket/*.warc.gz", "--json").out)
    assert (again["pages"], len(again["skipped"])) == (0, 1)
    store.pipe("/bucket/crawl.warc.gz", write_warc(shell.folder / "b.warc.gz", crawl(3)).read_bytes())
    assert json.loads(shell("scan", "memory://bucket/crawl.warc.gz", "--json").out)["pages"] == 4  # another file now


def test_a_scan_of_a_url_that_was_killed_goes_on_without_the_store(
    tmp_path: Path, store: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_json_lines(tmp_path / "a.jsonl", crawl())
    store.pipe("/a.jsonl", file.read_bytes())
    with monkeypatch.context() as patched:
        patched.setattr(SourcePart, "pages", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with opened(tmp_path / "state") as state, pytest.raises(KeyboardInterrupt):
            scan(["memory://a.jsonl"], state)
    store.rm("/a.jsonl")
    with opened(tmp_path / "state") as state:
        assert scan(["memory://a.jsonl"], state).pages == len(crawl())


def test_standard_input_is_known_again(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_warc(shell.folder / "crawl.warc.gz", crawl(3)).read_bytes()
    for pages in (4, 0):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        ended = shell("scan", "-", "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["pages"] == pages
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    ended = shell("scan", "-")
    assert ended.code == 1
    assert "Parquet" in ended.err


def test_the_archives_of_a_wacz_file_are_read(tmp_path: Path) -> None:
    inner = write_warc(tmp_path / "data.warc.gz", crawl(3))
    with zipfile.ZipFile(tmp_path / "crawl.wacz", "w") as packed:
        packed.write(inner, "archive/data.warc.gz")
        packed.writestr("archive/more.warc", write_warc(tmp_path / "more.warc", crawl(1)).read_bytes())
        packed.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0"}')
        packed.writestr("datapackage.json", "{}")
    with opened(tmp_path / "state") as state:
        assert scan([tmp_path / "crawl.wacz"], state).pages == 5
        url = next(state.verdicts())["url"]
    assert url == "http://a.example/page0.html"


def test_members_of_a_wacz_file_in_two_folders_may_have_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "crawl.wacz", "w") as packed:
        for number in (1, 2):
            base = f"http://{number}.example/"
            part = write_warc(tmp_path / "data.warc.gz", crawl(number), base=base)
            packed.write(part, f"archive/{number}/data.warc.gz")
        packed.write(part, f"archive/{'n' * 300}.warc.gz")
    copies = fetched([tmp_path / "crawl.wacz"], tmp_path / "inputs", NotRead())
    assert len({copy.read_bytes() for copy in copies}) == 2
    assert len(set(copies)) == 3
    with opened(None) as state:
        assert scan([tmp_path / "crawl.wacz"], state).pages == len(crawl(1)) + len(crawl(2))


def test_members_of_a_wacz_file_that_overlap_are_refused(tmp_path: Path) -> None:
    """Each is no bomb, and all of them are the same bytes."""
    with zipfile.ZipFile(tmp_path / "overlapping.wacz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/a.warc", b"wool" * 10_000 + bytes(random.Random(1).randbytes(2_000)))
        (member,) = packed.filelist
        for number in range(200):
            other = copy(member)
            other.filename = f"archive/{number}.warc"
            packed.filelist.append(other)
    with pytest.raises(BadInput, match="would unpack to 8,"):
        fetched([tmp_path / "overlapping.wacz"], tmp_path / "inputs", NotRead())


def test_a_wacz_file_that_is_none_or_a_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.wacz").write_bytes(b"PK but not really")
    with zipfile.ZipFile(tmp_path / "bomb.wacz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/a.warc", bytes(1 << 20))
    with zipfile.ZipFile(tmp_path / "empty.wacz", "w") as packed:
        packed.writestr("datapackage.json", "{}")
    for name, why in (("none", "WACZ"), ("bomb", "would unpack"), ("empty", "archive/"), ("away", "no such file")):
        with pytest.raises(BadInput, match=why):
            fetched([tmp_path / f"{name}.wacz"], tmp_path / "inputs", NotRead())
    assert not list((tmp_path / "inputs").glob("*"))


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_documents_with_fields_and_ids_of_their_own(shell: Shell, form: str) -> None:
    rows = documents()
    if form == "parquet":
        parquet(shell.folder / "docs.parquet", rows)
    else:
        (shell.folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = f"docs.{form}"
    ended = shell("scan", file, "--id-field", "doc", "--text-field", "text", "--out", "out.jsonl")
    assert ended.code == 0, ended.err
    verdicts = verdicts_in(shell.folder / "out.jsonl")
    assert [one["verdict"] for one in verdicts] == ["unique", "near_duplicate"] * 2
    assert verdicts[0]["url"].endswith("/Doc%200/%C3%A4")
    assert "(no site)" in ended.out
    explained = shell("explain", verdicts[1]["url"])  # reads the text again
    assert explained.code == 0
    assert shell("scan", file, "--id-field", "doc", "--text-field", "doc", "--json").code == 0  # other documents


def test_parquet_is_read_from_any_row_on(tmp_path: Path) -> None:
    rows = [{"url": f"https://a.example/{i}", "body": words(str(i), 30), "fetched_at": 1000 + i} for i in range(1200)]
    parquet(tmp_path / "a[1].parquet", rows, "*, encode('x') AS content_type_of")
    source = source_of(tmp_path / "a[1].parquet")
    pages = list(source.read())
    assert [page.page.url for page in pages] == [row["url"] for row in rows]
    assert [page.page.fetched_at for page in pages] == [row["fetched_at"] for row in rows]
    assert source.bytes_read == source.bytes_total
    for at in (0, 1, 499, 500, 1199):
        assert source.read_at(pages[at].coordinates) == pages[at].page
        assert list(source.read(at + 1, pages[at].coordinates.position)) == pages[at + 1 :]
    assert source_of(tmp_path / "a[1].parquet", Fields("body", "url")).record.id != source.record.id


def test_one_row_of_parquet_is_read_without_those_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "a.parquet", [{"url": f"https://a.example/{i}", "body": words(str(i), 30)} for i in range(900)])
    source = source_of(tmp_path / "a.parquet")
    pages = list(source.read())
    asked: list[tuple[int, int | None]] = []
    whole = ParquetRows.read

    def read(rows: ParquetRows, position: int, stop: int | None = None) -> Iterator[tuple[Page, int]]:
        asked.append((position, stop))
        return whole(rows, position, stop)

    monkeypatch.setattr(ParquetRows, "read", read)
    assert source.read_at(pages[7].coordinates) == pages[7].page
    assert asked == [(7, 8)]


def test_columns_of_a_parquet_file_are_those_of_its_present_version(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for count, columns in ((5, "*"), (9, "*, 1 AS more")):
        parquet(path, [{"url": f"https://a.example/{i}", "body": "b"} for i in range(count)], columns)
        for _ in range(2):
            assert list(columns_of(path)) == ["url", "body", *(["more"] if "more" in columns else [])]
            assert spans_of(path) == [(0, count)]
    path.unlink()
    with pytest.raises(ParquetDamaged):
        columns_of(path)


def test_bytes_and_times_in_parquet_are_bodies_and_dates(tmp_path: Path) -> None:
    rows = [{"url": "https://a.example/", "body": "<p>Straße"}]
    columns = "url, encode(body) AS body, TIMESTAMP '2020-01-01 00:00:01' AS fetched_at, 404 AS http_status"
    (page,) = [one.page for one in source_of(parquet(tmp_path / "a.parquet", rows, columns)).read()]
    assert (page.body, page.fetched_at, page.status) == ("<p>Straße".encode(), 1_577_836_801_000, 404)


def test_damaged_parquet_and_missing_columns_are_reported(shell: Shell) -> None:
    file = parquet(shell.folder / "a.parquet", documents())
    ended = shell("scan", parquet(shell.folder / "other.parquet", documents(), "doc, text AS words").name)
    assert ended.code == 1
    assert "--text-field" in ended.err
    assert "doc, words" in ended.err
    assert shell("scan", "a.parquet", "--id-field", "id").code == 1
    (shell.folder / "b.parquet").write_bytes(file.read_bytes()[:-20])
    ended = shell("scan", "b.parquet")
    assert ended.code == 1
    assert "Parquet" in ended.err
    data = bytearray(file.read_bytes())
    data[4:200] = bytes(196)
    (shell.folder / "c.parquet").write_bytes(data)
    assert shell("scan", "c.parquet", "--id-field", "doc", "--text-field", "text").code == 3


def test_where_every_page_is_rejected_the_scan_does_not_end_with_0_and_the_source_is_not_finished(shell: Shell) -> None:
    (shell.folder / "docs.jsonl").write_text("not JSON\n" * 3)
    for _ in range(2):
        ended = shell("scan", "docs.jsonl")
        assert ended.code == 3
        assert "not JSON" in ended.err
        assert "scanned already" not in ended.out
    (shell.folder / "docs.jsonl").write_text("not JSON\n" + json.dumps({"url": "https://a.example/", "body": "wool"}))
    assert shell("scan", "docs.jsonl").code == 0
    assert "scanned already" in shell("scan", "docs.jsonl").out


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ({"doc": "docid", "text": "raw_content"}, "the id of a document is its docid, the text its raw_content"),
        ({"doc": "_id", "text": "body"}, "the id of a document is its _id, the text its body"),
        ({"doc": "id", "text": "content"}, "the id of a document is its id, the text its content"),
        ({"doc": "url", "text": "text"}, "the id of a document is its url, the text its text"),
    ],
)
def test_fields_that_other_programs_use_are_guessed(shell: Shell, form: str, names: dict[str, str], taken: str) -> None:
    rows = [{names[name]: value for name, value in row.items()} for row in documents()]
    file = f"docs.{form}"
    if form == "parquet":
        parquet(shell.folder / file, rows)
    else:
        (shell.folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = shell("scan", file, "--out", "guessed.jsonl")
    assert ended.code == 0, ended.err
    assert taken in ended.out
    given = ["--id-field", names["doc"]] if names["doc"] != "url" else []
    given += ["--text-field", names["text"]] if names["text"] != "body" else []
    assert "scanned already" in shell("scan", file, *given).out  # the same source
    assert shell("partition", file, "--out", "sets", "--workers", "1").out.count(taken) == 1


def test_lines_without_a_known_field_are_refused_with_the_names_that_they_have(shell: Shell) -> None:
    rows = [{"doc": row["doc"], "words": row["text"]} for row in documents()]
    (shell.folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = shell("scan", "docs.jsonl")
    assert ended.code == 1
    assert "no field body for the text; --text-field names another one of: doc, words" in " ".join(ended.err.split())
    ended = shell("scan", "docs.jsonl", "--id-field", "key", "--text-field", "words")
    assert ended.code == 1
    assert "no field key for the id; --id-field names another one of: doc, words" in " ".join(ended.err.split())
    assert not list((shell.folder / "neardup-state").glob("sources/*"))


@pytest.mark.parametrize("url", ["memory://none/a.jsonl", "s3://me:secret@bucket/a.warc.gz"])
def test_a_url_that_cannot_be_read_is_named_as_it_was_given(shell: Shell, url: str) -> None:
    ended = shell("scan", url)
    assert ended.code == 1
    assert "cannot be read" in ended.err
    assert url.partition("//")[0] + "//" in ended.err
    assert "secret" not in ended.err
    assert "pages.xyz" not in ended.err
