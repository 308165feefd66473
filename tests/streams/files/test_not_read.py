"""What of the inputs is not read: each file is named or counted, and the rest is read."""

import gzip
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from neardup.errors import BadInput
from streams.config.settings import Settings
from streams.files.fetching import fetched
from streams.files.not_read import NAMED_MAX, NotRead, is_by_product, why_not_read
from streams.files.sources import ReadOptions, open_all
from streams.roles import archives_role
from tests.streams.archives import crawl, html, text, write_json_lines, write_warc
from tests.streams.shell import Shell, site

BY_PRODUCTS = [
    *("a.warc.gz.md5", "MD5SUMS", "a.sha256", "index.cdxj", "index.cdx.gz", "cluster.idx", "crawl.log", "Thumbs.db"),
    *(".DS_Store", "._a.warc.gz", ".part-0.crc", "_SUCCESS", "manifest-sha256.txt", "dataset_info.json", "README.md"),
]
NOT_READ = ["a.warc.gz.open", "b.warc.part", "c.tar.gz", "d.arrow", "part-00001", "e.warc.gz.1", "f.xlsx", "g.wat.gz"]


def summary(shell: Shell, *arguments: str, code: int) -> dict[str, object]:
    ended = shell("scan", *arguments, "--memory", "--json")
    assert ended.code == code, ended.err
    found: dict[str, object] = json.loads(ended.out)
    return found


@pytest.mark.parametrize("name", BY_PRODUCTS)
def test_by_products_are_known_by_their_names(name: str) -> None:
    assert is_by_product(name)


@pytest.mark.parametrize("name", [*NOT_READ, "a.md", "logs.jsonl", "md5.html", "robots.txt", "index.idx.json"])
def test_other_files_are_no_by_products(name: str) -> None:
    assert not is_by_product(name)


def test_files_of_a_folder_that_are_not_read_are_named(shell: Shell) -> None:
    folder = shell.folder / "crawl"
    folder.mkdir()
    write_warc(folder / "a.warc.gz", crawl(3))
    write_json_lines(folder / "b.jsonl", crawl(2))
    for name in (*NOT_READ, *BY_PRODUCTS):
        (folder / name).write_bytes(b"x")
    found = summary(shell, "crawl", code=3)
    assert found["pages"] == 6
    problems = found["problems"]
    assert isinstance(problems, list)
    assert sorted(line.partition(":")[0] for line in problems) == sorted(f"crawl/{name}" for name in NOT_READ)
    assert "a crawler still writes it" in next(line for line in problems if ".open:" in line)
    assert str(found["passed_over"]).startswith("15 files (")


def test_a_folder_with_by_products_alone_beside_its_archives_is_read_without_a_problem(shell: Shell) -> None:
    folder = shell.folder / "crawl"
    (folder / "logs").mkdir(parents=True)
    (folder / ".git").mkdir()
    write_warc(folder / "a.warc.gz", crawl(3))
    for name in ("a.warc.gz.md5", "logs/crawl.log", ".DS_Store", ".git/HEAD"):
        (folder / name).write_bytes(b"x")
    found = summary(shell, "crawl", code=0)
    assert found["passed_over"] == "4 files (2 hidden, 1 .log, 1 .md5)"
    ended = shell("scan", "crawl", "--memory")
    assert "passed over, by their names: 4 files (2 hidden, 1 .log, 1 .md5)" in ended.out


def test_files_beside_pages_are_counted(shell: Shell) -> None:
    folder = site(shell.folder / "site")
    for name in ("style.css", "a.js", "b.js", "logo.png", "manifest.json", "table.csv", "feed.xml", "page.php"):
        (folder / name).write_bytes(b"x")
    found = summary(shell, "site", code=0)
    assert found["passed_over"] == "8 files (2 .js, 1 .css, 1 .csv, 1 .json, 1 .php, 1 .png, 1 .xml)"
    (folder / "crawl.warc.gz.open").write_bytes(b"x")
    found = summary(shell, "site", code=3)
    assert found["problems_total"] == 1


def test_a_state_directory_in_a_folder_is_no_input(shell: Shell) -> None:
    write_warc(shell.folder / "a.warc.gz", crawl(3))
    assert shell("scan", "a.warc.gz").code == 0
    found = summary(shell, ".", code=0)
    assert found["pages"] == 4
    assert found["passed_over"] == "1 file (1 without suffix)"


def test_many_files_that_are_not_read_are_named_up_to_a_bound() -> None:
    not_read, more = NotRead(), NotRead()
    for number in range(30):
        (not_read if number < 5 else more).add(Path(f"in/{number}.bin"), why_not_read("0.bin"))
    not_read.merge(more)
    assert len(not_read.lines) == NAMED_MAX + 1
    assert not_read.lines[-1] == "21 more files not read: 21 .bin"


def test_a_file_of_a_folder_that_cannot_be_read_costs_no_other(shell: Shell) -> None:
    folder = shell.folder / "crawl"
    folder.mkdir()
    write_json_lines(folder / "a.jsonl", crawl(2))
    (folder / "b.parquet").write_bytes(b"PAR1 is damaged")
    (folder / "c.json").write_text('[{"rows": 1}]')
    with zipfile.ZipFile(folder / "d.wacz", "w") as packed:
        packed.writestr("datapackage.json", "{}")
    (folder / "e.wacz").write_bytes(b"PK is damaged")
    found = summary(shell, "crawl", code=3)
    assert found["pages"] == 2
    problems = found["problems"]
    assert isinstance(problems, list)
    assert [line.partition(":")[0] for line in problems] == [f"crawl/{name}" for name in
                                                             ("b.parquet", "c.json", "d.wacz", "e.wacz")]  # fmt: skip


def test_of_several_inputs_one_that_is_no_source_is_named_and_the_others_are_read(shell: Shell) -> None:
    write_json_lines(shell.folder / "a.jsonl", crawl(2))
    (shell.folder / "b.bin").write_bytes(b"\x7fELF")
    (shell.folder / "c.wacz").write_bytes(b"PK is damaged")
    found = summary(shell, "a.jsonl", "b.bin", "c.wacz", code=3)
    assert (found["pages"], found["problems_total"]) == (2, 2)
    for alone in ("b.bin", "c.wacz"):
        ended = shell("scan", alone, "--memory")
        assert (ended.code, alone in ended.err) == (1, True)
    ended = shell("scan", "b.bin", "c.wacz", "--memory")
    assert (ended.code, "c.wacz" in ended.err) == (1, True)
    ended = shell("scan", "a.jsonl", "missing.jsonl", "--memory")
    assert (ended.code, "missing.jsonl" in ended.err) == (2, True)


def test_problems_of_inputs_are_named_at_each_scan_also_of_finished_files(shell: Shell) -> None:
    (shell.folder / "crawl").mkdir()
    write_warc(shell.folder / "crawl" / "a.warc.gz", crawl(3))
    assert shell("scan", "crawl").code == 0
    (shell.folder / "crawl" / "b.warc.gz.open").write_bytes(b"x")
    for more in ((), ("--merge",)):
        ended = shell("scan", "crawl", *more)
        assert (ended.code, "b.warc.gz.open" in ended.out) == (3, True)


def wacz(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def archive(tmp_path: Path, pages: int) -> bytes:
    return write_warc(tmp_path / "one.warc.gz", crawl(pages), base=f"http://{pages}.example/").read_bytes()


def test_other_members_of_a_wacz_file_are_passed_over_or_named(shell: Shell) -> None:
    members = {"archive/a.warc.gz": archive(shell.folder, 3), "archive/sub/": b""}
    members |= {f"archive/{name}": b"x" for name in (".DS_Store", "a.warc.gz.md5", "._a.warc.gz", "sub/b.bin")}
    members |= {"archive/b.warc.gz.open": b"x"}
    wacz(shell.folder / "crawl.wacz", members)
    found = summary(shell, "crawl.wacz", code=3)
    assert (found["pages"], found["passed_over"]) == (4, "3 files (2 hidden, 1 .md5)")
    problems = found["problems"]
    assert isinstance(problems, list)
    assert sorted(line.split(": ")[1] for line in problems) == ["archive/b.warc.gz.open", "archive/sub/b.bin"]


def test_a_wacz_file_in_a_folder_is_read(shell: Shell) -> None:
    (shell.folder / "crawl").mkdir()
    wacz(shell.folder / "crawl" / "a.wacz", {"archive/a.warc.gz": archive(shell.folder, 3), "archive/x.md5": b"x"})
    write_json_lines(shell.folder / "crawl" / "b.jsonl", crawl(2))
    found = summary(shell, "crawl", code=0)
    assert (found["pages"], found["passed_over"]) == (6, "1 file (1 .md5)")
    for name in ("one", "two"):
        ended = shell("partition", "crawl", "--out", name, "--workers", "1", "--json")
        assert (ended.code, json.loads(ended.out)["counts"]["documents"]) == (0, 6)


def test_a_damaged_or_encrypted_member_of_a_wacz_file_costs_no_other(tmp_path: Path) -> None:
    path = wacz(tmp_path / "crawl.wacz", {f"archive/{n}.warc.gz": archive(tmp_path, n) for n in (2, 3, 4)})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x03\x04") + 60] ^= 0xFF  # content of the first
    second = data.index(b"archive/3.warc.gz")
    data[second - 30 + 6] |= 1
    listed = data.rindex(b"archive/3.warc.gz")
    data[listed - 46 + 8] |= 1
    path.write_bytes(data)
    not_read = NotRead()
    (copy,) = fetched([path], tmp_path / "in", not_read)
    assert copy.name.endswith("4.warc.gz")
    assert ["2.warc.gz" in not_read.lines[1], "3.warc.gz is encrypted" in not_read.lines[0]] == [True, True]


def test_a_url_pattern_names_files_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    for name in ("a.jsonl", "b.jsonl", "b.jsonl.md5", "sub/c.jsonl"):
        store.pipe(f"/notread/{name}", b'{"url":"http://a/","body":"x"}\n')
    opened = type(store)._open

    def refused(self: object, path: str, *args: object, **kwargs: object) -> io.BytesIO:
        if path.endswith("/b.jsonl"):
            raise PermissionError("no key")
        found: io.BytesIO = opened(self, path, *args, **kwargs)  # type: ignore[arg-type]
        return found

    monkeypatch.setattr(type(store), "_open", refused)
    not_read = NotRead()
    copies = fetched(["memory://notread/*"], tmp_path / "in", not_read)
    assert [copy.name[13:] for copy in copies] == ["a.jsonl"]
    assert (len(not_read.lines), not_read.passed_over) == (2, "1 file (1 .md5)")
    assert any("b.jsonl: cannot be read: no key" in line for line in not_read.lines)
    assert any("sub: a folder" in line for line in not_read.lines)
    with pytest.raises(BadInput, match="no key"):
        fetched(["memory://notread/b*"], tmp_path / "in", NotRead())
    store.rm("/notread", recursive=True)


def test_standard_input_may_have_any_format(tmp_path: Path) -> None:
    (tmp_path / "standard-input-1").write_bytes(gzip.compress(b"id,text\n1," + text(1).encode()))
    (tmp_path / "standard-input-2").write_bytes(b'\n [\n{"url":"http://a/","body":"x"}]')
    (tmp_path / "page.html").write_bytes(html("x", "y"))
    not_read = NotRead()
    paths = sorted(tmp_path.iterdir())
    sources = open_all(paths, ReadOptions(), body_bytes_max=10_000, not_read=not_read)
    assert [source.record.kind for source in sources] == ["folder", "csv", "json"]
    assert not_read.lines == []


def test_partition_and_backfill_name_files_that_are_not_read(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "crawl").mkdir()
    write_json_lines(shell.folder / "crawl" / "a.jsonl", crawl(4))
    (shell.folder / "crawl" / "b.warc.gz.open").write_bytes(b"x")
    (shell.folder / "crawl" / "b.cdxj").write_bytes(b"x")
    for method in ("tlcs", "verified"):
        ended = shell("partition", "crawl", "--out", method, "--method", method, "--workers", "1", "--json")
        found = json.loads(ended.out)
        assert (ended.code, found["problems_total"], found["passed_over"]) == (3, 1, "1 file (1 .cdxj)")
        assert "b.warc.gz.open" in found["problems"][0]
    noted: list[str] = []
    monkeypatch.setattr(archives_role._log, "warning", lambda text, **fields: noted.append(fields["problem"]))
    settings = replace(Settings(), seed=7, state=str(shell.folder / "state"))
    (source,) = archives_role.open_archives([str(shell.folder / "crawl")], settings)
    assert source.record.kind == "jsonl"
    assert ["b.warc.gz.open" in line for line in noted] == [True]
