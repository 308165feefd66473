"""Facts of the pages with counts and lists: overview, site, sites, clusters, kinds, closest calls, rejected pages.

Times are log time: on the stream when the matcher emitted a verdict; of a scan the latest date of a page so far.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from neardup.limits import DAY_MS
from neardup.report import evidence_sentences, url_patterns
from neardup.standing import DUPLICATES
from streams.views import entries, lists
from streams.views.entries import ITEMS_SHOWN, Cursor
from streams.views.lists import Facts
from streams.views.source import Source
from streams.views.view_rows import BLOCK_DAYS, EVERYTHING, HOUR_MS, block_key, counts_of, day_key, spans_of

SHOWN = 10
#: Longest range shown in hours, a stream's range of the first view, bars at most, longest range: 115 lookups of a
#: block's row.
HOURS_DAYS_MAX, DAYS_SHOWN, BARS_MAX, RANGE_DAYS_MAX = 4, 30, 62, 3_660
#: Days with verdicts that are searched for the next closest call, in one direction.
DAYS_SEARCHED_MAX = 30


def overview(
    source: Source, lag: Mapping[int, int] | None, problem: str = "", start: str = "", end: str = ""
) -> Facts | str:
    """Return the facts of the whole crawl, or an error text.

    lag: offsets by partition, None for a scan. problem: why the lag is unknown. start, end: see `_in_time`.
    """
    found = _counts(source, EVERYTHING, start, end)
    if isinstance(found, str):
        return found
    return {
        "of": source.where,
        **found,
        "lag": None if lag is None else {str(partition): count for partition, count in sorted(lag.items())},
        "behind": None if lag is None else sum(lag.values()),
        "partitions": source.partitions,
        "problem": problem or None,
        "rate": source.rate(),
        "hot": _hot(source, None),
        "sites": _of_sites(source, _listed_sites(source)[:SHOWN]),
        "clusters": lists.clusters_of(source.rows("lists", lists.CLUSTERS))[:SHOWN],
        "kept_apart_newest": _items(source, entries.of_kind(lists.KEPT_APART)),
    }


def site(source: Source, name: str, start: str = "", end: str = "") -> Facts | str:
    """Return the facts of one registrable domain, or an error text."""
    name = name.strip().lower()
    if "\n" in name or name == EVERYTHING or not source.rows("counts", name):
        return f"No page of {name[:300]} was seen; sites are registrable domains"
    found = _counts(source, name, start, end)
    if isinstance(found, str):
        return found
    suppressed = lists.suppressed_of(source.rows("lists", lists.key("suppressed", name)))
    return {"site": name, **found, "hot": _hot(source, name), "suppressed": suppressed}


def _counts(source: Source, name: str, start: str, end: str) -> Facts | str:
    rows = source.rows("counts", name)
    kinds, reasons = counts_of(rows)
    first = min((row["first"] for row in rows if row["first"]), default=0)
    over_time = _in_time(source, name, first, max((row["at"] for row in rows), default=0), start, end)
    if isinstance(over_time, str):
        return over_time
    return {
        "verdicts": kinds.total(),
        "duplicates": _duplicates(kinds),
        "kinds": by_kind(kinds),
        "kept_apart": sum(row["kept_apart"] for row in rows),
        "rejected": dict(reasons.most_common()),
        "time": over_time,
    }


def _in_time(source: Source, name: str, first_ms: int, last_ms: int, start: str, end: str) -> Facts | str:
    """Return the verdicts of a range as equal spans, or an error text.

    start, end: days as YYYY-MM-DD; by default all days from the first verdict on, of a stream at most DAYS_SHOWN: a
        scan has the dates of its pages, which may lie years apart.
    """
    required = [_day_of(text) if text else None for text in (start, end)]
    if -1 in required:
        return "A day must be given as YYYY-MM-DD"
    if not last_ms:
        return {"first": None, "last": None, "from": None, "to": None, "kinds": {}, "span_hours": 0, "spans": []}
    first, last = first_ms // DAY_MS, last_ms // DAY_MS
    stop = last if required[1] is None else required[1]
    shown = RANGE_DAYS_MAX if source.partitions is None else DAYS_SHOWN
    begin = max(first, stop + 1 - shown) if required[0] is None else required[0]
    begin = max(begin, stop + 1 - RANGE_DAYS_MAX, 0)
    days = stop + 1 - begin
    spans = []
    if days <= HOURS_DAYS_MAX:
        held = {day: spans_of(source.rows("counts", day_key(name, day)), "hours") for day in range(begin, stop + 1)}
        hours = range(max(begin * 24, first_ms // HOUR_MS), min(stop * 24 + 23, last_ms // HOUR_MS) + 1)
        spans = [_span(hour * HOUR_MS, held[hour // 24].get(hour % 24, Counter())) for hour in hours]
    else:
        blocks = {
            block: spans_of(source.rows("counts", block_key(name, block)), "days")
            for block in range(begin // BLOCK_DAYS, stop // BLOCK_DAYS + 1)
        }
        for day in range(begin, stop + 1, length := -(-days // BARS_MAX)):
            kinds = Counter[str]()
            for each in range(day, min(day + length, stop + 1)):
                kinds.update(blocks[each // BLOCK_DAYS].get(each % BLOCK_DAYS, {}))
            spans.append(_span(day * DAY_MS, kinds))
    total = Counter[str]()
    for span in spans:
        total.update(span["kinds"])
    return {
        "first": _date(first),
        "last": _date(last),
        "from": _date(begin),
        "to": _date(stop),
        "kinds": by_kind(total),
        "span_hours": 1 if days <= HOURS_DAYS_MAX else 24 * length,
        "spans": spans,
    }


def _span(start_ms: int, kinds: Mapping[str, int]) -> Facts:
    return {
        "from": start_ms,
        "verdicts": sum(kinds.values()),
        "duplicates": _duplicates(kinds),
        "kinds": by_kind(kinds),
    }


def by_kind(kinds: Mapping[str, int]) -> dict[str, int]:
    """Order as in the report; kinds of a newer program last."""
    known = {kind: kinds[kind] for kind in evidence_sentences.KINDS if kinds.get(kind)}
    return known | {kind: count for kind, count in sorted(kinds.items()) if kind not in known}


def _duplicates(kinds: Mapping[str, int]) -> int:
    return sum(kinds.get(kind, 0) for kind in DUPLICATES)


def sites(source: Source, page: int, after: str = "", before: str = "", by: str = "") -> Facts:
    """Return one page of the sites with the most verdicts; by="name": of all sites."""
    if by == "name":
        held, cursors = entries.page_of(source, entries.SITES, Cursor(after, before))
        return {"by": by, "sites": [_of_site(source, name) for name, _ in held], **cursors}
    found = paged("sites", _listed_sites(source), page)
    return {"by": None, **found, "sites": _of_sites(source, found["sites"])}


def _listed_sites(source: Source) -> list[str]:
    return lists.sites_of(source.rows("lists", lists.SITES))


def _of_sites(source: Source, names: Sequence[str]) -> list[Facts]:
    """Return the true counts of sites: the list lacks verdicts of a site that entered it late."""
    return sorted((_of_site(source, name) for name in names), key=lambda each: -each["verdicts"])


def _of_site(source: Source, name: str) -> Facts:
    kinds, _ = counts_of(source.rows("counts", name))
    return {"site": name, "verdicts": kinds.total(), "duplicates": _duplicates(kinds)}


def patterns(source: Source, name: str, page: int) -> Facts:
    """Return one page of the URL patterns that yield repeats: of a site, or of the sites with the most verdicts."""
    name = name.strip().lower()
    names = [name] if name and "\n" not in name else _listed_sites(source)
    found: list[Facts] = []
    for each in names:
        rows = source.rows("lists", lists.key("patterns", each))
        found += url_patterns.yielding(each, [row["patterns"] for row in rows])
    found.sort(key=lambda one: -one["repeats"])
    return {"site": name or None, **paged("patterns", found, page)}


def clusters(source: Source, page: int, after: str = "", before: str = "", by: str = "") -> Facts:
    """Return one page of the largest clusters; by="newest": of all that have several pages."""
    if by == "newest":
        held, cursors = entries.page_of(source, entries.CLUSTERS, Cursor(after, before))
        fields = "cluster", "size", "canonical"
        found = [{name: row[name] for name in fields} for _, row in held if row["size"] > 1]
        return {"by": by, "clusters": found, **cursors}
    return {"by": None, **paged("clusters", lists.clusters_of(source.rows("lists", lists.CLUSTERS)), page)}


def kind(source: Source, name: str, site: str = "", after: str = "", before: str = "") -> Facts | str:
    """Return one page of the verdicts of a kind, or of the pages kept apart, newest first; else an error text.

    site: registrable domain; "" for all.
    """
    site = site.strip().lower()
    rows = source.rows("counts", site or EVERYTHING)
    total = sum(row["kept_apart"] if name == lists.KEPT_APART else row["kinds"].get(name, 0) for row in rows)
    held, cursors = entries.page_of(source, entries.of_kind(name, site or None), Cursor(after, before))
    if not total:
        known = ", ".join([*evidence_sentences.KINDS, lists.KEPT_APART])
        of = f" of {site[:300]}" if site else ""
        return f"No verdict of the kind {name[:40]!r}{of}; the kinds are {known}"
    items = [row for _, row in held]
    if site:  # these entries have no rows of their own
        found = (source.rows(entries.TABLE, entries.of_kind(name) + key) for key, _ in held)
        items = [rows[0] for rows in found if rows]
    return {"kind": name, "site": site or None, "verdicts": total, "items": items, **cursors}


def hot(source: Source, site: str = "", after: str = "", before: str = "") -> Facts:
    """Return the number of hot keys by family, of a site or of the whole crawl, and one page of them, newest first."""
    site = site.strip().lower()
    held, cursors = entries.page_of(source, entries.of_hot(site or None), Cursor(after, before))
    found = lists.hot_of(source.rows("lists", lists.hot_key(site or None)))
    return {"site": site or None, **found, "items": [row for _, row in held], **cursors}


def _hot(source: Source, site: str | None) -> Facts:
    found = lists.hot_of(source.rows("lists", lists.hot_key(site)))
    return found | {"newest": _items(source, entries.of_hot(site)) if found["total"] else []}


def _items(source: Source, of: str) -> list[Facts]:
    return [row for _, row in source.entries(of, "", SHOWN, False)]


def close(source: Source, date: str) -> Facts | str:
    """Return the closest calls of a day (YYYY-MM-DD; by default the latest with any), or an error text."""
    if date:
        day = _day_of(date)
        if day < 0:
            return f"A day must be given as YYYY-MM-DD, not {date[:40]!r}"
    else:
        latest = max((row["at"] for row in source.rows("counts", EVERYTHING)), default=0) // DAY_MS
        found = _close_day(source, latest + 1, -1)
        day = latest if found is None else found
    before, after = _close_day(source, day, -1), _close_day(source, day, 1)
    return {
        "day": _date(day),
        "before": None if before is None else _date(before),
        "after": None if after is None else _date(after),
        "items": _close_of(source, day),
    }


def _close_of(source: Source, day: int) -> list[Facts]:
    return lists.close_of(source.rows("lists", lists.key("close", day)))


def _close_day(source: Source, day: int, step: int) -> int | None:
    """Return the next day with closest calls, or the next one that was not searched; None if there is none.

    step: -1 searches before the day, 1 behind it, among the days with verdicts.
    """
    rows = source.rows("counts", EVERYTHING)
    first = min((row["first"] for row in rows if row["first"]), default=0) // DAY_MS
    last = max((row["at"] for row in rows), default=0) // DAY_MS
    day, stop = (max(day + 1, first), last + 1) if step > 0 else (min(day - 1, last), first - 1)
    searched = 0
    blocks = range(day // BLOCK_DAYS, stop // BLOCK_DAYS + step, step) if (stop - day) * step > 0 else range(0)
    for block in blocks[: RANGE_DAYS_MAX // BLOCK_DAYS]:
        held = spans_of(source.rows("counts", block_key(EVERYTHING, block)), "days")
        for each in sorted(held, reverse=step < 0):
            found = block * BLOCK_DAYS + each
            if not (day <= found < stop if step > 0 else stop < found <= day):
                continue
            if searched == DAYS_SEARCHED_MAX or _close_of(source, found):
                return found
            searched += 1
    return None


def _day_of(date: str) -> int:
    """Return the day since the epoch of YYYY-MM-DD, -1 for anything else."""
    try:
        return max(-1, int(datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) // (DAY_MS // 1000))
    except ValueError:
        return -1


def _date(day: int) -> str:
    return datetime.fromtimestamp(max(0, day) * DAY_MS / 1000, UTC).strftime("%Y-%m-%d")


def rejects(source: Source, reason: str, after: str = "", before: str = "") -> Facts | str:
    """Return the reasons of rejection and one page of those of one reason, newest first, or an error text."""
    _, reasons = counts_of(source.rows("counts", EVERYTHING))
    out = {"reasons": dict(reasons.most_common()), "reason": reason or None}
    if not reason:
        return out | {"items": [], "previous": None, "next": None}
    held, cursors = entries.page_of(source, entries.of_reason(reason), Cursor(after, before))
    if not held:
        return f"No page was rejected for the reason {reason[:200]!r}"
    return out | {"items": [row for _, row in held], **cursors}


def rejected(source: Source, reason: str, page_id: int) -> Facts | None:
    """Return a rejected page."""
    key = entries.of_reason(reason) + entries.newest(page_id)
    return next(iter(source.rows(entries.TABLE, key)), None)


def paged(name: str, items: Sequence[Any], page: int) -> Facts:
    """Return one page of a list. page: number of the page, from 1 on."""
    pages = max(1, -(-len(items) // ITEMS_SHOWN))
    page = min(page, pages)
    return {name: list(items[(page - 1) * ITEMS_SHOWN : page * ITEMS_SHOWN]), "page": page, "pages": pages}
