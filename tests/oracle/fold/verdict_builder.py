"""Makes the verdicts on a batch's pages, one at a time."""

from typing import Any, NamedTuple

from neardup.decider import Decider
from neardup.index.rows import ClusterRow, UrlRow, id_key
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind, field_at, score_of
from neardup.verdict import Kind, Representative, Verdict
from tests.oracle.fold import evidence
from tests.oracle.fold.evidence import Evidence
from tests.oracle.fold.overlay import Overlay


class _Cluster(NamedTuple):
    """A cluster, as verdicts on its pages have it."""

    id: int | None = None
    size: int | None = None
    canonical: str | None = None
    revision: int | None = None


_NO_CLUSTER = _Cluster()


class VerdictBuilder:
    """Makes the verdicts of a batch, with clusters as they are now. `i` is the position of a page in the batch."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay, self._pages = overlay, overlay.pages

    def lang(self, i: int) -> str:
        """Language of a page, or empty."""
        return self._header(i).lang

    def _header(self, i: int) -> Header:
        return self._pages[self._pages.page_ids[i]]

    def _verdict(self, kind: Kind, i: int, cluster: _Cluster, proof: Evidence, **more: Any) -> Verdict:
        """The verdict on a page of the batch. more: further arguments of `_verdict`."""
        page_id = self._pages.page_ids[i]
        return _verdict(kind, page_id, 0, self._header(i), self._overlay.decider, cluster, proof, **more)

    # ---- of pages of the batch -------------------------------------------------------------------------------------

    def founder(self, i: int, proof: Evidence, cut: bool = False, content_of: Representative | None = None) -> Verdict:
        """A page that founded a cluster."""
        kind = Kind.UNIQUE if content_of is None else Kind.SAME_CONTENT
        cluster = _Cluster(id=self._pages.page_ids[i], size=1, canonical=self._header(i).url, revision=1)
        return self._verdict(kind, i, cluster, proof, content_of=content_of, cut=cut)

    def reclaimer(self, i: int, cluster_id: int, proof: Evidence) -> Verdict:
        """A page that reclaimed a cluster."""
        cluster = self._overlay.clusters.need(id_key(cluster_id))
        state = _of_cluster(cluster_id, cluster, evidence.representative(self._overlay, cluster.founding))
        return self._verdict(Kind.UNIQUE, i, state, proof)

    def member(
        self, kind: Kind, i: int, cluster_id: int, cluster: ClusterRow, proof: Evidence, cut: bool = False
    ) -> Verdict:
        """A page that joined a cluster."""
        representative = evidence.representative(self._overlay, cluster.founding)
        state = _of_cluster(cluster_id, cluster, representative)
        return self._verdict(kind, i, state, proof, representative=representative, cut=cut)

    def stands(self, kind: Kind, i: int, row: UrlRow | None, proof: Evidence | None = None) -> Verdict:
        """Return the verdict on a record after which the URL keeps its cluster.

        Args:
            kind: kind of the verdict.
            i: position of the record in the batch.
            row: row of the URL, if the URL is known.
            proof: evidence of the checks that were needed.
        """
        standing, cluster = None, _NO_CLUSTER
        if row is not None:
            standing = evidence.standing(self._overlay, row)
        if row is not None and row.live:
            found = self._overlay.clusters.need(id_key(row.cluster))
            cluster = _of_cluster(row.cluster, found, evidence.representative(self._overlay, found.founding))
        return self._verdict(kind, i, cluster, proof or {}, standing=standing)

    def gone(self, i: int) -> Verdict:
        return self._verdict(Kind.GONE, i, _NO_CLUSTER, {})

    # ---- of any page -----------------------------------------------------------------------------------------------

    def promoted(self, i: int, n: int, cluster_id: int) -> Verdict:
        """A page that became representative because of a page of the batch, whose n-th verdict this is."""
        return promoted(self._overlay, cluster_id, self._pages.page_ids[i], n)

    def stands_aside(self, i: int, n: int, row: UrlRow, proof: Evidence) -> Verdict:
        """A page that lost its cluster to a page of the batch, and became a member."""
        return _caused(self._overlay, row.standing, self._pages.page_ids[i], n, row.page_id, row.cluster, proof)


def promoted(overlay: Overlay, cluster_id: int, cause: int, n: int) -> Verdict:
    """The page that took a cluster over. cause, n: the verdict's id."""
    founding = overlay.clusters.need(id_key(cluster_id)).founding
    return _caused(overlay, Kind.PROMOTED, cause, n, founding, cluster_id, {})


def _caused(
    overlay: Overlay, kind: Kind, cause: int, n: int, page_id: int, cluster_id: int, proof: Evidence
) -> Verdict:
    """A verdict on a page because of another one."""
    cluster, header = overlay.clusters.need(id_key(cluster_id)), overlay.header(page_id)
    representative = evidence.representative(overlay, cluster.founding)
    state = _of_cluster(cluster_id, cluster, representative)
    return _verdict(kind, cause, n, header, overlay.decider, state, proof, representative=representative)


def _verdict(
    kind: Kind,
    cause: int,
    n: int,
    header: Header,
    decider: Decider,
    cluster: _Cluster,
    proof: Evidence,
    *,
    standing: dict[str, Any] | None = None,
    representative: Representative | None = None,
    content_of: Representative | None = None,
    cut: bool = False,
) -> Verdict:
    """Makes a verdict.

    Args:
        kind: kind of the verdict; a rejection has its reason.
        cause: page id of the record that causes the verdict.
        n: number of the verdict; 0: the page's own.
        header: sketch of the page that the verdict is about.
        decider: the decider that judged.
        cluster: cluster of the page after the record.
        proof: evidence.
        standing: verdict of the URL that is in force, if this one is another.
        representative: page that the page repeats.
        content_of: page with the same main content.
        cut: whether some candidates were not scored.
    """
    url, named = header.url, "" if n else header.canonical
    return Verdict(
        verdict=kind,
        page_id=cause,
        n=n,
        url=url,
        fetched_at=header.fetched_at,
        coordinates=header.coordinates,
        scheme=decider.scheme,
        decider=decider.digest,
        reason=header.reason if kind is Kind.REJECTED else None,
        standing=standing,
        representative=representative,
        cluster=cluster.id,
        cluster_size=cluster.size,
        canonical=cluster.canonical,
        revision=cluster.revision,
        content_of=content_of,
        evidence=proof,
        title=header.title or None,
        site=header.site_name or None,
        lang=header.lang or None,
        thin=header.kind is RecordKind.PAGE and not header.opaque and header.tokens < decider.thin_tokens,
        opaque=header.opaque,
        shell=header.shell,
        truncated=header.truncated,
        candidates_cut=cut,
        rel_canonical=named if named and named != url else None,
        score=None if n else score_of(header.record[field_at("score")]),
    )


def _of_cluster(cluster_id: int, cluster: ClusterRow, representative: Representative) -> _Cluster:
    canonical = cluster.canonical or representative.url
    return _Cluster(id=cluster_id, size=cluster.size, canonical=canonical, revision=cluster.revision)
