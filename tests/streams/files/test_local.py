"""Folders, JSON lines, and which source a path is."""

import gzip
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import xxhash

from neardup.errors import BadInput
from streams.files.not_read import NotRead
from streams.files.sources import (
    LocalSource,
    ReadOptions,
    SourceRecord,
    default_base_url,
    open_all,
    open_sources,
    unchanged,
)
from tests.streams.archives import Sample, crawl, write_each_form, write_folder, write_json_lines, write_warc

BOUND = 10_000


def sources(path: Path, base_url: str | None = None, not_read: NotRead | None = None) -> list[LocalSource]:
    return open_sources(path, ReadOptions(base_url), not_read=not_read or NotRead(), body_bytes_max=BOUND)


def check_places(source: LocalSource) -> None:
    pages = list(source.read())
    for i, page in enumerate(pages):
        assert (page.coordinates.source, page.coordinates.offset) == (source.record.id, i)
        assert source.read_at(page.coordinates) == page.page
        assert list(source.read(i + 1, page.coordinates.position)) == pages[i + 1 :]


def test_all_forms_hold_the_same_pages(tmp_path: Path) -> None:
    base = "http://a.example/"
    samples = sorted(crawl(), key=lambda sample: sample.path)
    for path in write_each_form(tmp_path, samples):
        (source,) = sources(path, base if path.is_dir() else None)
        check_places(source)
        found = [(page.page.url, page.page.body, page.page.fetched_at) for page in source.read()]
        assert found == [(base + s.path, s.body, s.ms) for s in samples], path
        assert source.problems == []
        (fresh,) = sources(path)
        list(fresh.read())
        assert fresh.bytes_read == fresh.bytes_total > 0


def test_a_folder_is_walked_in_order_and_its_names_are_quoted(tmp_path: Path) -> None:
    names = ["b.html", "a/z.htm", "a/a b%.xhtml", "a-b/ü.html", "c.TXT", "d.css", "e.html.orig"]
    write_folder(tmp_path, [Sample(name, b"x") for name in names])
    (source,) = sources(tmp_path, "http://h.example/docs")
    assert [page.page.url.removeprefix("http://h.example/docs/") for page in source.read()] == [
        *("a-b/%C3%BC.html", "a/a%20b%25.xhtml", "a/z.htm", "b.html", "c.TXT"),
    ]
    assert [page.page.content_type for page in source.read()][-1] == "text/plain"
    check_places(source)


def test_a_name_that_is_no_unicode(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.html", "wb") as file:
        file.write(b"x")
    (source,) = sources(tmp_path)
    assert [page.page.url for page in source.read()] == [default_base_url(tmp_path) + "%FF.html"]


def test_a_link_in_a_circle_and_a_pipe_are_left_out(tmp_path: Path) -> None:
    write_folder(tmp_path, [Sample("a.html", b"x")])
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dead.html").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.html")
    not_read = NotRead()
    (source,) = sources(tmp_path, not_read=not_read)
    assert [page.page.body for page in source.read()] == [b"x"]
    why = "not scanned, as it is no file, or a link to none"
    assert not_read.lines == [f"{tmp_path}/dead.html: {why}", f"{tmp_path}/pipe.html: {why}"]


def test_a_file_that_vanishes_is_rejected_and_reported(tmp_path: Path) -> None:
    write_folder(tmp_path, [Sample("a.html", b"x"), Sample("b.html", b"y")])
    (source,) = sources(tmp_path)
    (tmp_path / "a.html").unlink()
    pages = [page.page for page in source.read()]
    assert [page.body for page in pages] == [b"", b"y"]
    assert "cannot read" in pages[0].problem
    assert len(source.problems) == 1


def test_a_long_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    write_folder(tmp_path, [Sample("a.html", b"x" * 50_000)])
    (source,) = sources(tmp_path)
    assert [len(page.page.body or b"") for page in source.read()] == [BOUND + 1]


def test_one_page_is_a_source(tmp_path: Path) -> None:
    write_folder(tmp_path, [Sample("a.html", b"x"), Sample("b.html", b"y")])
    (source,) = sources(tmp_path / "a.html", "http://h.example")
    assert [page.page.url for page in source.read()] == ["http://h.example/a.html"]


def test_a_folder_of_archives_is_each_of_them(tmp_path: Path) -> None:
    write_warc(tmp_path / "b.warc.gz", crawl(3))
    write_json_lines(tmp_path / "a.jsonl", crawl(2))
    assert [Path(source.record.path).name for source in sources(tmp_path)] == ["a.jsonl", "b.warc.gz"]


def test_unreadable_folder_costs_its_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "site", [Sample("a.html", b"x"), Sample("no/b.html", b"y"), Sample("yes/c.html", b"z")])
    listed, refused = os.scandir, ["no"]

    def scandir(path: str) -> Any:
        if Path(path).name in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    not_read = NotRead()
    (source,) = sources(tmp_path / "site", not_read=not_read)
    assert [Path(page.page.url).name for page in source.read()] == ["a.html", "c.html"]
    assert not_read.lines == [f"{tmp_path}/site/no: cannot be read: Permission denied; nothing in it is scanned"]
    refused.append("site")
    with pytest.raises(BadInput, match=r"cannot read .*site: Permission denied"):
        sources(tmp_path / "site")


def test_links_that_lead_out_of_a_folder_are_followed_only_on_request(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "key.txt"
    write_folder(secret.parent, [Sample(secret.name, b"secret")])
    folder = write_folder(tmp_path / "site", [Sample("a.html", b"x")])
    (folder / "b.txt").symlink_to("../elsewhere/key.txt")
    (folder / "c.html").symlink_to("a.html")
    (folder / "d").symlink_to(secret.parent)
    not_read = NotRead()
    (source,) = sources(folder, not_read=not_read)
    assert [(Path(page.page.url).name, page.page.body) for page in source.read()] == [
        ("a.html", b"x"),
        ("c.html", b"x"),
    ]
    link, file = sorted(not_read.lines, reverse=True)
    assert link == f"{folder}/d: not scanned, as it is a link to a folder elsewhere; name that folder itself"
    assert file.startswith(f"{folder}/b.txt: ")
    assert "--follow-links" in file
    not_read = NotRead()
    (followed,) = open_sources(folder, ReadOptions(follow_links=True), not_read=not_read, body_bytes_max=BOUND)
    assert [page.page.body for page in followed.read()] == [b"x", b"secret", b"x"]
    assert not_read.lines == [link]
    assert [page.page.body for page in sources(folder / "b.txt")[0].read()] == [b"secret"], "named by the user"


def test_a_page_that_becomes_a_link_after_it_was_listed_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_bytes(b"secret")
    folder = write_folder(tmp_path / "site", [Sample("a.txt", b"x")])
    (source,) = sources(folder)
    (page,) = source.read()
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("../key.txt")
    (again,) = source.read()
    assert (again.page.body, "leads out of the folder" in again.page.problem) == (b"", True)
    assert (source.read_at(page.coordinates) or page.page).body == b""


def test_archives_of_a_folder_that_are_links_are_not_followed_either(tmp_path: Path) -> None:
    write_warc(tmp_path / "a.warc", crawl(2))
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "a.warc").symlink_to("../a.warc")
    with pytest.raises(BadInput, match=r"holds none of .*a\.warc: .*--follow-links follows it"):
        sources(folder)
    (source,) = open_sources(folder, ReadOptions(follow_links=True), not_read=NotRead(), body_bytes_max=BOUND)
    assert len(list(source.read())) == 2


def test_archives_beside_pages_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    write_folder(tmp_path, [Sample("a.html", b"x")])
    write_warc(tmp_path / "b.warc.gz", crawl(3))
    not_read = NotRead()
    (source,) = sources(tmp_path, not_read=not_read)
    assert len(list(source.read())) == 1
    assert not_read.lines == [
        f"{tmp_path}/b.warc.gz: not scanned, as it lies beside pages; name the file itself to scan it"
    ]


@pytest.mark.parametrize("name", ["missing.warc", "empty/", "x.bin", "nothing.html/"])
def test_non_source_is_refused_by_name(tmp_path: Path, name: str) -> None:
    if name.endswith("/"):
        (tmp_path / name).mkdir()
    elif name == "x.bin":
        (tmp_path / name).write_bytes(b"\x7fELF")
    with pytest.raises(BadInput, match=name.rstrip("/")):
        sources(tmp_path / name)


def test_kinds_are_recognised_by_content_if_not_by_name(tmp_path: Path) -> None:
    write_warc(tmp_path / "a.warc.gz", crawl(2)).rename(tmp_path / "one")
    write_json_lines(tmp_path / "a.jsonl.gz", crawl(2)).rename(tmp_path / "two")
    assert [sources(tmp_path / name)[0].record.kind for name in ("one", "two")] == ["warc", "jsonl"]


def test_source_is_named_by_its_contents(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    moved = Path(shutil.copy(archive, tmp_path / "moved.warc"))
    other = write_warc(tmp_path / "b.warc", crawl(4))
    ids = [sources(path)[0].record.id for path in (archive, moved, other)]
    assert ids[0] == ids[1] != ids[2]
    folder = write_folder(tmp_path / "f", crawl(3))
    mirror = write_folder(tmp_path / "g", crawl(3))
    named = [
        *(sources(path, base)[0].record.id for path in (folder, mirror) for base in (None, "http://h.example/")),
    ]
    assert named[1] == named[3], "the same pages at the same URLs"
    assert len(set(named)) == 3, "other URLs are other pages"
    (folder / "page0.html").write_bytes(b"changed")
    assert sources(folder)[0].record.id != named[0]


def test_a_file_made_to_be_taken_for_another_is_a_source_of_its_own(tmp_path: Path) -> None:
    """XXH3 multiplies the halves of a word XOR its known secret: where one is zero, the other is free."""
    files = []
    for name, halves in (("one", b"abcdwxyz"), ("other", b"wxyzabcd")):
        body = bytearray(512)
        body[0:8] = bytes.fromhex("b8fe6c39") + halves[:4]
        body[64:72] = bytes.fromhex("7c01812c") + halves[4:]
        files.append(tmp_path / name / "page.html")
        files[-1].parent.mkdir()
        files[-1].write_bytes(body)
    assert len({xxhash.xxh3_128_digest(file.read_bytes()) for file in files}) == 1
    sources = [
        open_sources(file, ReadOptions("http://a.example/"), not_read=NotRead(), body_bytes_max=9999)[0]
        for file in files
    ]
    assert sources[0].record.id != sources[1].record.id


def test_json_lines_with_bad_lines(tmp_path: Path) -> None:
    good = b'{"url":"http://a/","body":"x"}'
    lines = [good, b"", b"  ", b"{", b"\xff\xfe", b'{"body":"x"}', b'{"url":"http://a/","body":[]}', b"[" * 3000, good]
    (tmp_path / "a.jsonl").write_bytes(b"\r\n".join(lines))
    (source,) = sources(tmp_path / "a.jsonl")
    pages = [page.page for page in source.read()]
    assert [bool(page.problem) for page in pages] == [False, True, True, True, True, True, False]
    check_places(source)


@pytest.mark.parametrize(("data", "expected"), [(b"", "the file is empty"), (b"\n \n", "the file holds no page")])
def test_json_lines_without_a_page_are_reported(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    (source,) = sources(tmp_path / "x.jsonl")
    assert list(source.read()) == []
    assert [problem.what for problem in source.problems] == [expected]


def test_a_byte_order_mark_costs_no_page(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"url":"http://a/","body":"x"}\n')
    (source,) = sources(tmp_path / "a.jsonl")
    assert [(page.page.url, page.page.problem) for page in source.read()] == [("http://a/", "")]


def test_a_line_without_end_is_bounded(tmp_path: Path) -> None:
    good = b'{"url":"http://a/","body":"x"}\n'
    data = good + b'{"url":"http://a/","body":"' + b"y" * 20_000_000 + b'"}\n' + good
    for name, content in (("a.jsonl", data), ("a.jsonl.gz", gzip.compress(data, 1))):
        (tmp_path / name).write_bytes(content)
        (source,) = sources(tmp_path / name)
        assert [page.page.problem[:20] for page in source.read()] == ["", "a line of more than ", ""]


@pytest.mark.parametrize("cut", [1, 4, 9, 30])
def test_cut_json_lines_give_their_whole_lines(tmp_path: Path, cut: int) -> None:
    path = write_json_lines(tmp_path / "a.jsonl.gz", crawl(12))
    path.write_bytes(path.read_bytes()[:-cut])
    (source,) = sources(path)
    pages = list(source.read())
    assert len(pages) >= 10
    assert len(source.problems) == 1
    check_places(source)


def test_a_page_without_a_date_has_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"url":"http://a/","body":"x"}\n')
    os.utime(tmp_path / "a.jsonl", (1000, 1000))
    (source,) = sources(tmp_path / "a.jsonl")
    (page,) = source.read()
    assert (page.page.fetched_at, page.date) == (None, 1_000_000)


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = write_warc(tmp_path / "a.warc", crawl(3))
    record = sources(path)[0].record
    assert unchanged(record)
    os.utime(path, (1, 1))
    assert unchanged(record), "the same bytes, whatever the date"
    path.write_bytes(path.read_bytes()[:-1])
    assert not unchanged(record)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        unchanged(record)


def test_a_source_record_survives_json(tmp_path: Path) -> None:
    write_folder(tmp_path, crawl(3))
    record = sources(tmp_path)[0].record
    assert SourceRecord.from_json(json.loads(json.dumps(asdict(record)))) == record


def test_files_are_digested_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    paths = [write_warc(tmp_path / f"{name}.warc", crawl(3), base=f"http://{name}.example/") for name in "ba"]
    both = threading.Barrier(2, timeout=60)
    found = open_all(
        paths, not_read=NotRead(), body_bytes_max=BOUND, threads=2, on_bytes=lambda path, count: both.wait() and None
    )
    assert [source.record for source in found] == [each.record for path in paths for each in sources(path)]


def test_after_an_error_no_other_file_is_digested_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.files.sources._DIGEST_PIECE_BYTES", 16)
    ended, digested = threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *args: Any, **kwargs: Any) -> None:
            ended.set()
            super().shutdown(*args, **kwargs)

    def on_bytes(path: Path, count: int) -> None:
        digested.append(count)
        assert ended.wait(60)

    monkeypatch.setattr("streams.files.sources.ThreadPoolExecutor", Pool)
    with pytest.raises(BadInput, match="no such file"):
        open_all(
            [tmp_path / "missing", write_warc(tmp_path / "a.warc", crawl(9))],
            not_read=NotRead(),
            body_bytes_max=BOUND,
            threads=2,
            on_bytes=on_bytes,
        )
    assert digested in ([], [16])
