"""What a verdict says besides its kind: who, where, and the numbers that a person needs to check it."""

from typing import Any

from neardup.decider import Decider
from neardup.index.rows import ClusterRow, UrlRow, id_key
from neardup.matching.choice import Scored, Search, families
from neardup.matching.overlay import Overlay
from neardup.rules import Pair, Ruling, rule_of
from neardup.sketch.header import Header
from neardup.verdict import Kind, Representative, Verdict


def frame(overlay: Overlay, kind: Kind, page_id: int, n: int, header: Header) -> Verdict:
    """A verdict with everything that the page's own sketch tells."""
    decider = overlay.decider
    page = kind is not Kind.GONE and kind is not Kind.REJECTED
    return Verdict(
        kind,
        page_id,
        n,
        header.url,
        header.fetched_at,
        header.coordinates,
        decider.scheme,
        decider.digest,
        title=header.title or None,
        site=header.site_name or None,
        lang=header.lang or None,
        thin=page and not header.opaque and header.tokens < decider.thin_tokens,
        opaque=header.opaque,
        truncated=header.truncated,
    )


def representative(overlay: Overlay, founding: int) -> Representative:
    """The page of a founding sketch, as a verdict names it."""
    known = overlay.representatives.get(founding)
    if known is None:
        header = overlay.header(founding)
        known = Representative(founding, header.url, header.fetched_at, header.coordinates)
        overlay.representatives[founding] = known
    return known


def standing(overlay: Overlay, row: UrlRow) -> dict[str, Any]:
    """A URL's effective verdict, its cluster and who represents it; of a URL that is gone only that."""
    if not row.live:
        return {"verdict": row.standing}
    cluster = overlay.clusters.need(id_key(row.cluster))
    out: dict[str, Any] = {
        "verdict": row.standing,
        "representative": representative(overlay, cluster.founding),
        "cluster": row.cluster,
    }
    if row.standing is Kind.SAME_CONTENT:
        out["content_of"] = cluster.content_of
    return out


def tell_cluster(overlay: Overlay, verdict: Verdict, cluster_id: int) -> ClusterRow:
    """Fills in id, size, canonical URL and revision of a cluster as it is now."""
    cluster = overlay.clusters.need(id_key(cluster_id))
    verdict.cluster = cluster_id
    verdict.cluster_size = cluster.size
    verdict.canonical = cluster.canonical or overlay.header(cluster.founding).url
    verdict.revision = cluster.revision
    return cluster


def score_of(decider: Decider, pair: Pair) -> float:
    """The number that the rule looks at first; it tells which of the rejected candidates was nearest."""
    score: float = round(rule_of(decider).nearness(pair), 4)
    return score


def of_pair(decider: Decider, header: Header, other: Header, pair: Pair, ruling: Ruling) -> dict[str, Any]:
    """The numbers of one pair and the step that decided."""
    return rule_of(decider).evidence(pair, ruling) | _langs(header.lang, other.lang)


def of_search(overlay: Overlay, page_id: int, header: Header, search: Search) -> dict[str, Any]:
    """Evidence of a page whose content nobody has, as the index is before the page is in it."""
    if search.best is None:
        return of_none(overlay, header, search)
    return of_choice(overlay, page_id, header.lang, search, search.best)


def of_choice(
    overlay: Overlay, page_id: int, lang: str, search: Search, best: Scored, shared: dict[str, int] | None = None
) -> dict[str, Any]:
    """Evidence of a page that repeats `best`. shared: families of the keys that both have, if known."""
    out = rule_of(overlay.decider).evidence(best.pair, best.ruling)
    if lang:
        out |= _langs(lang, overlay.header(best.page_id).lang)
    out["keys"] = families(overlay, page_id, best.page_id) if shared is None else shared
    out["candidates"] = len(search.candidates)
    return out | _crowds(overlay.decider, search)


def _crowds(decider: Decider, search: Search) -> dict[str, Any]:
    """How many pages like this one there are, where the rule may have asked."""
    out: dict[str, Any] = {}
    if decider.crowd_min:
        out["crowd"] = search.crowd
    if search.siblings.alike:
        out["siblings"] = [search.siblings.others, search.siblings.alike]
    return out


def of_none(overlay: Overlay, header: Header, search: Search) -> dict[str, Any]:
    """Evidence of a page that repeats nothing: how many candidates there were, and what rejected the nearest."""
    out: dict[str, Any] = {"candidates": len(search.candidates)}
    if search.candidates:
        out |= _crowds(overlay.decider, search)
        decider = overlay.decider
        nearest = search.nearest(overlay)
        other = overlay.header(nearest.page_id)
        out["nearest"] = {
            **_place(nearest.page_id, other),
            "score": score_of(decider, nearest.pair),
            **of_pair(decider, header, other, nearest.pair, nearest.ruling),
        }
    return out


def of_digest(site: int, lang: str, holder_id: int, holder: Header, founding: Header) -> dict[str, Any]:
    """Evidence of an exact duplicate: whose content it has. site, lang: its own."""
    out: dict[str, Any] = {"by": "digest", "holder": _place(holder_id, holder), "same_site": site == founding.site}
    if lang:
        out |= _langs(lang, founding.lang)
    return out


def _place(page_id: int, header: Header) -> dict[str, Any]:
    """Enough of a page to find and read it again."""
    return {"page_id": page_id, "url": header.url, "fetched_at": header.fetched_at, "coordinates": header.coordinates}


def _langs(one: str, other: str) -> dict[str, Any]:
    return {"langs": [one, other]} if one and other else {}
