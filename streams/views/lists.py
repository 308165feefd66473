"""Bounded lists of the table `lists`: each row holds what one page of the views shows. Keys and rows:

sites                -> {last, sites: {site: [verdicts, duplicates]}} with the most verdicts
clusters             -> {last, clusters: {cluster: [size, canonical URL, page id of the verdict]}} with the most pages
close, day           -> {last, items: [...]} closest calls of the day, the closest first
suppressed, site     -> {last, items: [...], originals: {URL: pages suppressed}} newest duplicates of a site
patterns, site       -> {last, patterns: see `neardup.report.url_patterns`} URL patterns of a site
hot; hot, site       -> {last, families: {family: keys}} hot keys by family: of the crawl, of a site

A site, cluster or original that enters a full list late lacks the verdicts before that. `streams.views.view_rows`
explains `last`. Lists that are whole, with pages, are `streams.views.entries`; `items` makes their rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from neardup.decider import Decider
from neardup.report import url_patterns
from neardup.report.evidence_sentences import reason_kind
from neardup.report.verdict_counts import nearest
from neardup.rules.base import margin as margin_of
from neardup.rules.key_families import WORDS, KeyFamily
from neardup.standing import DUPLICATES
from neardup.urls import site_of_verdict
from streams.formats.verdict_records import Verdict
from streams.views import entries
from streams.views.entries import Row

Facts = dict[str, Any]
#: Makes the new row of the old one, into which it may write.
Change = Callable[[Row | None], Row]
#: Of a verdict that a rule decided: (distance of the score from the threshold, deciding step, the other page's URL).
Closeness = Callable[[Verdict], tuple[float, str, str] | None]

SITES_KEPT, CLUSTERS_KEPT, ORIGINALS_KEPT = 100, 100, 10
CLOSE_KEPT, SUPPRESSED_KEPT = 25, 10
#: Hot keys of one verdict that are listed.
HOT_KEPT = 50
#: Characters of a URL, name or reason in a list. The scheme bounds the URLs of readable pages to 2,048 bytes.
CHARS_KEPT = 2_048
#: Ends a text that was cut. Normalised URLs do not contain it.
CUT = "\N{HORIZONTAL ELLIPSIS}"
_REASON_CHARS_KEPT, _TITLE_CHARS_KEPT = 200, 200
SITES, CLUSTERS, _HOT = "sites", "clusters", "hot"
#: List of pages that the rule kept apart from a similar one.
KEPT_APART = "kept_apart"
_DECIDED = ("unique", "near_duplicate", "same_content")


def key(of: str, name: object) -> str:
    """of: the kind of the list. name: the day, kind or site."""
    return f"{of}\n{name}"


def reason_of(verdict: Verdict) -> str:
    """Return the general part of a rejected page's reason, by which they are listed."""
    return reason_kind(verdict.get("reason"))[:_REASON_CHARS_KEPT]


def hot_key(site: str | None = None) -> str:
    """site: None for the whole crawl."""
    return _HOT if site is None else f"{_HOT}\n{site}"


def changes(verdict: Verdict, kind: str, site: str, day: int, closeness: Closeness) -> Iterator[tuple[str, Change]]:
    """Yield (key, change) for each row that a verdict changes."""
    yield SITES, lambda row: _sites_row(row, site, kind)
    if (cluster := cluster_entry(verdict)) is not None:
        yield CLUSTERS, lambda row: _clusters_row(row, *cluster)
    if (close := closeness(verdict)) is not None:
        closest = _close_item(verdict, *close)
        yield key("close", day), lambda row: _close_row(row, closest)
    if kind in DUPLICATES:
        suppressed = _suppressed_item(verdict)
        yield key("suppressed", site), lambda row: _suppressed_row(row, suppressed)
    if site and not verdict.get("n") and (count := url_patterns.counter_of(verdict, site)) is not None:
        yield key("patterns", site), lambda row: {"patterns": count(row["patterns"] if row else {})}
    if turned := [_family(name) for name in _turned_hot(verdict)]:
        for hot in (hot_key(), hot_key(site)):
            yield hot, lambda row: _hot_row(row, turned)


def items(verdict: Verdict, last: Sequence[int]) -> Iterator[tuple[str, Row]]:
    """Yield (key, row) of each entry that follows from a verdict alone. last: its id."""
    kind, site = str(verdict["verdict"]), site_of_verdict(verdict)
    newest = entries.newest(*last)
    item = _newest_item(verdict)
    yield entries.SITES + site, {}
    for name in (kind, KEPT_APART) if kept_apart(verdict) else (kind,):
        yield entries.of_kind(name) + newest, item
        yield entries.of_kind(name, site) + newest, {}
    if kind == "rejected":
        yield entries.of_reason(reason_of(verdict)) + newest, _rejected_item(verdict)
    for number, name in enumerate(_turned_hot(verdict)[:HOT_KEPT]):
        page = {"key": shortened(name), "url": item["url"], "site": site, "page_id": verdict["page_id"]}
        for of in (entries.of_hot(), entries.of_hot(site)):
            yield f"{of}{newest}{number:02x}", page


def _turned_hot(verdict: Verdict) -> list[str]:
    return [str(name) for name in (verdict.get("evidence") or {}).get("turned_hot") or ()]


def cluster_entry(verdict: Verdict) -> tuple[str, int, str, int] | None:
    """Return (cluster, size, canonical URL, page id of the verdict) of a verdict with a cluster's figures."""
    if verdict.get("cluster") is None or verdict.get("cluster_size") is None:
        return None
    canonical = shortened(verdict.get("canonical") or verdict["url"])
    return str(verdict["cluster"]), int(verdict["cluster_size"]), canonical, int(verdict["page_id"])


def kept_apart(verdict: Verdict) -> bool:
    """Return whether the page founds a cluster although a similar page exists."""
    return bool((verdict.get("evidence") or {}).get("kept_apart"))


def shortened(text: Any, chars_max: int = CHARS_KEPT) -> str:
    """Return a text of at most `chars_max` characters, with CUT at its end if it was longer."""
    whole = str(text)
    return whole if len(whole) <= chars_max else whole[: chars_max - 1] + CUT


def _newest_item(verdict: Verdict) -> Facts:
    other = verdict.get("content_of") or verdict.get("representative") or nearest(verdict) or {}
    if other.get("page_id") == verdict["page_id"]:
        other = nearest(verdict) or {}
    return {
        "url": shortened(verdict["url"]),
        "title": shortened(verdict.get("title") or "", _TITLE_CHARS_KEPT),
        "other": shortened(other.get("url") or ""),
        "by": str((verdict.get("evidence") or {}).get(KEPT_APART) or "")[:_REASON_CHARS_KEPT],
        "page_id": verdict["page_id"],
        "fetched_at": verdict.get("fetched_at"),
    }


def _sites_row(row: Row | None, site: str, kind: str) -> Row:
    sites = row["sites"] if row else {}
    verdicts, duplicates = sites.get(site, (0, 0))
    sites[site] = [verdicts + 1, duplicates + (kind in DUPLICATES)]
    if row is not None and len(sites) <= 2 * SITES_KEPT:
        return row
    return {"sites": _most(sites, SITES_KEPT, lambda name: sites[name][0])}


def _clusters_row(row: Row | None, name: str, size: int, canonical: str, page_id: int) -> Row:
    clusters = row["clusters"] if row else {}
    if size > 1:
        clusters[name] = [size, canonical, page_id]
    else:
        clusters.pop(name, None)
    return {"clusters": _most(clusters, CLUSTERS_KEPT, lambda name: clusters[name][0])}


def _most(counts: dict[str, Any], kept: int, count_of: Callable[[str], int]) -> dict[str, Any]:
    """Keep the `kept` names with the greatest counts, once there are twice as many."""
    if len(counts) <= 2 * kept:
        return counts
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-count_of(name), name))[:kept]}


def _rejected_item(verdict: Verdict) -> Facts:
    return {
        "url": shortened(verdict["url"]),
        "page_id": verdict["page_id"],
        "reason": shortened(verdict.get("reason")),
        "fetched_at": verdict.get("fetched_at"),
        "coordinates": verdict.get("coordinates"),
    }


def _close_item(verdict: Verdict, margin: float, by: str, other: str) -> Facts:
    return {
        "url": shortened(verdict["url"]),
        "other": shortened(other),
        "verdict": verdict["verdict"],
        "margin": round(margin, 6),
        "by": by,
        "page_id": verdict["page_id"],
    }


def _close_row(row: Row | None, item: Facts) -> Row:
    items = row["items"] if row else []
    if len(items) < CLOSE_KEPT or abs(items[-1]["margin"]) > abs(item["margin"]):
        items.append(item)
        items.sort(key=lambda item: abs(item["margin"]))
    return {"items": items[:CLOSE_KEPT]}


def _suppressed_item(verdict: Verdict) -> Facts:
    return {
        "url": shortened(verdict["url"]),
        "original": shortened((verdict.get("representative") or {}).get("url") or ""),
        "verdict": verdict["verdict"],
        "page_id": verdict["page_id"],
    }


def _suppressed_row(row: Row | None, item: Facts) -> Row:
    original, originals = item["original"], row["originals"] if row else {}
    originals[original] = originals.get(original, 0) + 1
    kept = _most(originals, ORIGINALS_KEPT, lambda url: originals[url])
    return {"items": [item, *(row["items"] if row else ())][:SUPPRESSED_KEPT], "originals": kept}


def _hot_row(row: Row | None, turned: Sequence[str]) -> Row:
    families = Counter[str](row["families"] if row else {})
    families.update(turned)
    return {"families": dict(families)}


def _family(name: str) -> str:
    return name.partition(":")[0][:CHARS_KEPT]


def family_name(key: str) -> str:
    """Name the family of an index key for people; a family that this program does not know by its own name."""
    family = KeyFamily.__members__.get(_family(key).upper())
    return WORDS[family].one if family in WORDS else _family(key)


def closeness_to(decider: Decider) -> Closeness:
    """Return the closeness of verdicts that this decider made, whatever the scheme; None for others."""
    digests = dict[str, str]()

    def closeness(verdict: Verdict) -> tuple[float, str, str] | None:
        scheme = str(verdict.get("scheme", ""))
        if scheme not in digests:
            digests.clear()
            digests[scheme] = replace(decider, scheme=scheme).digest
        if verdict.get("decider") != digests[scheme]:
            return None
        accepted = verdict["verdict"] in ("near_duplicate", "same_content")
        evidence = verdict.get("evidence") or {} if accepted else nearest(verdict)
        other = (verdict.get("content_of") or verdict.get("representative")) if accepted else evidence
        if not evidence.get("by") or not other or verdict["verdict"] not in _DECIDED:
            return None
        margin = margin_of(evidence)
        return None if margin is None else (margin, str(evidence["by"]), str(other.get("url") or ""))

    return closeness


# What follows joins the rows of all partitions.


def sites_of(rows: Sequence[Row]) -> list[str]:
    """Sites, those with the most verdicts first."""
    totals = Counter[str]()
    for row in rows:
        totals.update({site: verdicts for site, (verdicts, _) in row["sites"].items()})
    return sorted(totals, key=lambda site: (-totals[site], site))[:SITES_KEPT]


def clusters_of(rows: Sequence[Row]) -> list[Facts]:
    """Clusters by size, each by the newest verdict that names it."""
    newest: dict[str, list[Any]] = {}
    for row in rows:
        for name, entry in row["clusters"].items():
            if name not in newest or entry[2] > newest[name][2]:
                newest[name] = entry
    ordered = sorted(newest.items(), key=lambda each: (-each[1][0], int(each[0])))[:CLUSTERS_KEPT]
    return [{"cluster": int(name), "size": size, "canonical": url} for name, (size, url, _) in ordered]


def _newest_of(rows: Sequence[Row], kept: int) -> list[Facts]:
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: -item["page_id"])[:kept]


def close_of(rows: Sequence[Row]) -> list[Facts]:
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: (abs(item["margin"]), item["page_id"]))[:CLOSE_KEPT]


def suppressed_of(rows: Sequence[Row]) -> Facts:
    """Newest suppressed pages of a site, and the pages with the most duplicates on it."""
    originals = Counter[str]()
    for row in rows:
        originals.update(row["originals"])
    most = sorted(originals, key=lambda url: (-originals[url], url))[:ORIGINALS_KEPT]
    return {"newest": _newest_of(rows, SUPPRESSED_KEPT), "originals": {url: originals[url] for url in most}}


def hot_of(rows: Sequence[Row]) -> Facts:
    """Number of hot keys, and by family."""
    families = Counter[str]()
    for row in rows:
        families.update(row["families"])
    return {"total": families.total(), "families": dict(families.most_common())}
