"""A deduplicated copy of what a scan read, in each form, read again by us and by others."""

import csv
import gzip
import io
import json
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from streams.files.jsonl_and_parquet import JsonLines
from streams.formats import compressed, gzip_members, parquet
from streams.formats.json import Fields
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.copying import copy_command
from tests.streams.archives import Sample, crawl, html, http, record, text, write_json_lines, write_warc
from tests.streams.shell import Shell, words

BASE = "http://a.example/"


def shown(shell: Shell) -> list[str]:
    """URLs that an index shows, as `export` says."""
    assert shell("export", "neardup-state", "--out", "urls.jsonl").code == 0
    rows = [json.loads(line) for line in (shell.folder / "urls.jsonl").read_text().splitlines()]
    return sorted(row["url"] for row in rows if row["shown"])


def judged(shell: Shell, file: str) -> list[str]:
    """Verdicts of a scan of its own."""
    output = shell("scan", file, "--memory", "--out", "-").out
    return [json.loads(line)["verdict"] for line in output.splitlines()]


def test_an_archive_comes_out_with_revisit_records(shell: Shell) -> None:
    samples = crawl()
    other = Sample("other-markup.html", samples[0].body.replace(b"<p>", b"<p class=x>"))  # the same words alone
    write_warc(shell.folder / "a.warc.gz", [*samples, other])
    info = record(None, b"software: test", kind="warcinfo", media="application/warc-fields")
    (shell.folder / "b.warc").write_bytes(info + record(BASE + "last.html", http(html("Last", text(77)))))
    assert shell("scan", "a.warc.gz", "b.warc").code == 0
    ended = shell("copy", "neardup-state", "--out", "kept.warc.gz")
    assert ended.code == 0, ended.err
    with (shell.folder / "kept.warc.gz").open("rb") as file:
        found = [(one.record_type, dict(one.headers), one.reader.read()) for one in ArchiveIterator(file)]
    kept = {headers["WARC-Target-URI"]: body for kind, headers, body in found if kind == WarcRecordType.response}
    assert sorted(kept) == shown(shell)
    bodies = {BASE + sample.path: sample.body for sample in samples}
    assert all(body == bodies[url] for url, body in kept.items() if url in bodies)
    again = {headers["WARC-Target-URI"]: headers for kind, headers, _ in found if kind == WarcRecordType.revisit}
    assert set(again) == {url for url in bodies if "copy" in url and url not in kept}
    for headers in again.values():
        assert bodies[headers["WARC-Refers-To-Target-URI"]] == bodies[headers["WARC-Target-URI"]]
        assert headers["WARC-Profile"].endswith("identical-payload-digest")
    assert [kind for kind, *_ in found].count(WarcRecordType.warcinfo) == 1
    assert f"{len(kept)} pages kept, {len(again)} revisit records" in ended.err
    assert set(judged(shell, "kept.warc.gz")) == {"unique", "rejected"}  # revisits have no body


def test_lines_come_out_as_they_are(shell: Shell) -> None:
    write_json_lines(shell.folder / "a.jsonl", crawl())
    assert shell("scan", "a.jsonl").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.jsonl").code == 0
    lines = (shell.folder / "kept.jsonl").read_bytes().splitlines()
    assert set(lines) < set((shell.folder / "a.jsonl").read_bytes().splitlines())
    assert sorted(json.loads(line)["url"] for line in lines) == shown(shell)
    assert set(judged(shell, "kept.jsonl")) == {"unique"}


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz"])
def test_copy_of_damaged_lines_ends_at_the_damage(tmp_path: Path, name: str) -> None:
    lines = [json.loads(line) for line in write_json_lines(tmp_path / "a.jsonl", crawl(40)).read_bytes().splitlines()]
    if "csv" in name:
        table = io.StringIO()
        written = csv.writer(table)
        written.writerows([("url", "body"), *((line["url"], line["body"]) for line in lines)])
        data = table.getvalue().encode()
    else:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    packed = gzip.compress(data)
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    with ScanDirectory.open(tmp_path / "state") as state:
        result = scan([tmp_path / name], state)
        assert result.problems_total
        done = copy_command(state, tmp_path / "kept.jsonl")
    kept = [json.loads(line)["url"] for line in (tmp_path / "kept.jsonl").read_bytes().splitlines()]
    assert done.kept == len(kept) > 5
    assert done.kept + done.left_out == result.pages < len(lines)
    assert kept == [line["url"] for line in lines if line["url"] in kept]


@pytest.mark.slow
def test_copy_of_lines_does_not_parse_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_json_lines(tmp_path / "a.jsonl", crawl())
    seen: list[tuple[str, int, int]] = []
    with ScanDirectory.open(tmp_path / "state") as state:
        scan([source], state)
        monkeypatch.setattr(JsonLines, "page", None)
        done = copy_command(
            state, tmp_path / "kept.jsonl", progress=lambda phase, read, total: seen.append((phase, read, total))
        )
    kept = (tmp_path / "kept.jsonl").read_bytes().splitlines()
    assert done.kept == len(kept)
    assert set(kept) < set(source.read_bytes().splitlines())
    phases = [(read, total) for phase, read, total in seen if phase == "copy"]
    assert phases
    assert all(0 < read <= total == source.stat().st_size for read, total in phases), "progress counts bytes"


def test_copy_of_parquet_reports_progress_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_PROGRESS_S", 0.0)  # it reports all the time
    source, out = tmp_path / "a.parquet", tmp_path / "kept.parquet"
    lines = write_json_lines(tmp_path / "a.jsonl", crawl())
    duckdb.sql(f"COPY (SELECT url, body FROM '{lines}') TO '{source}' (FORMAT parquet)")
    seen: list[tuple[int, int]] = []

    def note(phase: str, read: int, total: int) -> None:
        if phase == "copy":
            seen.append((read, total))

    with ScanDirectory.open(tmp_path / "state") as state:
        scan([source], state)
        done = copy_command(state, out, progress=note)
        size = source.stat().st_size
        assert (seen[0], seen[-1]) == ((0, size), (size, size)), "progress counts bytes"
        assert seen == sorted(seen)
        assert done.kept == duckdb.sql(f"SELECT count(*) FROM '{out}'").fetchall()[0][0] > 0
        before = out.read_bytes()

        def stop(phase: str, read: int, total: int) -> None:
            if phase == "copy":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copy_command(state, out, progress=stop)
    assert out.read_bytes() == before


def test_query_whose_progress_raises_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query alone would take hours. An interrupt may come before it has begun."""
    monkeypatch.setattr(parquet, "_PROGRESS_S", 0.001)
    reports = iter([0.0])

    def report(share: float) -> None:
        if next(reports, None) is None:
            raise KeyboardInterrupt

    sql = "SELECT sum(xor(a.range, b.range)) FROM range(1000000000) a, range(1000000) b"
    with parquet._opened() as database, pytest.raises(KeyboardInterrupt):
        parquet._watched(database, sql, report)


def test_pages_of_all_kinds_go_into_lines(shell: Shell) -> None:
    write_warc(shell.folder / "a.warc.gz", crawl(6))
    write_json_lines(shell.folder / "b.jsonl", crawl(12), "http://b.example/")
    assert shell("scan", "a.warc.gz", "b.jsonl").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.jsonl").code == 0
    output = [json.loads(line)["url"] for line in (shell.folder / "kept.jsonl").read_text().splitlines()]
    assert sorted(output) == shown(shell)
    assert set(judged(shell, "kept.jsonl")) == {"unique"}
    ended = shell("copy", "neardup-state", "--out", "kept.warc")
    assert (ended.code, "b.jsonl: is no warc file" in ended.err) == (2, True)
    assert not (shell.folder / "kept.warc").exists()


@pytest.mark.parametrize("name", ["a.json", "a.csv"])
def test_rows_of_json_and_csv_come_out_as_lines_with_all_their_fields(shell: Shell, name: str) -> None:
    rows = [{"id": str(i), "text": words(f"w{i // 2}x") + '\n"quoted", \u20ac', "lang": "en"} for i in range(6)]
    out = io.StringIO(newline="")
    csv.DictWriter(out, list(rows[0])).writeheader()
    csv.DictWriter(out, list(rows[0])).writerows(rows)
    (shell.folder / name).write_text(json.dumps(rows, indent=2) if name == "a.json" else out.getvalue(), newline="")
    assert shell("scan", name).code == 0
    assert shell("copy", "neardup-state", "--out", "kept.jsonl").code == 0
    kept = [json.loads(line) for line in (shell.folder / "kept.jsonl").read_text().splitlines()]
    assert kept == rows[::2]


def test_an_arc_file_comes_out_as_warc(shell: Shell) -> None:
    samples = crawl(6)
    parts = [f"{BASE}{one.path} 192.0.2.1 20200101000000 text/html {len(http(one.body))}\n".encode() + http(one.body)
             for one in samples]  # fmt: skip
    head = b"filedesc://a.arc 0.0.0.0 20200101000000 text/plain 12\n1 0 By-Hand\n\n"
    (shell.folder / "a.arc").write_bytes(head + b"\n".join(parts) + b"\n")
    assert shell("scan", "a.arc").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.warc.gz").code == 0
    with (shell.folder / "kept.warc.gz").open("rb") as file:
        found = [(one.record_type, dict(one.headers), one.reader.read()) for one in ArchiveIterator(file)]
    kept = {headers["WARC-Target-URI"]: body for kind, headers, body in found if kind == WarcRecordType.response}
    assert sorted(kept) == shown(shell)
    assert all(body == next(one.body for one in samples if url.endswith(one.path)) for url, body in kept.items())
    ids = [headers["WARC-Record-ID"] for _, headers, _ in found]
    assert len(set(ids)) == len(ids) > len(kept)


def test_copy_names_a_source_with_an_unfinished_scan(shell: Shell) -> None:
    write_json_lines(shell.folder / "a.jsonl", crawl(3))
    write_json_lines(shell.folder / "b.jsonl", crawl(2), "http://b.example/")
    assert shell("scan", "a.jsonl", "b.jsonl").code == 0
    for file in (shell.folder / "neardup-state" / "sources").glob("*.json"):
        one = json.loads(file.read_text())
        file.write_text(json.dumps(one | {"finished": one["path"].endswith("a.jsonl")}))
    ended = shell("copy", "neardup-state", "--out", "kept.jsonl")
    assert (ended.code, "b.jsonl: not copied: its scan has not ended" in ended.err) == (3, True)
    assert shell("copy", "neardup-state", "--out", "kept.jsonl", "--only", "a.jsonl").code == 0


def test_rows_come_out_with_all_their_columns(shell: Shell) -> None:
    rows = [{"id": i, "text": words(f"w{i // 2}x") + " x" * (i % 2), "score": i / 7} for i in range(40)]
    (shell.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, some in (("a", "id < 20"), ("b", "id >= 20")):
        duckdb.sql(f"COPY (FROM 'rows.jsonl' WHERE {some}) TO '{name}.parquet' (FORMAT parquet)")
    assert shell("scan", "a.parquet", "b.parquet", "--id-field", "id", "--text-field", "text").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.parquet").code == 0
    assert duckdb.sql("SELECT id, score FROM 'kept.parquet' ORDER BY id").fetchall() == [
        (i, i / 7) for i in range(0, 40, 2)
    ]


def test_features_of_hugging_face_come_along_where_all_files_have_the_same(shell: Shell) -> None:
    for name, features in (("a", "it''s {1}"), ("b", "it''s {1}"), ("c", "else")):
        duckdb.sql(
            f"COPY (SELECT '{name}' || i AS id, '{words(name)} ' || i AS text FROM range(3) AS t(i))"
            f" TO '{name}.parquet'"
            f" (FORMAT parquet, KV_METADATA {{huggingface: '{features}', pandas: 'rows 0 to 2'}})"
        )

    def kept() -> list[tuple[bytes, bytes]]:
        assert shell("copy", "neardup-state", "--out", "kept.parquet").code == 0
        return duckdb.sql("SELECT key, value FROM parquet_kv_metadata('kept.parquet')").fetchall()

    assert shell("scan", "a.parquet", "b.parquet").code == 0
    assert kept() == [(b"huggingface", b"it's {1}")]
    assert shell("scan", "c.parquet").code == 0
    assert kept() == []


def test_of_a_url_that_was_fetched_again_the_last_fetch_is_kept(shell: Shell) -> None:
    first = Sample("page.html", html("A page", text(1)))
    write_json_lines(shell.folder / "a.jsonl", [first, Sample("page.html", html("Another", text(2)), first.ms + 1000)])
    assert shell("scan", "a.jsonl").code == 0
    assert shell("copy", "neardup-state", "--out", "kept.jsonl").code == 0
    (line,) = (shell.folder / "kept.jsonl").read_text().splitlines()
    assert json.loads(line)["fetched_at"] == first.ms + 1000


@pytest.mark.slow
def test_impossible_copies_are_reported(shell: Shell) -> None:
    file = write_json_lines(shell.folder / "a.jsonl", crawl(3))
    assert shell("copy", "neardup-state", "--out", "x.jsonl").code == 2
    with ScanDirectory.open(shell.folder / "neardup-state") as state:
        scan([file], state)
    assert shell("copy", "neardup-state", "--out", "x.txt").code == 2
    assert shell("copy", "neardup-state", "--out", "no/x.jsonl").code == 2
    file.write_bytes(gzip.compress(file.read_bytes()))
    ended = shell("copy", "neardup-state", "--out", "x.jsonl")
    assert (ended.code, "has changed" in ended.err) == (1, True)
    file.unlink()
    ended = shell("copy", "neardup-state", "--out", "x.jsonl")
    assert (ended.code, "cannot be read any more" in ended.err) == (1, True)
    assert not [path for path in shell.folder.iterdir() if "x.jsonl" in path.name]


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.parquet", "kept.warc"])
def test_an_empty_state_makes_an_empty_file(shell: Shell, name: str) -> None:
    ScanDirectory.open(shell.folder / "neardup-state").close()
    ended = shell("copy", "neardup-state", "--out", name)
    assert ended.code == (1 if name.endswith("parquet") else 0), ended.err


def documents(shell: Shell) -> None:
    """Two files with three clusters between them: a page in both, a page twice in b, and pages of their own."""
    shared, twice = words("shared"), words("twice")
    rows = {
        "a": [("a1", shared, 0.9), ("a2", words("first"), 0.5)],
        "b": [("b1", shared + " and three more", 0.1), ("b2", twice, 0.2), ("b3", twice, 0.7), ("b4", words("own"), 0)],
    }
    for file, some in rows.items():
        lines = [
            {"url": f"http://{name}.example/", "body": html(name, text).decode(), "score": score, "fetched_at": at}
            for at, (name, text, score) in enumerate(some, 10**12)
        ]
        (shell.folder / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert shell("scan", "a.jsonl", "b.jsonl").code == 0


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("", "a1 a2 b2 b4"),
        ("--only b.jsonl", "b2 b4"),
        ("--drop-clusters", "a2 b4"),
        ("--drop-clusters --only b.jsonl", "b4"),
        ("--keep score", "a1 a2 b3 b4"),
        ("--keep newest,first-seen", "a1 a2 b3 b4"),
        ("--keep longest,first-seen", "b1 a2 b2 b4"),
        ("--keep longest --only a.jsonl", "a2"),
    ],
)
def test_options_choose_the_kept_pages(shell: Shell, options: str, kept: str) -> None:
    documents(shell)
    ended = shell("copy", "neardup-state", "--out", "kept.jsonl", *options.split())
    assert ended.code == 0, ended.err
    urls = [json.loads(line)["url"] for line in (shell.folder / "kept.jsonl").read_text().splitlines()]
    assert sorted(urls) == sorted(f"http://{name}.example/" for name in kept.split())


def test_wrong_options_of_a_copy_name_the_choices(shell: Shell) -> None:
    documents(shell)
    for options, words_of in [
        (["--only", "c.jsonl"], "it has"),
        (["--keep", "best"], "no criterion 'best'; there is rel-canonical"),
        (["--keep", "score", "--drop-clusters"], "exclude each other"),
    ]:
        ended = shell("copy", "neardup-state", "--out", "kept.jsonl", *options)
        assert (ended.code, words_of in ended.err) == (2, True), ended.err


def test_revisit_records_follow_the_chosen_page(shell: Shell) -> None:
    body = html("A page", text(1))
    first = Sample("a.html", body)
    second = Sample("b.html", body, first.ms + 1000)
    write_warc(shell.folder / "a.warc", [first, second])
    assert shell("scan", "a.warc").code == 0
    for policy, kept, revisits in (("newest", "b.html", 0), ("first-seen", "a.html", 1)):
        assert shell("copy", "neardup-state", "--out", "kept.warc", "--keep", policy).code == 0
        with (shell.folder / "kept.warc").open("rb") as file:
            found = [(one.record_type, one.headers["WARC-Target-URI"]) for one in ArchiveIterator(file)]
        assert [url for kind, url in found if kind == WarcRecordType.response] == [BASE + kept]
        assert len(found) - 1 == revisits


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.seeds(20, 2000)
def test_copied_lines_are_those_that_a_reader_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, suffix: str
) -> None:
    """Whatever the pieces are in which the file is read: blank lines, too long ones, and one without its end count."""
    random = Random(seed)
    monkeypatch.setattr(compressed, "PIECE_BYTES", random.randint(1, 50))
    parts = [b"", b" \t\r", b"\x0b\x0c", b" {}", b'{"a": 1}\r', b"x" * 30, b"y" * 99, b"\x00", b"\xef\xbb\xbf{}"]
    lines = random.choices(parts, k=random.randint(0, 40))
    data = b"\n".join(lines) + b"\n" * random.randint(0, 1)
    if suffix:
        at = random.randint(0, len(data))
        data = gzip.compress(data[:at]) + gzip.compress(data[at:])
    file = tmp_path / f"a.jsonl{suffix}"
    file.write_bytes(data)
    counted = [line for _, line in JsonLines(file, Fields(), 64).lines(0)]
    kept = [at for at, line in enumerate(counted) if len(line) <= 64 and random.random() < 0.6]
    out = io.BytesIO()
    for _ in JsonLines(file, Fields(), 64).copy(np.array(kept, np.int64), out):
        pass
    assert out.getvalue() == b"".join(counted[at] + b"\n" for at in kept)


def test_lines_side_by_side_are_written_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"".join(b'{"n": %d}\n' % at for at in range(10_000)))
    written: list[int] = []

    class Out:
        def write(self, data: bytes | memoryview) -> None:
            written.append(len(data))

    kept = np.delete(np.arange(10_000), 5_000)
    read = sum(1 for _ in JsonLines(file, Fields(), 64).copy(kept, Out()))
    assert sum(written) == file.stat().st_size - len(b'{"n": 5000}\n')
    assert len(written) <= read + 1


@pytest.mark.parametrize("threads", [1, 3])
def test_gzip_members_come_in_the_order_of_their_records(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(gzip_members, "_BYTES_AT_ONCE", 5_000)
    random = Random(3)
    records = [random.randbytes(random.choice([0, 1, 400, 9_000])) for _ in range(200)]
    out = io.BytesIO()
    with gzip_members.GzipMembers(out, threads) as file:
        for record in records:
            file.write(record)
    assert out.getvalue() == b"".join(gzip.compress(record, 6, mtime=0) for record in records)


def test_gzip_members_of_long_records_do_not_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "_BYTES_AT_ONCE", 100)
    out, record = io.BytesIO(), bytes(10_000)
    with gzip_members.GzipMembers(out, 8) as file:
        for number in range(1, 20):
            file.write(record)
            assert len(gzip.decompress(out.getvalue())) == number * len(record), "held after it was written"


def test_gzip_members_behind_an_error_are_dropped() -> None:
    out = io.BytesIO()

    def write() -> None:
        with gzip_members.GzipMembers(out, 2) as file:
            file.write(b"a record")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert out.getvalue() == b""
