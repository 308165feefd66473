"""`python -m tests.measure.bench.profile`: where a page's microseconds go, stage by stage, from bytes to the index.

All times are of the processor.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from neardup.decider import Decider
from neardup.index.rocks import RocksStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from streams.formats.message import decode_entry
from streams.pipeline.matcher import Matcher
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.documents import documentation_page, web_page
from tests.measure.bench.matching import as_a_role
from tests.measure.bench.stages import OnePage, batch_of

_REPEATS = 9
#: Pages of the crawl that are matched: half of them timed, half of them counted.
_MATCHED = 8_000

T = TypeVar("T")


def _spent(run: Callable[[], object]) -> float:
    """Processor's seconds of one call."""
    began = time.process_time()
    run()
    return time.process_time() - began


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
    call = statistics.median(_spent(empty.extract) for _ in range(200))
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_REPEATS):
        for one in ones:
            for name, run in one.stages():
                taken[name].append(max(0.0, _spent(run) - call))
    parts = [(name, 1e6 * statistics.median(times)) for name, times in taken.items()]
    run = batch_of(pages, scheme)
    fused = 1e6 * statistics.median(_spent(run) for _ in range(_REPEATS)) / len(pages)
    whole = 1e6 * statistics.median(_spent(lambda: sketch_pages(pages, scheme)) for _ in range(_REPEATS)) / len(pages)
    rest = [
        ("stages, one kernel", fused - sum(each for _, each in parts)),
        ("decoding, URLs, packing", whole - fused),
    ]
    _show(f"{title}, bytes to record", [*parts, *rest], whole)


def matched(scheme: Scheme, size: int) -> None:
    """Stages of matching the crawl with 30% repeats, one message at a time, behind an index of `size` pages; then how
    often Python functions are called for a page, and batches judged.
    """
    decider = Decider(scheme=scheme.digest)
    crawl = Crawl(size + _MATCHED)
    messages = list(crawl.messages(scheme))
    first = size * len(messages) // crawl.count
    spent = dict.fromkeys(("messages to records", "judge", "verdicts as JSON", "write"), 0.0)
    rounds: list[int] = []
    with tempfile.TemporaryDirectory() as folder, closing(RocksStore(Path(folder) / "index")) as store, as_a_role():
        matcher = Matcher(store, decider)

        def clocked(stage: str, run: Callable[[], T]) -> T:
            began = time.process_time()
            result = run()
            spent[stage] += time.process_time() - began
            return result

        def step(message: tuple[int, bytes]) -> int:
            clocked("messages to records", lambda: decode_entry(message[1], message[0]))
            prepared = clocked("judge", lambda: matcher.prepare([message]))
            clocked("verdicts as JSON", prepared.verdicts.lines)
            clocked("write", lambda: matcher.apply(prepared))
            rounds.append(prepared.outcome.effort[0])
            return len(prepared.pages)

        for message in messages[:first]:
            step(message)
        spent, rounds = dict.fromkeys(spent, 0.0), []
        half = (first + len(messages)) // 2
        pages = sum(map(step, messages[first:half]))
        parts = [(stage, 1e6 * each / pages) for stage, each in spent.items()]
        calls, counted = _calls(lambda: sum(map(step, messages[half:])))
    total = sum(each for _, each in parts[1:])
    _show(f"message to verdict, crawl with 30% repeats, index of {size:,} pages", parts, total)
    print("  (messages to records are part of judging)")
    reads = statistics.mean(rounds)
    print(f"  {calls / counted:.1f} calls of Python functions a page, {reads:.1f} reads of rows a message")


def _calls(run: Callable[[], T]) -> tuple[int, T]:
    """How many Python functions `run` calls in this thread, and its result."""
    calls = 0

    def count(frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    return calls, result


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.profile", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="pages in the index that the crawl is matched into")
    asked = parser.parse_args()
    scheme = Scheme(seed=1)
    for title, make in (("documentation page", documentation_page), ("web page", web_page)):
        pages = [Page(f"https://s{i}.example/{i}", make(i), "text/html; charset=utf-8", i) for i in range(100)]
        sketch_pages(pages, scheme)
        sketching(pages, f"{title} of {sum(len(p.body or b'') for p in pages) // 100_000} kB", scheme)
    matched(scheme, asked.size)


if __name__ == "__main__":
    main()
