"""`python -m tests.measure.bench.profile`: where a page's microseconds go, stage by stage, from bytes to the index."""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.decider import Decider
from neardup.fold import judge, read_ahead
from neardup.index.rocks import RocksStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.search.batch_records import Pages
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.bench.documents import documentation_page, web_page
from tests.measure.bench.generated import Log, mixed
from tests.measure.bench.stages import OnePage, batch_of
from tests.measure.bench.store_rows import fill
from tests.measure.bench.table import seconds

_BATCH, _REPEATS = 512, 9


def _show(title: str, parts: Sequence[tuple[str, float]], total: float) -> None:
    print(f"\n{title}: {total:.1f} us")
    for name, each in parts:
        print(f"  {name:28} {each:9.2f} us {each / total:6.1%} {'#' * round(40 * max(0.0, each) / total)}")


def sketching(pages: Sequence[Page], title: str, scheme: Scheme) -> None:
    """Stages of the kernels, each called alone; what is left of the whole call is Python's around them."""
    ones = [OnePage(page, scheme) for page in pages[:10]]
    names = [name for name, _ in ones[0].stages()]
    # A call from Python has a cost that the fused kernel does not have.
    empty = OnePage(Page("http://s.example/", b""), scheme)
    call = statistics.median(seconds(empty.extract) for _ in range(200))
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_REPEATS):
        for one in ones:
            for name, run in one.stages():
                taken[name].append(max(0.0, seconds(run) - call))
    parts = [(name, 1e6 * statistics.median(times)) for name, times in taken.items()]
    run = batch_of(pages, scheme)
    fused = 1e6 * statistics.median(seconds(run) for _ in range(_REPEATS)) / len(pages)
    whole = 1e6 * statistics.median(seconds(lambda: sketch_pages(pages, scheme)) for _ in range(_REPEATS)) / len(pages)
    rest = [
        ("stages, one kernel", fused - sum(each for _, each in parts)),
        ("decoding, URLs, packing", whole - fused),
    ]
    _show(f"{title}, bytes to record", [*parts, *rest], whole)


def matched(scheme: Scheme, size: int) -> None:
    """Stages of folding a batch into a store of `size` pages: 7 of 10 pages new, 2 near, 1 exact duplicates."""
    decider, log = Decider(scheme=scheme.digest), Log()
    taken: dict[str, list[float]] = {
        name: [] for name in ("headers", "read ahead", "judge", "verdicts as JSON", "write")
    }
    with tempfile.TemporaryDirectory() as folder:
        store = RocksStore(Path(folder) / "index")
        fill(store, log, 0, size, decider)
        store.flush()
        records = list(mixed(log, size, 8 * _BATCH))
        for start in range(0, len(records), _BATCH):
            batch = list(enumerate(records[start : start + _BATCH], 10**9 + start))
            kept: list[object] = []

            def timed(name: str, run: Callable[[], object], kept: list[object] = kept) -> None:
                taken[name].append(seconds(lambda: kept.append(run())))

            timed("headers", lambda batch=batch: Pages(batch))
            timed("read ahead", lambda batch=batch: read_ahead(batch, store, decider))
            reads = kept[-1]
            timed("judge", lambda batch=batch, reads=reads: judge(batch, reads, decider))
            outcome = kept[-1]
            timed("verdicts as JSON", lambda outcome=outcome: [verdict.to_json() for verdict in outcome.verdicts])
            timed("write", lambda outcome=outcome: store.write(outcome.writes))
        store.close()
    each = [(name, 1e6 * statistics.median(times) / _BATCH) for name, times in taken.items()]
    _show(f"record to verdict, index of {size:,} pages", each, sum(part for name, part in each if name != "headers"))
    print("  (headers are part of reading ahead)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.profile", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="pages in the index")
    asked = parser.parse_args()
    scheme = Scheme(seed=1)
    for title, make in (("documentation page", documentation_page), ("web page", web_page)):
        pages = [Page(f"https://s{i}.example/{i}", make(i), "text/html; charset=utf-8", i) for i in range(100)]
        sketch_pages(pages, scheme)
        sketching(pages, f"{title} of {sum(len(p.body or b'') for p in pages) // 100_000} kB", scheme)
    matched(scheme, asked.size)


if __name__ == "__main__":
    main()
