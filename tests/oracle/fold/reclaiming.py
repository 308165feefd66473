"""A URL that returns reclaims its cluster. Otherwise a copier could take the cluster over by waiting for an outage.

A URL that ceases to represent a cluster, because it is gone or shows other content, keeps a note of the cluster
(`Note`). If it returns within the decider's grace period with content of that cluster, it becomes the representative
again, and the page that had replaced it becomes a member. The same applies if another page has founded a new cluster
with the URL's former content meanwhile. Former content means: the same digest; or the same naming and a simhash that
agrees as the combined algorithm requires, because the sketch itself is deleted. The rule decides whether the page
belongs to the cluster. If two URLs may reclaim a cluster, the earlier representative wins, in whichever order they
return.
"""

from typing import NamedTuple

from neardup.decider import Decider
from neardup.index.rows import NOTES_MAX, ClusterRow, MemberRow, Note, UrlRow, id_key, member_key
from neardup.limits import DAY_MS
from neardup.pairs.pair import Pair
from neardup.rules.base import Ruling
from neardup.sketch.header import Header
from neardup.verdict import Kind
from tests.oracle.fold import digests, membership, search
from tests.oracle.fold.overlay import Overlay

_NO_DIGEST = bytes(16)


class Claim(NamedTuple):
    """A cluster that a page of the batch may take over.

    since: `Note.since` of the page's note; 0 if another page founded the cluster.
    pair, ruling: numbers and ruling of the page and the cluster's founding sketch.
    """

    cluster: int
    since: int
    pair: Pair
    ruling: Ruling


def notes_of(overlay: Overlay, i: int, row: UrlRow) -> tuple[Note, ...]:
    """Computes the notes of a URL whose fetch is replaced by a page of the batch. Must be called before the fetch
    retires.
    """
    if not overlay.decider.reclaim_days:
        return ()
    now = overlay.pages[overlay.pages.page_ids[i]].log_time
    kept = [note for note in row.notes if now - note.left <= overlay.decider.reclaim_days * DAY_MS]
    if row.live and not row.member:
        cluster, header = overlay.clusters.need(id_key(row.cluster)), overlay.header(row.page_id)
        shown = now - overlay.header(cluster.founding).log_time
        digest = header.digest or _NO_DIGEST
        # By what right it stood for the cluster, it may again.
        others = [note._replace(left=now) if note.digest == digest else note for note in kept]
        kept = [note for note in others if note.cluster != row.cluster]
        kept.append(Note(row.cluster, cluster.promoted, now, shown, digest, header.naming, header.simhash))
    while len(kept) > NOTES_MAX:
        kept.remove(_least(overlay, row, kept))
    return tuple(kept)


def _least(overlay: Overlay, row: UrlRow, notes: list[Note]) -> Note:
    """Chooses the note to drop: first of a cluster without another representative, then with the shortest time shown.

    During an outage a URL may show many texts, each a cluster of its own for a short time. The page itself was shown
    longer.
    """

    def worth(note: Note) -> tuple[bool, int]:
        left = overlay.clusters.get(id_key(note.cluster))
        return left is not None and (note.cluster != row.cluster or left.size > 1), note.shown

    return min(reversed(notes), key=worth)


def claim(overlay: Overlay, i: int, notes: tuple[Note, ...]) -> Claim | None:
    """Return the cluster that a page of the batch with an unknown URL may take over. notes: result of `notes_of`."""
    for note in notes:
        row = overlay.clusters.get(id_key(note.cluster))
        if row is not None and (found := _verified(overlay, i, note, note.cluster, row)) is not None:
            return found
    header = overlay.pages[overlay.pages.page_ids[i]]
    former = [note for note in notes if _is_former(note, header, overlay.decider)]
    if not former or (joined := _would_join(overlay, i)) is None:
        return None
    return _verified(overlay, i, min(former), joined, overlay.clusters.need(id_key(joined)))


def _verified(overlay: Overlay, i: int, note: Note, cluster_id: int, row: ClusterRow) -> Claim | None:
    if (note.cluster, note.since) >= _right(overlay, cluster_id, row):
        return None
    page_id = overlay.pages.page_ids[i]
    held, pair, ruling = search.verify(overlay, page_id, row.founding)
    return Claim(cluster_id, note.since if cluster_id == note.cluster else 0, pair, ruling) if held else None


def _right(overlay: Overlay, cluster_id: int, row: ClusterRow) -> tuple[int, int]:
    """Returns the rank of a cluster's representative for this content: a cluster and its `promoted`. The least rank
    wins.
    """
    header, notes = overlay.header(row.founding), overlay.urls.need(row.url_hash).notes
    former = [(note.cluster, note.since) for note in notes if _is_former(note, header, overlay.decider)]
    return min([(cluster_id, row.promoted), *former])


def _is_former(note: Note, header: Header, decider: Decider) -> bool:
    """Whether a page has, exactly or nearly, the content of which a note was made."""
    if not header.digest or note.digest == _NO_DIGEST:
        return False
    if note.digest == header.digest:
        return True
    agreeing = 8 * len(note.simhash) - (_number(note.simhash) ^ _number(header.simhash)).bit_count()
    return not header.opaque and note.naming == header.naming and agreeing >= decider.combined_c_min


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _would_join(overlay: Overlay, i: int) -> int | None:
    """Returns the cluster that a page of the batch would join if it had no notes."""
    page_id = overlay.pages.page_ids[i]
    page = digests.one_page(overlay, i)
    if page is None:
        best = search.choose(overlay, page_id).best
        if best is not None and best.ruling.kind is Kind.NEAR_DUPLICATE:
            page = best.page_id
    return None if page is None else overlay.urls.need(overlay.header(page).url_hash).cluster


def take_over(overlay: Overlay, i: int, claim: Claim, notes: tuple[Note, ...]) -> UrlRow:
    """Makes a page of the batch the representative. Returns the row of the former one, which becomes a member."""
    pages = overlay.pages
    page_id, hashed, key = pages.page_ids[i], pages.url_hashes[i], id_key(claim.cluster)
    cluster = overlay.clusters.need(key)
    former = overlay.urls.need(cluster.url_hash)
    overlay.unpost(cluster.founding)
    if cluster.founding != former.page_id:
        digests.forget(overlay, cluster.founding)
    overlay.post(page_id)
    digests.arrive(overlay, i)
    now = pages.newest[i], pages[page_id].log_time
    overlay.urls.put(hashed, UrlRow(page_id, claim.cluster, 0, Kind.UNIQUE, *now, notes))
    membership.represent(overlay, claim.cluster, page_id, hashed, size=cluster.size + 1, promoted=claim.since)
    # The place among members that it had before it was promoted, or since it has stood for the cluster: a page id of
    # its own, either way. It is verified again at its next fetch, as the other members are.
    member = cluster.promoted or cluster.founding
    overlay.members.put(member_key(claim.cluster, member), MemberRow(cluster.founding, cluster.url_hash))
    former = former._replace(member=member)
    former = former._replace(standing=membership.standing_of(overlay, former))
    overlay.urls.put(cluster.url_hash, former)
    return former
