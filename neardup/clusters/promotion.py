"""A URL leaves its cluster. If it was the representative, the earliest member is promoted."""

from collections.abc import Callable

from neardup.clusters import digests, membership
from neardup.clusters.overlay import Overlay
from neardup.errors import InvariantBroken
from neardup.index.reads import for_each
from neardup.index.rows import ClusterRow, MemberRow, UrlRow, digest_key, id_key, member_key, member_of_key
from neardup.sketch.header import Header
from neardup.verdict import Kind


def retire(overlay: Overlay, hashed: bytes, row: UrlRow) -> int | None:
    """Removes a live URL's fetch from the index. Returns its cluster if another page was promoted in it, else None.

    The URL's row is deleted: the caller writes a new one.
    """
    key = id_key(row.cluster)
    cluster = overlay.clusters.need(key)
    header = _departing(overlay, row, cluster)
    overlay.urls.put(hashed, None)
    overlay.leave(hashed)
    digests.leave(overlay, row.page_id, header)
    if row.member:
        member_at = member_key(row.cluster, row.member)
        overlay.members.need(member_at)
        overlay.members.put(member_at, None)
        canonical = "" if hashed == cluster.named_canonical else cluster.canonical
        membership.change(overlay, row.cluster, size=cluster.size - 1, canonical=canonical)
        digests.forget(overlay, row.page_id)
        return None
    overlay.unpost(cluster.founding)
    if row.page_id != cluster.founding:
        digests.forget(overlay, row.page_id)
    digests.forget(overlay, cluster.founding)
    if cluster.size == 1:
        overlay.clusters.put(key, None)
        return None
    _promote(overlay, row.cluster, cluster)
    return row.cluster


def _departing(overlay: Overlay, row: UrlRow, cluster: ClusterRow) -> Header:
    """Returns the held sketch of a URL that retires. Raises Missing with most rows that its removal reads, at once."""
    header = overlay.header(row.page_id)
    needed: list[Callable[[], object]] = [lambda: digests.holder(overlay, digest_key(header))]
    if not row.member:
        founding = overlay.header(cluster.founding)
        needed.append(lambda: digests.holder(overlay, digest_key(founding)))
        needed.append(lambda: overlay.require_lists(cluster.founding))
    for_each(needed, lambda read: read())
    return header


def _heir(overlay: Overlay, cluster_id: int, key: bytes) -> tuple[MemberRow, UrlRow]:
    """Returns the member under a key. Reads all rows that its promotion reads. Raises Missing, InvariantBroken."""
    member = overlay.members.need(key)
    url = overlay.urls.need(member.url_hash)
    if url.cluster != cluster_id or url.member != member_of_key(key):
        raise InvariantBroken(f"member {url.member} of cluster {cluster_id} is held as one of cluster {url.cluster}")
    overlay.require_lists(url.page_id)
    membership.canonical_of(overlay, cluster_id, overlay.header(url.page_id))
    return member, url


def _promote(overlay: Overlay, cluster_id: int, cluster: ClusterRow) -> None:
    """Promotes the earliest member. Its current sketch becomes the founding one."""
    lookahead = 1 + overlay.reads.leaving[cluster_id]
    prefix, after, fresh = id_key(cluster_id), member_key(cluster_id, cluster.promoted), cluster_id in overlay.pages
    first = overlay.members.first(prefix, 1, after, fresh=fresh, lookahead=lookahead)
    if not first:
        raise InvariantBroken(f"cluster {cluster_id} counts {cluster.size} pages, but has no members")
    if cluster_id not in overlay.reads.heirs:
        # Where a mirror goes page by page, each heir goes next. Read one by one, each would cost a round.
        heirs = overlay.members.first(prefix, lookahead, after, fresh=fresh)
        for_each(heirs, lambda key: _heir(overlay, cluster_id, key))
        overlay.reads.heirs.add(cluster_id)
    member, url = _heir(overlay, cluster_id, first[0])
    overlay.members.put(first[0], None)
    overlay.urls.put(member.url_hash, url._replace(member=0, standing=Kind.UNIQUE))
    overlay.post(url.page_id)
    overlay.follow(member.url_hash, url.page_id)
    membership.represent(overlay, cluster_id, url.page_id, member.url_hash, size=cluster.size - 1, promoted=url.member)
