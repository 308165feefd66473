"""Clusters as stars: founding, joining, leaving, and who takes over when a representative goes."""

from neardup.errors import InvariantBroken
from neardup.index.rows import NO_PAGE, ClusterRow, MemberRow, UrlRow, id_key, member_key, member_of_key
from neardup.matching import digests
from neardup.matching.overlay import Overlay
from neardup.sketch.header import Header, url_hash
from neardup.verdict import Kind

_NO_URL = bytes(16)


def found(overlay: Overlay, page_id: int, header: Header, url: UrlRow, content_of: int = NO_PAGE) -> None:
    """The page becomes the representative of a cluster of its own. url: the URL's row to be."""
    digests.arrive(overlay, page_id, header)
    overlay.post(page_id)
    row = ClusterRow(page_id, header.url_hash, page_id, 1, 1, 0, content_of, _wanted(header), "")
    overlay.clusters.put(id_key(page_id), row)
    overlay.urls.put(header.url_hash, url)


def join(overlay: Overlay, page_id: int, header: Header, url: UrlRow, verified: int) -> None:
    """The page becomes a member, verified against the founding sketch `verified`. url: the URL's row to be."""
    cluster = overlay.clusters.need(id_key(url.cluster))
    digests.arrive(overlay, page_id, header)
    counted = is_counted(overlay, page_id, header, cluster)
    overlay.members.put(member_key(url.cluster, url.member), MemberRow(verified, header.url_hash, counted))
    canonical = header.url if header.url_hash == cluster.wanted else cluster.canonical
    change(overlay, url.cluster, size=cluster.size + 1, crowd=cluster.crowd + counted, canonical=canonical)
    overlay.urls.put(header.url_hash, url)


def verified_against(overlay: Overlay, row: UrlRow) -> int:
    """Page id of the founding sketch that a member was verified against; of a representative, its cluster's."""
    if row.member:
        return overlay.members.need(member_key(row.cluster, row.member)).verified
    return overlay.clusters.need(id_key(row.cluster)).founding


def is_counted(overlay: Overlay, page_id: int, header: Header, cluster: ClusterRow) -> bool:
    """Whether a live page adds to the crowd that its representative stands for: same site, a content of its own."""
    founding = overlay.header(cluster.founding)
    own = digests.holder(overlay, header) == page_id
    return own and header.site == founding.site and not header.same_digest(founding)


def change(overlay: Overlay, cluster_id: int, **values: object) -> ClusterRow:
    """Changes a cluster's row and counts the revision, if anything is different."""
    key = id_key(cluster_id)
    row = overlay.clusters.need(key)
    changed = row._replace(**values)  # type: ignore[arg-type]
    if changed != row:
        changed = changed._replace(revision=row.revision + 1)
        overlay.clusters.put(key, changed)
    return changed


def canonical_of(overlay: Overlay, cluster_id: int, header: Header) -> tuple[bytes, str]:
    """`wanted` and `canonical` of a cluster whose representative's current sketch is `header`."""
    wanted = _wanted(header)
    if wanted == _NO_URL:
        return wanted, ""
    row = overlay.urls.get(wanted)
    member = row is not None and row.live and row.cluster == cluster_id
    return wanted, header.canonical if member else ""


def _wanted(header: Header) -> bytes:
    """Hash of the URL that a page names as canonical; zeros if none or its own."""
    canonical = header.canonical
    if not canonical:
        return _NO_URL
    wanted = url_hash(canonical)
    return _NO_URL if wanted == header.url_hash else wanted


def retire(overlay: Overlay, hashed: bytes, row: UrlRow) -> int | None:
    """Takes a live URL's fetch out of the index. Returns its cluster if another page had to take it over.

    The URL's row is removed: the caller writes what is to be known of it.
    """
    header = overlay.header(row.page_id)
    overlay.urls.put(hashed, None)
    digests.leave(overlay, row.page_id, header)
    key = id_key(row.cluster)
    cluster = overlay.clusters.need(key)
    if row.member:
        place = member_key(row.cluster, row.member)
        member = overlay.members.need(place)
        overlay.members.put(place, None)
        canonical = "" if hashed == cluster.wanted else cluster.canonical
        change(overlay, row.cluster, size=cluster.size - 1, crowd=cluster.crowd - member.counted, canonical=canonical)
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
    """The earliest member takes over: its current sketch becomes the founding one."""
    first = overlay.members.first(id_key(cluster_id), 1, fresh=cluster_id in overlay.reads.batch)
    if not first:
        raise InvariantBroken(f"cluster {cluster_id} counts {cluster.size} pages, but has no members")
    member = overlay.members.need(first[0])
    url = overlay.urls.need(member.url_hash)
    if url.cluster != cluster_id or url.member != member_of_key(first[0]):
        raise InvariantBroken(f"member {url.member} of cluster {cluster_id} is held as one of cluster {url.cluster}")
    header = overlay.header(url.page_id)
    overlay.members.put(first[0], None)
    overlay.urls.put(member.url_hash, url._replace(member=0, standing=Kind.UNIQUE))
    overlay.post(url.page_id)
    wanted, canonical = canonical_of(overlay, cluster_id, header)
    change(
        overlay,
        cluster_id,
        founding=url.page_id,
        url_hash=member.url_hash,
        current=url.page_id,
        size=cluster.size - 1,
        crowd=cluster.crowd - member.counted,
        content_of=NO_PAGE,
        wanted=wanted,
        canonical=canonical,
    )
