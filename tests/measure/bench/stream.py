"""The stream against the embedded scan: the same pages, the same cores, in turn, a real broker.

    python tests/measure/bench/stream.py [--pages 3000] [--rounds 3] [--out build/stream.md]

Crawler, sketcher, matcher and indexer share one half of the machine's cores, and so does the scan; the broker has the
other half, so that its time is not in the comparison (and is measured). Pages are those of the bench's crawl, of 50 kB.
Latency is from the crawler's call to the indexer's hand, at a tenth of the pages/s seen. Prints Markdown.
"""

import argparse
import json
import logging
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.error import URLError

ROOT = Path(__file__).resolve().parents[3]
# In front: some package installs a `tests` of its own.
sys.path[:0] = map(str, (ROOT, ROOT / "tests" / "kafka", ROOT / "tests" / "measure" / "bench"))

import confluent_kafka  # noqa: E402
import numpy as np  # noqa: E402
import orjson  # noqa: E402
from broker import eventually, kafka  # noqa: E402
from compression import compressions  # noqa: E402
from line import Line  # noqa: E402
from roles import Role  # noqa: E402

from neardup.page import Page  # noqa: E402
from neardup.scheme import Scheme  # noqa: E402
from streams.client import PageProducer  # noqa: E402
from streams.config.settings import Settings, Topics  # noqa: E402
from streams.files import sources  # noqa: E402
from streams.files.not_read import NotRead  # noqa: E402
from streams.kafka.reader import TopicReader  # noqa: E402
from streams.scan.scan import scan  # noqa: E402
from streams.state.scan_directory import ScanDirectory  # noqa: E402
from tests.measure.bench.crawl import Crawl  # noqa: E402
from tests.streams.archives import http, record  # noqa: E402

PAGE_BYTES = 50_000
PARTITIONS = 4
WARM_UP_PAGES = 64
_TICK = os.sysconf("SC_CLK_TCK")


def halves() -> tuple[set[int], set[int]]:
    """The cores of the broker, and those of all other processes."""
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    return set(cores[half:] or cores), set(cores[:half])


def write_archive(path: Path, pages: int) -> None:
    """A WARC file of about so many pages of the crawl."""
    crawl = Crawl(pages, page_bytes=PAGE_BYTES)
    with path.open("wb") as file:
        for page in crawl.pages():
            if page.body is not None:
                file.write(record(page.url, http(page.body)))


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process, all its threads, has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_of(pid: int) -> float:
    """MB that a process has had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def read_archive(path: Path) -> Iterator[Page]:
    for source in sources.open_sources(path, not_read=NotRead(), body_bytes_max=10_000_000):
        for sourced in source.read():
            yield sourced.page


# Processes of their own: `python stream.py scan|publish ...`; each prints one line of JSON.


def embedded(archive: str, threads: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "warm.warc"
        write_archive(small, 8)
        with ScanDirectory.open(None) as warm:
            scan([small], warm, threads=int(threads))
        before, began = time.process_time(), time.monotonic()
        with ScanDirectory.open(Path(folder) / "state", scheme=Scheme(seed=7)) as state:
            found = scan([archive], state, out=str(Path(folder) / "out"), threads=int(threads))
        seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "cpu": time.process_time() - before, "pages": found.pages}))


def crawler(bootstrap: str, topic: str, archive: str, rate: str, pages: str) -> None:
    """rate: pages/s, evenly; 0: as fast as Kafka takes them. `fetched_at` is the time of the call."""
    with PageProducer(bootstrap, topic) as producer:
        before, began = time.process_time(), time.time()
        pause = threading.Event()
        for number, page in enumerate(islice(read_archive(Path(archive)), int(pages))):
            if float(rate):
                if number == WARM_UP_PAGES:  # connected by now
                    producer.flush()
                    began = time.time() - number / float(rate)
                while number > WARM_UP_PAGES and (left := began + number / float(rate) - time.time()) > 0:
                    producer.poll()
                    pause.wait(min(left, 0.005))
            producer.publish(page.url, page.body or b"", fetched_at=time.time_ns() // 1_000_000)
        producer.flush()
    print(json.dumps({"began": began, "seconds": time.time() - began, "cpu": time.process_time() - before}))


def ask(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, str(Path(__file__)), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, _ = process.communicate(timeout=600)
    if process.returncode:
        raise SystemExit(f"{process.args} ended with {process.returncode}")
    return dict(json.loads(out.splitlines()[-1]))


class Stream:
    """A line with both roles running and warm."""

    def __init__(self, cluster: Any, folder: Path, archive: Path, threads: int, kafka_values: dict[str, str]) -> None:
        self.cluster = cluster
        prefix = uuid.uuid4().hex[:12]
        names = Topics(f"{prefix}.pages", f"{prefix}.rejected", f"{prefix}.sketches", f"{prefix}.verdicts")
        own = {name: getattr(Settings, name) for name in ("batch_pages", "batch_ms", "match_messages")}
        folder.mkdir()
        self.line = Line(cluster.bootstrap, names, folder, partitions=PARTITIONS, threads=threads, **own)
        self.roles: dict[str, Role] = {}
        kinds = ("sketch", "match")
        self._ports = dict(zip(kinds, kafka.free_ports(len(kinds)), strict=True))
        for role, port in self._ports.items():
            settings = {"metrics_port": port, "kafka_values": kafka_values}
            self.roles[role] = self.line.start(role, settings=settings)
        eventually(self._serving, "metrics of all roles")
        self._archive = archive
        self._reader = TopicReader(self.line.connection, names.verdicts, committed_only=True)
        self._reader.assign(self._reader.first_offsets())
        self.crawl(WARM_UP_PAGES)

    def close(self) -> None:
        self._reader.close()
        for role in self.roles.values():
            role.kill()

    def memory(self) -> dict[str, float]:
        return {name: memory_of(role.pid) for name, role in self.roles.items()}

    def cpu(self) -> dict[str, float]:
        found = {name: cpu_of(role.pid) for name, role in self.roles.items()}
        return {**found, "broker": cpu_of(self.cluster.nodes[0].pid), "indexer": time.process_time()}

    def _serving(self) -> bool:
        try:
            return bool(self.steps())
        except URLError:
            return False

    def steps(self) -> dict[str, float]:
        """Seconds of each step so far, by the roles' own metrics."""
        found: dict[str, float] = {}
        for role, port in self._ports.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                for text in page.read().decode().splitlines():
                    if text.startswith("neardup_step_seconds_sum"):
                        labels, value = text.rsplit(" ", 1)
                        step = labels.partition('step="')[2].partition('"')[0]
                        if f'role="{role}"' in labels:
                            found[f"{role} {step}"] = float(value)
        return found

    def crawl(self, pages: int, rate: float = 0.0) -> dict[str, Any]:
        """Publishes the first pages of the archive, reads their verdicts, and says what it took."""
        cpu, steps = self.cpu(), self.steps()
        crawling = ask("publish", self.line.bootstrap, self.line.names.pages, self._archive, rate, pages)
        latencies: list[tuple[int, int]] = []
        left = pages
        while left:
            records = self._reader.read(4096, wait_s=60.0)
            now = time.time_ns() // 1_000_000
            if not records:
                raise SystemExit(f"no verdict for a minute: {self.roles['match'].output()[-2000:]}")
            for verdict in (orjson.loads(each.value() or b"") for each in records):
                if verdict["n"] == 0:
                    latencies.append((verdict["fetched_at"], now - verdict["fetched_at"]))
                    left -= 1
        ended = time.time()
        response = answer(crawling)
        spent = {name: value - cpu[name] for name, value in self.cpu().items()}
        passed = {name: value - steps.get(name, 0.0) for name, value in self.steps().items()}
        spent["crawler"] = response["cpu"]
        return {
            "seconds": ended - response["began"],
            "cpu": spent,
            "steps": passed,
            "latencies": [each for _, each in sorted(latencies)],
        }


@contextmanager
def stream(cluster: Any, folder: Path, archive: Path, threads: int, **kafka_values: str) -> Iterator[Stream]:
    with closing(Stream(cluster, folder, archive, threads, kafka_values)) as made:
        yield made
    shutil.rmtree(folder)


def table(header: list[str], rows: list[list[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def machine() -> str:
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    client = f"confluent-kafka {confluent_kafka.version()}"
    return (
        f"{model.partition(': ')[2]}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} before; "
        f"Python {platform.python_version()}, {client}, Kafka {kafka.version()}"
    )


def median(values: list[float]) -> float:
    return statistics.median(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-seconds", type=float, default=15.0)
    parser.add_argument("--archive", type=Path, help="a WARC file of other pages than generated ones")
    parser.add_argument("--out", type=Path, help="also write the Markdown here")
    given = parser.parse_args()
    logging.getLogger("neardup.kafka").addHandler(logging.NullHandler())
    values = [f"Machine: {machine()}\n"]
    for_broker, for_us = halves()
    threads = len(for_us)
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        archive = given.archive or folder / "pages.warc"
        if not given.archive:
            write_archive(archive, given.pages)
        sizes = [len(page.body or b"") for page in islice(read_archive(archive), given.pages)]
        given.pages, size = len(sizes), statistics.mean(sizes)
        os.sched_setaffinity(0, for_broker)
        with kafka.Cluster(folder / "kafka") as cluster:
            os.sched_setaffinity(0, for_us)
            compare(cluster, folder, archive, given, threads, size, values.append)
            values.append(compressions(cluster, folder, archive))
    text = "\n".join(values)
    print(text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)
    return 0


def compare(
    cluster: Any, folder: Path, archive: Path, given: Any, threads: int, size: float, say: Callable[[str], None]
) -> None:
    """Both, in turn; then the latency."""
    pages = given.pages
    scans, streams = [], []
    for number in range(given.rounds):
        scans.append(answer(ask("scan", archive, threads)))
        with stream(cluster, folder / f"round{number}", archive, threads) as line:
            streams.append(line.crawl(pages))
            memory = line.memory()
            if number + 1 == given.rounds:
                rate = pages / median([each["seconds"] for each in streams]) / 10
                slow = late(line, min(pages, int(rate * given.latency_seconds)), rate)
    scan_s = median([each["seconds"] for each in scans])
    stream_s = median([each["seconds"] for each in streams])
    ratios = [one["seconds"] / other["seconds"] for one, other in zip(streams, scans, strict=True)]
    scan_cpu = median([each["cpu"] for each in scans])
    cpu = {name: median([each["cpu"][name] for each in streams]) for name in streams[0]["cpu"]}
    ours = sum(cpu.values()) - cpu["broker"]
    roles = ours - cpu["crawler"]
    per = 1000 / pages
    say(f"{pages} pages of {size / 1000:.0f} kB, {threads} cores, the broker on others; medians of {given.rounds}\n")
    rows: list[list[object]] = [
        ["embedded scan", f"{pages / scan_s:.0f}", f"{scan_cpu * per:.2f}", "1"],
        [
            "stream without the broker",
            f"{pages / stream_s:.0f}",
            f"{ours * per:.2f}",
            f"{median(ratios):.2f} (time), {ours / scan_cpu:.2f} (CPU)",
        ],
        ["- crawler, which makes the load", "", f"{cpu['crawler'] * per:.2f}", ""],
        *[[f"- {name}", "", f"{cpu[name] * per:.2f}", ""] for name in ("sketch", "match", "indexer")],
        ["- these three", "", f"{roles * per:.2f}", f"{roles / scan_cpu:.2f} (CPU)"],
        ["broker", "", f"{cpu['broker'] * per:.2f}", ""],
    ]
    say(table(["what", "pages/s", "CPU ms/page", "ratio to the scan"], rows))
    steps = {name: median([each["steps"].get(name, 0.0) for each in streams]) for name in streams[0]["steps"]}
    say(
        table(
            ["step", "ms/page"], [[name, f"{value * per:.3f}"] for name, value in steps.items() if value * per > 5e-4]
        )
    )
    say(f"Memory at most: {', '.join(f'{name} {value:.0f} MB' for name, value in memory.items())}\n")
    p50, p99 = np.percentile(slow, [50, 99])
    say(f"Latency at {rate:.0f} pages/s ({len(slow)} pages): p50 {p50:.0f} ms (target 100), p99 {p99:.0f} ms (500)\n")


def late(line: Stream, pages: int, rate: float) -> np.ndarray:
    """Latencies in ms."""
    return np.array(line.crawl(pages, rate)["latencies"][WARM_UP_PAGES:])


if __name__ == "__main__":
    modes: dict[str, Callable[..., None]] = {"scan": embedded, "publish": crawler}
    if len(sys.argv) > 1 and sys.argv[1] in modes:
        modes[sys.argv[1]](*sys.argv[2:])
        sys.exit(0)
    sys.exit(main())
