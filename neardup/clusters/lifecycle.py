"""The life of a URL: what one record of the sketch log does to the index, and the verdict it gets.

The rows of this table are tried from the first that fits:

    any      unreadable                                      rejected; nothing changes
    any      tombstone                                       gone: retires, leaves a row without cluster
    known    fetched earlier than what is held               stale; nothing changes
    known    same digest, still verified                     unchanged: last seen only
    known    still its cluster's content                     edited: keeps its cluster
    known    otherwise                                       retires, then as unknown, with `replaces`
    unknown                                                  unique, exact_duplicate, near_duplicate, same_content

A URL that is `gone` is held for its fetch time, and for the clusters that it stood for: a later fetch goes as unknown,
unless it reclaims one of them (`neardup.clusters.reclaiming`).
"""

from typing import NamedTuple

from neardup.clusters import choice, digests, evidence, membership, reclaiming
from neardup.clusters.overlay import Overlay
from neardup.clusters.verdicts import Teller
from neardup.index.keys import digest_key
from neardup.index.rows import ClusterRow, Note, UrlRow, id_key, member_key
from neardup.pairs.pair import Pair
from neardup.rules.base import Ruling
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind, Verdict

_PAGE, _REJECTED = int(RecordKind.PAGE), int(RecordKind.REJECTED)


class Check(NamedTuple):
    """A page compared with a sketch that it should still agree with: of: "previous" or "founding"."""

    of: str
    page_id: int
    pair: Pair
    ruling: Ruling
    held: bool


class Judged(NamedTuple):
    """What one record led to. verdicts: the page's own first. search: its candidates, if any were looked for."""

    verdicts: list[Verdict]
    search: choice.Search | None = None
    checks: tuple[Check, ...] = ()
    holder: int | None = None


class Life:
    """The records of a batch on their way through the table, one after another; `at`: a record's place in the batch.

    teller: makes verdicts; without, only the effects come about.
    """

    def __init__(self, overlay: Overlay, teller: Teller | None) -> None:
        self._overlay = overlay
        self._teller = teller
        self._pages = overlay.pages
        self._shared = choice.families_ahead(overlay) if teller is not None else {}

    def held_as(self, at: int) -> int | None:
        """A live page with the content of a page of the batch; None if its candidates are needed. Raises Missing."""
        row = self._overlay.urls.get(self._pages.url_hashes[at])
        if row is not None and row.live and self._is_same(at, row):
            return row.page_id
        return digests.one_page(self._overlay, at)

    def rehearse(self, at: int) -> None:
        """`live`, and reads what the verdict would need. For an overlay that is dropped afterwards."""
        self.live(at)
        row = self._overlay.urls.get(self._pages.url_hashes[at])
        if row is not None:
            evidence.standing(self._overlay, row)

    def live(self, at: int) -> Judged:
        """Applies a record to the overlay. Raises Missing, InvariantBroken."""
        pages, kind = self._pages, self._pages.kinds[at]
        row = self._overlay.urls.get(pages.url_hashes[at]) if pages.named[at] else None
        if kind == _REJECTED:
            return self._stands(Kind.REJECTED, at, row)
        if kind != _PAGE:
            return self._gone(at, row)
        if row is None:
            judged = self._unknown(at)
            if judged.holder is None:
                choice.sight(self._overlay, at)
            return judged
        if pages.newest[at] < row.newest:
            return self._stands(Kind.STALE, at, row)
        if not row.live:
            return self._unknown(at, notes=reclaiming.notes_of(self._overlay, at, row))
        return self._known(at, row)

    def _stands(self, kind: Kind, at: int, row: UrlRow | None) -> Judged:
        return Judged([] if self._teller is None else [self._teller.stands(kind, at, row)])

    def _gone(self, at: int, row: UrlRow | None) -> Judged:
        pages, hashed = self._pages, self._pages.url_hashes[at]
        newest, promoted = pages.newest[at], None
        notes: tuple[Note, ...] = ()
        if row is not None:
            newest = max(newest, row.newest)
            notes = reclaiming.notes_of(self._overlay, at, row)
            if row.live:
                promoted = membership.retire(self._overlay, hashed, row)
        self._overlay.urls.put(hashed, UrlRow(pages.page_ids[at], 0, 0, Kind.GONE, newest, pages.log_times[at], notes))
        judged = Judged([] if self._teller is None else [self._teller.gone(at)])
        return self._and_promoted(judged, at, promoted)

    # ---- a known URL -----------------------------------------------------------------------------------------------

    def _known(self, at: int, row: UrlRow) -> Judged:
        overlay = self._overlay
        same = self._is_same(at, row)
        cluster = overlay.clusters.need(id_key(row.cluster))
        checks: list[Check] = []
        judged = self._unchanged(at, row, cluster, checks) if same else self._edited(at, row, cluster, checks)
        if judged is None:
            notes = reclaiming.notes_of(overlay, at, row)
            promoted = membership.retire(overlay, self._pages.url_hashes[at], row)
            judged = self._and_promoted(self._unknown(at, row.page_id, notes), at, promoted)
        return judged._replace(checks=(*checks, *judged.checks)) if checks else judged

    def _is_same(self, at: int, row: UrlRow) -> bool:
        """Whether a page has the content that is held of its URL."""
        key, held = self._pages.digest_keys[at], self._overlay.header(row.page_id)
        # Two pages without a digest are the same if both are opaque, and empty, or neither is.
        return key == digest_key(held) and (bool(key) or self._pages[self._pages.page_ids[at]].opaque == held.opaque)

    def _unchanged(self, at: int, row: UrlRow, cluster: ClusterRow, checks: list[Check]) -> Judged | None:
        """None if the founding sketch is another since, and what is held does not verify against it."""
        overlay, pages, standing = self._overlay, self._pages, row.standing
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            if member.verified != cluster.founding:
                checks.append(self._check("founding", row.page_id, cluster.founding))
                if not checks[-1].held:
                    return None
                held = overlay.header(row.page_id)
                counted = membership.is_counted(overlay, row.page_id, held, cluster)
                overlay.members.put(key, member._replace(verified=cluster.founding, counted=counted))
                membership.change(overlay, row.cluster, crowd=cluster.crowd - member.counted + counted)
                standing = membership.standing_of(overlay, row)
        row = row._replace(standing=standing, newest=pages.newest[at], seen=pages.log_times[at])
        overlay.urls.put(pages.url_hashes[at], row)
        return self._kept(Kind.UNCHANGED, at, row, checks)

    @staticmethod
    def references(row: UrlRow, cluster: ClusterRow) -> list[tuple[str, int]]:
        """The sketches that new content of a URL in the index must agree with, as (name, page id)."""
        founding = "founding", cluster.founding
        return [("previous", row.page_id), founding] if row.member else [founding]

    def _edited(self, at: int, row: UrlRow, cluster: ClusterRow, checks: list[Check]) -> Judged | None:
        """None if the new content is not that of the cluster any more."""
        overlay, pages, page_id = self._overlay, self._pages, self._pages.page_ids[at]
        header, held = pages[page_id], row.page_id
        for of, other in self.references(row, cluster):
            checks.append(self._check(of, page_id, other))
            if not checks[-1].held:
                return None
        digests.leave(overlay, held, overlay.header(held))
        digests.arrive(overlay, at)
        row = row._replace(page_id=page_id, newest=pages.newest[at], seen=pages.log_times[at])
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            counted = membership.is_counted(overlay, page_id, header, cluster)
            overlay.members.put(key, member._replace(verified=cluster.founding, counted=counted))
            membership.change(overlay, row.cluster, crowd=cluster.crowd - member.counted + counted)
            row = row._replace(standing=membership.standing_of(overlay, row))
        else:
            wanted, canonical = membership.canonical_of(overlay, row.cluster, header)
            membership.change(overlay, row.cluster, current=page_id, wanted=wanted, canonical=canonical)
        if held != cluster.founding:
            digests.forget(overlay, held)
        overlay.urls.put(pages.url_hashes[at], row)
        return self._kept(Kind.EDITED, at, row, checks)

    def _kept(self, kind: Kind, at: int, row: UrlRow, checks: list[Check]) -> Judged:
        """Says that the URL stays in its cluster, and what proved it, if it had to be."""
        if self._teller is None:
            return Judged([])
        proof = None
        if checks:
            overlay, check = self._overlay, checks[-1]
            headers = overlay.header(row.page_id), overlay.header(check.page_id)
            proof = evidence.of_pair(overlay.decider, *headers, check.pair, check.ruling)
        return Judged([self._teller.stands(kind, at, row, proof)])

    def _check(self, of: str, page_id: int, other: int) -> Check:
        held, pair, ruling = choice.verify(self._overlay, page_id, other)
        return Check(of, other, pair, ruling, held)

    def _and_promoted(self, judged: Judged, at: int, cluster_id: int | None) -> Judged:
        """cluster_id: of a cluster that another page had to take over."""
        if cluster_id is not None and self._teller is not None:
            judged.verdicts.append(self._teller.promoted(at, len(judged.verdicts), cluster_id))
        return judged

    # ---- an unknown one --------------------------------------------------------------------------------------------

    def _unknown(self, at: int, replaces: int | None = None, notes: tuple[Note, ...] = ()) -> Judged:
        """replaces: the URL's fetch that this one has retired; notes: what is remembered of it."""
        claim = reclaiming.claim(self._overlay, at, notes) if notes else None
        if claim is not None:
            judged = self._reclaimed(at, claim, notes)
        else:
            holder = digests.one_page(self._overlay, at)
            judged = self._alone_or_near(at) if holder is None else self._exact(at, holder)
            if notes:
                hashed = self._pages.url_hashes[at]
                self._overlay.urls.put(hashed, self._overlay.urls.need(hashed)._replace(notes=notes))
        if replaces is not None and judged.verdicts:
            judged.verdicts[0].replaces = replaces
        return judged

    def _reclaimed(self, at: int, claim: reclaiming.Claim, notes: tuple[Note, ...]) -> Judged:
        """It stands for its cluster again; the page that took its place hears of it, too."""
        overlay, teller, page_id = self._overlay, self._teller, self._pages.page_ids[at]
        founding = overlay.clusters.need(id_key(claim.cluster)).founding
        check = Check("founding", founding, claim.pair, claim.ruling, True)
        proof = {}
        if teller is not None:
            headers = overlay.header(page_id), overlay.header(founding)
            proof = evidence.of_pair(overlay.decider, *headers, claim.pair, claim.ruling)
        former = reclaiming.take_over(overlay, at, claim, notes)
        if teller is None:
            return Judged([])
        own = teller.reclaimer(at, claim.cluster, evidence.of_claim(overlay, former, proof))
        verdicts = [own, teller.promoted(at, 1, claim.cluster), teller.stands_aside(at, 2, former, proof)]
        return Judged(verdicts, checks=(check,))

    def _exact(self, at: int, holder: int) -> Judged:
        """A live page has this very content: into its cluster, verified as it was."""
        overlay, teller, kind = self._overlay, self._teller, Kind.EXACT_DUPLICATE
        target = membership.target(overlay, holder)
        cluster = membership.join(overlay, at, target, kind)
        if teller is None:
            return Judged([], holder=holder)
        held = overlay.header(holder)
        proof = evidence.of_digest(self._pages.sites[at], teller.lang(at), holder, held, target.founding)
        return Judged([teller.member(kind, at, target.cluster_id, cluster, proof)], holder=holder)

    def _alone_or_near(self, at: int) -> Judged:
        overlay, page_id = self._overlay, self._pages.page_ids[at]
        search = None if overlay.is_lonely(page_id) else choice.choose(overlay, page_id)
        best = search.best if search is not None else None
        if search is None or best is None:
            proof = self._proof_of_none(at, search)
            membership.found(overlay, at)
            cut = search is not None and search.cut
            return Judged([] if self._teller is None else [self._teller.founder(at, proof, cut=cut)], search)
        return self._near(at, search, best)

    def _proof_of_none(self, at: int, search: choice.Search | None) -> evidence.Evidence:
        if search is None or self._teller is None:
            return {"candidates": 0}
        return evidence.of_none(self._overlay, self._teller.lang(at), search)

    def _near(self, at: int, search: choice.Search, best: choice.Scored) -> Judged:
        """The rule has accepted a candidate."""
        overlay, teller, page_id = self._overlay, self._teller, self._pages.page_ids[at]
        proof = {}
        if teller is not None:  # before the page is posted itself
            as_read = overlay.lists.is_as_read(page_id)
            shared = self._shared.get((page_id, best.page_id)) if as_read else None
            proof = evidence.of_choice(overlay, page_id, teller.lang(at), search, best, shared)
        kind = best.ruling.kind
        if kind is not Kind.NEAR_DUPLICATE:
            membership.found(overlay, at, best.page_id)
            if teller is None:
                return Judged([], search)
            content_of = evidence.representative(overlay, best.page_id)
            return Judged([teller.founder(at, proof, cut=search.cut, content_of=content_of)], search)
        target = membership.target(overlay, best.page_id)
        cluster = membership.join(overlay, at, target, kind)
        if teller is None:
            return Judged([], search)
        return Judged([teller.member(kind, at, target.cluster_id, cluster, proof, cut=search.cut)], search)
