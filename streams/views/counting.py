"""What the pages of counts and lists say: the whole crawl, a site, all sites, closest calls, what was rejected.

Times are log time: of a verdict of the stream when the matcher said it, of a scan the latest date that it had seen.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from neardup.limits import DAY_MS
from neardup.report import prose
from neardup.standing import DUPLICATES
from streams.views.hot import hot_key, hot_of
from streams.views.lists import SITES, close_key, close_of, rejected_key, rejected_of, sites_of
from streams.views.rows import EVERYTHING, HOUR_MS, counts_of, day_key, hours_of
from streams.views.source import Source
from streams.views.suppressed import suppressed_key, suppressed_of

Facts = dict[str, Any]

HOURS_SHOWN, DAYS_SHOWN = 48, 30
SITES_SHOWN, ITEMS_SHOWN, HOT_SHOWN = 10, 25, 10
#: Back to the latest day that had a close call; further ones are asked for by their date.
DAYS_BACK_MAX = 30


def overview(source: Source, lag: Mapping[int, int] | None, problem: str = "") -> Facts:
    """Counts of the crawl; lag: offsets by partition, None for a scan. problem: why the lag is not known."""
    counts = _counts(source, EVERYTHING)
    return {
        "of": source.where,
        **counts,
        "lag": None if lag is None else {str(partition): count for partition, count in sorted(lag.items())},
        "behind": None if lag is None else sum(lag.values()),
        "partitions": source.partitions,
        "problem": problem or None,
        "rate": source.rate(),
        "hot": hot_of(source.rows("lists", hot_key()), HOT_SHOWN),
        "sites": _of_sites(source, _listed(source)[:SITES_SHOWN]),
    }


def site(source: Source, name: str) -> Facts | None:
    """Counts of one registrable domain; None if none of its pages was seen."""
    name = name.strip().lower()
    if "\n" in name or name == EVERYTHING or not source.rows("counts", name):
        return None
    hot = hot_of(source.rows("lists", hot_key(name)), HOT_SHOWN)
    suppressed = suppressed_of(source.rows("lists", suppressed_key(name)))
    return {"site": name, **_counts(source, name), "hot": hot, "suppressed": suppressed}


def _counts(source: Source, name: str) -> Facts:
    rows = source.rows("counts", name)
    kinds, reasons = counts_of(rows)
    hour = max((row["at"] for row in rows), default=0) // HOUR_MS
    days = {day: hours_of(source.rows("counts", day_key(name, day))) for day in _back_from(hour // 24, DAYS_SHOWN)}

    def of_hour(at: int) -> Mapping[str, int]:
        return days.get(at // 24, {}).get(at % 24, Counter())

    def of_day(at: int) -> Mapping[str, int]:
        return sum(days[at].values(), Counter[str]())

    return {
        "verdicts": kinds.total(),
        "duplicates": _duplicates(kinds),
        "kinds": by_kind(kinds),
        "rejected": dict(reasons.most_common()),
        "hours": [_span(at, HOUR_MS, of_hour) for at in _back_from(hour, HOURS_SHOWN)] if rows else [],
        "days": [_span(at, DAY_MS, of_day) for at in _back_from(hour // 24, DAYS_SHOWN)] if rows else [],
    }


def _back_from(last: int, count: int) -> range:
    return range(max(0, last + 1 - count), last + 1)


def _span(at: int, length_ms: int, kinds_of: Callable[[int], Mapping[str, int]]) -> Facts:
    kinds = kinds_of(at)
    return {
        "from": at * length_ms,
        "verdicts": sum(kinds.values()),
        "duplicates": _duplicates(kinds),
        "kinds": by_kind(kinds),
    }


def by_kind(kinds: Mapping[str, int]) -> dict[str, int]:
    """In the order of the report; kinds of a newer program at the end."""
    known = {kind: kinds[kind] for kind in prose.KINDS if kinds.get(kind)}
    return known | {kind: count for kind, count in sorted(kinds.items()) if kind not in known}


def _duplicates(kinds: Mapping[str, int]) -> int:
    return sum(kinds.get(kind, 0) for kind in DUPLICATES)


def sites(source: Source, page: int) -> Facts:
    """The sites with the most verdicts, ITEMS_SHOWN a page."""
    told = paged("sites", _listed(source), page)
    return {**told, "sites": _of_sites(source, told["sites"])}


def _listed(source: Source) -> list[str]:
    """By what the list has of them, which may lack some of their verdicts."""
    return [name for name, _, _ in sites_of(source.rows("lists", SITES))]


def _of_sites(source: Source, names: Sequence[str]) -> list[Facts]:
    out: list[Facts] = []
    for name in names:
        kinds, _ = counts_of(source.rows("counts", name))
        out.append({"site": name, "verdicts": kinds.total(), "duplicates": _duplicates(kinds)})
    return sorted(out, key=lambda each: -each["verdicts"])


def close(source: Source, date: str) -> Facts | str:
    """The closest calls of a day (YYYY-MM-DD), by default of the latest that had any; else what is wrong with it."""
    if date:
        try:
            day = int(datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) // (DAY_MS // 1000)
        except ValueError:
            return f"A day is wanted as YYYY-MM-DD, not {date[:40]!r}"
        days: Sequence[int] = [day]
    else:
        latest = max((row["at"] for row in source.rows("counts", EVERYTHING)), default=0) // DAY_MS
        days = [*reversed(_back_from(latest, DAYS_BACK_MAX))]
    for day in days:
        items = close_of(source.rows("lists", close_key(day)))
        if items:
            break
    return {"day": _date(day), "before": _date(day - 1), "after": _date(day + 1), "items": items}


def _date(day: int) -> str:
    return datetime.fromtimestamp(max(0, day) * DAY_MS / 1000, UTC).strftime("%Y-%m-%d")


def rejects(source: Source, reason: str, page: int) -> Facts | str:
    """Why pages were rejected, and of one reason the newest pages; else that there are none."""
    _, reasons = counts_of(source.rows("counts", EVERYTHING))
    out = {"reasons": dict(reasons.most_common()), "reason": reason or None}
    items = rejected_of(source.rows("lists", rejected_key(reason))) if reason else []
    if reason and not items:
        return f"No page was rejected for the reason {reason[:200]!r}"
    return out | paged("items", items, page)


def rejected(source: Source, reason: str, page_id: int) -> Facts | None:
    """One of the listed pages."""
    items = rejected_of(source.rows("lists", rejected_key(reason)))
    return next((item for item in items if item["page_id"] == page_id), None)


def paged(name: str, items: Sequence[Any], page: int) -> Facts:
    """page: from 1 on."""
    pages = max(1, -(-len(items) // ITEMS_SHOWN))
    page = min(page, pages)
    return {name: list(items[(page - 1) * ITEMS_SHOWN : page * ITEMS_SHOWN]), "page": page, "pages": pages}
