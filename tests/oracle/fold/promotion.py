"""A URL leaves its cluster. If it was the representative, the earliest member is promoted."""

from neardup.errors import InvariantBroken
from neardup.index.rows import ClusterRow, UrlRow, id_key, member_key
from neardup.verdict import Kind
from tests.oracle.fold import digests, membership
from tests.oracle.fold.overlay import Overlay


def retire(overlay: Overlay, hashed: bytes, row: UrlRow) -> int | None:
    """Removes a live URL's fetch from the index. Returns its cluster if another page was promoted in it, else None.

    The URL's row is deleted: the caller writes a new one.
    """
    key = id_key(row.cluster)
    cluster = overlay.clusters.need(key)
    header = overlay.header(row.page_id)
    overlay.urls.put(hashed, None)
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


def _promote(overlay: Overlay, cluster_id: int, cluster: ClusterRow) -> None:
    """Promotes the earliest member. Its current sketch becomes the founding one."""
    first = overlay.members.first(id_key(cluster_id), 1, member_key(cluster_id, cluster.promoted))
    if not first:
        raise InvariantBroken(f"cluster {cluster_id} counts {cluster.size} pages, but has no members")
    member = overlay.members.need(first[0])
    url = overlay.urls.need(member.url_hash)
    if url.cluster != cluster_id or url.member != int.from_bytes(first[0][8:], "big"):
        raise InvariantBroken(f"member {url.member} of cluster {cluster_id} is held as one of cluster {url.cluster}")
    overlay.members.put(first[0], None)
    overlay.urls.put(member.url_hash, url._replace(member=0, standing=Kind.UNIQUE))
    overlay.post(url.page_id)
    membership.represent(overlay, cluster_id, url.page_id, member.url_hash, size=cluster.size - 1, promoted=url.member)
