"""The results of sites as tables in Markdown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.measure.commons import rules, tables

Result = Mapping[str, Any]


def report(results: Sequence[Result]) -> str:
    """Each site, the sites together, and what the default rule does without each of its steps."""
    if not results:
        return "No site is meant.\n"
    results = sorted(results, key=lambda one: one["stream"])
    parts = [tables.table(_HEADINGS, [*(_row(one) for one in results), _whole(results)])]
    if "tape" in results[0]["counts"]:
        parts.append(f"All sites under `tape`:\n\n{tables.table(_HEADINGS, [_whole(results, 'tape')])}")
    if all(f"without {step.name}" in results[0]["counts"] for step in rules.DROPPED):
        parts.append(left_out(results))
    return "\n".join(parts)


_HEADINGS = (
    *("site", "pages", "hidden", "wrong", "per 1,000", "misled", "repeats", "found", "reframed", "found"),
    *("exact", "editions hidden", "open", "wrong by step"),
)


def _row(one: Result, form: str = rules.DEFAULT) -> list[object]:
    name = one["stream"].partition(": ")[2]
    return _cells(name, Counter(one["counts"][form]), Counter(one.get("steps", {}).get(form, {})))


def _whole(results: Sequence[Result], form: str = rules.DEFAULT) -> list[object]:
    steps: Counter[str] = Counter()
    for one in results:
        steps.update(one.get("steps", {}).get(form, {}))
    return _cells("all", tables.summed(results, form), steps)


def _cells(name: str, tally: Counter[str], steps: Counter[str]) -> list[object]:
    return [
        *(name, f"{tally['pages']:,}", f"{tally['hidden']:,}", tally["wrong"]),
        *(f"{per_1000(tally):.1f}", tally["misled"]),
        *(tally["near"], _found(tally, "near"), tally["reframed"], _found(tally, "reframed")),
        *(_found(tally, "exact"), tally["edition"], tally["twin"]),
        ", ".join(f"{step} {count}" for step, count in steps.most_common()),
    ]


def per_1000(tally: Counter[str]) -> float:
    """Wrong pages per 1,000 pages."""
    return 1000 * tally["wrong"] / max(1, tally["pages"])


def _found(tally: Counter[str], kind: str) -> str:
    return f"{tally[f'{kind}_found'] / tally[kind]:.3f}" if tally[kind] else ""


def left_out(results: Sequence[Result]) -> str:
    """Of each step: how many more pages are wrong, and repeats missed, without it."""
    rows: list[Sequence[object]] = []
    for step in rules.DROPPED:
        changes = {one["stream"].partition(": ")[2]: _change([one], f"without {step.name}") for one in results}
        wrong, missed = (sum(change[part] for change in changes.values()) for part in (0, 1))
        costs = {name: tables.WRONG_WEIGHT * change[0] + change[1] for name, change in changes.items()}
        helped = {name: cost for name, cost in costs.items() if cost > 0}
        harmed = {name: cost for name, cost in costs.items() if cost < 0}
        rows.append((step.name, f"{wrong:+}", f"{missed:+}", tables.most(helped), tables.most(harmed)))
    return tables.table(("without", "wrong", "missed", "worth most to", "harms"), rows)


def _change(results: Sequence[Result], form: str) -> tuple[int, int]:
    usual, other = tables.summed(results, rules.DEFAULT), tables.summed(results, form)
    found = [sum(tally[f"{kind}_found"] for kind in ("exact", "near", "reframed")) for tally in (usual, other)]
    return other["wrong"] - usual["wrong"], found[0] - found[1]
