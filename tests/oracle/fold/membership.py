"""Clusters as stars: founding, joining, and the standing of a member. `promotion` has what happens if a page leaves."""

from typing import NamedTuple

from neardup.index.rows import (
    NO_PAGE,
    ClusterRow,
    MemberRow,
    UrlRow,
    digest_key,
    id_key,
    member_key,
)
from neardup.sketch.header import Header
from neardup.urls import url_hash
from neardup.verdict import Kind
from tests.oracle.fold import digests
from tests.oracle.fold.overlay import Overlay

NO_URL = bytes(16)


def found(overlay: Overlay, i: int, content_of: int = NO_PAGE) -> None:
    """Makes a page of the batch the representative of a new cluster.

    content_of: founding page id of the representative with the same main content, if any.
    """
    pages = overlay.pages
    page_id, hashed = pages.page_ids[i], pages.url_hashes[i]
    overlay.post(page_id)
    digests.arrive(overlay, i)
    named_canonical = _named_canonical(pages[page_id])
    row = ClusterRow(page_id, hashed, page_id, 1, 1, content_of, named_canonical, "", 0)
    overlay.clusters.put(id_key(page_id), row)
    standing = Kind.UNIQUE if content_of == NO_PAGE else Kind.SAME_CONTENT
    overlay.urls.put(hashed, UrlRow(page_id, page_id, 0, standing, pages.newest[i], pages[page_id].log_time))


class Target(NamedTuple):
    """The cluster of a live page, as the target of a join."""

    cluster_id: int
    key: bytes
    row: ClusterRow
    #: The cluster's founding sketch.
    founding: Header
    #: Page id of the founding sketch that the live page was verified against.
    verified: int
    #: The live page's URL.
    url_hash: bytes


def target(overlay: Overlay, page_id: int) -> Target:
    """Returns the cluster of a live page. Raises Missing."""
    hashed = overlay.header(page_id).url_hash
    url = overlay.urls.need(hashed)
    key = id_key(url.cluster)
    row = overlay.clusters.need(key)
    verified = overlay.members.need(member_key(url.cluster, url.member)).verified if url.member else row.founding
    return Target(url.cluster, key, row, overlay.header(row.founding), verified, hashed)


def join(overlay: Overlay, i: int, target: Target, row: ClusterRow, standing: Kind) -> ClusterRow:
    """Make a page of the batch a member of a cluster. Return the new row of the cluster.

    Args:
        overlay: the rows of the batch.
        i: position of the page in the batch.
        target: the cluster, and the ruling on the page.
        row: present row of the cluster.
        standing: verdict of the member that is in force.
    """
    pages = overlay.pages
    page_id, hashed = pages.page_ids[i], pages.url_hashes[i]
    key = target.key
    founding, url_hash, current, size, revision, content_of, named_canonical, canonical, promoted = row
    digests.arrive(overlay, i)
    overlay.members.put(key + id_key(page_id), MemberRow(target.verified, hashed))
    url = UrlRow(page_id, target.cluster_id, page_id, standing, pages.newest[i], pages[page_id].log_time)
    overlay.urls.put(hashed, url)
    if hashed == named_canonical:
        canonical = pages[page_id].url
    joined = ClusterRow(
        founding, url_hash, current, size + 1, revision + 1, content_of, named_canonical, canonical, promoted
    )
    overlay.clusters.put(key, joined)
    return joined


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
    """Changes a cluster's row. Increments its revision if a field differs."""
    key = id_key(cluster_id)
    row = overlay.clusters.need(key)
    changed = row._replace(**values)  # type: ignore[arg-type]
    if changed != row:
        changed = changed._replace(revision=row.revision + 1)
        overlay.clusters.put(key, changed)
    return changed


def represent(overlay: Overlay, cluster_id: int, page_id: int, hashed: bytes, *, size: int, promoted: int) -> None:
    """Makes a page the representative of a cluster, and its sketch the founding one. hashed: the page's URL."""
    named_canonical, canonical = canonical_of(overlay, cluster_id, overlay.header(page_id))
    change(
        overlay,
        cluster_id,
        founding=page_id,
        url_hash=hashed,
        current=page_id,
        size=size,
        content_of=NO_PAGE,
        named_canonical=named_canonical,
        canonical=canonical,
        promoted=promoted,
    )


def canonical_of(overlay: Overlay, cluster_id: int, header: Header) -> tuple[bytes, str]:
    """Returns `named_canonical` and `canonical` of a cluster whose representative's current sketch has this header."""
    named_canonical = _named_canonical(header)
    if named_canonical == NO_URL:
        return named_canonical, ""
    row = overlay.urls.get(named_canonical)
    member = row is not None and row.live and row.cluster == cluster_id
    return named_canonical, header.canonical if member else ""


def _named_canonical(header: Header) -> bytes:
    """Hash of the URL that a page names as canonical. Zeros without one, or if it is the page's own URL."""
    canonical = header.canonical
    if not canonical:
        return NO_URL
    named_canonical = url_hash(canonical)
    return NO_URL if named_canonical == header.url_hash else named_canonical
