"""The effective verdict of a URL. No other module interprets `standing`.

A consumer keeps the last verdict of each URL. If that is `unchanged`, `edited`, `stale` or `rejected`, the field
`standing` contains the effective verdict. All other verdicts are effective themselves.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from neardup.verdict import Kind

Verdict = Mapping[str, Any]

#: Kinds of standings that an index shows, and kinds of a page that an index replaces by another one.
SHOWN = (Kind.UNIQUE.value, Kind.SAME_CONTENT.value)
DUPLICATES = (Kind.EXACT_DUPLICATE.value, Kind.NEAR_DUPLICATE.value)


class Standing(NamedTuple):
    """The effective verdict of a URL.

    kind: `unique`, `exact_duplicate`, `near_duplicate`, `same_content`, `gone`, or `rejected` if no earlier fetch could
        be read either.
    cluster: id of the URL's cluster; None for `gone` and `rejected`.
    representative, content_of: fields of the effective verdict.
    """

    kind: str
    cluster: int | None
    representative: Mapping[str, Any] | None
    content_of: Mapping[str, Any] | None

    @property
    def shown(self) -> bool:
        """Whether an index should show the URL."""
        return self.kind in SHOWN

    @property
    def live(self) -> bool:
        """Whether the URL is in a cluster."""
        return self.kind in SHOWN or self.kind in DUPLICATES


def standing_of(verdict: Verdict) -> Standing:
    """Returns the effective verdict of a verdict's URL.

    verdict: verdict as a JSON object. Raises KeyError, TypeError or ValueError for another object.
    """
    held = verdict.get("standing") or {}
    effective = held or verdict
    kind = str(effective["verdict"])
    cluster = verdict.get("cluster")
    cluster = held.get("cluster") if cluster is None else cluster
    return Standing(
        "unique" if kind == "promoted" else kind,
        None if cluster is None else int(cluster),
        effective.get("representative"),
        effective.get("content_of"),
    )


def duplicate_of(verdict: Verdict) -> str | None:
    """Return the URL of the page that an index shows instead of this one; None if it shows this one, or it is gone.

    `same_content` is no duplicate: the earlier page with the same main content (`content_of`) may be a copy of this
    page, with text added, that was crawled first.
    """
    standing = standing_of(verdict)
    if standing.kind not in DUPLICATES:
        return None
    assert standing.representative is not None, "a duplicate names its representative"
    return str(standing.representative["url"])
