"""The second commonest pages of a batch: those that join a cluster as members, and change nothing else.

A page is a *plain member* if its URL is unknown, and it repeats a page of the index: one with its digest, or the
candidate that was chosen before the batch. How it joins is then found before the first page of the batch is judged. It
is put at its turn, unless an earlier page of the batch has changed what its verdict rests on.
`neardup.clusters.lifecycle` does the same page by page, and with all other pages.
"""

from neardup.clusters import best_candidate, evidence, membership
from neardup.clusters.best_candidate import Search
from neardup.clusters.membership import Target
from neardup.clusters.overlay import Overlay
from neardup.clusters.page_fields import Joined, PageFields
from neardup.errors import InvariantBroken
from neardup.index.reads import Missing
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind

_PAGE = int(RecordKind.PAGE)

#: How a page joins: the page that it repeats, the cluster of that page, and whether that page is a candidate.
_Plan = tuple[int, Target, bool]


class Members:
    """The plain members of a batch."""

    def __init__(self, overlay: Overlay, fields: PageFields | None, families: best_candidate.Families) -> None:
        """overlay: without any effect of the batch. fields: None: make no verdicts. families: `families_ahead`."""
        self._overlay, self._fields, self._families = overlay, fields, families
        self._plans = _plans(overlay)

    def put(self, i: int) -> tuple[Search | None, Joined | None] | None:
        """Puts the rows of a plain member, by position. Returns its candidates, and what its verdict needs.

        None, and nothing is put, if the page is no plain member, or no longer one. Raises Missing.
        """
        plan = self._plans.get(i)
        if plan is None:
            return None
        other, target, chosen = plan
        overlay, fields, pages = self._overlay, self._fields, self._overlay.pages
        cluster = overlay.clusters.get(target.key)
        # Whatever changes a member's row puts the row of its URL, too.
        if cluster is None or cluster.founding != target.row.founding or overlay.urls.is_put(target.url_hash):
            return None
        if overlay.urls.get(pages.url_hashes[i]) is not None:
            return None
        digest = overlay.digests.get(pages.digest_keys[i]) if pages.digest_keys[i] else None
        proof: evidence.Evidence = {}
        search = None
        if not chosen:
            if digest is None or digest.pages[:1] != (other,):
                return None
            if fields is not None:
                held = overlay.header(other)
                proof = evidence.of_digest(pages.sites[i], fields.lang(i), other, held, target.founding)
        else:
            page_id = pages.page_ids[i]
            if digest is not None or not overlay.is_as_read(page_id):
                return None
            search = best_candidate.choose(overlay, page_id)
            best = search.best
            if best is None or best.page_id != other or best.ruling.kind is not Kind.NEAR_DUPLICATE:
                return None
            if fields is not None:
                shared = self._families.get((page_id, other))
                proof = evidence.of_choice(overlay, page_id, fields.lang(i), search, best, shared)
        kind = Kind.NEAR_DUPLICATE if chosen else Kind.EXACT_DUPLICATE
        row = membership.join(overlay, i, target, cluster, kind)
        if chosen:
            best_candidate.count_sibling(overlay, i)
        if fields is None:
            return search, None
        representative = evidence.representative(overlay, row.founding)
        state = target.cluster_id, row.size, row.canonical or representative.url, row.revision
        return search, Joined(kind, state, proof, representative, search is not None and search.cut)


def _plans(overlay: Overlay) -> dict[int, _Plan]:
    """The plans of pages, by position."""
    pages, reads = overlay.pages, overlay.reads
    required = [(i, holder, False) for i, holder in reads.holders.items()]
    for page_id, chosen in reads.chosen.items():
        best = chosen.search.best
        if best is not None and best.ruling.kind is Kind.NEAR_DUPLICATE and chosen.as_read:
            required.append((pages.position(page_id), best.page_id, True))
    plans: dict[int, _Plan] = {}
    for i, other, is_chosen in required:
        if pages.kinds[i] == _PAGE and not (is_chosen and overlay.is_lonely(pages.page_ids[i])):
            try:
                plans[i] = other, membership.target(overlay, other), is_chosen
            except (Missing, InvariantBroken):
                continue  # judging the page reads the rows, or finds the fault
    return plans
