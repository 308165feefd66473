"""The data of the pages: the tables of a scan or of the stream; pages and sketches, read again."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import orjson

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.formats.message import decode_message
from streams.state.directory import kept_policy
from streams.state.named_documents import urls_named
from streams.state.scan_reader import ScanReader
from streams.state.scan_snapshot import read_scan
from streams.views.audited_pairs import Audits, NoAudits
from streams.views.entries import TABLE, Entry, Row, read
from streams.views.health import of_scan
from streams.views.lists import Facts
from streams.views.row_batch import key_of
from streams.views.scan_tables import Progress, tables_of
from streams.views.search import search_rows
from streams.views.view_rows import EVERYTHING


class Origin(Protocol):
    """Source of pages and sketches for the comparison; from one thread at a time."""

    def record(self, page_id: int, log: str | None) -> bytes:
        """Return the page's sketch. log: topic id of its log. Raises NeardupError if it is unavailable."""
        ...

    def page(self, coordinates: Coordinates) -> Page:
        """Return the page as it was fetched. Raises NeardupError if it is unavailable."""
        ...

    @property
    def sends_again(self) -> bool:
        """Whether pages can be sent to their topic again."""
        ...

    def send_again(self, coordinates: Coordinates) -> None:
        """Send the unchanged page again. Raises NeardupError if it is unavailable."""
        ...


class ScanOrigin:
    """A scan's log and sources, by their files, which only grow: the directory is not locked."""

    def __init__(self, state: ScanReader) -> None:
        self._state = state

    def record(self, page_id: int, log: str | None) -> bytes:
        offset = page_id >> PLACE_BITS
        message = next(iter(self._state.log.read(offset, offset + 1)), None)
        return record_at(page_id, None if message is None else message[1])

    def page(self, coordinates: Coordinates) -> Page:
        return self._state.read_page(coordinates)

    sends_again = False

    def send_again(self, coordinates: Coordinates) -> None:
        raise BadInput("a scan reads its sources once: scan them with --again")


def record_at(page_id: int, data: bytes | None) -> bytes:
    """Return a page's sketch from its message. Raises CorruptRecord, BadInput."""
    offset, number = page_id >> PLACE_BITS, page_id & ((1 << PLACE_BITS) - 1)
    records = decode_message(data or b"", offset).records
    if number >= len(records):
        raise BadInput(f"the log's message {offset} holds no page {page_id}")
    return records[number]


class Source(Protocol):
    """Data of the pages."""

    @property
    def where(self) -> str:
        """Name of the data, for people: a directory or a topic."""
        ...

    @property
    def partitions(self) -> int | None:
        """Partitions of the topic; None for a scan."""
        ...

    @property
    def origin(self) -> Origin:
        """Reads pages and sketches again."""
        ...

    @property
    def audits(self) -> Audits:
        """Pairs drawn for labelling."""
        ...

    def policy(self) -> Sequence[str]:
        """Return the policy of canonical pages; empty if those that the verdicts name count. Raises NeardupError."""
        ...

    def rows(self, table: str, key: str) -> Sequence[Row]:
        """Return the rows of a key, one for each partition that has it."""
        ...

    def own_rows(self, table: str, key: str) -> Sequence[Row]:
        """Return the rows in the partitions of this worker."""
        ...

    def documents(self, given: str) -> Mapping[str, str]:
        """Return the documents that an id, or FILE#ID, could mean: by URL, a name that no other has."""
        ...

    def entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        """See `streams.views.entries.EntrySource`."""
        ...

    def own_entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        """Return the entries in the partitions of this worker."""
        ...

    def search(self, text: str, after: str = "") -> Facts:
        """Return the URLs behind `after` in which a text occurs, in URL or title: see `streams.views.search`."""
        ...

    def own_search(self, text: str, after: str = "") -> Facts:
        """Search the partitions of this worker."""
        ...

    async def own(self) -> Mapping[str, Any]:
        """Return figures of this worker: {lag, rate: as below, tables: bytes on its disk by table}."""
        ...

    def rate(self) -> float | None:
        """Return the verdicts applied per second, lately; None for a scan."""
        ...

    async def health(self) -> Facts:
        """See `streams.views.health`."""
        ...

    async def lag(self) -> dict[int, int] | None:
        """Return the offsets not yet applied, by partition; None for a scan."""
        ...


class ScanSource:
    """A scan's directory as its last flush before the start left it. decider: the directory's own."""

    def __init__(
        self, path: Path, audits: Audits | None = None, progress: Progress = lambda done, total, verdicts: None
    ) -> None:
        """Open the tables of the scan, which are built first if they are not those of its verdicts.

        progress: called while they are built. Raises StateError, CorruptRecord.
        """
        self.audits: Audits = audits or NoAudits()
        self.where, self.partitions, self._path = f"the scan in {path}", None, path
        self._held = ExitStack()
        with read_scan(path) as state:
            self.decider: Decider = state.decider
            self.origin: Origin = ScanOrigin(state)
            self._records = list(state.sources.values())
            self._tables = tables_of(path, state, self._held, progress)

    def close(self) -> None:
        self._held.close()

    def policy(self) -> Sequence[str]:
        return kept_policy(self._path)

    def rows(self, table: str, key: str) -> Sequence[Row]:
        row = self._tables.get(table, key_of(key))
        return [] if row is None else [orjson.loads(row)]

    own_rows = rows

    def entries(self, of: str, start: str, limit: int, back: bool) -> Sequence[Entry]:
        return read(partial(self._tables.rows, TABLE), of, start, limit, back)

    own_entries = entries

    def documents(self, given: str) -> Mapping[str, str]:
        return urls_named(given, self._records)

    def search(self, text: str, after: str = "") -> Facts:
        first = key_of(after)
        return search_rows((pair for pair in self._tables.rows("urls", first) if pair[0] != first), text)

    own_search = search

    def rate(self) -> float | None:
        return None

    async def own(self) -> Mapping[str, Any]:
        return {"lag": {}, "rate": 0.0, "tables": {}}

    async def health(self) -> Facts:
        newest = max((row["at"] for row in self.rows("counts", EVERYTHING)), default=None)
        finished = [record.finished for record in self._records]
        return await asyncio.to_thread(of_scan, self.where, self._path, newest, finished)

    async def lag(self) -> dict[int, int] | None:
        return None
