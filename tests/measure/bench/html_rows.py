"""Rows of pages to sketches: speed, threads, worst cases, the first call."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import numpy as np

from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.measure.bench.documents import documentation_page, web_page, worst_cases
from tests.measure.bench.rivals import lexbor_and_kernels, regex_and_numpy
from tests.measure.bench.stages import batch_of, to_tokens
from tests.measure.bench.table import Row, in_turn, seconds

_PAGES = 200
_REPEATS = 7


def _pages(make: Callable[[int], bytes]) -> list[Page]:
    return [Page(f"https://s{i % 50}.example/{i}", make(i), "text/html; charset=utf-8", i) for i in range(_PAGES)]


def _edited(page: Page) -> Page:
    """The same page with one sentence more."""
    return Page(page.url + "/copy", (page.body or b"").replace(b"</body>", b"<p>one more</body>"), page.content_type, 0)


def speed(scheme: Scheme) -> Iterator[Row]:
    """HTML to a whole record, a core, against both rivals."""
    for name, make, limit in (("documentation page", documentation_page, 53.0), ("web page", web_page, 28.0)):
        pages = _pages(make)
        size = sum(len(page.body or b"") for page in pages) / _PAGES
        few = pages[:20]
        sketch_pages(pages, scheme)
        ours, few_ours, regex, lexbor, two = in_turn(
            [
                lambda pages=pages: seconds(lambda: sketch_pages(pages, scheme)),
                lambda few=few: seconds(lambda: sketch_pages(few, scheme)),
                lambda few=few: seconds(lambda: [regex_and_numpy(page.body or b"") for page in few]),
                lambda few=few: seconds(lambda: lexbor_and_kernels(few, scheme)),
                lambda pages=pages: seconds(lambda: sketch_pages(pages, scheme, threads=2)),
            ],
            _REPEATS,
        )
        found = _rivals_find(few, scheme)
        each = 1e6 * ours / _PAGES
        what = f"HTML to sketch, {name} of {size / 1000:.0f} kB, a core"
        stages = {"kernels alone": kernels_alone(pages, scheme)}
        yield Row(what, "us a page", each, limit, "prototype's B + C alone", limit / each, "0.5 x", found, notes=stages)
        for peer, taken, reach in (
            ("regex + numpy, B + C alone", regex, "10 x"),
            ("lexbor + our kernels", lexbor, "3 x"),
        ):
            yield Row(what, "us a page", each, 5e4 * taken, peer, taken / few_ours, reach, found)
        yield Row(f"two threads, {name}", "pages/s", _PAGES / two, _PAGES / ours, "one thread", ours / two, "1.8 x")


def kernels_alone(pages: list[Page], scheme: Scheme) -> float:
    """us a page of the compiled part of the same call."""
    run = batch_of(pages, scheme)
    return 1e6 * statistics.median(seconds(run) for _ in range(_REPEATS)) / len(pages)


def _rivals_find(pages: list[Page], scheme: Scheme) -> str:
    """All three must call a page and its edited copy alike, and two other pages not."""
    copies = [_edited(page) for page in pages]
    found = []
    for sketch in (lambda some: sketch_pages(some, scheme), lambda some: lexbor_and_kernels(some, scheme)):
        a, b = ([Sketch(record) for record in sketch(some)] for some in (pages, copies))
        same = sum(compare(x, y).tape_score >= 0.9 for x, y in zip(a, b, strict=True))
        other = sum(compare(x, y).tape_score >= 0.74 for x, y in zip(a, b[1:], strict=False))
        found.append((same, other))
    a, b = ([regex_and_numpy(page.body or b"")[0] for page in some] for some in (pages, copies))
    same = sum(np.mean(x == y) >= 0.8 for x, y in zip(a, b, strict=True))
    other = sum(np.mean(x == y) >= 0.8 for x, y in zip(a, b[1:], strict=False))
    found.append((same, other))
    text = "copies found by ours / lexbor / regex: " + " / ".join(f"{same} of {len(pages)}" for same, _ in found)
    return text + f"; others taken for copies: {sum(other for _, other in found)}"


def worst(scheme: Scheme) -> Iterator[Row]:
    """ns a byte of inputs made to be slow, to tokens and to sketches, and what a byte costs in four times as many."""
    size = 500_000
    small, large = worst_cases(size), worst_cases(4 * size)

    def sketched(body: bytes) -> Callable[[], object]:
        page = [Page("https://w.example/", body, "text/html; charset=utf-8", 0)]
        return lambda: sketch_pages(page, scheme)

    for what, make, limit in (("to tokens", to_tokens, 10.0), ("to sketch", sketched, None)):
        each: dict[str, float | str] = {}
        growth: dict[str, float] = {}
        for name, body in small.items():
            one, four = make(body), make(large[name])
            first, second = in_turn([lambda one=one: seconds(one), lambda four=four: seconds(four)], 3)
            each[name] = 1e9 * second / len(large[name])
            growth[name] = second * len(body) / first / len(large[name])
        ordered = sorted(each, key=lambda name: -float(each[name]))
        slowest = float(each[ordered[0]])
        row = Row(f"slowest input, bytes {what}: {ordered[0]}", "ns/byte", slowest)
        row.notes = {name: each[name] for name in ordered[1:5]}
        if limit:
            row.peer, row.peer_name, row.ratio, row.reach = limit, "limit", limit / slowest, "1 x"
        crooked = max(growth, key=growth.__getitem__)
        yield row
        yield Row(f"four times the bytes {what}, a byte: {crooked}", "times", growth[crooked], reach="1.2 at most")


_FIRST = """
import time
t = time.perf_counter()
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
i = time.perf_counter()
sketch_pages([Page("https://a.example/", b"<title>a</title><p>one two three")], Scheme(seed=1))
print(i - t, time.perf_counter() - i)
"""


def start() -> Iterator[Row]:
    """Fresh processes: the first sketch with a warm cache, and with an empty one."""
    taken = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True)
        taken.append([float(word) for word in done.stdout.split()])
    imports, first = (statistics.median(column) for column in zip(*taken, strict=True))
    notes: dict[str, float | str] = {"imports before it": imports}
    yield Row("first sketch, warm cache", "s", first, 0.5, "limit", 0.5 / first, "1 x", notes=notes)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-m", "neardup.warm"]
        cold = seconds(lambda: subprocess.run(command, env=environment, check=True))
    yield Row("all kernels compiled, empty cache", "s", cold, 15, "limit", 15 / cold, "1 x")
