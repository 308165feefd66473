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
from neardup.signals.model import Model
from neardup.signals.result_pages import Result
from neardup.signals.table import SIGNALS, signals_of
from streams.ports import Progress, silent
from streams.results.query_results import ResultFile


@dataclass
class DedupeCounts:
    """Counts of a run. problems: lines that could not be read."""

    queries: int = 0
    results: int = 0
    duplicates: int = 0
    problems: list[str] = field(default_factory=list)


def groups_of(results: Sequence[Result], model: Model) -> list[dict[str, Any]]:
    """Groups the results of one query, as the output has them."""
    firsts: list[Result] = []
    groups: list[dict[str, Any]] = []
    for result in results:
        for first, group in zip(firsts, groups, strict=True):
            values = signals_of(first, result, model.idf, model.signals)
            found = model.decide(values)
            if found.duplicate:
                decided = {"rule": found.rule, "score": round(found.score, 4), "signals": values}
                group["duplicates"].append({"url": result.url, **decided})
                break
        else:
            firsts.append(result)
            groups.append({"url": result.url, "duplicates": []})
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
        yield {"query": query, "results": len(results), "groups": groups}
