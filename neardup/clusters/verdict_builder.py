"""Makes the verdicts on a batch's pages. `PageFields` decodes the fields that depend on the page alone."""

from neardup.clusters import evidence
from neardup.clusters.evidence import Evidence
from neardup.clusters.overlay import Overlay
from neardup.clusters.page_fields import ClusterState, PageFields
from neardup.decider import Decider
from neardup.index.rows import ClusterRow, UrlRow, id_key
from neardup.sketch.header import Header
from neardup.verdict import TAKEN_DOWN, Kind, Representative, Verdict

_NO_CLUSTER: ClusterState = (None, None, None, None)


class VerdictBuilder:
    """Makes the verdicts of a batch, with clusters as they are now. `i` is the position of a page in the batch."""

    def __init__(self, overlay: Overlay, fields: PageFields) -> None:
        """fields: fields of the pages of the batch."""
        self._overlay = overlay
        self._page_ids, self._verdict, self.lang = overlay.pages.page_ids, fields.verdict, fields.lang

    # ---- of pages of the batch -------------------------------------------------------------------------------------

    def founder(self, i: int, proof: Evidence, cut: bool = False, content_of: Representative | None = None) -> Verdict:
        """A page that founded a cluster."""
        kind = Kind.UNIQUE if content_of is None else Kind.SAME_CONTENT
        cluster = self._page_ids[i], 1, "", 1
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
        return promoted(self._overlay, cluster_id, self._page_ids[i], n)

    def stands_aside(self, i: int, n: int, row: UrlRow, proof: Evidence) -> Verdict:
        """A page that lost its cluster to a page of the batch, and became a member."""
        return _caused(self._overlay, row.standing, self._page_ids[i], n, row.page_id, row.cluster, proof)


def promoted(overlay: Overlay, cluster_id: int, cause: int, n: int) -> Verdict:
    """The page that took a cluster over. cause, n: the verdict's id."""
    founding = overlay.clusters.need(id_key(cluster_id)).founding
    return _caused(overlay, Kind.PROMOTED, cause, n, founding, cluster_id, {})


def taken_down(header: Header, decider: Decider, cause: int) -> Verdict:
    """Return the verdict on a page that a takedown removed. The caller sets the number of the verdict.

    The verdict contains the URL, by which consumers find their row, and no other data of the page.

    Args:
        header: header of the page's sketch.
        decider: the decider that the verdict names.
        cause: page id of the takedown.
    """
    return Verdict(
        verdict=Kind.GONE,
        page_id=cause,
        n=0,
        url=header.url,
        fetched_at=header.fetched_at,
        coordinates=header.coordinates,
        scheme=decider.scheme,
        decider=decider.digest,
        reason=TAKEN_DOWN,
        site=header.site_name or None,
    )


def _caused(
    overlay: Overlay, kind: Kind, cause: int, n: int, page_id: int, cluster_id: int, proof: Evidence
) -> Verdict:
    """A verdict on a page because of another one."""
    cluster, header, decider = overlay.clusters.need(id_key(cluster_id)), overlay.header(page_id), overlay.decider
    representative = evidence.representative(overlay, cluster.founding)
    _, size, canonical, revision = _of_cluster(cluster_id, cluster, representative)
    return Verdict(
        verdict=kind,
        page_id=cause,
        n=n,
        url=header.url,
        fetched_at=header.fetched_at,
        coordinates=header.coordinates,
        scheme=decider.scheme,
        decider=decider.digest,
        representative=representative,
        cluster=cluster_id,
        cluster_size=size,
        canonical=canonical,
        revision=revision,
        evidence=proof,
        title=header.title or None,
        site=header.site_name or None,
        lang=header.lang or None,
        thin=not header.opaque and header.tokens < decider.thin_tokens,
        opaque=header.opaque,
        truncated=header.truncated,
    )


def _of_cluster(cluster_id: int, cluster: ClusterRow, representative: Representative) -> ClusterState:
    return cluster_id, cluster.size, cluster.canonical or representative.url, cluster.revision
