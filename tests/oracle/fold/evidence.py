"""The evidence of a verdict: the other page, and the numbers by which a person can check it."""

from typing import Any

from neardup.decider import Decider
from neardup.index.rows import UrlRow, id_key
from neardup.matching.outcome import Scored
from neardup.rules import Pair, Ruling, rule_of
from neardup.sketch.header import Header
from neardup.verdict import Kind, Representative
from tests.oracle.fold import membership
from tests.oracle.fold.overlay import Overlay
from tests.oracle.fold.search import Search, families

Evidence = dict[str, Any]


def representative(overlay: Overlay, founding: int) -> Representative:
    """Describes the page of a founding sketch, as in a verdict."""
    header = overlay.header(founding)
    return Representative(
        page_id=founding, url=header.url, fetched_at=header.fetched_at, coordinates=header.coordinates
    )


def standing(overlay: Overlay, row: UrlRow) -> dict[str, Any]:
    """Describes a URL's effective verdict, its cluster and representative. For a URL that is gone, only the verdict."""
    if not row.live:
        return {"verdict": row.standing}
    cluster = overlay.clusters.need(id_key(row.cluster))
    out: dict[str, Any] = {
        "verdict": membership.standing_of(overlay, row),
        "representative": representative(overlay, cluster.founding),
        "cluster": row.cluster,
    }
    if row.standing is Kind.SAME_CONTENT:
        out["content_of"] = cluster.content_of
    return out


def of_pair(decider: Decider, header: Header, other: Header, pair: Pair, ruling: Ruling) -> Evidence:
    """The numbers of a pair, and the step that decided."""
    return rule_of(decider).evidence(pair, ruling) | _langs(header.lang, other.lang)


def of_choice(overlay: Overlay, page_id: int, lang: str, search: Search, best: Scored) -> Evidence:
    """Evidence of a page that repeats `best`. lang: the page's."""
    out = rule_of(overlay.decider).evidence(best.pair, best.ruling)
    if lang:
        out |= _langs(lang, overlay.header(best.page_id).lang)
    out["keys"] = families(overlay, page_id, best.page_id)
    out["candidates"] = len(search.candidates)
    return out | _siblings(search)


def _siblings(search: Search) -> Evidence:
    """[others, alike]: pages of the same owner with the page's name. Empty without any, or if the rule counts none."""
    return {"siblings": [search.siblings.others, search.siblings.alike]} if search.siblings.alike else {}


def of_none(overlay: Overlay, lang: str, search: Search) -> Evidence:
    """Return the evidence of a page without duplicates: number of candidates, and the step that refused the nearest.

    The field `kept_apart` names this step if the texts alone are similar enough for a duplicate.

    Args:
        overlay: the rows of the batch.
        lang: language of the page.
        search: result of the search for the page's best candidate.
    """
    out: dict[str, Any] = {"candidates": len(search.candidates)}
    if search.candidates:
        out |= _siblings(search)
        decider = overlay.decider
        nearest = search.nearest
        assert nearest is not None
        other = overlay.header(nearest.page_id)
        if nearest.ruling.kept_apart:
            out["kept_apart"] = nearest.ruling.by
        out["nearest"] = {
            **place_of(nearest.page_id, other),
            **rule_of(decider).evidence(nearest.pair, nearest.ruling),
            **_langs(lang, other.lang),
        }
    return out


def of_claim(overlay: Overlay, former: UrlRow, proof: Evidence) -> Evidence:
    """Evidence of a page that reclaimed a cluster: the former representative, and the numbers of both."""
    return {"candidates": 0, "reclaimed": {**place_of(former.page_id, overlay.header(former.page_id)), **proof}}


def of_digest(site: int, lang: str, holder_id: int, holder: Header, founding: Header) -> Evidence:
    """Evidence of an exact duplicate: the page with the same content. site, lang: the page's."""
    out: dict[str, Any] = {"by": "digest", "holder": place_of(holder_id, holder), "same_site": site == founding.site}
    if lang:
        out |= _langs(lang, founding.lang)
    return out


def _langs(one: str, other: str) -> Evidence:
    return {"langs": [one, other]} if one and other else {}


def place_of(page_id: int, header: Header) -> Evidence:
    """The coordinates by which a page can be found and read again."""
    return {"page_id": page_id, "url": header.url, "fetched_at": header.fetched_at, "coordinates": header.coordinates}
