"""The fields of a batch's verdicts that depend on the page alone, decoded by columns and not page by page."""

from typing import Any

from neardup.decider import Decider
from neardup.search.batch_records import Pages
from neardup.sketch.layout import RecordFlag, RecordKind, RecordSection, score_of
from neardup.verdict import Coordinates, Kind, Representative, Verdict

#: Id, size, canonical URL (empty: the page's own) and revision, as a verdict has them.
ClusterState = tuple[int | None, int | None, str | None, int | None]


class PageFields:
    """Makes verdicts on pages of a batch. Holds no rows of the index, so verdicts may outlive them."""

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
        """Language of a page, or empty. i: position of the page in the batch."""
        start, end = self._columns[i][-2:]
        return self._records[i][start:end].decode("utf-8", "replace")

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
        """Makes the verdict on a page of the batch.

        Args:
            kind: kind of the verdict; a rejection has its reason.
            i: position of the page in the batch.
            cluster: cluster of the page after the record.
            proof: evidence.
            standing: verdict of the URL that is in force, if this one is another.
            representative: page that the page repeats.
            content_of: page with the same main content.
            cut: whether some candidates were not scored.
        """
        record = self._records[i]
        (source, fetched_at, partition, offset, position, thin, opaque, truncated, score, *starts) = self._columns[i]
        at_url, at_site, at_title, at_canonical, at_lang, at_reason = starts
        url = record[at_url:at_site].decode("utf-8", "replace")
        cluster_id, size, canonical, revision = cluster
        named = None
        if at_canonical != at_lang:
            named = record[at_canonical:at_lang].decode("utf-8", "replace")
        return Verdict(
            verdict=kind,
            page_id=self._page_ids[i],
            n=0,
            url=url,
            fetched_at=fetched_at,
            coordinates=Coordinates(source, partition, offset, position),
            scheme=self._scheme,
            decider=self._decider,
            reason=record[at_reason:].decode("utf-8", "replace") if kind is Kind.REJECTED else None,
            standing=standing,
            representative=representative,
            cluster=cluster_id,
            cluster_size=size,
            canonical=url if canonical == "" else canonical,
            revision=revision,
            content_of=content_of,
            evidence=proof,
            title=record[at_title:at_canonical].decode("utf-8", "replace") or None,
            site=record[at_site:at_title].decode("utf-8", "replace") or None,
            lang=record[at_lang:at_reason].decode("utf-8", "replace") or None,
            thin=thin,
            opaque=opaque,
            truncated=truncated,
            candidates_cut=cut,
            rel_canonical=None if named == url else named,
            score=score_of(score) if score else None,
        )
