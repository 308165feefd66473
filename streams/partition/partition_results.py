"""Writes the results of a partition: sets as JSON lines, documents and pairs as Parquet, a summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, BinaryIO

import orjson

from neardup.partition import plan
from neardup.urls import id_of
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource
from streams.partition.reading import place_of
from streams.partition.steps import Engine, PartitionCounts
from streams.partition.workspace import PartitionWorkspace

COLUMNS: dict[str, str] = {"transitive": "family", "stars": "star"}
LARGEST = 20


@dataclass
class Summary:
    """The summary of a partition, for people and machines.

    in_sets: documents in sets of two or more. sizes: size -> number of sets.
    largest: URL of the representative and size of the largest sets. reasons: counts of the reasons of rejected pages,
    the most frequent first. fields_taken: fields used as ids and texts, for files with field names of their own.
    passed_over: files whose names say that they contain no pages.
    """

    sets: int = 0
    in_sets: int = 0
    counts: PartitionCounts = field(default_factory=PartitionCounts)
    sizes: dict[int, int] = field(default_factory=dict)
    largest: list[tuple[str, int]] = field(default_factory=list)
    rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    fields_taken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    passed_over: str = ""
    plan: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def note_not_read(self, not_read: NotRead) -> None:
        """Puts what is not read of the inputs before the other problems."""
        self.problems = not_read.lines + self.problems
        self.problems_total += len(not_read.lines)
        self.passed_over = self.passed_over or not_read.passed_over

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def write_results(engine: Engine, workspace: PartitionWorkspace, sources: Sequence[LocalSource], kind: str) -> Summary:
    """Writes the sets and the tables of documents and pairs. Raises StateError."""
    engine.table("evidence", plan.EVIDENCE)
    engine.table("outcome", plan.ROWS)
    engine.write("select * from outcome order by doc", workspace.path / "documents.parquet")
    engine.write("select * from compared order by a desc, b desc", workspace.path / "pairs.parquet")
    with workspace.whole(workspace.path / "sets.jsonl") as file, file.open("wb") as out:
        return summed_up(_written(sets(engine, sources, kind), out))


def _written(lines: Iterator[dict[str, Any]], out: BinaryIO) -> Iterator[tuple[str, int]]:
    for line in lines:
        out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        yield line["representative"]["url"], line["size"]


def summed_up(sets: Iterable[tuple[str, int]]) -> Summary:
    """Summarises sets, each given as its representative's URL and its size."""
    summary = Summary()
    sizes: Counter[int] = Counter()
    for url, size in sets:
        sizes[size] += 1
        summary.largest.append((url, size))
        if len(summary.largest) > 10 * LARGEST:
            summary.largest = _largest(summary.largest)
    summary.sizes = dict(sorted(sizes.items()))
    summary.sets, summary.in_sets = sum(sizes.values()), sum(size * many for size, many in sizes.items())
    summary.largest = _largest(summary.largest)
    return summary


def _largest(found: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(found, key=lambda one: (-one[1], one[0]))[:LARGEST]


def sets(engine: Engine, sources: Sequence[LocalSource], kind: str) -> Iterator[dict[str, Any]]:
    """Iterates over sets of two or more, by their representative's number; members are in input order."""
    rows = engine.rows(plan.SETS_OF.format(column=COLUMNS[kind]))
    for chosen, found in groupby(rows, key=lambda row: row[0]):
        members = list(found)
        urls = {row[1]: row[2] for row in members}
        yield {
            "representative": _place(chosen, urls, sources),
            "size": len(members),
            "members": [_member(row, urls, sources) for row in members if row[1] != chosen],
        }


def _place(doc: int, urls: dict[int, str], sources: Sequence[LocalSource]) -> dict[str, Any]:
    source, place = place_of(doc)
    return {**named(urls[doc]), "source": sources[source].record.id, "offset": place}


def named(url: str) -> dict[str, str]:
    """Returns the fields that name a document: its URL, and its id if it has one."""
    given = id_of(url)
    return {"url": url} if given is None else {"id": given, "url": url}


def _member(row: tuple[Any, ...], urls: dict[int, str], sources: Sequence[LocalSource]) -> dict[str, Any]:
    _, doc, _, first, against, score, containment = row
    out = _place(doc, urls, sources)
    if first != doc:
        return out | {"same_text_as": urls[first]}
    return out | {"near": urls[against], "score": round(score, 4), "containment": round(containment, 4)}
