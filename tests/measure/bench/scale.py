"""How the stream scales on one machine with many cores: each stage alone on a real broker, then all of them together.

    python tests/measure/bench/scale.py [--pages 12000] [--publishers 4] [--sketchers 1,2,4] [--heap 4g]

Stages: `neardup publish` of the crawl with 30% repeats in pages of 31 kB, by several processes; sketchers, 1, 2, 4 ...
processes, each time from the first page on into a new log; one matcher on that log;
and from pages to verdicts with all sketchers and one matcher. The broker is on the same machine.

Rates are taken between the first and the last tenth of the records that a stage writes, by their timestamps, once all
its processes have their partitions. Give each stage ten seconds at least: some 20,000 pages for each sketcher. Prints
Markdown.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
# In front: some package installs a `tests` of its own.
sys.path[:0] = map(str, (ROOT, ROOT / "tests" / "kafka", ROOT / "tests" / "measure" / "bench"))

import orjson  # noqa: E402
from broker import eventually, kafka  # noqa: E402
from line import Line  # noqa: E402
from roles import Role  # noqa: E402

from streams.config.settings import Settings, Topics  # noqa: E402
from streams.formats.message import Message, decode_entry  # noqa: E402
from streams.kafka.reader import TopicReader  # noqa: E402
from tests.measure.bench.scanning import PAGE_BYTES, counts_of, write_files  # noqa: E402
from tests.measure.bench.stream import cpu_of, machine, table  # noqa: E402

_TENTH = 0.1
_POLL_S = 0.1
_READ_RECORDS = 4096
_SILENCE_S = 120.0
#: (ms since 1970, pages) of a record that a stage wrote.
Mark = tuple[int, int]


@dataclass(frozen=True)
class Stage:
    """One row. rate: pages/s. cpu: microseconds of the processor a page, by role, of all its processes together."""

    name: str
    rate: float
    cpu: dict[str, float]


def rate_of(marks: Sequence[Mark], since_ms: int = 0) -> float:
    """Pages a second between the first and the last tenth of the pages; nan if that takes less than a second.

    since_ms: marks before are not counted.
    """
    late = [mark for mark in marks if mark[0] >= since_ms]
    total, done, window = sum(pages for _, pages in late), 0, []
    for ms, pages in late:
        done += pages
        if _TENTH * total <= done <= (1 - _TENTH) * total:
            window.append((ms, pages))
    seconds = (window[-1][0] - window[0][0]) / 1000 if window else 0.0
    # The first record's pages were made before its timestamp.
    return sum(pages for _, pages in window[1:]) / seconds if seconds >= 1 else float("nan")


class Scale:
    """A broker with the pages of the bench in a topic, and stages that read them, each into topics of its own."""

    def __init__(self, cluster: Any, folder: Path, partitions: int) -> None:
        self.cluster, self.folder, self.partitions = cluster, folder, partitions
        self.prefix, self.lines = uuid.uuid4().hex[:8], 0
        self.names = Topics(*(f"{self.prefix}.{name}" for name in ("pages", "rejected", "sketches", "verdicts")))
        self.pages = 0

    def line(self, *, log: str = "") -> Line:
        """A line with groups of its own, from the first page on. log: an existing one; by default a new one."""
        self.lines += 1
        prefix = f"{self.prefix}.{self.lines}"
        names = self.names._replace(verdicts=f"{prefix}.verdicts", rejected=f"{prefix}.rejected")
        names = names._replace(sketches=log or f"{prefix}.sketches")
        own = {name: getattr(Settings, name) for name in ("batch_pages", "batch_ms", "match_messages")}
        folder = self.folder / prefix
        folder.mkdir()
        made = Line(self.cluster.bootstrap, names, folder, partitions=self.partitions, kafka_values={}, **own)
        made.settings = replace(made.settings, group=prefix)
        return made

    def publish(self, parts: Sequence[Sequence[Path]]) -> Stage:
        """Publishes the files, a process for each part."""
        line = self.line()
        environment = {**os.environ, "NEARDUP_BOOTSTRAP": self.cluster.bootstrap}
        command = [sys.executable, "-m", "neardup", "publish", "--pages-topic", self.names.pages]
        running = [subprocess.Popen([*command, *map(str, part)], env=environment) for part in parts]
        marks, before = list[Mark](), 0
        while [process for process in running if process.poll() is None]:
            spent = sum(cpu_of(process.pid) for process in running if process.returncode is None)
            self.pages = sum(line.ends(self.names.pages).values())
            marks.append((time.time_ns() // 1_000_000, self.pages - before))
            before = self.pages
            time.sleep(_POLL_S)
        self.pages = sum(line.ends(self.names.pages).values())
        if any(process.returncode for process in running):
            raise SystemExit(f"publishing ended with {[process.returncode for process in running]}")
        return Stage(f"publish, {len(parts)} processes", rate_of(marks), {"publish": 1e6 * spent / self.pages})

    def sketch(self, sketchers: int) -> tuple[Stage, str]:
        """A stage of so many sketchers, and the log that they made."""
        line = self.line()
        with _running(line, "sketch", sketchers) as roles:
            marks, since = self._sketched(line, sketchers)
            cpu = _cpu(roles, sum(pages for _, pages in marks))
        return Stage(f"{sketchers} sketchers", rate_of(marks, since), {"sketch": cpu}), line.names.sketches

    def match(self, log: str) -> Stage:
        line = self.line(log=log)
        threads = {"threads": min(4, len(os.sched_getaffinity(0)))}
        with _running(line, "match", 1, settings=threads) as roles:
            marks = self._judged(line)
            cpu = _cpu(roles, self.pages)
        return Stage("one matcher", rate_of(marks), {"match": cpu})

    def together(self, sketchers: int) -> Stage:
        line = self.line()
        threads = {"threads": min(4, len(os.sched_getaffinity(0)))}
        with _running(line, "match", 1, settings=threads) as match, _running(line, "sketch", sketchers) as sketch:
            marks = self._judged(line)
            cpu = {"sketch": _cpu(sketch, self.pages), "match": _cpu(match, self.pages)}
        return Stage(f"pages to verdicts, {sketchers} sketchers and a matcher", rate_of(marks), cpu)

    def _sketched(self, line: Line, sketchers: int) -> tuple[list[Mark], int]:
        """Marks of the log's messages, and when all sketchers had partitions.

        Sketchers that take partitions over may send some pages again, so their positions say when all are there.
        """
        eventually(lambda: line.members() == sketchers, "partitions for all sketchers")
        since = time.time_ns() // 1_000_000
        ends = line.ends(self.names.pages)
        while line.committed("sketch", self.names.pages, len(ends)) != ends:
            time.sleep(_POLL_S)
        return self._marks(line, line.names.sketches, _sketches_in, self.pages), since

    def _judged(self, line: Line) -> list[Mark]:
        """Marks of the verdicts on all pages, each of which has one."""
        topic = line.names.verdicts
        return self._marks(line, topic, lambda value, offset: not orjson.loads(value)["n"], self.pages)

    def _marks(self, line: Line, topic: str, pages_in: Callable[[bytes, int], int], pages: int) -> list[Mark]:
        """Reads a topic until it accounts for so many pages and nothing more is there."""
        marks = list[Mark]()
        with closing(TopicReader(line.connection, topic, committed_only=True)) as reader:
            reader.assign(reader.first_offsets())
            while records := reader.read(_READ_RECORDS, wait_s=_SILENCE_S if pages > 0 else _POLL_S):
                for record in records:
                    found = pages_in(record.value() or b"", record.offset())
                    pages -= found
                    marks.append((record.timestamp()[1], found))
        if pages > 0:
            raise SystemExit(f"nothing came in {topic} for {_SILENCE_S:.0f} s, {pages:,} pages are missing")
        return sorted(marks)


def _sketches_in(value: bytes, offset: int) -> int:
    entry = decode_entry(value, offset)
    return len(entry.records) if isinstance(entry, Message) else 0


@contextmanager
def _running(
    line: Line,
    role: str,
    count: int,
    *,
    settings: dict[str, Any] | None = None,
) -> Iterator[list[Role]]:
    """Runs processes of a role."""
    roles = [line.start(role, settings=settings) for _ in range(count)]
    try:
        yield roles
    finally:
        for one in roles:
            one.kill()


def _cpu(roles: Sequence[Role], pages: int) -> float:
    """Microseconds of the processor a page, start included."""
    return 1e6 * sum(cpu_of(role.pid) for role in roles) / pages


def stages(scale: Scale, files: Sequence[Path], given: argparse.Namespace) -> Iterator[Stage]:
    yield scale.publish([files[number :: given.publishers] for number in range(given.publishers)])
    log = ""
    for count in given.sketchers:
        stage, log = scale.sketch(count)
        yield stage
    yield scale.match(log)
    yield scale.together(given.sketchers[-1])


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=6_000 * cores, help="pages of the crawl")
    parser.add_argument("--publishers", type=int, default=min(4, cores), help="processes that publish")
    parser.add_argument("--sketchers", default="", help="numbers of sketchers, with commas between")
    parser.add_argument("--heap", default="1g", help="memory of the broker, as Java says it")
    parser.add_argument("--out", type=Path, help="also write the Markdown here")
    given = parser.parse_args()
    given.sketchers = sorted(map(int, given.sketchers.split(","))) if given.sketchers else counts_of(max(1, cores - 4))
    lines = [f"Machine: {machine()}\n", f"{given.pages:,} pages of {PAGE_BYTES // 1000} kB\n"]
    with tempfile.TemporaryDirectory(prefix="neardup-scale-") as name:
        folder = Path(name)
        (folder / "crawl").mkdir()
        files = write_files(folder / "crawl", given.publishers, given.pages // given.publishers)
        options = (f"-Xmx{given.heap}", "-XX:TieredStopAtLevel=4")
        with kafka.Cluster(folder / "kafka", java_options=options) as cluster:
            scale = Scale(cluster, folder, partitions=max(8, 2 * given.sketchers[-1]))
            rows: list[list[object]] = []
            for stage in stages(scale, files, given):
                cpu = ", ".join(f"{role} {micros:.0f} us" for role, micros in stage.cpu.items())
                rate = "too short" if math.isnan(stage.rate) else f"{stage.rate:,.0f}"
                rows.append([stage.name, rate, cpu])
                print(*rows[-1], sep=", ", flush=True)
    text = "\n".join([*lines, table(["stage", "pages/s", "processor time a page"], rows)])
    print(text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)


if __name__ == "__main__":
    main()
