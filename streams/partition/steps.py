"""Runs the steps of a partition on any engine; neardup/partition/README.md describes each step.

An engine makes persistent tables, and runs two stages that read texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from neardup.pairs.components import components
from neardup.partition import groups, plan
from neardup.partition.parameters import Parameters
from streams.ports import Progress


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
        """Reports each signed part: `rejected` pages as (URL, reason), `problems` of the sources."""
        ...


@dataclass
class PartitionCounts:
    """Counts of a partition.

    repeats: documents with the text of another one. alone: documents for which only equal texts were found: without a
    signature or text, or by an online rule with fewer tokens than `thin_tokens`.
    rounds: (pairs compared, pairs found similar) per round. uncompared: documents left in a set after the last round.
    """

    documents: int = 0
    repeats: int = 0
    alone: int = 0
    signatures: int = 0
    dropped_signatures: int = 0
    dropped_uses: int = 0
    sets: int = 0  # perhaps-similar
    rounds: list[tuple[int, int]] = field(default_factory=list)
    uncompared: int = 0


def run(engine: Engine, parameters: Parameters, progress: Progress) -> PartitionCounts:
    """Makes the tables `latest`, `repeats`, `compared` and `grouped` (doc, star, family). Resumes where it stopped."""
    counts = PartitionCounts()
    engine.sign()
    progress("group", 0, 0)
    for name, sql in (
        ("latest", plan.LATEST),
        ("standing", plan.STANDING),
        ("repeats", plan.REPEATS),
        ("uses", plan.USES),
        ("live", plan.live(parameters)),
        ("lists", plan.LISTS),
    ):
        engine.table(name, sql)
    engine.table("dropped", plan.dropped(parameters))
    absorbed = groups.absorb(engine.rows(plan.CONTAINED), parameters.absorbed)
    engine.put("absorbed", {"rep": [rep for rep, _ in absorbed], "owner": [owner for _, owner in absorbed]})
    engine.table("sets", plan.SETS)
    rounds = _compare(engine, parameters, counts)
    engine.table("compared", " union all ".join(f"select * from compared_{n}" for n in range(rounds)))
    _group(engine)
    _count(engine, counts)
    return counts


def _compare(engine: Engine, parameters: Parameters, counts: PartitionCounts) -> int:
    """Runs all rounds; returns their number."""
    number = 0
    while True:
        engine.table(f"left_{number}", plan.left(number))
        engine.table(f"pairs_{number}", plan.pairs(number))
        engine.compare(number)
        similar = next(engine.rows(f"select count(*) from compared_{number} where near = 1"))[0]
        counts.rounds.append((engine.count(f"pairs_{number}"), similar))
        engine.table(f"remaining_{number}", plan.remaining(number))
        number += 1
        left = next(engine.rows(plan.LEFT.format(before=number - 1)))[0]
        if not left or number == parameters.rounds:
            counts.uncompared = left
            return number


def _group(engine: Engine) -> None:
    """Computes stars and transitive sets as keys: item, star, family."""
    accepted = "select a, b from compared where near = 1 order by a desc, b desc"
    stars = groups.stars(engine.rows(accepted))
    sets = components(engine.rows(accepted))
    items = sorted({*sets, *sets.values()})
    columns = {name: [found.get(item, item) for item in items] for name, found in (("star", stars), ("family", sets))}
    engine.put("grouped", {"item": items, **columns})


def _count(engine: Engine, counts: PartitionCounts) -> None:
    counts.documents, counts.repeats = engine.count("latest"), engine.count("repeats")
    counts.alone, counts.signatures = next(
        engine.rows("select sum(case when signatures = 0 then 1 else 0 end), coalesce(sum(signatures), 0) from latest")
    )
    counts.alone = counts.alone or 0
    counts.dropped_signatures, counts.dropped_uses = map(int, next(engine.rows("select * from dropped")))
    counts.sets = next(engine.rows("select count(distinct rep) from sets"))[0]
