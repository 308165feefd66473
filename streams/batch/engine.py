"""What the steps of a partition need of an engine: tables made once and kept, and two stages that read texts."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

#: phase, done, total (0: unknown)
Progress = Callable[[str, int, int], None]


class Engine(Protocol):
    """Tables by name. What is made is kept: a run that was killed makes only what is missing."""

    def sign(self) -> None:
        """Makes the tables `documents` and `signatures` of the sources."""
        ...

    def table(self, name: str, sql: str) -> None:
        """Makes a table of the rows of a query over other tables."""
        ...

    def put(self, name: str, columns: dict[str, Sequence[int]]) -> None:
        """Makes a table of whole numbers, int64."""
        ...

    def compare(self, round_number: int) -> None:
        """Makes the table `compared_N` of `pairs_N`: the fields of `neardup.partition.stages.Compared`."""
        ...

    def count(self, name: str) -> int:
        """Rows of a table."""
        ...

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, in its order, without holding all of them."""
        ...

    def write(self, sql: str, file: Path) -> None:
        """The rows of a query, in its order, as Parquet, whole or not at all."""
        ...

    def parts(self) -> Iterator[dict[str, Any]]:
        """What signing met, part by part: `refused` pages as (URL, reason), `problems` of the sources."""
        ...
