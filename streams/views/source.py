"""The data of the pages: rows in memory for a scan, or the tables of the stream."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from neardup.decider import Decider
from streams.files.state import State
from streams.state.directory import kept_policy
from streams.views.audits import Audits, NoAudits
from streams.views.health import of_scan
from streams.views.lists import Facts, Row, closeness_to
from streams.views.origin import Origin, ScanOrigin
from streams.views.rows import EVERYTHING, MemoryRows, apply
from streams.views.search import search_rows


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
    """A scan's directory as it was at the start. decider: the directory's own."""

    def __init__(self, path: Path, audits: Audits | None = None) -> None:
        """Read all verdicts into memory and unlock the directory. Raises StateError, CorruptRecord."""
        self.audits: Audits = audits or NoAudits()
        self.where, self.partitions, self._path = f"the scan in {path}", None, path
        self._rows = MemoryRows()
        with State.open(path) as state:
            self.decider: Decider = state.decider
            self.origin: Origin = ScanOrigin(state)
            self._finished = [source.finished for source in state.sources.values()]
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

    def search(self, text: str) -> Facts:
        return search_rows(map(orjson.dumps, self._rows.tables["urls"].values()), text)

    own_search = search

    def rate(self) -> float | None:
        return None

    async def own(self) -> Mapping[str, Any]:
        return {"lag": {}, "rate": 0.0, "tables": {}}

    async def health(self) -> Facts:
        newest = max((row["at"] for row in self.rows("counts", EVERYTHING)), default=None)
        return await asyncio.to_thread(of_scan, self.where, self._path, newest, self._finished)

    async def lag(self) -> dict[int, int] | None:
        return None
