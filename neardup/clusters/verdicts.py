"""BatchVerdicts of a batch's pages. Fields that depend on the page alone are decoded by columns, not page by page."""

from typing import Any

import orjson

from neardup.clusters import evidence
from neardup.clusters.evidence import Evidence
from neardup.clusters.overlay import Overlay
from neardup.decider import Decider
from neardup.index.rows import ClusterRow, UrlRow, id_key
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordFlag, RecordKind, RecordSection, score_of
from neardup.verdict import TAKEN_DOWN, VERDICT_VERSION, Coordinates, Kind, Representative, Verdict

#: Id, size, canonical URL (empty: the page's own) and revision, as a verdict has them.
_Cluster = tuple[int | None, int | None, str | None, int | None]
_NO_CLUSTER: _Cluster = (None, None, None, None)


class VerdictBuilder:
    """Makes the verdicts of a batch, with clusters as they are now. `i` is the position of a page in the batch."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        pages, decider = overlay.pages, overlay.decider
        self._page_ids, self._records = pages.page_ids, pages.records
        self._scheme, self._decider = decider.scheme, decider.digest
        headers = pages.headers
        opaque = headers["flags"] & RecordFlag.OPAQUE != 0
        readable = headers["kind"] == RecordKind.PAGE
        columns = [
            headers["fetched_at"],
            headers["partition"],
            headers["offset"],
            headers["position"],
            readable & ~opaque & (headers["tokens"] < decider.thin_tokens),
            opaque,
            headers["flags"] & RecordFlag.TRUNCATED != 0,
            headers["score"],
            *pages.starts[RecordSection.URL : RecordSection.REASON + 1],
        ]
        hexes: dict[bytes, str] = {}
        sources = [hexes.get(source) or hexes.setdefault(source, source.hex()) for source in headers["source"].tolist()]
        self._columns = list(zip(sources, *(column.tolist() for column in columns), strict=True))

    def lang(self, i: int) -> str:
        start, end = self._columns[i][-2:]
        return self._records[i][start:end].decode("utf-8", "replace")

    # ---- of plain pages (`neardup.clusters.founders`) ----------------------------------------------------------------

    def plain(self, i: int) -> Verdict:
        """A page that founded a cluster, and had no candidates."""
        return self.founder(i, {"candidates": 0})

    def plain_line(self, i: int, log: str | None, generation: str | None) -> bytes:
        """`plain` as JSON, in a third of the time. log, generation: of the verdict."""
        record, page_id = self._records[i], self._page_ids[i]
        (source, fetched_at, partition, offset, position, thin, opaque, truncated, score, *starts) = self._columns[i]
        at_url, at_site, at_title, at_canonical, at_lang, at_reason = starts
        url = record[at_url:at_site].decode("utf-8", "replace")
        out: dict[str, Any] = {
            "version": VERDICT_VERSION,
            "verdict": "unique",
            "page_id": page_id,
            "n": 0,
            "url": url,
            "fetched_at": fetched_at,
            "coordinates": {"source": source, "partition": partition, "offset": offset, "position": position},
            "scheme": self._scheme,
            "decider": self._decider,
            "cluster": page_id,
            "cluster_size": 1,
            "canonical": url,
            "revision": 1,
            "evidence": {"candidates": 0},
        }
        if at_title != at_canonical:
            out["title"] = record[at_title:at_canonical].decode("utf-8", "replace")
        if at_site != at_title:
            out["site"] = record[at_site:at_title].decode("utf-8", "replace")
        if at_lang != at_reason:
            out["lang"] = record[at_lang:at_reason].decode("utf-8", "replace")
        if thin:
            out["thin"] = True
        if opaque:
            out["opaque"] = True
        if truncated:
            out["truncated"] = True
        if at_canonical != at_lang and (named := record[at_canonical:at_lang].decode("utf-8", "replace")) != url:
            out["rel_canonical"] = named
        if score:
            out["score"] = score_of(score)
        if log is not None:
            out["log"] = log
        if generation is not None:
            out["generation"] = generation
        return orjson.dumps(out)

    def page_id(self, i: int) -> int:
        return self._page_ids[i]

    def url(self, i: int) -> str:
        start, end = self._columns[i][-6:-4]
        return self._records[i][start:end].decode("utf-8", "replace")

    def source(self, i: int) -> str:
        return str(self._columns[i][0])

    def site(self, i: int) -> str:
        start, end = self._columns[i][-5:-3]
        return self._records[i][start:end].decode("utf-8", "replace")

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
        """A record after which its URL keeps its cluster. row: of the URL, if known; proof: of the checks that were
        needed.
        """
        standing, cluster = None, _NO_CLUSTER
        if row is not None:
            standing = evidence.standing(self._overlay, row)
        if row is not None and row.live:
            found = self._overlay.clusters.need(id_key(row.cluster))
            cluster = _of_cluster(row.cluster, found, evidence.representative(self._overlay, found.founding))
        verdict = self._verdict(kind, i, cluster, proof or {}, standing=standing)
        if kind is Kind.REJECTED:
            verdict.reason = self._records[i][self._columns[i][-1] :].decode("utf-8", "replace")
        return verdict

    def gone(self, i: int) -> Verdict:
        return self._verdict(Kind.GONE, i, _NO_CLUSTER, {})

    def _verdict(
        self,
        kind: Kind,
        i: int,
        cluster: _Cluster,
        proof: Evidence,
        *,
        standing: Evidence | None = None,
        representative: Representative | None = None,
        content_of: Representative | None = None,
        cut: bool = False,
    ) -> Verdict:
        record = self._records[i]
        (source, fetched_at, partition, offset, position, thin, opaque, truncated, score, *starts) = self._columns[i]
        at_url, at_site, at_title, at_canonical, at_lang, at_reason = starts
        url = record[at_url:at_site].decode("utf-8", "replace")
        cluster_id, size, canonical, revision = cluster
        named = None
        if at_canonical != at_lang:
            named = record[at_canonical:at_lang].decode("utf-8", "replace")
        return Verdict(
            kind,
            self._page_ids[i],
            0,
            url,
            fetched_at,
            Coordinates(source, partition, offset, position),
            self._scheme,
            self._decider,
            None,
            standing,
            representative,
            cluster_id,
            size,
            url if canonical == "" else canonical,
            revision,
            content_of,
            None,
            proof,
            record[at_title:at_canonical].decode("utf-8", "replace") or None,
            record[at_site:at_title].decode("utf-8", "replace") or None,
            record[at_lang:at_reason].decode("utf-8", "replace") or None,
            thin,
            opaque,
            truncated,
            cut,
            None if named == url else named,
            score_of(score) if score else None,
        )

    # ---- of any page -----------------------------------------------------------------------------------------------

    def promoted(self, i: int, n: int, cluster_id: int) -> Verdict:
        """A page that became representative because of a page of the batch, whose n-th verdict this is."""
        return promoted(self._overlay, cluster_id, self._page_ids[i], n)

    def stands_aside(self, i: int, n: int, row: UrlRow, proof: Evidence) -> Verdict:
        """A page that lost its cluster to a page of the batch, and became a member."""
        verdict = _caused(self._overlay, row.standing, self._page_ids[i], n, row.page_id, row.cluster)
        verdict.evidence = proof
        return verdict


def promoted(overlay: Overlay, cluster_id: int, cause: int, n: int) -> Verdict:
    """The page that took a cluster over. cause, n: the verdict's id."""
    founding = overlay.clusters.need(id_key(cluster_id)).founding
    return _caused(overlay, Kind.PROMOTED, cause, n, founding, cluster_id)


def taken_down(header: Header, decider: Decider, cause: int) -> Verdict:
    """A page that a takedown removed. The verdict's number is set later. header: of its sketch; cause: page id.

    The verdict contains the URL, by which consumers find their row, and no other data of the page.
    """
    return Verdict(
        *(Kind.GONE, cause, 0, header.url, header.fetched_at, header.coordinates, decider.scheme, decider.digest),
        reason=TAKEN_DOWN,
        site=header.site_name or None,
    )


def _caused(overlay: Overlay, kind: Kind, cause: int, n: int, page_id: int, cluster_id: int) -> Verdict:
    """A verdict on a page because of another one."""
    cluster, header, decider = overlay.clusters.need(id_key(cluster_id)), overlay.header(page_id), overlay.decider
    representative = evidence.representative(overlay, cluster.founding)
    _, size, canonical, revision = _of_cluster(cluster_id, cluster, representative)
    return Verdict(
        kind,
        cause,
        n,
        header.url,
        header.fetched_at,
        header.coordinates,
        decider.scheme,
        decider.digest,
        representative=representative,
        cluster=cluster_id,
        cluster_size=size,
        canonical=canonical,
        revision=revision,
        title=header.title or None,
        site=header.site_name or None,
        lang=header.lang or None,
        thin=not header.opaque and header.tokens < decider.thin_tokens,
        opaque=header.opaque,
        truncated=header.truncated,
    )


def _of_cluster(cluster_id: int, cluster: ClusterRow, representative: Representative) -> _Cluster:
    return cluster_id, cluster.size, cluster.canonical or representative.url, cluster.revision
