"""Rows of the matcher on the crawl: sketch messages in, durable verdicts as JSON out, with an index in RocksDB.

All times are of the processor, RocksDB's threads included, a page. The headline is the crawl with 30% repeats behind an
index of 10,000 pages. Its yardstick is the sketching of the same pages in the same rounds, so that the ratio can be
compared between machines.
"""

import gc
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import orjson

from neardup.decider import Decider
from neardup.index.rocks import RocksStore
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from streams.commands.app import GC_THRESHOLDS
from streams.pipeline.matcher import FOLD_BYTES_MAX, Matcher
from tests.measure.bench.crawl import HEADLINE, SHARES, Crawl, found, merged_by
from tests.measure.bench.store_rows import enough_room, memory_mb, settle
from tests.measure.bench.table import Row, in_turn

#: (offset, message) of a log.
Messages = Sequence[tuple[int, bytes]]

SIZE = 10_000
#: Pages that are measured behind an index of some size.
MEASURED = 5_000
_ROUNDS = 3
_SETTLE_S_MAX = 300.0
#: Verdicts of copies that are found; below, a row is void.
_FOUND_MIN, _WRONG_MAX = 0.95, 0.002
#: Messages that are generated at once to fill an index.
_FILLED_MESSAGES = 56


@contextmanager
def as_a_role() -> Iterator[None]:
    """Garbage is collected as rarely as in the process of a role."""
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Matching:
    """A matcher with a store of its own, and the file of its verdicts; a context.

    pages: pages that were taken. verdicts: JSON lines of all verdicts. scored: pairs that were compared.
    """

    def __init__(self, folder: Path, decider: Decider, *, threads: int = 1) -> None:
        self.store = RocksStore(folder / "index")
        self.matcher = Matcher(self.store, decider, threads=threads)
        self.pages = self.scored = 0
        self.verdicts: list[bytes] = []
        self._file = (folder / "verdicts").open("wb", buffering=0)

    def __enter__(self) -> "Matching":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.store.close()

    def take(self, messages: Messages, *, emit: bool = True) -> float:
        """Seconds of the processor, for messages that are folded together: decoded, judged, emitted, written."""
        began = time.process_time()
        prepared = self.matcher.prepare(messages, emit=emit)
        if emit:
            lines = prepared.verdicts.lines()
            self._file.write(b"\n".join(lines) + b"\n")
            os.fdatasync(self._file.fileno())
        self.matcher.apply(prepared)
        spent = time.process_time() - began
        self.pages += len(prepared.pages)
        self.scored += prepared.outcome.scored
        if emit:
            self.verdicts += lines
        return spent

    def fill(self, messages: Iterator[tuple[int, bytes]], size: int) -> None:
        """Folds messages as fast as it can, without verdicts, until `size` pages are in the index and RocksDB is done
        with them.
        """
        while self.pages < size:
            left = 1 + (size - self.pages) // MESSAGE_PAGES_MAX
            for part in together(islice(messages, min(left, _FILLED_MESSAGES))):
                self.take(part, emit=False)
        self.store.flush()
        settle(self.store, _SETTLE_S_MAX)


def together(messages: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yields the messages in parts that a matcher with a backlog folds together."""
    part: list[tuple[int, bytes]] = []
    size = 0
    for offset, data in messages:
        if part and size + len(data) > FOLD_BYTES_MAX:
            yield part
            part, size = [], 0
        part.append((offset, data))
        size += len(data)
    if part:
        yield part


class Live:
    """A crawl whose first `size` pages are in the index before the next are measured, one message at a time."""

    def __init__(self, scheme: Scheme, size: int, measured: int, repeats: float) -> None:
        self.scheme, self.decider = scheme, Decider(scheme=scheme.digest)
        self.size, self.repeats = size, repeats
        self.crawl = Crawl(size + measured, repeats=repeats)
        self.messages = list(self.crawl.messages(scheme))
        self.first = size * len(self.messages) // self.crawl.count
        self.pages = list(self.crawl.pages(size))
        self.verdicts: list[bytes] = []
        self.notes: dict[str, float | str] = {}

    def matched(self) -> float:
        """Microseconds a page."""
        with tempfile.TemporaryDirectory() as folder, Matching(Path(folder), self.decider) as matching, as_a_role():
            for message in self.messages[: self.first]:
                matching.take([message])
            before, scored = matching.pages, matching.scored
            spent = sum(matching.take([message]) for message in self.messages[self.first :])
            pages = matching.pages - before
        self.verdicts = matching.verdicts
        self.notes["candidates a page"] = (matching.scored - scored) / pages
        return 1e6 * spent / pages

    def sketched(self) -> float:
        """Microseconds a page."""
        began = time.process_time()
        sketch_pages(self.pages, self.scheme)
        return 1e6 * (time.process_time() - began) / len(self.pages)

    def row(self, matched: float, sketched: float) -> Row:
        """The row of these medians. Void if copies were missed."""
        name = f"matcher, crawl with {self.repeats:.0%} repeats, index of {self.size:,}"
        row = Row(name, "us a page", matched, sketched, "sketching them", sketched / matched)
        checked = found(self.crawl, merged_by(map(orjson.loads, self.verdicts)))
        row.check = str(checked)
        if checked.share < _FOUND_MIN or checked.wrong > _WRONG_MAX * self.crawl.count:
            row.void = row.check
        kinds = Counter(orjson.loads(line)["verdict"] for line in self.verdicts)
        row.notes = {**self.notes, **dict(kinds.most_common()), "digest of the verdicts": digest(self.verdicts)}
        return row


def mixture(scheme: Scheme, size: int = SIZE, measured: int = MEASURED) -> Iterator[Row]:
    """Each share of repeats, in turns with sketching the same pages."""
    lives = [Live(scheme, size, measured, share) for share in SHARES]
    lives[0].sketched()
    times = in_turn([side for live in lives for side in (live.matched, live.sketched)], _ROUNDS)
    for live, matched, sketched in zip(lives, times[::2], times[1::2], strict=True):
        row = live.row(matched, sketched)
        if live.repeats == HEADLINE:
            row.reach = "60 us"
        yield row


def growth(scheme: Scheme, sizes: Sequence[int], scratch: Path | None = None) -> Iterator[Row]:
    """The crawl with 30% repeats behind indexes of these sizes, message by message in turns, against the smallest.

    scratch: folder for the indexes, which take some 2 kB a page and go afterwards. Raises BadInput if the disk has no
    room for them.
    """
    decider = Decider(scheme=scheme.digest)
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=scratch)))
        enough_room(folder, sum(sizes))
        held.enter_context(as_a_role())
        sides: list[tuple[Matching, Iterator[tuple[int, bytes]]]] = []
        for size in sizes:
            (folder / str(size)).mkdir()
            matching = held.enter_context(Matching(folder / str(size), decider))
            crawl = Crawl(size + 2 * MEASURED)
            messages = crawl.messages(scheme)
            matching.fill(messages, size)
            sides.append((matching, messages))
        times: list[list[float]] = [[] for _ in sides]
        measured = [0] * len(sides)
        while min(measured) < MEASURED:
            for number, (matching, messages) in enumerate(sides):
                before = matching.pages
                spent = matching.take([next(messages)])
                measured[number] += matching.pages - before
                times[number].append(spent)
        each = [1e6 * sum(spent) / pages for spent, pages in zip(times, measured, strict=True)]
        for size, (matching, _), micros in zip(sizes, sides, each, strict=True):
            row = Row(f"matcher, crawl with 30% repeats, index of {size:,}", "us a page", micros, each[0])
            row.peer_name, row.ratio = f"index of {sizes[0]:,}", each[0] / micros
            row.reach = f"{1 / 1.3:.2f} x" if size > sizes[0] else ""
            on_disk = {family: part.file_bytes / size for family, part in matching.store.sizes().items()}
            row.notes = {
                "candidates a page": matching.scored / matching.pages,
                "disk bytes a page": round(sum(on_disk.values())),
                **{family.name.lower(): round(part) for family, part in on_disk.items() if part > 1},
                "filters and indexes in memory, bytes a page": matching.store.tables_bytes() / size,
                "memory of the process, MB": memory_mb(),
            }
            yield row


def refolded(scheme: Scheme) -> Iterator[Row]:
    """A log that was matched live, folded again without verdicts, and judged by another decider with verdicts."""
    decider = Decider(scheme=scheme.digest)
    other = replace(decider, tape_min=0.8)
    messages = list(Crawl(SIZE).messages(scheme))
    parts = list(together(messages))

    def side(judge: Decider, parts: Sequence[Messages], *, emit: bool) -> float:
        with tempfile.TemporaryDirectory() as folder, Matching(Path(folder), judge) as matching, as_a_role():
            return 1e6 * sum(matching.take(part, emit=emit) for part in parts) / SIZE

    live, fold, anew = in_turn(
        [
            lambda: side(decider, [[message] for message in messages], emit=True),
            lambda: side(decider, parts, emit=False),
            lambda: side(other, parts, emit=True),
        ],
        _ROUNDS,
    )
    for name, each in (("log folded again", fold), ("log judged by another decider, with verdicts", anew)):
        yield Row(f"{name}, crawl with 30% repeats", "us a page", each, live, "live", live / each, "1 x")


def digest(lines: Iterable[bytes]) -> str:
    """Eight hex digits: equal if two versions of the program emit the same bytes."""
    return blake2b(b"\n".join(lines), digest_size=4).hexdigest()
