"""What a verdict says of its page alone, for all pages of a batch by columns: no page is decoded one by one."""

from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.matching.batch import Pages
from neardup.sketch.layout import SECTION_LENGTHS, RecordFlag, Section, section_starts
from neardup.verdict import Coordinates, Kind, Representative, Verdict


class Frames:
    """Verdicts of pages that could be read, as `neardup.matching.evidence.frame` makes them, by place in the batch."""

    def __init__(self, pages: Pages, decider: Decider) -> None:
        self._records = pages.records
        self._scheme, self._decider = decider.scheme, decider.digest
        headers = pages.headers
        starts = section_starts([headers[length].astype(np.int64) for length in SECTION_LENGTHS])
        opaque = headers["flags"] & RecordFlag.OPAQUE != 0
        columns = [
            pages.ids,
            headers["fetched_at"],
            headers["partition"],
            headers["offset"],
            headers["position"],
            ~opaque & (headers["tokens"] < decider.thin_tokens),
            opaque,
            headers["flags"] & RecordFlag.TRUNCATED != 0,
            *starts[Section.URL : Section.REASON + 1],
        ]
        hexes: dict[bytes, str] = {}
        sources = [hexes.get(source) or hexes.setdefault(source, source.hex()) for source in headers["source"].tolist()]
        self._columns = list(zip(sources, *(column.tolist() for column in columns), strict=True))

    def lang(self, place: int) -> str:
        start, end = self._columns[place][-2:]
        return self._records[place][start:end].decode("utf-8", "replace")

    def verdict(
        self,
        place: int,
        kind: Kind,
        cluster: int,
        size: int,
        canonical: str,
        revision: int,
        evidence: dict[str, Any],
        *,
        standing: dict[str, Any] | None = None,
        representative: Representative | None = None,
        cut: bool = False,
    ) -> Verdict:
        """canonical: empty for the page's own URL."""
        record = self._records[place]
        (source, page_id, fetched_at, partition, offset, position, thin, opaque, truncated, *ends) = self._columns[
            place
        ]
        at_url, at_site, at_title, at_canonical, at_lang, end = ends
        url = record[at_url:at_site].decode("utf-8", "replace")
        return Verdict(
            kind,
            page_id,
            0,
            url,
            fetched_at,
            Coordinates(source, partition, offset, position),
            self._scheme,
            self._decider,
            None,
            standing,
            representative,
            cluster,
            size,
            canonical or url,
            revision,
            None,
            None,
            evidence,
            record[at_title:at_canonical].decode("utf-8", "replace") or None,
            record[at_site:at_title].decode("utf-8", "replace") or None,
            record[at_lang:end].decode("utf-8", "replace") or None,
            thin,
            opaque,
            truncated,
            cut,
        )
