"""Clusters as stars: founding, joining, leaving, and who takes over when a representative goes."""

from neardup.clusters import digests
from neardup.errors import InvariantBroken
from neardup.index.keys import digest_key
from neardup.index.rows import (
    NO_PAGE,
    ClusterRow,
    UrlRow,
    encode_member,
    encode_new_cluster,
    encode_url,
    id_key,
    member_key,
    member_of_key,
)
from neardup.search.overlay import Overlay
from neardup.sketch.header import Header, url_hash
from neardup.verdict import Kind

_NO_URL = bytes(16)


def found(overlay: Overlay, at: int, content_of: int = NO_PAGE) -> None:
    """A page of the batch becomes the representative of a cluster of its own.

    content_of: founding page id of the representative whose main content it has, if any.
    """
    pages = overlay.reads.batch
    page_id, hashed = pages.page_ids[at], pages.url_hashes[at]
    overlay.post(page_id)
    digests.arrive(overlay, at)
    wanted = _wanted(pages[page_id]) if pages.names_canonical[at] else _NO_URL
    overlay.clusters.put_encoded(pages.id_keys[at], encode_new_cluster(page_id, hashed, content_of, wanted))
    standing = Kind.UNIQUE if content_of == NO_PAGE else Kind.SAME_CONTENT
    row = encode_url(page_id, page_id, 0, standing, pages.newest[at], pages.log_times[at])
    overlay.urls.put_encoded(hashed, row)


def join(overlay: Overlay, at: int, cluster_id: int, standing: Kind, verified: int) -> ClusterRow:
    """A page of the batch becomes a member, verified against the founding sketch `verified`. Returns the new row."""
    pages = overlay.reads.batch
    page_id, hashed = pages.page_ids[at], pages.url_hashes[at]
    key = id_key(cluster_id)
    row = overlay.clusters.need(key)
    founding, url_hash, current, size, revision, crowd, content_of, wanted, canonical, promoted = row
    counted = digests.arrive(overlay, at) and _is_sibling(
        pages.sites[at], pages.digest_keys[at], overlay.header(founding)
    )
    overlay.members.put_encoded(key + pages.id_keys[at], encode_member(verified, hashed, counted))
    url = encode_url(page_id, cluster_id, page_id, standing, pages.newest[at], pages.log_times[at])
    overlay.urls.put_encoded(hashed, url)
    if hashed == wanted:
        canonical = pages[page_id].url
    joined = ClusterRow(
        founding, url_hash, current, size + 1, revision + 1, crowd + counted, content_of, wanted, canonical, promoted
    )
    overlay.clusters.put(key, joined)
    return joined


def verified_against(overlay: Overlay, row: UrlRow) -> int:
    """Page id of the founding sketch that a member was verified against; of a representative, its cluster's."""
    if row.member:
        return overlay.members.need(member_key(row.cluster, row.member)).verified
    return overlay.clusters.need(id_key(row.cluster)).founding


def is_counted(overlay: Overlay, page_id: int, header: Header, cluster: ClusterRow) -> bool:
    """Whether a live page adds to the crowd that its representative stands for: same site, a content of its own."""
    own = digests.holder(overlay, digest_key(header)) == page_id
    return own and _is_sibling(header.site, digest_key(header), overlay.header(cluster.founding))


def _is_sibling(site: int, digest: bytes, founding: Header) -> bool:
    return site == founding.site and digest != digest_key(founding)


def standing_of(overlay: Overlay, row: UrlRow) -> Kind:
    """The verdict on a live URL that holds now.

    A member is an exact duplicate while another page that stands before it, its representative or an older one, has
    its very content. Others change their content without a word to it, so what its row says is what held when it was
    last verified.
    """
    if not row.member:
        return row.standing
    key, cluster = digest_key(overlay.header(row.page_id)), overlay.clusters.need(id_key(row.cluster))
    alike = digest_key(overlay.header(cluster.current)) == key or digests.holder(overlay, key) != row.page_id
    return Kind.EXACT_DUPLICATE if key and alike else Kind.NEAR_DUPLICATE


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
        member_at = member_key(row.cluster, row.member)
        member = overlay.members.need(member_at)
        overlay.members.put(member_at, None)
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
    after = member_key(cluster_id, cluster.promoted)
    first = overlay.members.first(id_key(cluster_id), 1, after, fresh=cluster_id in overlay.reads.batch)
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
        promoted=url.member,
    )
