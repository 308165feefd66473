"""One generation of the year: a state directory as a scan has it, and the model of the pages that it should hold."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from neardup.decider import Decider
from neardup.index.column_families import Family
from neardup.index.rows import decode_url
from neardup.scheme import Scheme
from neardup.sketch.takedown_hashes import Takedown
from neardup.verdict import Coordinates
from streams.formats.message import decode_message
from streams.pipeline.follow import Batch
from streams.ports import SourcedPage
from streams.scan.archive_time import ArchiveTime
from streams.scan.sketcher import Sketcher
from streams.state.scan_directory import ScanDirectory
from tests.streams.contradictions import Inspection, inspect
from tests.streams.sketched_pages import append_pages
from tests.streams.year.crawl import Fetch
from tests.streams.year.model import Model

EXPIRY_DAYS = 45
SOURCE = "5" * 32

#: A fetch with its place in history.
Placed = tuple[int, Fetch]


class BrokerTime(ArchiveTime):
    """What a broker stamps is right: each date counts."""

    begun = True

    def advance(self, date: int) -> int:
        self.log_time = max(self.log_time, date)
        return self.log_time


class Generation:
    """`take` judges; `restart` closes everything and opens it again."""

    def __init__(self, path: Path, scheme: Scheme) -> None:
        self.path, self.scheme = path, scheme
        self.model = Model(EXPIRY_DAYS)
        self.fetches = self.words = 0
        self._state = self._open()

    def _open(self) -> ScanDirectory:
        return ScanDirectory.open(
            self.path, scheme=self.scheme, decider=lambda scheme: Decider(scheme.digest, expiry_days=EXPIRY_DAYS)
        )

    def restart(self, *, lose_index: bool = False) -> None:
        self._state.close()
        if lose_index:
            shutil.rmtree(self.path / "index")
        self._state = self._open()
        assert bool(self._state.messages) == lose_index, self._state.messages

    def take(self, fetches: Sequence[Placed]) -> None:
        """Sketches and judges, each verdict held against the model."""
        state, at = self._state, 0
        time = BrokerTime(state.matcher.log_time)
        sketcher = Sketcher(self.scheme, state.log, time, first=not state.log.end())
        for offset, data in append_pages(sketcher, _sourced(fetches)):
            count = len(decode_message(data, offset).records)
            (prepared,) = state.follow([Batch([(offset, data)])])
            assert prepared is not None
            values = [one for one in prepared.verdicts if not one.n]
            assert len(values) == count, "one verdict a page"
            for (_, fetch), verdict in zip(fetches[at : at + count], values, strict=True):
                self.model.take(fetch, verdict)
            self.model.end_message()
            at += count
        assert at == len(fetches)
        self.fetches += at

    def forget(self, takedown: Takedown) -> None:
        assert self._state.forget(takedown).pages == self.model.forget(takedown)
        self.words += 1

    def check(self) -> Inspection:
        """Holds the index against the model, and its parts against each other."""
        store = self._state.store
        rows = {key: decode_url(row) for key, row in store.scan(Family.URLS)}
        wanted = self.model.held
        assert {key: (row.seen, row.live) for key, row in rows.items()} == {
            key: (held.seen, bool(held.text)) for key, held in wanted.items()
        }
        found = inspect(store)
        assert not found.wrong_total, found.wrong[:5]
        # Each live page is a cluster's one representative, or a member.
        assert found.rows["clusters"] + found.rows["members"] == self.model.live
        return found

    def log_bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.path / "log").iterdir())

    def index_bytes(self) -> int:
        """What the index takes on disk, with what RocksDB has not yet tidied."""
        return sum(file.stat().st_size for file in (self.path / "index").glob("*.sst"))

    def close(self) -> None:
        self._state.close()

    def remove(self) -> None:
        self.close()
        shutil.rmtree(self.path)


def _sourced(fetches: Sequence[Placed]) -> Iterator[SourcedPage]:
    for place, fetch in fetches:
        yield SourcedPage(fetch.page, Coordinates(SOURCE, 0, place, 0), fetch.came)
