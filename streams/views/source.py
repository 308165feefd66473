"""Where the pages get their rows: from memory, for a scan, or from the tables of the stream."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from neardup.decider import Decider
from streams.files.state import State
from streams.state.canonical import kept_policy
from streams.views.audits import Audits, NoAudits
from streams.views.health import Facts, of_scan
from streams.views.lists import Row, closeness_to
from streams.views.origin import Origin, ScanOrigin
from streams.views.rows import EVERYTHING, MemoryRows, apply


class Source(Protocol):
    """What the pages ask."""

    @property
    def where(self) -> str:
        """What is shown, in words: a directory or a topic."""
        ...

    @property
    def partitions(self) -> int | None:
        """Of the topic; None for a scan."""
        ...

    @property
    def origin(self) -> Origin:
        """Where the pages themselves can be read again."""
        ...

    @property
    def audits(self) -> Audits:
        """What was drawn for people to check."""
        ...

    def policy(self) -> Sequence[str]:
        """By which canonical pages are chosen now; empty: by what verdicts say. Raises NeardupError."""
        ...

    def rows(self, table: str, key: str) -> Sequence[Row]:
        """The rows of a key, one of each partition that has it."""
        ...

    def own_rows(self, table: str, key: str) -> Sequence[Row]:
        """Those of the partitions that this worker has."""
        ...

    async def own(self) -> Mapping[str, Any]:
        """Of this worker alone: {lag, rate: as below, tables: bytes on its disk by table}."""
        ...

    def rate(self) -> float | None:
        """Verdicts taken in a second, of late; None where nothing is read any more."""
        ...

    async def health(self) -> Facts:
        """See `streams.views.health`."""
        ...

    async def lag(self) -> dict[int, int] | None:
        """By partition the offsets that are not yet taken in; None where nothing is read any more."""
        ...


class ScanSource:
    """A scan's directory as it is now. decider: the one that judges there."""

    def __init__(self, path: Path, audits: Audits | None = None) -> None:
        """Reads all verdicts into memory, and lets go of the directory. Raises StateError, CorruptRecord."""
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

    def rate(self) -> float | None:
        return None

    async def own(self) -> Mapping[str, Any]:
        return {"lag": {}, "rate": 0.0, "tables": {}}

    async def health(self) -> Facts:
        newest = max((row["at"] for row in self.rows("counts", EVERYTHING)), default=None)
        return await asyncio.to_thread(of_scan, self.where, self._path, newest, self._finished)

    async def lag(self) -> dict[int, int] | None:
        return None
