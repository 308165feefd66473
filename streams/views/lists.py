"""The lists of the views: rows that hold what people look through, each bounded. Keys of the table `lists`:

sites            -> {last, sites: {site: [verdicts, duplicates]}} of those with the most
close, day       -> {last, items: [...]} the day's closest calls, the closest first
rejected, reason -> {last, items: [...]} pages that could not be read, the newest first

A site that comes up late may lack what was said while it was too small for the list: its own row has the true counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neardup.decider import Decider
from neardup.report.prose import reason_kind
from neardup.report.tally import nearest
from neardup.rules import rule_of
from neardup.standing import DUPLICATES

Row = dict[str, Any]
Verdict = Mapping[str, Any]
#: (how far the score was from what was demanded, the step that decided, the other page's URL) of a verdict that was
#: weighed by the rule, else None.
Closeness = Callable[[Verdict], tuple[float, str, str] | None]

SITES_KEPT, CLOSE_KEPT, REJECTED_KEPT = 100, 25, 50
#: Of a URL or a reason, in a list: a row must stay well below a message of Kafka.
CHARS_KEPT = 2_000
_REASON_CHARS_KEPT = 200
SITES = "sites"


def close_key(day: int) -> str:
    return f"close\n{day}"


def rejected_key(reason: str) -> str:
    """reason: as rejected pages are counted by."""
    return f"rejected\n{reason[:_REASON_CHARS_KEPT]}"


def changes(
    verdict: Verdict, kind: str, site: str, day: int, closeness: Closeness
) -> Iterator[tuple[str, Callable[[Row | None], Row]]]:
    """The keys of the lists that a verdict concerns, and what becomes of their rows."""
    yield SITES, lambda row: _sites_row(row, site, kind)
    if kind == "rejected":
        yield rejected_key(reason_kind(verdict.get("reason"))), lambda row: _rejected_row(row, verdict)
    close = closeness(verdict)
    if close is not None:
        yield close_key(day), lambda row: _close_row(row, verdict, *close)


def _sites_row(row: Row | None, site: str, kind: str) -> Row:
    sites = dict(row["sites"]) if row else {}
    verdicts, duplicates = sites.get(site, (0, 0))
    sites[site] = [verdicts + 1, duplicates + (kind in DUPLICATES)]
    if len(sites) > 2 * SITES_KEPT:
        most = sorted(sites, key=lambda name: (-sites[name][0], name))[:SITES_KEPT]
        sites = {name: sites[name] for name in most}
    return {"sites": sites}


def _rejected_row(row: Row | None, verdict: Verdict) -> Row:
    item = {
        "url": str(verdict["url"])[:CHARS_KEPT],
        "page_id": verdict["page_id"],
        "reason": str(verdict.get("reason"))[:CHARS_KEPT],
        "fetched_at": verdict.get("fetched_at"),
        "coordinates": verdict.get("coordinates"),
    }
    return {"items": [item, *(row["items"] if row else ())][:REJECTED_KEPT]}


def _close_row(row: Row | None, verdict: Verdict, margin: float, by: str, other: str) -> Row:
    items = list(row["items"]) if row else []
    if len(items) == CLOSE_KEPT and abs(items[-1]["margin"]) <= abs(margin):
        return {"items": items}
    items.append(
        {
            "url": str(verdict["url"])[:CHARS_KEPT],
            "other": other[:CHARS_KEPT],
            "verdict": verdict["verdict"],
            "margin": round(margin, 6),
            "by": by,
            "page_id": verdict["page_id"],
        }
    )
    items.sort(key=lambda item: abs(item["margin"]))
    return {"items": items[:CLOSE_KEPT]}


def closeness_to(decider: Decider) -> Closeness:
    """Of verdicts that this decider judged, whatever the scheme."""
    rule, digests = rule_of(decider), dict[str, str]()

    def closeness(verdict: Verdict) -> tuple[float, str, str] | None:
        scheme = str(verdict.get("scheme", ""))
        if scheme not in digests:
            digests.clear()
            digests[scheme] = replace(decider, scheme=scheme).digest
        if verdict.get("decider") != digests[scheme]:
            return None
        accepted = verdict["verdict"] in ("near_duplicate", "same_content")
        evidence = verdict.get("evidence") or {} if accepted else nearest(verdict)
        place = (verdict.get("content_of") or verdict.get("representative")) if accepted else evidence
        if not evidence.get("by") or not place or verdict["verdict"] not in _WEIGHED:
            return None
        margin = rule.margin(evidence, decider)
        return None if margin is None else (float(margin), str(evidence["by"]), str(place.get("url") or ""))

    return closeness


_WEIGHED = ("unique", "near_duplicate", "same_content")


def sites_of(rows: Sequence[Row]) -> list[tuple[str, int, int]]:
    """(site, verdicts, duplicates), those with the most verdicts first, over all partitions."""
    totals: dict[str, list[int]] = {}
    for row in rows:
        for site, (verdicts, duplicates) in row["sites"].items():
            total = totals.setdefault(site, [0, 0])
            total[0] += verdicts
            total[1] += duplicates
    ordered = sorted(totals.items(), key=lambda each: (-each[1][0], each[0]))
    return [(site, verdicts, duplicates) for site, (verdicts, duplicates) in ordered[:SITES_KEPT]]


def close_of(rows: Sequence[Row]) -> list[Row]:
    """The closest calls of a day over all partitions."""
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: (abs(item["margin"]), item["page_id"]))[:CLOSE_KEPT]


def rejected_of(rows: Sequence[Row]) -> list[Row]:
    """The newest rejected pages of a reason over all partitions."""
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: -item["page_id"])[:REJECTED_KEPT]
