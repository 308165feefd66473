"""Reads many archives side by side, and yields their sketches in one order: by fetch time.

The next page is the one with the earliest fetch time among the first unread pages of all archives; at equal times, that
of the archive named first. So the order does not depend on the number or speed of processes, and a resumed read yields
the same order. Limit: an archive keeps its own order, so a page behind a later one comes late. A page counts as fetched
no later than the next page of its archive: one date in the future must not hold back the rest.

Each process reads, merges and sketches some of the archives. Only sketches are transferred, and merged again here: the
minimum of the parts' minima is the minimum of all.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from streams.files.sources import LocalSource
from streams.pipeline.accounting import Mark
from streams.scan.blocks import Block, BlockPages
from streams.scan.reading import SourceToRead, blocks_by_time
from streams.scan.sketch_processes import SketchProcesses

#: Archives that are open at once; each has two pages and a piece of its file in memory.
ARCHIVES_MAX = 1_000

#: A page: (effective fetch time, number of its archive), its block, its number in the block.
_Keyed = tuple[tuple[int, int], BlockPages, int]


class SketchedArchives:
    """The sketched pages of archives, as blocks in their order: an iterable for one pass.

    What is read so far is noted in the given sources: bytes_read, problems, times, left_out.
    """

    def __init__(
        self,
        sources: Sequence[LocalSource],
        marks: Mapping[str, Mark],
        scheme: Scheme,
        processes: SketchProcesses | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin to read.

        Args:
            sources: the archives.
            marks: the index's mark of each source, by id.
            scheme: parameters of the sketches.
            processes: processes that read them; by default this one.
            stopped: tells whether to end early.
        """
        self._sources = sources
        self.problems: list[tuple[int, str]] = []  # number of the archive, and text, of each unreadable part so far
        given = [SourceToRead(each.record, marks.get(each.record.id, Mark())) for each in sources]
        if processes is None:
            self._parts = [blocks_by_time(list(enumerate(given)), scheme)]
        else:
            self._parts = processes.by_time(scheme, given, stopped)

    @property
    def bytes_read(self) -> int:
        return sum(source.bytes_read for source in self._sources)

    @property
    def times(self) -> Counter[str]:
        """Pages by how their fetch times were read, as `LocalSource.times`."""
        return sum((Counter(source.times) for source in self._sources), Counter())

    def __iter__(self) -> Iterator[Block]:
        """Yields blocks, with offsets and log time still to be written. Raises ReaderLost, and BadInput for an archive
        that can no longer be read.
        """
        picked: list[tuple[BlockPages, int]] = []
        # Keys differ: each has the number of its archive, and each archive one process.
        for _, pages, number in heapq.merge(*map(self._keyed, self._parts), key=itemgetter(0)):
            picked.append((pages, number))
            if len(picked) == MESSAGE_PAGES_MAX:
                yield Block.of_pages(picked)
                picked = []
        if picked:
            yield Block.of_pages(picked)

    def _keyed(self, blocks: Iterator[Block]) -> Iterator[_Keyed]:
        for block in blocks:
            for notes in block.notes.sources:
                notes.add_to(self._sources[notes.number])
                self.problems += [(notes.number, str(problem)) for problem in notes.problems]
            pages = BlockPages(block)
            keys = zip(block.times.tolist(), block.columns["source"].tolist(), strict=True)
            for number, key in enumerate(keys):
                yield key, pages, number
