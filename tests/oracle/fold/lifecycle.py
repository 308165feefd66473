"""The life of a URL: the effects of one record of the sketch log on the index, and its verdict.

`neardup.matching.kernels.url_life` has the table of its cases.
"""

from typing import NamedTuple

from neardup.index.rows import ClusterRow, Note, UrlRow, digest_key, id_key, member_key
from neardup.matching.outcome import Check, Scored
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind, Verdict
from tests.oracle.fold import digests, evidence, membership, promotion, reclaiming
from tests.oracle.fold.overlay import Overlay
from tests.oracle.fold.search import Search, choose, count_sibling, verify
from tests.oracle.fold.verdict_builder import VerdictBuilder

_PAGE, _REJECTED = RecordKind.PAGE, RecordKind.REJECTED


class Judged(NamedTuple):
    """The result of one record. verdicts: the page's own first. search: its candidates, if they were searched."""

    verdicts: list[Verdict]
    search: Search | None = None
    checks: tuple[Check, ...] = ()
    holder: int | None = None


class Lifecycle:
    """Applies the records of a batch, in order. `i` is the position of a record in the batch.

    builder: makes the verdicts. If None, only effects are computed.
    """

    def __init__(self, overlay: Overlay, builder: VerdictBuilder | None) -> None:
        self._overlay = overlay
        self._builder = builder
        self._pages = overlay.pages

    def _header(self, i: int) -> Header:
        return self._pages[self._pages.page_ids[i]]

    def apply(self, i: int) -> Judged:
        """Applies a record to the overlay. Raises InvariantBroken."""
        pages, kind = self._pages, self._header(i).kind
        row = self._overlay.urls.get(pages.url_hashes[i]) if pages.named[i] else None
        if kind == _REJECTED:
            return self._stands(Kind.REJECTED, i, row)
        if kind != _PAGE:
            return self._gone(i, row)
        if row is None:
            judged = self._unknown(i)
            if judged.holder is None:
                count_sibling(self._overlay, i)
            return judged
        if pages.newest[i] < row.newest:
            return self._stands(Kind.STALE, i, row)
        if not row.live:
            return self._unknown(i, notes=reclaiming.notes_of(self._overlay, i, row))
        return self._known(i, row)

    def _stands(self, kind: Kind, i: int, row: UrlRow | None) -> Judged:
        return Judged([] if self._builder is None else [self._builder.stands(kind, i, row)])

    def _gone(self, i: int, row: UrlRow | None) -> Judged:
        pages, hashed = self._pages, self._pages.url_hashes[i]
        newest, promoted = pages.newest[i], None
        notes: tuple[Note, ...] = ()
        if row is not None:
            newest = max(newest, row.newest)
            notes = reclaiming.notes_of(self._overlay, i, row)
            if row.live:
                promoted = promotion.retire(self._overlay, hashed, row)
        self._overlay.urls.put(
            hashed, UrlRow(pages.page_ids[i], 0, 0, Kind.GONE, newest, self._header(i).log_time, notes)
        )
        judged = Judged([] if self._builder is None else [self._builder.gone(i)])
        return self._and_promoted(judged, i, promoted)

    # ---- a known URL -----------------------------------------------------------------------------------------------

    def _known(self, i: int, row: UrlRow) -> Judged:
        overlay = self._overlay
        same = self._is_same(i, row)
        cluster = overlay.clusters.need(id_key(row.cluster))
        checks: list[Check] = []
        judged = self._unchanged(i, row, cluster, checks) if same else self._edited(i, row, cluster, checks)
        if judged is None:
            notes = reclaiming.notes_of(overlay, i, row)
            promoted = promotion.retire(overlay, self._pages.url_hashes[i], row)
            judged = self._and_promoted(self._unknown(i, row.page_id, notes), i, promoted)
        return judged._replace(checks=(*checks, *judged.checks)) if checks else judged

    def _is_same(self, i: int, row: UrlRow) -> bool:
        """Whether the held fetch of the URL has the same content."""
        page, held = self._header(i), self._overlay.header(row.page_id)
        key = digest_key(page)
        # Two pages without a digest are the same if both are opaque, and empty, or neither is.
        return key == digest_key(held) and (bool(key) or page.opaque == held.opaque)

    def _unchanged(self, i: int, row: UrlRow, cluster: ClusterRow, checks: list[Check]) -> Judged | None:
        """Handles an unchanged page. None if the founding sketch has changed and the held content does not verify
        against it.
        """
        overlay, pages, standing = self._overlay, self._pages, row.standing
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            if member.verified != cluster.founding:
                if not self._holds("founding", row.page_id, cluster.founding, checks):
                    return None
                overlay.members.put(key, member._replace(verified=cluster.founding))
                standing = membership.standing_of(overlay, row)
        row = row._replace(standing=standing, newest=pages.newest[i], seen=self._header(i).log_time)
        overlay.urls.put(pages.url_hashes[i], row)
        return self._kept(Kind.UNCHANGED, i, row, checks)

    def _edited(self, i: int, row: UrlRow, cluster: ClusterRow, checks: list[Check]) -> Judged | None:
        """Handles new content of a known URL. None if it no longer belongs to the cluster."""
        overlay, pages, page_id = self._overlay, self._pages, self._pages.page_ids[i]
        header, held = pages[page_id], row.page_id
        if row.member and not self._holds("previous", page_id, held, checks):
            return None
        if not self._holds("founding", page_id, cluster.founding, checks):
            return None
        digests.leave(overlay, held, overlay.header(held))
        digests.arrive(overlay, i)
        row = row._replace(page_id=page_id, newest=pages.newest[i], seen=self._header(i).log_time)
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            overlay.members.put(key, member._replace(verified=cluster.founding))
            row = row._replace(standing=membership.standing_of(overlay, row))
        else:
            named_canonical, canonical = membership.canonical_of(overlay, row.cluster, header)
            membership.change(
                overlay, row.cluster, current=page_id, named_canonical=named_canonical, canonical=canonical
            )
        if held != cluster.founding:
            digests.forget(overlay, held)
        overlay.urls.put(pages.url_hashes[i], row)
        return self._kept(Kind.EDITED, i, row, checks)

    def _kept(self, kind: Kind, i: int, row: UrlRow, checks: list[Check]) -> Judged:
        """Makes the verdict on a URL that stays in its cluster, with the numbers of the last check, if any."""
        if self._builder is None:
            return Judged([])
        proof = None
        if checks:
            overlay, check = self._overlay, checks[-1]
            headers = overlay.header(row.page_id), overlay.header(check.page_id)
            proof = evidence.of_pair(overlay.decider, *headers, check.pair, check.ruling)
        return Judged([self._builder.stands(kind, i, row, proof)])

    def _holds(self, of: str, page_id: int, other: int, checks: list[Check]) -> bool:
        """Verifies a page against a sketch, and appends the check to `checks`."""
        held, pair, ruling = verify(self._overlay, page_id, other)
        checks.append(Check(of, other, pair, ruling, held))
        return held

    def _and_promoted(self, judged: Judged, i: int, cluster_id: int | None) -> Judged:
        """Append the verdict `promoted`. cluster_id: id of the cluster that has a new representative, or None."""
        if cluster_id is not None and self._builder is not None:
            judged.verdicts.append(self._builder.promoted(i, len(judged.verdicts), cluster_id))
        return judged

    # ---- an unknown one --------------------------------------------------------------------------------------------

    def _unknown(self, i: int, replaces: int | None = None, notes: tuple[Note, ...] = ()) -> Judged:
        """Handles a page whose URL is not in the index. replaces: the fetch that this one retired; notes: those of the
        URL.
        """
        claim = reclaiming.claim(self._overlay, i, notes) if notes else None
        if claim is not None:
            judged = self._reclaimed(i, claim, notes)
        else:
            holder = digests.one_page(self._overlay, i)
            judged = self._alone_or_near(i) if holder is None else self._exact(i, holder)
            if notes:
                hashed = self._pages.url_hashes[i]
                self._overlay.urls.put(hashed, self._overlay.urls.need(hashed)._replace(notes=notes))
        if replaces is not None and judged.verdicts:
            judged.verdicts[0].replaces = replaces
        return judged

    def _reclaimed(self, i: int, claim: reclaiming.Claim, notes: tuple[Note, ...]) -> Judged:
        """Makes the URL represent its cluster again. The former representative gets a verdict, too."""
        overlay, builder, page_id = self._overlay, self._builder, self._pages.page_ids[i]
        founding = overlay.clusters.need(id_key(claim.cluster)).founding
        check = Check("founding", founding, claim.pair, claim.ruling, True)
        proof = {}
        if builder is not None:
            headers = overlay.header(page_id), overlay.header(founding)
            proof = evidence.of_pair(overlay.decider, *headers, claim.pair, claim.ruling)
        former = reclaiming.take_over(overlay, i, claim, notes)
        if builder is None:
            return Judged([])
        own = builder.reclaimer(i, claim.cluster, evidence.of_claim(overlay, former, proof))
        verdicts = [own, builder.promoted(i, 1, claim.cluster), builder.stands_aside(i, 2, former, proof)]
        return Judged(verdicts, checks=(check,))

    def _exact(self, i: int, holder: int) -> Judged:
        """Joins the cluster of a live page with the same content, verified as that page is."""
        overlay, builder, kind = self._overlay, self._builder, Kind.EXACT_DUPLICATE
        target = membership.target(overlay, holder)
        cluster = membership.join(overlay, i, target, target.row, kind)
        if builder is None:
            return Judged([], holder=holder)
        held = overlay.header(holder)
        proof = evidence.of_digest(self._header(i).site, builder.lang(i), holder, held, target.founding)
        return Judged([builder.member(kind, i, target.cluster_id, cluster, proof)], holder=holder)

    def _alone_or_near(self, i: int) -> Judged:
        overlay, page_id = self._overlay, self._pages.page_ids[i]
        found = choose(overlay, page_id)
        if found.best is None:
            proof = {} if self._builder is None else evidence.of_none(overlay, self._builder.lang(i), found)
            membership.found(overlay, i)
            return Judged([] if self._builder is None else [self._builder.founder(i, proof, cut=found.cut)], found)
        return self._near(i, found, found.best)

    def _near(self, i: int, found: Search, best: Scored) -> Judged:
        """Handles a page that repeats a candidate, or shares only its main content."""
        overlay, builder, page_id = self._overlay, self._builder, self._pages.page_ids[i]
        proof = {}
        if builder is not None:  # before the page is posted itself
            proof = evidence.of_choice(overlay, page_id, builder.lang(i), found, best)
        kind = best.ruling.kind
        if kind is not Kind.NEAR_DUPLICATE:
            membership.found(overlay, i, best.page_id)
            if builder is None:
                return Judged([], found)
            content_of = evidence.representative(overlay, best.page_id)
            return Judged([builder.founder(i, proof, cut=found.cut, content_of=content_of)], found)
        target = membership.target(overlay, best.page_id)
        cluster = membership.join(overlay, i, target, target.row, kind)
        if builder is None:
            return Judged([], found)
        return Judged([builder.member(kind, i, target.cluster_id, cluster, proof, cut=found.cut)], found)
