"""The fields of a batch's verdicts that depend on the page alone, decoded by columns and not page by page."""

from typing import Any, NamedTuple

import orjson

from neardup.decider import Decider
from neardup.search.batch_records import Pages
from neardup.sketch.layout import RecordFlag, RecordKind, RecordSection, score_of
from neardup.verdict import VERDICT_VERSION, Coordinates, Kind, Representative, Verdict

#: Evidence of a page without candidates.
_ALONE = {"candidates": 0}
#: Id, size, canonical URL (empty: the page's own) and revision, as a verdict has them.
ClusterState = tuple[int | None, int | None, str | None, int | None]


class Joined(NamedTuple):
    """What the verdict on a plain member (`neardup.clusters.plain_pages`) has beside the page's own fields."""

    kind: Kind
    cluster: ClusterState
    proof: dict[str, Any]
    representative: Representative
    cut: bool


class PageFields:
    """`i` is the position of a page in the batch. Holds no rows of the index, so verdicts may outlive them."""

    def __init__(self, pages: Pages, decider: Decider) -> None:
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

    def reason(self, i: int) -> str:
        return self._records[i][self._columns[i][-1] :].decode("utf-8", "replace")

    # ---- of plain pages (`neardup.clusters.plain_pages`) -------------------------------------------------------------

    def plain(self, i: int, joined: Joined | None) -> Verdict:
        """A page that joined a cluster, or one that founded a cluster and had no candidates."""
        if joined is None:
            return self.verdict(Kind.UNIQUE, i, (self._page_ids[i], 1, "", 1), dict(_ALONE))
        kind, cluster, proof, representative, cut = joined
        return self.verdict(kind, i, cluster, proof, representative=representative, cut=cut)

    def line(self, i: int, joined: Joined | None, log: str | None, generation: str | None) -> bytes:
        """Return the verdict of `plain` as JSON, in a third of the time.

        Args:
            i: position of the page in the batch.
            joined: cluster that the page joins, or None.
            log, generation: log and generation that the verdict names.
        """
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
        }
        cut = False
        if joined is None:
            out["cluster"], out["cluster_size"], out["canonical"], out["revision"] = page_id, 1, url, 1
            out["evidence"] = _ALONE
        else:
            out["verdict"], cluster, proof, out["representative"], cut = joined
            out["cluster"], out["cluster_size"], out["canonical"], out["revision"] = cluster
            out["evidence"] = proof
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
        if cut:
            out["candidates_cut"] = True
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

    # ---- of all pages ------------------------------------------------------------------------------------------------

    def verdict(
        self,
        kind: Kind,
        i: int,
        cluster: ClusterState,
        proof: dict[str, Any],
        *,
        standing: dict[str, Any] | None = None,
        representative: Representative | None = None,
        content_of: Representative | None = None,
        cut: bool = False,
    ) -> Verdict:
        """The verdict on a page of the batch. cluster: id, size, canonical URL (empty: the page's own) and revision."""
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
