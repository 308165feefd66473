"""`python -m tests.measure.bench.options`: what each option of RocksDB costs or saves under the matcher's load.

A log is folded once, and every call that folding makes of the store is kept in a file: batches of sorted keys to read,
batches of sorted rows to write. Each variant of the options then answers the same calls from an empty directory, in a
process of its own, in turns. Counted are the calls' time, the processor's time in them and in RocksDB's own threads
until nothing waits for compaction, and the files' size. Reading the calls back from their file is not counted.
"""

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, TypeVar

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index import rocks
from neardup.index.column_families import Family, Store, Writes
from neardup.index.rocks import RocksStore
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from streams.files import sources
from streams.files.not_read import NotRead
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.store_rows import settle
from tests.measure.bench.table import machine
from tests.measure.bench.variants import VARIANTS, Variant

_BATCH = 512
#: Compaction that has not ended by then counts as far as it came.
_SETTLE_S_MAX = 120.0
_DEFAULT = "default"
#: Variants between two runs of the default, which they are compared with: the machine's load drifts.
_BETWEEN = 5
_T = TypeVar("_T")


@dataclass(frozen=True)
class Cost:
    """Of one run, a page. wall, read_us, write_us: in calls; us: of processors, RocksDB's threads included.

    disk_bytes: files at the end; tables_bytes: filters and indexes in memory, at the end.
    """

    wall_us: float
    us: float
    read_us: float
    write_us: float
    background_us: float
    disk_bytes: float
    tables_bytes: float


class Recorder:
    """A store that keeps every call of another one in a file."""

    def __init__(self, store: Store, calls: IO[bytes]) -> None:
        self._store, self._calls = store, calls

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        self._keep("get_many", family, list(keys))
        return self._store.get_many(family, keys)

    def first(self, family: Family, prefix: bytes, limit: int, after: bytes = b"") -> list[tuple[bytes, bytes]]:
        self._keep("first", family, prefix, limit, after)
        return self._store.first(family, prefix, limit, after)

    def scan(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(family)

    def write(self, writes: Writes) -> None:
        self._keep("write", {family: dict(rows) for family, rows in writes.items()})
        self._store.write(writes)

    def flush(self) -> None:
        self._store.flush()

    def close(self) -> None:
        self._store.close()

    def _keep(self, name: str, *given: object) -> None:
        pickle.dump((name, given), self._calls, pickle.HIGHEST_PROTOCOL)


def record(records: Iterable[bytes], decider: Decider, calls: Path) -> int:
    """Folds records into an index that is thrown away, and keeps the calls; returns the number of records."""
    pages = 0
    with calls.open("wb") as file, tempfile.TemporaryDirectory(dir=calls.parent) as folder:
        store = Recorder(RocksStore(Path(folder) / "index"), file)
        batch: list[tuple[int, bytes]] = []

        def judged() -> None:
            store.write(fold(batch, store, decider).writes)
            batch.clear()

        for record in records:
            pages += 1
            batch.append((pages, record))
            if len(batch) == _BATCH:
                judged()
        if batch:
            judged()
        store.close()
    return pages


def _calls_of(path: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    with path.open("rb") as file:
        while file.peek(1):  # type: ignore[attr-defined]
            yield pickle.load(file)


@contextmanager
def tuned(variant: Variant) -> Iterator[None]:
    """Inside, stores are opened with the variant's options on top of their own."""
    own = rocks._tune

    def both(family: Family, options: Any, tables: Any) -> None:
        own(family, options, tables)
        if variant.tune:
            variant.tune(family, options, tables)

    rocks._tune = both
    try:
        yield
    finally:
        rocks._tune = own


class _Clock:
    """Seconds in calls: on the wall, and of this thread's processor."""

    def __init__(self) -> None:
        self.wall = self.spent = 0.0

    def run(self, work: Callable[[], _T]) -> _T:
        wall, spent = time.perf_counter(), time.thread_time()
        out = work()
        self.wall += time.perf_counter() - wall
        self.spent += time.thread_time() - spent
        return out


def replay(calls: Path, variant: Variant, folder: Path, pages: int, cache_bytes: int = 0) -> Cost:
    """Answers the calls with an index of these options in `folder`, which must not exist.

    cache_bytes: of blocks, where the variant says nothing of it; 0: as the index has it.
    """
    reading, writing = _Clock(), _Clock()
    others = time.process_time() - time.thread_time()
    with tuned(variant):
        small = {"cache_bytes": cache_bytes} if cache_bytes else {}
        store = RocksStore(folder, **{**small, **dict(variant.sizes)})
    for name, given in _calls_of(calls):
        clock = writing if name == "write" else reading
        clock.run(lambda name=name, given=given: getattr(store, name)(*given))
    writing.run(store.flush)
    settle(store, _SETTLE_S_MAX)
    background = time.process_time() - time.thread_time() - others
    tables = store.tables_bytes()
    store.close()
    size = sum(path.stat().st_size for pattern in ("*.sst", "*.blob") for path in folder.glob(pattern))
    us = 1e6 / pages
    return Cost(
        wall_us=us * (reading.wall + writing.wall),
        us=us * (reading.spent + writing.spent + background),
        read_us=us * reading.spent,
        write_us=us * writing.spent,
        background_us=us * background,
        disk_bytes=size / pages,
        tables_bytes=tables / pages,
    )


def compare(
    calls: Path, pages: int, names: Sequence[str], repeats: int, report: Callable[[str], None], cache_bytes: int
) -> tuple[Cost, dict[str, Cost]]:
    """Medians: of the default in figures, of the others as ratios to the runs of the default before and after them."""
    defaults: list[Cost] = []
    ratios: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(repeats):
        before = _run(calls, pages, _DEFAULT, report, cache_bytes)
        for first in range(0, len(names), _BETWEEN):
            part = names[first : first + _BETWEEN]
            taken = {name: _run(calls, pages, name, report, cache_bytes) for name in part}
            after = _run(calls, pages, _DEFAULT, report, cache_bytes)
            for name, cost in taken.items():
                if cost and before and after:
                    ratios[name].append(_each(lambda x, a, b: 2 * x / (a + b) if a + b else 1.0, cost, before, after))
            defaults += [cost for cost in (before, after) if cost]
            before = after
    return _median(defaults), {name: _median(costs) for name, costs in ratios.items() if costs}


def _run(calls: Path, pages: int, name: str, report: Callable[[str], None], cache_bytes: int) -> Cost | None:
    with tempfile.TemporaryDirectory(dir=calls.parent) as folder:
        command = [sys.executable, "-m", "tests.measure.bench.options", "--replay", name, "--calls", str(calls)]
        command += ["--pages", str(pages), "--folder", str(Path(folder) / "index"), "--cache", str(cache_bytes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        report(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return None
    cost = Cost(**json.loads(done.stdout))
    report(f"{name}: {cost}")
    return cost


def _each(rule: Callable[..., float], *costs: Cost) -> Cost:
    """The rule on each number of the costs."""
    return Cost(**{field.name: rule(*(getattr(cost, field.name) for cost in costs)) for field in fields(Cost)})


def _median(costs: Sequence[Cost]) -> Cost:
    return _each(lambda *values: statistics.median(values), *costs)


def markdown(base: Cost, ratios: Mapping[str, Cost], about: Sequence[str]) -> str:
    """The table: the default in figures, the others as ratios to it; below 1 is better throughout."""
    names = [field.name for field in fields(Cost)]
    lines = [*(f"* {line}" for line in about), ""]
    lines += [f"| options | {' | '.join(name.replace('_', ' ') for name in names)} |", "|---" * (1 + len(names)) + "|"]
    lines.append(f"| {_DEFAULT} | {' | '.join(f'{getattr(base, name):.1f}' for name in names)} |")
    for name, ratio in ratios.items():
        about_it = VARIANTS[name].about
        cells = [f"{getattr(ratio, field):.2f}" for field in names]
        lines.append(f"| {name}{f' ({about_it})' if about_it else ''} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _of_pages(source: Path, scheme: Scheme, count: int) -> Iterator[bytes]:
    """Sketches of a crawl's pages, at most `count`."""
    (found,) = sources.open_sources(source, not_read=NotRead(), body_bytes_max=scheme.body_bytes_max)
    pages = []
    for sourced, _ in zip(found.read(), range(count), strict=False):
        pages.append(sourced.page)
        if len(pages) == _BATCH:
            yield from sketch_pages(pages, scheme)
            pages = []
    yield from sketch_pages(pages, scheme)


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.options", description=__doc__)
    parser.add_argument("--pages", type=int, default=300_000, help="of the log")
    parser.add_argument("--source", type=Path, help="a crawl to take the pages from, instead of a generated log")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="variants with one of these in their names, with commas between")
    parser.add_argument("--without", default="", help="variants to leave out, by their whole names")
    parser.add_argument("--out", type=Path, help="file of the table")
    parser.add_argument(
        "--cache",
        type=int,
        default=0,
        help="bytes of the block cache: with few of them a small index reads as a large one",
    )
    parser.add_argument("--scratch", type=Path, help="folder for calls and indexes: 5 kB a page")
    parser.add_argument("--calls", type=Path, help="file of calls that is read if it is there, else written and kept")
    for inner in ("--replay", "--folder"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replay:
        cost = replay(asked.calls, VARIANTS[asked.replay], Path(asked.folder), asked.pages, asked.cache)
        print(json.dumps(asdict(cost)))
        return
    wanted = [part.strip() for part in asked.only.split(",")]
    unwanted = [part.strip() for part in asked.without.split(",") if part.strip()]
    names = [
        name for name in VARIANTS if name != _DEFAULT and any(part in name for part in wanted) and name not in unwanted
    ]
    if not names:
        parser.error("--only and --without leave no variant")
    scheme = Scheme(seed=1)
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
        calls, pages = asked.calls or Path(folder) / "calls", asked.pages
        if not calls.exists():
            records = (
                _of_pages(asked.source, scheme, asked.pages) if asked.source else Crawl(asked.pages).records(scheme)
            )
            pages = record(records, Decider(scheme=scheme.digest), calls)
        _complain(f"{pages:,} pages, calls of {calls.stat().st_size >> 20} MB")
        base, ratios = compare(calls, pages, names, asked.repeats, _complain, asked.cache)
    about = [
        f"`python -m tests.measure.bench.options {' '.join(sys.argv[1:])}`",
        f"machine: {machine()}",
        f"{pages:,} pages; medians of {asked.repeats}; a page's cost under the default, ratios to it below",
    ]
    text = markdown(base, ratios, about)
    if asked.out:
        asked.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
