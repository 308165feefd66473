"""Rows of threads and processes: pages a second from HTML to sketches, against one of them."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.warm import warm
from tests.measure.bench.documents import documentation_page
from tests.measure.bench.table import Row, in_turn, seconds

_PAGES, _ROUNDS, _REPEATS = 200, 3, 5
_COUNTS = (1, 2, 4)
#: What two of them are to give; four are shown.
_REACH = {2: "1.8 x"}


def _pages() -> list[Page]:
    return [
        Page(f"https://s{i % 50}.example/{i}", documentation_page(i % 20), "text/html; charset=utf-8", i)
        for i in range(_PAGES)
    ]


_made: list[Page] = []


def _prepare() -> None:
    warm()
    _made.extend(_pages())


def _rounds(seed: int) -> int:
    for _ in range(_ROUNDS):
        sketch_pages(_made, Scheme(seed=seed))
    return _ROUNDS * len(_made)


def scaling(scheme: Scheme) -> Iterator[Row]:
    """Threads share one batch; processes have each their own, as a group of sketchers has."""
    pages = _pages()
    sketch_pages(pages, scheme, threads=4)
    yield from _rows(
        "threads",
        in_turn(
            [lambda n=n: seconds(lambda: sketch_pages(pages, scheme, threads=n)) / len(pages) for n in _COUNTS],
            _REPEATS,
        ),
    )
    pools = [ProcessPoolExecutor(n, mp_context=get_context("spawn"), initializer=_prepare) for n in _COUNTS]

    def together(pool: ProcessPoolExecutor, workers: int) -> float:
        started = time.perf_counter()
        done = sum(pool.map(_rounds, [scheme.seed] * workers))
        return (time.perf_counter() - started) / done

    try:
        for pool, n in zip(pools, _COUNTS, strict=True):
            together(pool, n)  # starts them
        processes = in_turn(
            [lambda pool=pool, n=n: together(pool, n) for pool, n in zip(pools, _COUNTS, strict=True)], _REPEATS
        )
    finally:
        for pool in pools:
            pool.shutdown()
    yield from _rows("processes", processes)


def _rows(what: str, each: Sequence[float]) -> Iterator[Row]:
    for n, taken in list(zip(_COUNTS, each, strict=True))[1:]:
        row = Row(f"documentation pages, {n} {what}", "pages/s", 1 / taken, 1 / each[0], "one")
        row.ratio, row.reach = each[0] / taken, _REACH.get(n, "")
        yield row
