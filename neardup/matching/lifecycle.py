"""The life of a URL: what one record of the sketch log does to the index, and the verdict it gets.

The rows of this table are tried from the first that fits:

    any      unreadable                                      rejected; nothing changes
    any      tombstone                                       gone: retires, leaves a row without cluster
    known    fetched earlier than what is held               stale; nothing changes
    known    same digest, still verified                     unchanged: last seen only
    known    still its cluster's content                     edited: keeps its cluster
    known    otherwise                                       retires, then as unknown, with `replaces`
    unknown                                                  unique, exact_duplicate, near_duplicate, same_content

A URL that is `gone` is held for its fetch time alone: a later fetch goes as unknown.
"""

from typing import NamedTuple

from neardup.index.rows import NO_PAGE, ClusterRow, UrlRow, id_key, member_key
from neardup.matching import choice, clusters, digests, evidence
from neardup.matching.overlay import Overlay
from neardup.rules import Pair, Ruling
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind, Verdict


class Check(NamedTuple):
    """A page compared with a sketch that it should still agree with: of: "previous" or "founding"."""

    of: str
    page_id: int
    pair: Pair
    ruling: Ruling
    held: bool


class Told(NamedTuple):
    """What one record led to. verdicts: the page's own first. search: its candidates, if any were looked for."""

    verdicts: list[Verdict]
    search: choice.Search | None
    checks: list[Check]
    holder: int | None


class Life:
    """One record of the log on its way through the table; make a new one for each.

    telling: make verdicts; without, only the effects come about.
    """

    def __init__(self, overlay: Overlay, page_id: int, header: Header, *, telling: bool = True) -> None:
        self._overlay = overlay
        self._telling = telling
        self._said: Verdict | None = None
        self._page_id = page_id
        self._header = header
        self._checks: list[Check] = []
        self._search: choice.Search | None = None
        self._holder: int | None = None
        self._promoted: int | None = None

    def live(self) -> Told:
        """Applies the record to the overlay. Raises Missing, InvariantBroken."""
        self._judge()
        verdicts = [] if self._said is None else [self._said]
        if self._telling and self._promoted is not None:
            verdicts.append(self._tell_promoted(self._promoted))
        return Told(verdicts, self._search, self._checks, self._holder)

    def _judge(self) -> None:
        header, overlay = self._header, self._overlay
        row = overlay.urls.get(header.url_hash) if header.named else None
        if header.kind is RecordKind.REJECTED:
            self._tell(Kind.REJECTED, row)
        elif header.kind is RecordKind.TOMBSTONE:
            self._gone(row)
        elif row is None:
            self._unknown(header.clamped, None)
            if self._holder is None:
                choice.sight(overlay, self._page_id)
        elif header.clamped < row.newest:
            self._tell(Kind.STALE, row)
        elif not row.live:
            self._unknown(header.clamped, None)
        else:
            cluster = overlay.clusters.need(id_key(row.cluster))
            same = header.same_digest(overlay.header(row.page_id))
            if not (self._unchanged(row, cluster) if same else self._edited(row, cluster)):
                self._otherwise(row)

    # ---- rows of the table -----------------------------------------------------------------------------------------

    def _gone(self, row: UrlRow | None) -> None:
        header = self._header
        newest = header.clamped
        if row is not None:
            newest = max(newest, row.newest)
            if row.live:
                self._promoted = clusters.retire(self._overlay, header.url_hash, row)
        gone = UrlRow(self._page_id, 0, 0, Kind.GONE, newest, header.log_time)
        self._overlay.urls.put(header.url_hash, gone)
        if self._telling:
            self._said = evidence.frame(self._overlay, Kind.GONE, self._page_id, 0, header)

    def _unchanged(self, row: UrlRow, cluster: ClusterRow) -> bool:
        """False if the founding sketch is another since, and what is held does not verify against it."""
        overlay, header = self._overlay, self._header
        check = None
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            if member.verified != cluster.founding:
                check = self._check("founding", row.page_id, cluster.founding)
                if not check.held:
                    return False
                held = overlay.header(row.page_id)
                counted = clusters.is_counted(overlay, row.page_id, held, cluster)
                overlay.members.put(key, member._replace(verified=cluster.founding, counted=counted))
                crowd = cluster.crowd - member.counted + counted
                cluster = clusters.change(overlay, row.cluster, crowd=crowd)
                row = row._replace(standing=_member_standing(cluster, held, overlay.header(cluster.founding)))
        row = row._replace(newest=header.clamped, seen=header.log_time)
        overlay.urls.put(header.url_hash, row)
        self._tell(Kind.UNCHANGED, row, check)
        return True

    def _edited(self, row: UrlRow, cluster: ClusterRow) -> bool:
        """False if the new content is not that of the cluster any more."""
        overlay, header, page_id = self._overlay, self._header, self._page_id
        if row.member and not self._check("previous", page_id, row.page_id).held:
            return False
        check = self._check("founding", page_id, cluster.founding)
        if not check.held:
            return False
        digests.leave(overlay, row.page_id, overlay.header(row.page_id))
        digests.arrive(overlay, page_id, header)
        standing = row.standing
        if row.member:
            key = member_key(row.cluster, row.member)
            member = overlay.members.need(key)
            counted = clusters.is_counted(overlay, page_id, header, cluster)
            overlay.members.put(key, member._replace(verified=cluster.founding, counted=counted))
            clusters.change(overlay, row.cluster, crowd=cluster.crowd - member.counted + counted)
            standing = _member_standing(cluster, header, overlay.header(cluster.founding))
        else:
            wanted, canonical = clusters.canonical_of(overlay, row.cluster, header)
            clusters.change(overlay, row.cluster, current=page_id, wanted=wanted, canonical=canonical)
        if row.page_id != cluster.founding:
            digests.forget(overlay, row.page_id)
        row = row._replace(page_id=page_id, standing=standing, newest=header.clamped, seen=header.log_time)
        overlay.urls.put(header.url_hash, row)
        self._tell(Kind.EDITED, row, check)
        return True

    def _otherwise(self, row: UrlRow) -> None:
        self._promoted = clusters.retire(self._overlay, self._header.url_hash, row)
        self._unknown(self._header.clamped, row.page_id)

    def _unknown(self, newest: int, replaces: int | None) -> None:
        self._holder = digests.holder(self._overlay, self._header)
        if self._holder is None:
            self._alone_or_near(newest)
        else:
            self._exact(self._holder, newest)
        if self._said is not None:
            self._said.replaces = replaces

    def _exact(self, holder: int, newest: int) -> None:
        """A live page has this very content: into its cluster, verified as it was."""
        overlay, header, page_id = self._overlay, self._header, self._page_id
        held = overlay.header(holder)
        row = overlay.urls.need(held.url_hash)
        cluster = overlay.clusters.need(id_key(row.cluster))
        verified = clusters.verified_against(overlay, row)
        url = UrlRow(page_id, row.cluster, page_id, Kind.EXACT_DUPLICATE, newest, header.log_time)
        clusters.join(overlay, page_id, header, url, verified)
        if self._telling:
            proof = evidence.of_digest(header.site, header.lang, holder, held, overlay.header(cluster.founding))
            self._tell_member(Kind.EXACT_DUPLICATE, row.cluster, proof)

    def _alone_or_near(self, newest: int) -> None:
        overlay, header, page_id = self._overlay, self._header, self._page_id
        chosen = self._search = choice.choose(overlay, page_id)
        best = chosen.best
        proof: dict[str, object] = {}
        if self._telling:  # before the page is posted itself
            proof = evidence.of_search(overlay, page_id, header, chosen)
        if best is not None and best.ruling.kind is Kind.NEAR_DUPLICATE:
            cluster_id = overlay.urls.need(overlay.header(best.page_id).url_hash).cluster
            url = UrlRow(page_id, cluster_id, page_id, Kind.NEAR_DUPLICATE, newest, header.log_time)
            clusters.join(overlay, page_id, header, url, best.page_id)
            self._tell_member(Kind.NEAR_DUPLICATE, cluster_id, proof)
        else:
            kind = Kind.UNIQUE if best is None else Kind.SAME_CONTENT
            url = UrlRow(page_id, page_id, 0, kind, newest, header.log_time)
            clusters.found(overlay, page_id, header, url, NO_PAGE if best is None else best.page_id)
            self._tell_founder(kind, best, proof)
        if self._said is not None:
            self._said.candidates_cut = chosen.cut

    # ---- telling ---------------------------------------------------------------------------------------------------

    def _tell(self, kind: Kind, row: UrlRow | None, check: Check | None = None) -> None:
        """Says that the URL stays where it stands, and where that is. check: what proved it, if it had to be."""
        if not self._telling:
            return
        overlay, header = self._overlay, self._header
        verdict = self._said = evidence.frame(overlay, kind, self._page_id, 0, header)
        if kind is Kind.REJECTED:
            verdict.reason = header.reason
        if row is not None:
            verdict.standing = evidence.standing(overlay, row)
            if row.live:
                evidence.tell_cluster(overlay, verdict, row.cluster)
            if check is not None:
                held, other = overlay.header(row.page_id), overlay.header(check.page_id)
                verdict.evidence = evidence.of_pair(overlay.decider, held, other, check.pair, check.ruling)

    def _tell_member(self, kind: Kind, cluster_id: int, proof: dict[str, object]) -> None:
        if not self._telling:
            return
        verdict = self._said = evidence.frame(self._overlay, kind, self._page_id, 0, self._header)
        cluster = evidence.tell_cluster(self._overlay, verdict, cluster_id)
        verdict.representative = evidence.representative(self._overlay, cluster.founding)
        verdict.evidence = proof

    def _tell_founder(self, kind: Kind, best: choice.Scored | None, proof: dict[str, object]) -> None:
        if not self._telling:
            return
        verdict = self._said = evidence.frame(self._overlay, kind, self._page_id, 0, self._header)
        evidence.tell_cluster(self._overlay, verdict, self._page_id)
        if best is not None:
            verdict.content_of = evidence.representative(self._overlay, best.page_id)
        verdict.evidence = proof

    def _tell_promoted(self, cluster_id: int) -> Verdict:
        founding = self._overlay.clusters.need(id_key(cluster_id)).founding
        header = self._overlay.header(founding)
        verdict = evidence.frame(self._overlay, Kind.PROMOTED, self._page_id, 1, header)
        evidence.tell_cluster(self._overlay, verdict, cluster_id)
        verdict.representative = evidence.representative(self._overlay, founding)
        return verdict

    def _check(self, of: str, page_id: int, other: int) -> Check:
        held, pair, ruling = choice.verify(self._overlay, page_id, other)
        check = Check(of, other, pair, ruling, held)
        self._checks.append(check)
        return check


def _member_standing(cluster: ClusterRow, header: Header, founding: Header) -> Kind:
    """The effective verdict of a member that was verified again: exact only against the representative of now."""
    exact = cluster.current == cluster.founding and header.same_digest(founding)
    return Kind.EXACT_DUPLICATE if exact else Kind.NEAR_DUPLICATE
