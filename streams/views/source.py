"""Where the pages get their rows: from memory, for a scan, or from the tables of the stream."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from neardup.decider import Decider
from streams.files.state import State
from streams.state.canonical import kept_policy
from streams.views.lists import Row, closeness_to
from streams.views.origin import Origin, ScanOrigin
from streams.views.rows import MemoryRows, apply


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

    def policy(self) -> Sequence[str]:
        """By which canonical pages are chosen now; empty: by what verdicts say. Raises NeardupError."""
        ...

    def rows(self, table: str, key: str) -> Sequence[Row]:
        """The rows of a key, one of each partition that has it."""
        ...

    def own_rows(self, table: str, key: str) -> Sequence[Row]:
        """Those of the partitions that this worker has."""
        ...

    async def own_lag(self) -> dict[int, int]:
        """As `lag`, of the partitions that this worker has."""
        ...

    def own_rate(self) -> float:
        """As `rate`, of this worker alone."""
        ...

    def rate(self) -> float | None:
        """Verdicts taken in a second, of late; None where nothing is read any more."""
        ...

    async def lag(self) -> dict[int, int] | None:
        """By partition the offsets that are not yet taken in; None where nothing is read any more."""
        ...


class ScanSource:
    """A scan's directory as it is now. decider: the one that judges there."""

    def __init__(self, path: Path) -> None:
        """Reads all verdicts into memory, and lets go of the directory. Raises StateError, CorruptRecord."""
        self.where, self.partitions = f"the scan in {path}", None
        self._path = path
        self._rows = MemoryRows()
        with State.open(path) as state:
            self.decider: Decider = state.decider
            self.origin: Origin = ScanOrigin(state)
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

    def own_rate(self) -> float:
        return 0.0

    async def own_lag(self) -> dict[int, int]:
        return {}

    async def lag(self) -> dict[int, int] | None:
        return None
