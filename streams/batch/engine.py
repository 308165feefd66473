"""Defines what the steps of a partition need of an engine: persistent tables, and two stages that read texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol


class Engine(Protocol):
    """Makes tables by name and keeps them, so that a run that was killed makes only the missing ones."""

    def sign(self) -> None:
        """Makes the tables `documents` and `signatures` from the sources."""
        ...

    def table(self, name: str, sql: str) -> None:
        """Makes a table from a query over other tables."""
        ...

    def put(self, name: str, columns: dict[str, Sequence[int]]) -> None:
        """Makes a table of whole numbers, int64, from columns."""
        ...

    def compare(self, round_number: int) -> None:
        """Makes the table `compared_N` from `pairs_N`: the fields of `neardup.partition.stages.Compared`."""
        ...

    def count(self, name: str) -> int:
        """Counts the rows of a table."""
        ...

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Iterates over the rows of a query in its order, without holding all of them."""
        ...

    def write(self, sql: str, file: Path) -> None:
        """Writes the rows of a query in its order to a Parquet file, atomically."""
        ...

    def parts(self) -> Iterator[dict[str, Any]]:
        """Reports each signed part: `refused` pages as (URL, reason), `problems` of the sources."""
        ...
