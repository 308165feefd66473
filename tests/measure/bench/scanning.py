"""Rows of `neardup scan`: pages a second by cores, and which stages its processor time goes to.

The scan reads the crawl with 30% repeats, in pages of 31 kB, from as many `warc.gz` as keep all cores busy, and from
one. With N cores it may use no others, and is given `--threads` N - 1, 1 at least: these read and sketch, beside the
process that judges. Two rows have as many reading processes as cores. Rates are those of the scan's own summary;
processor times are without those of a scan of two pages. *Judging process* is the process that was started; *others*
are all processes that it starts. On a busy machine *pages/s by processor time* is the better figure: what idle cores
would reach. The scan scales until the judging process has no time left. The last rows are what `copy`, `export` and
`report` take of a scan's processor time.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb
import orjson

from neardup.decider import Decider
from neardup.index.rocks import RocksStore
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.files.not_read import NotRead
from streams.files.sources import open_sources
from streams.formats.message import encode_verdicts
from streams.pipeline.matcher import Matcher
from streams.pipeline.packing import pack
from streams.ports import Range
from streams.state.segments import SegmentLog
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.matching import as_a_role
from tests.measure.bench.table import Row
from tests.streams.archives import date, http, record

PAGE_BYTES = 31_000
#: Pages of a file, and files for each core.
_FILE_PAGES, _FILES_A_CORE = 1_000, 4
_ROUNDS = 3
#: Pages of a table, and their bytes.
_TABLE_PAGES, _TABLE_PAGE_BYTES = 30_000, 3_000
_POLL_S = 0.05
_TICK = os.sysconf("SC_CLK_TCK")
_REACH = {2: "1.8 x"}

T = TypeVar("T")


@dataclass(frozen=True)
class Scanned:
    """One scan. Seconds: on the clock, without the start; of the processor, of the judging process and all others."""

    pages: int
    seconds: float
    judging: float
    others: float

    def without(self, start: "Scanned") -> "Scanned":
        """The same without the processor time of a scan of next to nothing."""
        return replace(self, judging=self.judging - start.judging, others=max(0.0, self.others - start.others))

    def bound(self, cores: int, threads: int = 0) -> float:
        """Pages a second of so many idle cores and reading processes: what has most to do sets it.

        threads: 0: all but one of the cores, and at least one.
        """
        reading = self.others / (threads or max(1, cores - 1))
        return self.pages / max(self.judging, reading, (self.judging + self.others) / cores)


def counts_of(cores: int) -> list[int]:
    """1, 2, 4 ... and all cores."""
    return sorted({cores, *(1 << i for i in range(cores.bit_length()) if 1 << i <= cores)})


def write_files(folder: Path, files: int, pages: int = _FILE_PAGES) -> list[Path]:
    """WARC files, each gzipped record by record, as crawlers write them; together they are one crawl."""
    crawl, paths = Crawl(files * pages, page_bytes=PAGE_BYTES), []
    for number in range(files):
        paths.append(folder / f"{number:03}.warc.gz")
        with paths[-1].open("wb") as file:
            for page in crawl.pages(number * pages, (number + 1) * pages):
                if page.body is not None:
                    when = date(page.fetched_at or 0)
                    file.write(gzip.compress(record(page.url, http(page.body), when=when), 1))
    return paths


def scanned(paths: Sequence[Path], cores: int, threads: int = 0) -> Scanned:
    """Runs `neardup scan` into a new state, on so many cores. Raises CalledProcessError.

    threads: see `Scanned.bound`.
    """
    threads = threads or max(1, cores - 1)
    own = sorted(os.sched_getaffinity(0))[:cores]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "neardup", "scan", *map(str, paths), "--threads", str(threads)]
        command += ["--state", f"{folder}/state", "--json", "--out", f"{folder}/verdicts.jsonl"]
        with (Path(folder) / "summary").open("w+b") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.DEVNULL, preexec_fn=partial(os.sched_setaffinity, 0, own)
            )
            ended = threading.Event()
            spent: list[float] = [0.0]
            watching = threading.Thread(target=_watch, args=(process.pid, spent, ended))
            watching.start()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            ended.set()
            watching.join()
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, command)
            output.seek(0)
            summary = json.load(output)
    judging = spent[-1]
    return Scanned(summary["pages"], summary["seconds"], judging, usage.ru_utime + usage.ru_stime - judging)


def _watch(pid: int, spent: list[float], ended: threading.Event) -> None:
    """Keeps the processor's seconds of a process, all its threads, without those of its children."""
    while not ended.wait(_POLL_S):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        spent.append((int(fields[11]) + int(fields[12])) / _TICK)


def scanning(scheme: Scheme) -> Iterator[Row]:
    """One core to all cores, in turns; all cores on one file; then the stages on one core."""
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), _FILES_A_CORE * cores)
        one_file = Path(folder) / "one.warc.gz"
        one_file.write_bytes(b"".join(path.read_bytes() for path in paths))
        sides = [(f"{len(paths)} warc.gz", paths, count, max(1, count - 1)) for count in counts_of(cores)]
        sides += [("one warc.gz", [one_file], count, max(1, count - 1)) for count in sorted({1, cores})]
        if cores > 1:
            sides += [(f"{len(paths)} warc.gz", paths, cores, cores), ("one warc.gz", [one_file], cores, cores)]
        (Path(folder) / "start").mkdir()
        tiny = write_files(Path(folder) / "start", 1, 2)
        scanned(tiny, 1)  # compiles what is not compiled yet
        starts = {count: scanned(tiny, count) for count in counts_of(cores)}
        runs: list[list[Scanned]] = [[] for _ in sides]
        for _ in range(_ROUNDS):
            for (_, given, count, threads), done in zip(sides, runs, strict=True):
                done.append(scanned(given, count, threads).without(starts[count]))
        base = _median(runs[0])
        for (name, _, count, threads), done in zip(sides, runs, strict=True):
            yield _row(name, count, _median(done), base, threads)
        yield stages(scheme, paths[:2], base)
        yield from readers(Path(folder), _TABLE_PAGES)


def write_lines(path: Path, pages: int) -> Path:
    """The crawl as JSON lines, in pages of 3 kB, as tables of texts have them; as Parquet for that name."""
    lines = path.with_suffix(".jsonl")
    with lines.open("wb") as file:
        for page in Crawl(pages, page_bytes=_TABLE_PAGE_BYTES).pages(0, pages):
            if page.body is not None:
                fields = {"url": page.url, "body": page.body.decode(), "fetched_at": page.fetched_at}
                file.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
    if path.suffix == ".parquet":
        duckdb.sql(f"COPY (FROM read_json('{lines}')) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return path


def readers(folder: Path, pages: int) -> Iterator[Row]:
    """What copies, tables and reports take of the processor time of the scan that they read.

    All without what the same command takes for two pages.
    """
    for suffix in (".jsonl", ".parquet"):
        spent: list[dict[str, float]] = []
        for many in (2, pages):
            own = folder / f"{many}{suffix}.d"
            own.mkdir()
            source, state = str(write_lines(own / f"a{suffix}", many)), str(own / "state")
            runs = {
                "scan": ("scan", source, "--state", state, "--threads", "1", "--json"),
                "copy": ("copy", state, "--out", str(own / f"kept{suffix}")),
                "export": ("export", state, "--out", str(own / f"urls{suffix}")),
                "report": ("report", state, "--out", str(own / "report.html")),
            }
            spent.append({name: _spent(command) for name, command in runs.items()})
        net = {name: spent[1][name] - spent[0][name] for name in spent[0]}
        for name in ("copy", "export", "report"):
            row = Row(f"{name} of {suffix}, of the scan's processor time", "%", 100 * net[name] / net["scan"])
            row.notes = {f"{each}, us a page": 1e6 * net[each] / pages for each in ("scan", name)}
            row.reach = "10 at most"
            yield row


def _spent(command: Sequence[str]) -> float:
    """Seconds of the processor of a command and the processes that it starts. Raises CalledProcessError."""
    whole = [sys.executable, "-m", "neardup", *command]
    process = subprocess.Popen(whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, whole)
    return usage.ru_utime + usage.ru_stime


def _median(runs: Sequence[Scanned]) -> Scanned:
    by_rate = sorted(runs, key=lambda run: run.pages / run.seconds)
    return by_rate[len(by_rate) // 2]


def _row(name: str, count: int, run: Scanned, base: Scanned, threads: int = 0) -> Row:
    rate, one = run.pages / run.seconds, base.pages / base.seconds
    title = f"scan of {name}, {count} core{'s' * (count > 1)}"
    title += f", --threads {threads}" if threads > max(1, count - 1) else ""
    row = Row(title, "pages/s", rate, one, "one core", rate / one)
    bound = run.bound(count, threads)
    row.reach = _REACH.get(count, "")
    row.notes = {
        "judging process, us of processor a page": 1e6 * run.judging / run.pages,
        "others": 1e6 * run.others / run.pages,
        "judging process busy": f"{run.judging / run.seconds:.0%}",
        "pages/s by processor time": f"{bound:,.0f} ({bound / base.bound(1):.2f} x)",
    }
    return row


class _Stages:
    """Processor's seconds by stage."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def clock(self, stage: str, run: Callable[[], T]) -> T:
        began = time.process_time()
        result = run()
        self.spent[stage] = self.spent.get(stage, 0.0) + time.process_time() - began
        return result


def stages(scheme: Scheme, paths: Sequence[Path], whole: Scanned) -> Row:
    """Each stage of a scan alone, in this process; what is left of the whole scan is Python's around them.

    whole: a scan on one core.
    """
    clocks, pages = _Stages(), 0
    with tempfile.TemporaryDirectory() as folder, as_a_role():
        log, verdicts = (SegmentLog(Path(folder) / name) for name in ("log", "verdicts"))
        store = RocksStore(Path(folder) / "index")
        matcher = Matcher(store, Decider(scheme=scheme.digest))
        for path in paths:
            source, messages = _messages(clocks, scheme, path)
            for message in messages:
                offset = clocks.clock("log", partial(log.append, message))
                clocks.clock("log", log.sync)
                prepared = clocks.clock("judged", partial(matcher.prepare, [(offset, message)]))
                pages += len(prepared.pages)
                lines = clocks.clock("verdicts as JSON", prepared.verdicts.lines)
                frame = encode_verdicts(source, b"\n".join(lines))
                clocks.clock("verdicts written", partial(verdicts.append, frame))
                clocks.clock("index written", partial(matcher.apply, prepared))
        clocks.clock("index written", store.flush)
        for each in (log, verdicts, store):
            each.close()
    micros = {stage: 1e6 * seconds / pages for stage, seconds in clocks.spent.items()}
    total = 1e6 * (whole.judging + whole.others) / whole.pages
    micros["digests, counts, threads"] = total - sum(micros.values())
    row = Row("scan on one core, stage by stage", "us a page", total)
    row.notes = {stage: f"{each:.0f} us ({each / total:.0%})" for stage, each in micros.items()}
    return row


def _messages(clocks: _Stages, scheme: Scheme, path: Path) -> tuple[bytes, list[bytes]]:
    """The id of a file as a source, and the messages of its pages."""
    (source,) = open_sources(path, not_read=NotRead(), body_bytes_max=scheme.body_bytes_max)
    found = clocks.clock("read and decompressed", lambda: [each.page for each in source.read(0, None)])
    places = [Coordinates(source.record.id, offset=number) for number in range(len(found))]
    records: list[bytes] = []
    for at in range(0, len(found), MESSAGE_PAGES_MAX):
        part = slice(at, at + MESSAGE_PAGES_MAX)
        sketched = partial(sketch_pages, found[part], scheme, coordinates=places[part])
        records += clocks.clock("decoded and sketched", sketched)
    name = bytes.fromhex(source.record.id)
    span, given = Range(name, 0, 0, len(found)), [(0, place.offset) for place in places]
    return name, clocks.clock("packed", lambda: pack(bytes.fromhex(scheme.digest), [span], given, records))
