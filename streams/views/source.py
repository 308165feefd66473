"""The data of the pages: rows in memory for a scan, or the tables of the stream; pages and sketches, read again."""

import asyncio
from collections.abc import Mapping, Sequence
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
from streams.views.health import of_scan
from streams.views.lists import Facts, Row, closeness_to
from streams.views.search import search_rows
from streams.views.view_rows import EVERYTHING, MemoryRows, apply


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
        """Return the policy of canonical pages; empty: as the verdicts name them. Raises NeardupError."""
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

    def search(self, text: str) -> Facts:
        """Return the URLs in which a text occurs, in URL or title: see `streams.views.search`."""
        ...

    def own_search(self, text: str) -> Facts:
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

    def __init__(self, path: Path, audits: Audits | None = None) -> None:
        """Read all verdicts into memory. Raises StateError, CorruptRecord."""
        self.audits: Audits = audits or NoAudits()
        self.where, self.partitions, self._path = f"the scan in {path}", None, path
        self._rows = MemoryRows()
        with read_scan(path) as state:
            self.decider: Decider = state.decider
            self.origin: Origin = ScanOrigin(state)
            self._records = list(state.sources.values())
            closeness, log_time = closeness_to(state.decider), 0
            for verdict in state.verdicts():
                log_time = max(log_time, int(verdict.get("fetched_at") or 0))
                apply(verdict, self._rows, log_time, closeness)

    def policy(self) -> Sequence[str]:
        return kept_policy(self._path)

    def rows(self, table: str, key: str) -> Sequence[Row]:
        row = self._rows.get(table, key)
        return [] if row is None else [row]

    own_rows = rows

    def documents(self, given: str) -> Mapping[str, str]:
        return urls_named(given, self._records)

    def search(self, text: str) -> Facts:
        return search_rows(map(orjson.dumps, self._rows.tables["urls"].values()), text)

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
