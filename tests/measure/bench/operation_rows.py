"""Rows of years of operation: checkpoints beside the matcher, sweeps, and reading archives."""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from neardup.decider import Decider
from neardup.index.rocks import RocksStore
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, open_sources
from streams.pipeline import batch_fold
from streams.scan.archive_time import ArchiveTime
from streams.scan.archives import SketchedArchives
from streams.scan.blocks import MessagePacker
from streams.scan.sketch_processes import SketchProcesses
from streams.scan.sketcher import Sketcher
from streams.state.checkpoint_make import make_image, manifest_of
from streams.state.checkpoint_manifest import Manifest
from streams.state.checkpoint_store import CheckpointStore, Copied
from tests.measure.bench.crawl import Crawl
from tests.measure.bench.documents import documentation_page
from tests.measure.bench.matching import Matching
from tests.measure.bench.store_rows import enough_room
from tests.measure.bench.table import Row, in_turn, seconds
from tests.streams.archives import http, record
from tests.streams.sketched_pages import append_pages


def checkpoints(scheme: Scheme, pages: int, scratch: Path | None = None) -> Iterator[Row]:
    """What a checkpoint of an index of so many pages keeps the matcher from, and what the next one copies.

    scratch: folder for the index and for its copy. Raises BadInput if the disk has no room for both.
    """
    decider = Decider(scheme=scheme.digest)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        state, kept = Path(folder) / "state", CheckpointStore(str(Path(folder) / "kept"))
        enough_room(Path(folder), 2 * pages)
        state.mkdir()
        (state / "decider.json").write_text(decider.to_json())
        with Matching(state, decider) as matching:
            messages = Crawl(pages + 6 * MESSAGE_PAGES_MAX).messages(scheme)
            matching.fill(messages, pages)
            stalls, copies = [], []
            for _ in range(3):
                for message in islice(messages, 2):  # what the memory holds is flushed while it is linked
                    matching.take([message], emit=False)
                stall, copied = _checkpoint(state, matching.store, kept, manifest_of(matching.matcher, "bench"))
                stalls.append(stall)
                copies.append(copied)
            size = copies[0].of_bytes
    last = copies[-1]
    row = Row(f"checkpoint of an index of {size / 1e9:.1f} GB: the matcher waits", "s", max(stalls), reach="under 1 s")
    row.ratio, row.peer, row.peer_name = 1 / max(stalls), 1.0, "aim"
    row.check = f"the third copied {last.files} files, {last.bytes / 1e6:.0f} of {last.of_bytes / 1e6:,.0f} MB"
    row.notes = {"pages": pages, "waits, each": ", ".join(f"{each:.3f}" for each in stalls)}
    if last.bytes > last.of_bytes / 4:
        row.void = "files that were there were copied again"
    yield row


def _checkpoint(state: Path, store: RocksStore, kept: CheckpointStore, manifest: Manifest) -> tuple[float, Copied]:
    """Seconds that the matcher waits for its links, and what was copied beside it."""
    began = time.perf_counter()
    image = make_image(state, store)
    stall = time.perf_counter() - began
    try:
        return stall, kept.write(image, manifest)
    finally:
        shutil.rmtree(image)


def sweeps(scheme: Scheme) -> Iterator[Row]:
    """The cost that expiry adds to judging the crawl."""
    held, parts = 20_000, 3
    plain = Decider(scheme=scheme.digest)
    per_sweep = batch_fold.PAGES_BETWEEN // MESSAGE_PAGES_MAX
    made = list(Crawl(held + parts * batch_fold.PAGES_BETWEEN + 2 * MESSAGE_PAGES_MAX).messages(scheme))
    with ExitStack() as stack:
        sides = []
        for decider in (plain, replace(plain, expiry_days=30)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            matching = stack.enter_context(Matching(folder, decider))
            messages = iter(made)
            matching.fill(messages, held)
            sides.append((matching, messages))

        def round_of(matching: Matching, messages: Iterator[tuple[int, bytes]]) -> float:
            """As many messages as end with a sweep, one at a time."""
            return sum(matching.take([message]) for message in islice(messages, per_sweep))

        without, with_them = in_turn([partial(round_of, *side) for side in sides], parts)
    row = Row(
        "batches with sweeps among them",
        "processor's s",
        with_them,
        without,
        "without",
        without / with_them,
        "over .91 x",
    )
    row.notes = {
        "URLs looked at": batch_fold.PAGES_BETWEEN * batch_fold.URLS_A_PAGE,
        "pages judged": per_sweep * MESSAGE_PAGES_MAX,
    }
    yield row


def archives(scheme: Scheme) -> Iterator[Row]:
    """WARC files to messages of the log: as a backfill reads them, side by side, and as a scan does, one by one."""
    many, cores = 800, len(os.sched_getaffinity(0))
    made = [http(documentation_page(number)) for number in range(10)]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(2 * cores):
            path = Path(folder) / f"{number}.warc"
            pages_of = (record(f"http://s{number}.example/{i}", made[i % len(made)]) for i in range(many))
            path.write_bytes(b"".join(pages_of))
            paths.append(path)

        def sources() -> list[LocalSource]:
            found = (open_sources(path, not_read=NotRead(), body_bytes_max=scheme.body_bytes_max) for path in paths)
            return [source for some in found for source in some]

        def scan() -> float:
            opened = sources()
            pages = (page for source in opened for page in source.read(0, None))
            return seconds(lambda: list(append_pages(Sketcher(scheme, _Nowhere(), ArchiveTime()), pages)))

        started: list[float] = []

        def backfill() -> float:
            """From the first message on, for all pages at that pace: processes start once for many archives."""
            opened, began = sources(), time.perf_counter()
            ids = [source.record.id for source in opened]
            packer = MessagePacker(scheme, ArchiveTime(), ids, [0] * len(ids), pages_max=MESSAGE_PAGES_MAX)
            with SketchProcesses(cores) as processes:
                blocks = SketchedArchives(opened, {}, scheme, processes)
                messages = chain.from_iterable(chain(map(packer.add, blocks), map(MessagePacker.flush, [packer])))
                first = next(messages)[0]
                at = time.perf_counter()
                started.append(at - began)
                rest = sum(count for count, _ in messages)
                assert first + rest == many * len(paths)
                return (time.perf_counter() - at) * (first + rest) / rest

        one, side_by_side = in_turn([scan, backfill], 3)
    pages = many * len(paths)
    ratio = one / side_by_side
    row = Row(f"WARC files sketched by {cores} processes", "pages/s", pages / side_by_side, pages / one, "scan, 1 core")
    row.ratio, row.reach = ratio, f"{cores} x"
    row.notes = {"archives": len(paths), "pages": pages, "seconds to the first message": statistics.median(started)}
    yield row


class _Nowhere:
    """A log that keeps nothing."""

    def __init__(self) -> None:
        self._end = 0

    def append(self, message: bytes, /) -> int:
        self._end += 1
        return self._end - 1

    def sync(self) -> None:
        pass
