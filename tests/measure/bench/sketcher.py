"""What a page costs a sketcher on Kafka, by thread and by step of a round.

    python tests/measure/bench/sketcher.py [--pages 6000] [--compressions zstd,lz4,none]

Publishes the crawl with 30% repeats, in pages of 31 kB, to a real broker, in each compression, and lets one sketcher
with one thread read it, in this process. The processor's time is counted from the first batch on. *Kernels* is what
the same pages take without Kafka, decoding of charsets included. Prints Markdown.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
# In front: some package installs a `tests` of its own.
sys.path[:0] = map(str, (ROOT, ROOT / "tests" / "kafka"))

from broker import kafka  # noqa: E402
from line import Line  # noqa: E402

from neardup.limits import MESSAGE_PAGES_MAX  # noqa: E402
from neardup.page import Page  # noqa: E402
from neardup.scheme import Scheme  # noqa: E402
from neardup.sketch.make_sketches import sketch_pages  # noqa: E402
from neardup.verdict import Coordinates  # noqa: E402
from streams.config.settings import Settings, Topics  # noqa: E402
from streams.kafka import Connection, Writer  # noqa: E402
from streams.ports import Record  # noqa: E402
from streams.process import logs  # noqa: E402
from streams.process.health import Health  # noqa: E402
from streams.process.metrics import Metrics  # noqa: E402
from streams.process.shutdown import steady_ms  # noqa: E402
from streams.roles.runtime import Runtime  # noqa: E402
from streams.roles.sketch_role import SketchRole, run_sketcher  # noqa: E402
from tests.measure.bench.crawl import Crawl  # noqa: E402
from tests.measure.bench.scanning import PAGE_BYTES  # noqa: E402

_PARTITIONS = 4
#: Methods of a round, and what they do.
_STEPS = {
    "_poll": "consume",
    "_decode": "records to pages",
    "_sketch": "sketch, with kernels",
    "_send": "pack and produce",
    "_acknowledge": "acknowledgements",
    "_commit": "commit",
}
#: Names of the threads of librdkafka begin with it.
_LIBRDKAFKA = "rdk:"


def spent_by_threads() -> Counter[str]:
    """Nanoseconds of the processor of this process's threads, by the names of the threads."""
    found = Counter[str]()
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            found[_LIBRDKAFKA if name.startswith(_LIBRDKAFKA) else name] += int(
                (task / "schedstat").read_text().split()[0]
            )
        except OSError:
            continue  # it has ended
    return found


def kernels_ns(pages: Sequence[Page]) -> float:
    """Nanoseconds of the processor a page, without Kafka; the least of three."""
    scheme, taken = Scheme(seed=7), []
    for _ in range(3):
        began = time.thread_time_ns()
        for at in range(0, len(pages), MESSAGE_PAGES_MAX):
            some = pages[at : at + MESSAGE_PAGES_MAX]
            places = [Coordinates("0" * 32, 0, at + i) for i in range(len(some))]
            sketch_pages(some, scheme, coordinates=places)
        taken.append((time.thread_time_ns() - began) / len(pages))
    return min(taken)


class Measured:
    """Counts what a sketcher takes from its first batch on, and stops it after so many pages."""

    def __init__(self, pages: int) -> None:
        self.steps, self.threads, self.pages = Counter[str](), Counter[str](), 0
        self._left, self._before = pages, Counter[str]()
        self.stop = threading.Event()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Wraps the methods of every sketcher."""
        kept = {name: getattr(SketchRole, name) for name in _STEPS}
        for name, method in kept.items():
            setattr(SketchRole, name, self._timed(name, method))
        try:
            yield
        finally:
            for name, method in kept.items():
                setattr(SketchRole, name, method)

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time_ns()
            result = method(*given, **named)
            self.steps[name] += time.thread_time_ns() - began
            if name == "_decode":
                self._count(given[1])
            return result

        return timed

    def _count(self, records: Sequence[Record]) -> None:
        self._left -= len(records)
        if not self._before:
            self._before = spent_by_threads()
            self.steps.clear()
        elif not self.stop.is_set():
            self.pages += len(records)
            if self._left < 2 * MESSAGE_PAGES_MAX:  # the last batches are small
                self.threads = spent_by_threads() - self._before
                self.stop.set()


def sketched(bootstrap: str, folder: Path, pages: Sequence[Page], compression: str) -> Measured:
    """Publishes the pages in a compression of Kafka, and sketches them."""
    prefix = uuid.uuid4().hex[:8]
    names = Topics(*(f"{prefix}.{name}" for name in ("pages", "rejected", "sketches", "verdicts")))
    line = Line(bootstrap, names, folder, partitions=_PARTITIONS, kafka_values={})
    writer = Writer(Connection(bootstrap, {"compression.type": compression}), names.pages, linger_ms=50)
    for page in pages:
        headers = [("content-type", page.content_type.encode()), ("fetched-at", b"%d" % (page.fetched_at or 0))]
        writer.send(page.body, key=page.url.encode(), headers=headers)
    writer.flush()
    own = {name: getattr(Settings, name) for name in ("batch_pages", "batch_ms")}
    settings, measured = replace(line.settings, **own), Measured(len(pages))
    health = Health(steady_ms, settings.stall_ms, logs.Redactor(()))
    with measured.counting():
        run_sketcher(settings, Runtime(settings, Metrics(), health, measured.stop))
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/measure/bench/sketcher.py", description=__doc__)
    parser.add_argument("--pages", type=int, default=6_000)
    parser.add_argument("--compressions", default="zstd,lz4,none", help="of the topic of pages")
    given = parser.parse_args()
    pages = [page for page in Crawl(given.pages, page_bytes=PAGE_BYTES).pages(0, given.pages) if page.body is not None]
    print(f"kernels alone: {kernels_ns(pages[: 4 * MESSAGE_PAGES_MAX]) / 1000:.0f} us a page\n")
    print(f"| us a page, pages in | all | librdkafka's threads | {' | '.join(_STEPS.values())} |")
    print("|---" * (3 + len(_STEPS)) + "|")
    with tempfile.TemporaryDirectory() as folder, kafka.Cluster(Path(folder) / "kafka") as cluster:
        for compression in given.compressions.split(","):
            own = Path(tempfile.mkdtemp(dir=folder))
            done = sketched(cluster.bootstrap, own, pages, compression)
            costs = [sum(done.threads.values()), done.threads[_LIBRDKAFKA], *(done.steps[name] for name in _STEPS)]
            print(f"| {compression} | {' | '.join(f'{each / done.pages / 1000:.0f}' for each in costs)} |", flush=True)
    os._exit(0)  # clients of a broker that is gone write lines until they are closed


if __name__ == "__main__":
    main()
