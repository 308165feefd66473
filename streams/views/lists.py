"""Bounded lists of the table `lists`: each row holds what one page of the views shows. Keys and rows:

sites                -> {last, sites: {site: [verdicts, duplicates]}} with the most verdicts
clusters             -> {last, clusters: {cluster: [size, canonical URL, page id of the verdict]}} with the most pages
close, day           -> {last, items: [...]} closest calls of the day, the closest first
rejected, reason     -> {last, items: [...]} newest rejected pages
kind, kind           -> {last, items: [...]} newest verdicts of a kind, or of the pages kept apart
suppressed, site     -> {last, items: [...], originals: {URL: pages suppressed}} newest duplicates of a site
patterns, site       -> {last, patterns: see `neardup.report.url_patterns`} URL patterns of a site
hot; hot, site       -> {last, families: {family: keys}, items: [...]} newest hot keys: of the crawl, of a site

A site, cluster or original that enters a full list late lacks the verdicts before that. `streams.views.view_rows`
explains `last`.
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
from streams.formats.verdict_records import Verdict

Row = dict[str, Any]
Facts = dict[str, Any]
#: Makes the new row of the old one.
Change = Callable[[Row | None], Row]
#: Of a verdict that a rule decided: (distance of the score from the threshold, deciding step, the other page's URL).
Closeness = Callable[[Verdict], tuple[float, str, str] | None]

SITES_KEPT, CLUSTERS_KEPT, ORIGINALS_KEPT = 100, 100, 10
CLOSE_KEPT, REJECTED_KEPT, NEWEST_KEPT, SUPPRESSED_KEPT, HOT_KEPT = 25, 50, 50, 10, 50
#: Characters of a URL, name or reason in a list. The scheme bounds the URLs of readable pages to 2,048 bytes.
CHARS_KEPT = 2_048
#: A row is rewritten for each batch, and a message of Kafka holds 1 MB: a list drops its oldest items beyond this.
ROW_CHARS_MAX = 200_000
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


def rejected_key(reason: str) -> str:
    """reason: general part, see `reason_kind`."""
    return key("rejected", reason[:_REASON_CHARS_KEPT])


def hot_key(site: str | None = None) -> str:
    """site: None for the whole crawl."""
    return _HOT if site is None else f"{_HOT}\n{site}"


def changes(verdict: Verdict, kind: str, site: str, day: int, closeness: Closeness) -> Iterator[tuple[str, Change]]:
    """Yield (key, change) for each row that a verdict changes."""
    yield SITES, lambda row: _sites_row(row, site, kind)
    if verdict.get("cluster") is not None and verdict.get("cluster_size") is not None:
        yield CLUSTERS, lambda row: _clusters_row(row, verdict)
    if kind == "rejected":
        yield rejected_key(reason_kind(verdict.get("reason"))), lambda row: _rejected_row(row, verdict)
    item = _newest_item(verdict)
    yield key("kind", kind), lambda row: _newest_first(row, [item], NEWEST_KEPT)
    if kept_apart(verdict):
        yield key("kind", KEPT_APART), lambda row: _newest_first(row, [item], NEWEST_KEPT)
    if (close := closeness(verdict)) is not None:
        yield key("close", day), lambda row: _close_row(row, verdict, *close)
    if kind in DUPLICATES:
        yield key("suppressed", site), lambda row: _suppressed_row(row, verdict)
    if site and not verdict.get("n") and url_patterns.counts_at_all(verdict):
        yield (
            key("patterns", site),
            lambda row: {"patterns": url_patterns.counted(row["patterns"] if row else {}, verdict, site)},
        )
    if turned := [str(name) for name in (verdict.get("evidence") or {}).get("turned_hot") or ()]:
        for hot in (hot_key(), hot_key(site)):
            yield hot, lambda row: _hot_row(row, verdict, site, turned)


def kept_apart(verdict: Verdict) -> bool:
    """Return whether the page founds a cluster although a similar page exists."""
    return bool((verdict.get("evidence") or {}).get("kept_apart"))


def shortened(text: Any, chars_max: int = CHARS_KEPT) -> str:
    """Return a text of at most `chars_max` characters, with CUT at its end if it was longer."""
    whole = str(text)
    return whole if len(whole) <= chars_max else whole[: chars_max - 1] + CUT


def _newest_first(row: Row | None, items: Sequence[Facts], kept: int) -> Row:
    out, chars = list[Facts](), 0
    for item in [*items, *(row["items"] if row else ())][:kept]:
        chars += sum(len(value) for value in item.values() if isinstance(value, str))
        if out and chars > ROW_CHARS_MAX:
            break
        out.append(item)
    return {"items": out}


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
    sites = dict(row["sites"]) if row else {}
    verdicts, duplicates = sites.get(site, (0, 0))
    sites[site] = [verdicts + 1, duplicates + (kind in DUPLICATES)]
    return {"sites": _most(sites, SITES_KEPT, lambda name: sites[name][0])}


def _clusters_row(row: Row | None, verdict: Verdict) -> Row:
    clusters = dict(row["clusters"]) if row else {}
    name, size = str(verdict["cluster"]), int(verdict["cluster_size"])
    if size > 1:
        clusters[name] = [size, shortened(verdict.get("canonical") or verdict["url"]), verdict["page_id"]]
    else:
        clusters.pop(name, None)
    return {"clusters": _most(clusters, CLUSTERS_KEPT, lambda name: clusters[name][0])}


def _most(counts: dict[str, Any], kept: int, count_of: Callable[[str], int]) -> dict[str, Any]:
    """Keep the `kept` names with the greatest counts, once there are twice as many."""
    if len(counts) <= 2 * kept:
        return counts
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-count_of(name), name))[:kept]}


def _rejected_row(row: Row | None, verdict: Verdict) -> Row:
    item = {
        "url": shortened(verdict["url"]),
        "page_id": verdict["page_id"],
        "reason": shortened(verdict.get("reason")),
        "fetched_at": verdict.get("fetched_at"),
        "coordinates": verdict.get("coordinates"),
    }
    return _newest_first(row, [item], REJECTED_KEPT)


def _close_row(row: Row | None, verdict: Verdict, margin: float, by: str, other: str) -> Row:
    items = list(row["items"]) if row else []
    if len(items) == CLOSE_KEPT and abs(items[-1]["margin"]) <= abs(margin):
        return {"items": items}
    items.append(
        {
            "url": shortened(verdict["url"]),
            "other": shortened(other),
            "verdict": verdict["verdict"],
            "margin": round(margin, 6),
            "by": by,
            "page_id": verdict["page_id"],
        }
    )
    items.sort(key=lambda item: abs(item["margin"]))
    return {"items": items[:CLOSE_KEPT]}


def _suppressed_row(row: Row | None, verdict: Verdict) -> Row:
    original = shortened((verdict.get("representative") or {}).get("url") or "")
    item = {
        "url": shortened(verdict["url"]),
        "original": original,
        "verdict": verdict["verdict"],
        "page_id": verdict["page_id"],
    }
    originals = dict(row["originals"]) if row else {}
    originals[original] = originals.get(original, 0) + 1
    kept = _most(originals, ORIGINALS_KEPT, lambda url: originals[url])
    return {**_newest_first(row, [item], SUPPRESSED_KEPT), "originals": kept}


def _hot_row(row: Row | None, verdict: Verdict, site: str, names: Sequence[str]) -> Row:
    families = Counter[str](row["families"] if row else {})
    families.update(_family(name) for name in names)
    page = {"url": shortened(verdict["url"]), "site": site, "page_id": verdict["page_id"]}
    items = [{"key": shortened(name), **page} for name in names]
    return {"families": dict(families), **_newest_first(row, items, HOT_KEPT)}


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


def newest_of(rows: Sequence[Row], kept: int = NEWEST_KEPT) -> list[Facts]:
    """Items of a list, the newest page first."""
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: (-item["page_id"], item.get("key", "")))[:kept]


def close_of(rows: Sequence[Row]) -> list[Facts]:
    items = [item for row in rows for item in row["items"]]
    return sorted(items, key=lambda item: (abs(item["margin"]), item["page_id"]))[:CLOSE_KEPT]


def suppressed_of(rows: Sequence[Row]) -> Facts:
    """Newest suppressed pages of a site, and the pages with the most duplicates on it."""
    originals = Counter[str]()
    for row in rows:
        originals.update(row["originals"])
    most = sorted(originals, key=lambda url: (-originals[url], url))[:ORIGINALS_KEPT]
    return {"newest": newest_of(rows, SUPPRESSED_KEPT), "originals": {url: originals[url] for url in most}}


def hot_of(rows: Sequence[Row], shown: int) -> Facts:
    """Number of hot keys by family, and the newest `shown`."""
    families = Counter[str]()
    for row in rows:
        families.update(row["families"])
    total = families.total()
    return {"total": total, "families": dict(families.most_common()), "newest": newest_of(rows, shown)}
