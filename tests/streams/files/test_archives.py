"""Many archives in one order: that of their fetch times, whoever reads them, and from wherever it goes on."""

import random
from pathlib import Path

import pytest

from neardup.errors import BadInput
from neardup.sketch.header import Header
from streams.files.archives import ReaderLost, SketchedArchives, SketchedPage
from streams.files.sources import LocalSource, open_sources
from streams.line.accounting import Mark
from tests.streams.archives import SCHEME, Sample, crawl, write_warc

NOW = 1_700_000_000_000


def some(folder: Path, count: int = 4, seed: int = 3) -> list[LocalSource]:
    """A crawl dealt out to archives, a few of whose pages lie there out of order, or are dated in the future."""
    chance = random.Random(seed)
    parts: list[list[Sample]] = [[] for _ in range(count)]
    for sample in crawl(40):
        ms = sample.ms + chance.choice([0, 0, 0, -30_000, 500_000_000_000])
        chance.choice(parts).append(Sample(sample.path, sample.body, ms))
    paths = [write_warc(folder / f"{number}.warc.gz", part) for number, part in enumerate(parts)]
    return [source for path in paths for source in open_sources(path, base_url=None, body_bytes_max=1_000_000)]


def taken(sources: list[LocalSource], marks: dict[str, Mark] | None = None, processes: int = 1) -> list[SketchedPage]:
    with SketchedArchives(sources, marks or {}, SCHEME, processes, NOW) as pages:
        found = list(pages)
        assert pages.problems == []
        assert processes == 1 or pages.bytes_read == pages.bytes_total
    return found


def test_the_page_fetched_first_of_all_that_may_come_next(tmp_path: Path) -> None:
    sources = some(tmp_path)
    queues = {source.record.id: list(source.read()) for source in sources}
    wanted = []
    while any(queues.values()):
        heads = [(min(queue[0].log_time, NOW), number) for number, queue in enumerate(queues.values()) if queue]
        page = list(queues.values())[min(heads)[1]].pop(0)
        wanted.append((page.coordinates.source, page.coordinates.offset))
    found = taken(sources)
    assert [(page.source, page.offset) for page in found] == wanted
    for page in found:
        header = Header(page.record)
        assert (header.source.hex(), header.offset) == (page.source, page.offset)
        assert header.log_time <= NOW


def test_processes_change_nothing_and_it_goes_on_anywhere(tmp_path: Path) -> None:
    sources = some(tmp_path)
    found = taken(sources)
    assert taken(sources, processes=3) == found
    for cut in (1, 17, len(found) - 1, len(found)):
        marks = {}
        for page in found[:cut]:
            marks[page.source] = Mark(page.offset + 1, Header(page.record).position)
        assert taken(sources, marks) == found[cut:]


def test_a_reader_that_dies_is_missed(tmp_path: Path) -> None:
    sources = some(tmp_path)
    with SketchedArchives(sources, {}, SCHEME, 2, NOW) as pages:
        for process, _ in pages._processes:
            process.kill()
        with pytest.raises(ReaderLost, match="was killed"):
            list(pages)


def test_an_archive_that_goes_while_it_is_read_is_named(tmp_path: Path) -> None:
    sources = some(tmp_path)
    Path(sources[2].record.path).unlink()
    with SketchedArchives(sources, {}, SCHEME, 1, NOW) as pages, pytest.raises(BadInput, match=r"2\.warc\.gz"):
        list(pages)
