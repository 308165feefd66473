"""`neardup dedupe-results`: the results of each query in groups of duplicates, by a learned model.

A group is a star: its first result, in the order of the file, and the later ones that the model calls duplicates of it.
A result joins the first group that accepts it. The output has a line per query:

    {"query": ..., "results": 9, "groups": [{"url": ..., "duplicates": [{"url": ..., "rule": ..., "score": ...,
     "signals": {...}}]}]}

Every result is in exactly one group, possibly alone. rule: the conditions that decided, in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neardup.errors import BadInput
from neardup.signals.model import Model, ModelDecision
from neardup.signals.pages import Result
from neardup.signals.table import SIGNALS, signals_of
from streams.files.results import ResultFile
from streams.ports import Progress, silent


@dataclass(frozen=True)
class GroupedResult:
    """A result that joined a group, with the model's decision."""

    url: str
    decision: ModelDecision
    signals: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        decided = {"rule": self.decision.rule, "score": round(self.decision.score, 4)}
        return {"url": self.url, **decided, "signals": self.signals}


@dataclass
class Group:
    """The representative of a group, and its other results."""

    first: Result
    members: list[GroupedResult] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"url": self.first.url, "duplicates": [member.to_json() for member in self.members]}


@dataclass
class DedupeCounts:
    """Counts of a run. problems: lines that could not be read."""

    queries: int = 0
    results: int = 0
    duplicates: int = 0
    problems: list[str] = field(default_factory=list)


def groups_of(results: Sequence[Result], model: Model) -> list[Group]:
    """Groups the results of one query."""
    groups: list[Group] = []
    for result in results:
        for group in groups:
            values = signals_of(group.first, result, model.idf, model.signals)
            decision = model.decide(values)
            if decision.duplicate:
                group.members.append(GroupedResult(result.url, decision, values))
                break
        else:
            groups.append(Group(result))
    return groups


def dedupe_results(
    path: Path,
    model: Model,
    tally: DedupeCounts,
    *,
    progress: Progress = silent,
) -> Iterator[dict[str, Any]]:
    """Yields a line for each query of a file of results, in the order of their first results. Raises BadInput."""
    if unknown := set(model.signals) - set(SIGNALS):
        raise BadInput(
            f"the model decides by {', '.join(sorted(unknown))}, which sketches tell and not results; learn one of "
            "results, with --signals F for example"
        )
    file = ResultFile(path)
    tally.problems = file.problems
    for query, results in file.lists():
        groups = groups_of(results, model)
        tally.queries += 1
        tally.results += len(results)
        tally.duplicates += len(results) - len(groups)
        progress("compare", tally.queries, len(file))
        yield {"query": query, "results": len(results), "groups": [group.to_json() for group in groups]}
