"""Reads the state directory of a scan as its last flush left it, also while another process scans into it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from neardup.decider import Decider
from streams.pipeline.matcher import Matcher
from streams.state.directory import Run, kept_both, refuse_other, snapshot
from streams.state.scan_directory import ScanDirectory
from streams.state.scan_reader import ScanReader, read_sources
from streams.state.segments import read_frames


class _FlushedFrames:
    """The frames of a log up to the messages that the index has, for a log that another process may be writing."""

    def __init__(self, directory: Path, end: int) -> None:
        self._directory, self._end = directory, end

    def end(self) -> int:
        return self._end

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        return read_frames(self._directory, start, self._end if stop is None else min(stop, self._end))


class FlushedScan(ScanReader):
    """A state directory as its last flush left it. Another process may have it open; nothing in it is changed."""

    def __init__(self, path: Path, held: ExitStack) -> None:
        """held: closes it. Raises StateError: no state directory of a scan, or no index."""
        super().__init__()
        self.path = path.absolute()
        refuse_other(self.path, Run.SCAN)
        scheme, first = kept_both(self.path)
        store = snapshot(self.path / "index", held)
        matcher = Matcher(store, first)
        self.scheme, self.first_decider, self.store = scheme, first, store
        self._decider, end = matcher.decider, matcher.next_offset
        self.log = _FlushedFrames(self.path / "log", end)
        self.verdict_frames = _FlushedFrames(self.path / "verdicts", end)
        self.sources = read_sources(self.path)

    @property
    def decider(self) -> Decider:
        return self._decider


@contextmanager
def read_scan(path: Path) -> Iterator[ScanReader]:
    """Opens a state directory for reading, as its last flush left it. An index that is missing is rebuilt first.

    Raises StateError, CorruptRecord.
    """
    if not (path / "index" / "CURRENT").exists():
        ScanDirectory.open(path).close()
    with ExitStack() as held:
        yield FlushedScan(path, held)
