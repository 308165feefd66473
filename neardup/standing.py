"""The effective verdict of a URL. No other module interprets `standing`.

A consumer keeps the last verdict of each URL. If that is `unchanged`, `edited`, `stale` or `rejected`, the field
`standing` contains the effective verdict. All other verdicts are effective themselves.
"""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, convert
from msgspec.json import Decoder

from neardup.verdict import TAKEN_DOWN, Coordinates, Kind

Verdict = Mapping[str, Any]
#: A page that a verdict refers to: as a JSON object, or its URL.
Ref = TypeVar("Ref")

#: Kinds of standings that an index shows, and kinds of a page that an index replaces by another one.
SHOWN = (Kind.UNIQUE.value, Kind.SAME_CONTENT.value)
DUPLICATES = (Kind.EXACT_DUPLICATE.value, Kind.NEAR_DUPLICATE.value)


class Standing(NamedTuple, Generic[Ref]):
    """The effective verdict of a URL.

    kind: `unique`, `exact_duplicate`, `near_duplicate`, `same_content`, `gone`, or `rejected` if no earlier fetch could
        be read either.
    cluster: id of the URL's cluster; None for `gone` and `rejected`.
    representative, content_of: fields of the effective verdict.
    """

    kind: str
    cluster: int | None
    representative: Ref | None
    content_of: Ref | None

    @property
    def shown(self) -> bool:
        """Whether an index should show the URL."""
        return self.kind in SHOWN

    @property
    def live(self) -> bool:
        """Whether the URL is in a cluster."""
        return self.kind in SHOWN or self.kind in DUPLICATES


class NamedPage(Struct, gc=False):
    """A page that a verdict refers to."""

    url: str


class InForce(Struct, gc=False):
    """The field `standing`, which names some pages by their page ids alone."""

    verdict: str
    cluster: int | None = None
    representative: NamedPage | int | None = None
    content_of: NamedPage | int | None = None


class Evidence(Struct, gc=False):
    """Fields of the evidence that tables have."""

    by: str | None = None
    kept_apart: str | None = None
    nearest: NamedPage | None = None


class VerdictFields(Struct, gc=False):
    """The fields of a verdict that tables have. To decode them takes half the time of the whole JSON object."""

    verdict: str
    page_id: int
    n: int
    url: str
    fetched_at: int
    coordinates: Coordinates
    scheme: str | None = None
    decider: str | None = None
    reason: str | None = None
    standing: InForce | None = None
    representative: NamedPage | int | None = None
    cluster: int | None = None
    cluster_size: int | None = None
    canonical: str | None = None
    revision: int | None = None
    content_of: NamedPage | int | None = None
    evidence: Evidence | None = None
    title: str | None = None
    site: str | None = None
    lang: str | None = None
    thin: bool = False
    opaque: bool = False
    shell: bool = False
    truncated: bool = False
    rel_canonical: str | None = None
    score: float | None = None

    @classmethod
    def of(cls, verdict: Verdict) -> "VerdictFields":
        """Return the fields of a verdict's JSON object. Raises msgspec.ValidationError for another object."""
        return convert(verdict, cls)

    def in_force(self) -> Standing[str]:
        """Return the effective verdict of the URL, with URLs of pages where they are known."""
        held = self.standing
        if held is None:
            kind, cluster, shown, like = self.verdict, self.cluster, self.representative, self.content_of
        else:
            cluster = held.cluster if self.cluster is None else self.cluster
            kind, shown, like = held.verdict, held.representative, held.content_of
        return Standing("unique" if kind == "promoted" else kind, cluster, url_of(shown), url_of(like))


#: Decodes lines of JSON; raises msgspec.DecodeError.
fields_of_lines = Decoder(VerdictFields).decode_lines


def url_of(page: NamedPage | int | None) -> str | None:
    """Return the URL of a page that a verdict refers to, None if it is not known."""
    return page.url if isinstance(page, NamedPage) and page.url != TAKEN_DOWN else None


def standing_of(verdict: Verdict) -> Standing[Mapping[str, Any]]:
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
