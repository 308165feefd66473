"""A scan by any number of processes: the same log, verdicts, problems and counts, and no page lost by a kill."""

import gzip
import json
import os
import random
import re
import signal
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streams.files import parts
from streams.files.sources import ReadOptions
from streams.formats import parquet
from streams.ports import SourceProgress
from streams.scan import reading, sketch_processes
from streams.scan.scan import scan
from streams.scan.sketch_processes import ReaderLost, SketchProcesses
from tests.streams.archives import (
    Sample,
    crawl,
    http,
    opened,
    record,
    records,
    small_messages,
    text,
    write_folder,
    write_json_lines,
    write_warc,
)
from tests.whole import first, only


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few records, so that a small source has many."""
    small_messages(monkeypatch)
    monkeypatch.setattr(parts, "GZIP_BYTES", 1500)
    monkeypatch.setattr(parts, "PLAIN_BYTES", 3000)
    monkeypatch.setattr(parts, "FILES", 4)
    monkeypatch.setattr(parquet, "_SPAN_BYTES", 1)
    # Few bytes ahead, so that the processes are still at work when one of them is killed.
    monkeypatch.setattr(sketch_processes, "SENT_BYTES_MAX", 1)
    monkeypatch.setattr(sketch_processes, "_PIPE_BYTES", 4096)


def member(*some: bytes) -> bytes:
    return gzip.compress(b"".join(some), mtime=0)


def stored(data: bytes) -> bytes:
    """Data in a gzip member as it is: the bytes of a compressed file within it look like a member of their own."""
    packer = zlib.compressobj(0, wbits=31)
    return packer.compress(data) + packer.flush()


def exchange(number: int, method: str, *, before: bool, named: bool) -> list[bytes]:
    """A request and its answer, in one of the orders that programs write."""
    url, body = f"http://x.example/{number}", f"<p>{text(number + 500, 60)}".encode()
    answer = record(url, http(body))
    request = record(url, f"{method} / HTTP/1.1\r\n\r\n".encode(), kind="request", media="application/http")
    if named:
        answer = answer.replace(b"\r\n", f"\r\nWARC-Record-ID: <urn:a{number}>\r\n".encode(), 1)
        request = request.replace(b"\r\n", f"\r\nWARC-Concurrent-To: <urn:a{number}>\r\n".encode(), 1)
    return [request, answer] if before else [answer, request]


def exchanges(seed: int) -> list[bytes]:
    chance = random.Random(seed)
    out: list[bytes] = []
    for number in range(60):
        method = chance.choice(["GET", "GET", "POST", "HEAD", "OPTIONS"])
        pair = exchange(number, method, before=chance.random() < 0.5, named=chance.random() < 0.5)
        if chance.random() < 0.3:  # the request much later
            out.append(pair[0])
            out.insert(max(0, len(out) - chance.randrange(40)), pair[1])
        else:
            out += pair
    return out


def damaged(data: bytes, seed: int) -> bytes:
    """Data with some bytes changed."""
    chance, out = random.Random(seed), bytearray(data)
    for _ in range(5):
        out[chance.randrange(len(out) // 8, len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def warc_gz(seed: int) -> bytes:
    return b"".join(member(one) for one in exchanges(seed))


def nested() -> bytes:
    """An archive in whose records lie archives, as they are."""
    inner = b"".join(member(one) for one in records(crawl(9), "http://inner.example/"))
    out = [member(one) for one in records(crawl(6))]
    out.insert(4, stored(record("http://a.example/inner.warc.gz", http(inner, content_type="application/gzip"))))
    return b"".join(out)


def equal_problems() -> bytes:
    """Members in which garbage lies between several records: its problems are equal, as they name the member's byte."""
    each = records(crawl(40))
    return b"".join(member(*(part for one in each[i : i + 5] for part in (one, b"junk\r\n"))) for i in range(0, 40, 5))


def plain_nested() -> bytes:
    inner = b"".join(records(crawl(12), "http://inner.example/"))
    return b"".join([*records(crawl(9)), record("http://a.example/inner.warc", http(inner)), *records(crawl(6))])


def rows() -> bytes:
    """Rows without ids, some blank, bad, or too long."""
    lines = [json.dumps({"text": text(number, 40)}).encode() for number in range(120)]
    lines[17:17] = [b"", b"  ", b"{"]
    lines[60] = b'{"text": "%s"}' % (b"long " * 2000)
    return b"\n".join(lines)


def repeated_ids() -> bytes:
    lines = [{"id": number % 50, "text": text(number, 30)} for number in range(120)]
    return b"\n".join(json.dumps(line).encode() for line in lines)


SOURCES: dict[str, Callable[[Path], Path]] = {
    "warc": lambda path: write_warc(path / "a.warc", crawl(40)),
    "warc.gz": lambda path: write_warc(path / "a.warc.gz", crawl(40)),
    **{f"exchanges {seed}": lambda path, seed=seed: written(path / "a.warc.gz", warc_gz(seed)) for seed in range(3)},  # type: ignore[misc]
    "plain exchanges": lambda path: written(path / "a.warc", b"".join(exchanges(3))),
    "members of several records": lambda path: written(
        path / "a.warc.gz", b"".join(member(*exchanges(4)[i : i + 3]) for i in range(0, 120, 3))
    ),
    "one member": lambda path: written(path / "a.warc.gz", member(*exchanges(5))),
    **{
        f"damaged {seed}": lambda path, seed=seed: written(path / "a.warc.gz", damaged(warc_gz(seed), seed))  # type: ignore[misc]
        for seed in range(6, 12)
    },
    **{
        f"plain damaged {seed}": lambda path, seed=seed: written(  # type: ignore[misc]
            path / "a.warc", damaged(b"".join(exchanges(seed)), seed)
        )
        for seed in range(12, 16)
    },
    "nested": lambda path: written(path / "a.warc.gz", nested()),
    "plain nested": lambda path: written(path / "a.warc", plain_nested()),
    "equal problems": lambda path: written(path / "a.warc.gz", equal_problems()),
    "no page": lambda path: written(path / "a.warc.gz", member(record(None, b"x", kind="warcinfo"))),
    "json lines": lambda path: write_json_lines(path / "a.jsonl", crawl(40)),
    "json lines, gzip": lambda path: write_json_lines(path / "a.jsonl.gz", crawl(20)),
    "rows": lambda path: written(path / "a.jsonl", rows()),
    "repeated ids": lambda path: written(path / "a.jsonl", repeated_ids()),
    "csv": lambda path: written(path / "a.csv", b"id,text\n" + b"".join(b"%d,words %d\n" % (i, i) for i in range(30))),
    "folder": lambda path: write_folder(path / "pages", crawl(20)),
    "parquet": lambda path: parquet_file(path / "a.parquet"),
    "damaged parquet": lambda path: changed(parquet_file(path / "a.parquet")),
}


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def parquet_file(path: Path) -> Path:
    duckdb = pytest.importorskip("duckdb")
    rows = ", ".join(f"({number}, '{text(number, 30)}')" for number in range(200))
    made = f"SELECT * FROM (VALUES {rows}) AS made(id, text) ORDER BY id"
    duckdb.execute(f"COPY ({made}) TO '{path}' (FORMAT parquet, COMPRESSION gzip, ROW_GROUP_SIZE 50)")
    return path


def changed(path: Path) -> Path:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    return written(path, bytes(data))


def outcome(paths: list[Path], folder: Path, processes: int, **more: Any) -> dict[str, Any]:
    """Everything that must not depend on the number of processes."""
    out = folder / "out"
    with SketchProcesses(processes) if processes else nullcontext() as readers, opened(None) as state:
        result = scan(paths, state, reading=ReadOptions("http://f.example/"), out=str(out), processes=readers, **more)
        return {
            "log": list(state.log.read()),
            "verdicts": list(state.verdict_log.log.read()),
            "out": out.read_bytes(),
            "sources": [asdict(source) for source in state.sources.values()],
            "result": {**asdict(result), "seconds": 0},
        }


#: Kinds of `make test`; `make test-all` runs all.
FEW = (
    *("warc.gz", "exchanges 0", "plain exchanges", "members of several records", "one member", "damaged 6"),
    *("plain damaged 12", "nested", "plain nested", "equal problems", "rows", "repeated ids", "folder", "parquet"),
)


@pytest.mark.parametrize("kind", only(SOURCES, *FEW))
def test_the_number_of_processes_changes_nothing(tmp_path: Path, kind: str) -> None:
    path = SOURCES[kind](tmp_path)
    whole = outcome([path], tmp_path, 0)
    for processes in (1, 2, 3):
        found = outcome([path], tmp_path, processes)
        for name, value in whole.items():
            assert found[name] == value, f"{processes} processes: {name}"


@pytest.mark.parametrize("merge", [False, True])
def test_the_number_of_processes_changes_nothing_of_many_sources(tmp_path: Path, merge: bool) -> None:
    kinds = ("exchanges 0", "damaged 7", "plain nested", "no page", "json lines", "folder", "csv")
    paths = []
    for number, kind in enumerate(kinds):
        (tmp_path / str(number)).mkdir()
        paths.append(SOURCES[kind](tmp_path / str(number)))
    whole = outcome(paths, tmp_path, 0, merge=merge)
    assert whole["result"]["pages"] > 100
    for processes in (1, 2, 3):
        assert outcome(paths, tmp_path, processes, merge=merge) == whole


@pytest.mark.parametrize(
    "kind", first(["exchanges 1", "rows", "plain exchanges", "one member", "damaged 8", "repeated ids", "folder"], 2)
)
def test_a_scan_continues_by_processes_at_any_message(tmp_path: Path, kind: str) -> None:
    path = SOURCES[kind](tmp_path)
    whole = outcome([path], tmp_path, 0)
    messages = len(whole["log"])
    for stop_after in random.Random(1).sample(range(1, messages), 4):
        with opened(None) as state:
            with SketchProcesses(2) as readers, pytest.raises(KeyError, match="stopped"):
                scan(
                    [path],
                    state,
                    reading=ReadOptions("http://f.example/"),
                    processes=readers,
                    progress=stopping(stop_after),
                )
            with SketchProcesses(3) as readers:
                scan([path], state, reading=ReadOptions("http://f.example/"), processes=readers)
            assert list(state.log.read()) == whole["log"]
            assert list(state.verdict_log.log.read()) == whole["verdicts"]
            assert [source.problems for source in state.sources.values()] == [
                each["problems"] for each in whole["sources"]
            ]


def stopping(after: int) -> Callable[[SourceProgress], None]:
    left = [after]

    def progress(now: SourceProgress) -> None:
        left[0] -= now.phase == "scan"
        if not left[0]:
            raise KeyError("stopped")

    return progress


@pytest.mark.parametrize("seed", range(2))
def test_a_scan_whose_processes_are_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = written(
        tmp_path / "a.warc.gz", b"".join(map(member, [*exchanges(seed), *records(crawl(120)), *exchanges(9)]))
    )
    whole = outcome([path], tmp_path, 0)
    said: list[str] = []
    with opened(None) as state:
        ended = False
        while not ended:
            killed = kill_after(chance.randrange(1, 60), chance)
            try:
                with SketchProcesses(chance.choice([1, 2, 3])) as readers:
                    scan([path], state, processes=readers, progress=partial(killed, readers))
                ended = True
            except ReaderLost as error:
                said.append(str(error))
        assert list(state.log.read()) == whole["log"]
        assert list(state.verdict_log.log.read()) == whole["verdicts"]
    assert said
    for text_of_error in said:
        assert re.match(
            rf"the process that read {path}, at byte \d+, was killed by signal 9, usually for lack of memory; what was "
            "judged is kept: run the same command again",
            text_of_error,
        )


def kill_after(messages: int, chance: random.Random) -> Callable[[SketchProcesses, SourceProgress], None]:
    """Kills one of the processes after some messages."""
    left = [messages]

    def progress(readers: SketchProcesses, now: SourceProgress) -> None:
        left[0] -= now.phase == "scan"
        if not left[0]:
            os.kill(chance.choice(readers.pids), signal.SIGKILL)

    return progress


def test_a_process_without_memory_is_named_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_warc(tmp_path / "a.warc", [Sample("1", b"<p>small"), Sample("2", b"<p>large" * 1000)])

    def sketched(*given: Any, **named: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(reading, "sketched", sketched)
    with (
        SketchProcesses(2) as readers,
        opened(None) as state,
        pytest.raises(
            ReaderLost, match=rf"the process that read {path}, at byte \d+, got no memory; .* fewer --threads"
        ),
    ):
        scan([path], state, processes=readers)


def test_an_error_of_a_process_is_raised_in_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_warc(tmp_path / "a.warc", crawl(9))

    def sketched(*given: Any, **named: Any) -> Any:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(reading, "sketched", sketched)
    with SketchProcesses(2) as readers, opened(None) as state, pytest.raises(ZeroDivisionError, match="a defect"):
        scan([path], state, processes=readers)


def test_a_file_that_goes_is_left_unfinished_and_the_next_is_read(tmp_path: Path) -> None:
    paths = [write_warc(tmp_path / f"{name}.warc.gz", crawl(20), f"http://{name}.example/") for name in "ab"]
    with SketchProcesses(2) as readers, opened(None) as state:
        result = scan(paths, state, processes=readers, progress=partial(unlinked, paths))
        finished = {Path(source.path).name: source.finished for source in state.sources.values()}
    assert finished == {"a.warc.gz": False, "b.warc.gz": True}
    assert result.problems == [f"{paths[0]}: byte 0: cannot be read: No such file or directory"]
    assert result.pages == len(crawl(20))


def unlinked(paths: list[Path], now: SourceProgress) -> None:
    """Deletes the first file once all are digested."""
    if now.phase == "digest" and now.bytes_done == sum(path.stat().st_size for path in paths):
        paths[0].unlink()


def test_processes_end_with_their_scan(tmp_path: Path) -> None:
    with SketchProcesses(3) as readers:
        pids = readers.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
