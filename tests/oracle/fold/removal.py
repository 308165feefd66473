"""Removes URLs from the index without a fetch, one after another."""

from collections.abc import Sequence

from neardup.decider import Decider
from neardup.index import naming_rows
from neardup.index.column_families import Reader, Writes
from neardup.index.rows import UrlRow
from neardup.matching.batch_records import Pages
from neardup.rules.siblings import NO_SIBLINGS
from neardup.sketch.header import Header
from neardup.verdict import Kind, Verdict
from tests.oracle.fold import promotion
from tests.oracle.fold.naming import with_one
from tests.oracle.fold.overlay import Overlay
from tests.oracle.fold.verdict_builder import promoted


def remove(
    hashes: Sequence[bytes], store: Reader, decider: Decider, *, cause: int, first: int, says_gone: bool
) -> tuple[list[Verdict], Writes]:
    """Removes URLs, members before representatives, and returns the verdicts and the changes.

    hashes: of URLs in the index. cause, first: id of the first verdict. says_gone: whether each removed live page gets
    a verdict `gone`; these follow those of the promoted pages.
    """
    overlay = Overlay(Pages([]), store, decider)
    held = [(hashed, overlay.urls.need(hashed)) for hashed in hashes]
    taken_over: list[int] = []
    gone: list[Verdict] = []
    for hashed, row in sorted(held, key=lambda each: not each[1].member):
        row = overlay.urls.need(hashed)
        if not row.live:
            overlay.urls.put(hashed, None)
            continue
        gone.append(_taken_down(overlay.header(row.page_id), decider, cause))
        _forget_name(overlay, row)
        cluster = promotion.retire(overlay, hashed, row)
        taken_over += [] if cluster is None else [cluster]
    verdicts = [promoted(overlay, cluster, cause, n) for n, cluster in enumerate(taken_over, first)]
    if says_gone:
        for n, verdict in enumerate(gone, first + len(verdicts)):
            verdict.n = n
            verdicts.append(verdict)
    return verdicts, overlay.writes()


def _taken_down(header: Header, decider: Decider, cause: int) -> Verdict:
    return Verdict(
        verdict=Kind.GONE,
        page_id=cause,
        n=0,
        url=header.url,
        fetched_at=header.fetched_at,
        coordinates=header.coordinates,
        scheme=decider.scheme,
        decider=decider.digest,
        reason="taken down",
        site=header.site_name or None,
    )


def _forget_name(overlay: Overlay, row: UrlRow) -> None:
    """Deletes the row of a naming that only this page has. A row of more pages is a count, and stays."""
    header = overlay.header(row.page_id)
    if not overlay.counts_siblings or not overlay.keys(row.page_id):
        return
    key = naming_rows.key_of(header)
    if overlay.namings.get(key) == with_one(NO_SIBLINGS, header):
        overlay.namings.put(key, None)
