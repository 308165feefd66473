"""Many archives in one order, that of their fetch times, whichever process reads them and wherever it resumes."""

import json
import os
import random
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from neardup.errors import BadInput
from neardup.limits import DAY_MS
from neardup.sketch.header import Header
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, open_sources
from streams.formats.message import decode_message
from streams.pipeline.accounting import Mark
from streams.ports import SourceProgress
from streams.scan import scan as scanning
from streams.scan import sketcher
from streams.scan.archive_time import ArchiveTime
from streams.scan.archives import SketchedArchives
from streams.scan.blocks import MessagePacker
from streams.scan.scan import scan
from streams.scan.sketch_processes import ReaderLost, SketchProcesses
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import SCHEME, Sample, crawl, write_warc


class SketchedPage(NamedTuple):
    source: str
    offset: int
    record: bytes


def some(folder: Path, count: int = 4, seed: int = 3) -> list[LocalSource]:
    """A crawl dealt out to archives, a few of whose pages lie there out of order, or are dated in the future."""
    chance = random.Random(seed)
    parts: list[list[Sample]] = [[] for _ in range(count)]
    for sample in crawl(40):
        ms = sample.ms + chance.choice([0, 0, 0, -30_000, 500_000_000_000])
        chance.choice(parts).append(Sample(sample.path, sample.body, ms))
    paths = [write_warc(folder / f"{number}.warc.gz", part) for number, part in enumerate(parts)]
    return [source for path in paths for source in open_sources(path, not_read=NotRead(), body_bytes_max=1_000_000)]


def taken(
    sources: list[LocalSource],
    marks: dict[str, Mark] | None = None,
    processes: int = 1,
    time: ArchiveTime | None = None,
) -> list[SketchedPage]:
    marks = marks or {}
    offsets = [marks.get(source.record.id, Mark()).offset for source in sources]
    ids = [source.record.id for source in sources]
    packer = MessagePacker(SCHEME, time or ArchiveTime(), ids, offsets, pages_max=7)
    sources = [LocalSource(source.record, SCHEME.body_bytes_max) for source in sources]
    with SketchProcesses(processes) if processes > 1 else nullcontext() as readers:
        pages = SketchedArchives(sources, marks, SCHEME, readers)
        messages = [message for block in pages for _, message in packer.add(block)]
        assert pages.problems == []
        assert pages.bytes_read == sum(source.bytes_total for source in sources)
    messages += [message for _, message in packer.flush()]
    records = [record for message in messages for record in decode_message(message, 0).records]
    return [SketchedPage(Header(record).source.hex(), Header(record).offset, record) for record in records]


def test_the_page_fetched_first_of_all_that_may_come_next(tmp_path: Path) -> None:
    sources = some(tmp_path)
    queues = {source.record.id: list(source.read()) for source in sources}
    wanted = []
    while any(queues.values()):
        heads = [
            (min(page.date for page in queue[:2]), number) for number, queue in enumerate(queues.values()) if queue
        ]
        page = list(queues.values())[min(heads)[1]].pop(0)
        wanted.append((page.coordinates.source, page.coordinates.offset))
    found = taken(sources)
    assert [(page.source, page.offset) for page in found] == wanted
    headers = [Header(page.record) for page in found]
    assert [(header.source.hex(), header.offset) for header in headers] == wanted
    times = [header.log_time for header in headers]
    assert times == sorted(times)
    assert times[-1] < min(sample.ms for sample in crawl(40)) + DAY_MS


@pytest.mark.slow
def test_processes_change_no_scan_and_a_scan_goes_on_anywhere(tmp_path: Path) -> None:
    sources = some(tmp_path)
    found = taken(sources)
    assert taken(sources, processes=3) == found
    for cut in (1, 17, len(found) - 1, len(found)):
        marks, before = {}, [Header(page.record) for page in found[:cut]]
        for page, header in zip(found, before, strict=False):
            marks[page.source] = Mark(page.offset + 1, header.position)
        time = ArchiveTime(before[-1].log_time, [header.fetched_at for header in before])
        assert taken(sources, marks, time=time) == found[cut:]


def test_a_reader_that_dies_is_missed(tmp_path: Path) -> None:
    sources = some(tmp_path)
    with SketchProcesses(2) as processes:
        pages = SketchedArchives(sources, {}, SCHEME, processes)
        for pid in processes.pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ReaderLost, match=r"the process that read .*warc\.gz and 1 others was killed by signal 9"):
            list(pages)


def test_an_archive_that_goes_while_it_is_read_is_named(tmp_path: Path) -> None:
    sources = some(tmp_path)
    Path(sources[2].record.path).unlink()
    with pytest.raises(BadInput, match=r"2\.warc\.gz"):
        list(SketchedArchives(sources, {}, SCHEME))


def merged_scan(folder: Path, sources: list[LocalSource], stop_after: int = 0) -> ScanDirectory:
    """A state directory that has scanned them; optionally killed and resumed."""
    left = [stop_after]

    def progress(now: SourceProgress) -> None:
        left[0] -= now.phase == "scan"
        if left[0] == 0 and stop_after:
            raise KeyError("killed")

    paths = [source.record.path for source in sources]
    if stop_after:
        with ScanDirectory.open(folder, scheme=SCHEME) as state, pytest.raises(KeyError, match="killed"):
            scan(paths, state, merge=True, progress=progress)
    state = ScanDirectory.open(folder, scheme=SCHEME)
    scan(paths, state, merge=True, out=str(folder / "sources" / "out"))
    return state


@pytest.mark.slow
def test_a_scan_of_many_judges_them_in_that_order_killed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketcher, "MESSAGE_PAGES_MAX", 5)
    sources = some(tmp_path)
    wanted = [(page.source, page.offset) for page in taken(sources)]
    outcomes = []
    for stop_after in (0, 1, 6):
        with merged_scan(tmp_path / f"state{stop_after}", sources, stop_after) as state:
            verdicts = [verdict for verdict in state.verdicts() if not verdict["n"]]
            places = [(verdict["coordinates"]["source"], verdict["coordinates"]["offset"]) for verdict in verdicts]
            assert places == wanted
            out = (state.path / "sources" / "out").read_bytes()
            outcomes.append((list(state.log.read()), list(state.verdict_log.log.read()), out))
            assert all(source.finished for source in state.sources.values())
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert len(outcomes[0][2].splitlines()) >= len(wanted)
    # The verdicts of one of them alone.
    with ScanDirectory.open(tmp_path / "state0") as state:
        one = tmp_path / "one.jsonl"
        assert scan([sources[1].record.path], state, out=str(one)).skipped
        lines = [json.loads(line) for line in one.read_text().splitlines()]
        own = [place for place in wanted if place[0] == sources[1].record.id]
        assert [(v["coordinates"]["source"], v["coordinates"]["offset"]) for v in lines if not v["n"]] == own
        assert own


def test_damage_is_reported_with_its_archive(tmp_path: Path) -> None:
    paths = [write_warc(tmp_path / f"{number}.warc", crawl(6)[number::2]) for number in range(2)]
    paths[1].write_bytes(paths[1].read_bytes()[:-40])
    with ScanDirectory.open(tmp_path / "state", scheme=SCHEME) as state:
        result = scan(paths, state, merge=True)
        assert result.pages == len(crawl(6))
        assert [str(paths[1]) in problem for problem in result.problems] == [True]
        assert result.bytes == sum(path.stat().st_size for path in paths)
        assert {Path(s.path).name: s.problems_total for s in state.sources.values()} == {"0.warc": 0, "1.warc": 1}


def test_a_problem_beyond_those_that_are_kept_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "PROBLEMS_MAX", 0)
    path = write_warc(tmp_path / "a.warc", crawl(6))
    path.write_bytes(path.read_bytes()[:-40])
    with ScanDirectory.open(tmp_path / "state", scheme=SCHEME) as state:
        scan([path], state, merge=True)
        assert [(source.problems, source.problems_total) for source in state.sources.values()] == [([], 1)]
