"""Clusters as stars: founding, joining, leaving, and the rows of clusters, members and URLs.

The formats of the rows are those of `neardup.index.rows`.
"""

import numpy as np

from neardup.index.rows import CLUSTER_BYTES, MEMBER_BYTES, NO_PAGE, NOTE_BYTES, URL_BYTES
from neardup.kernels import lean_kernel
from neardup.matching.kernels import digests, lists, rows
from neardup.matching.kernels.records import canonical_text, has_digest, record, same_digest, url_hash_of, url_text
from neardup.matching.kernels.rows import (
    CANONICAL,
    CLUSTERS,
    I64,
    MEMBERS,
    MEMBERS_OF,
    U64,
    URLS,
    be32,
    be64,
    put_be32,
    put_be64,
)
from neardup.matching.verdict_columns import KINDS

ZERO = U64(0)
NO_CONTENT = U64(NO_PAGE)
UNIQUE, EXACT, NEAR, SAME_CONTENT, GONE, UNCHANGED, EDITED, STALE, REJECTED, PROMOTED = range(1, len(KINDS))
# Offsets in rows.
URL_STANDING, URL_PAGE, URL_CLUSTER, URL_MEMBER, URL_NEWEST, URL_SEEN = 1, 2, 10, 18, 26, 34
FOUNDING, CURRENT, SIZE, REVISION, CONTENT_OF, NAMED = 1, 25, 33, 37, 41, 49
CLUSTER_URL = 9
VERIFIED, MEMBER_URL = 1, 9
FIRST_MIN = 4

CLUSTER = np.dtype(
    (
        np.record,
        [
            ("id", "<u8"),
            ("entry", "<i8"),
            ("founding", "<u8"),
            ("url_a", "<u8"),
            ("url_b", "<u8"),
            ("current", "<u8"),
            ("pages", "<i8"),
            ("revision", "<i8"),
            ("content_of", "<u8"),
            ("named_a", "<u8"),
            ("named_b", "<u8"),
            ("promoted", "<u8"),
            ("canonical", "<i8"),  # offset of the text
            ("canonical_bytes", "<i8"),
        ],
    ),
    align=True,
)

URL = np.dtype(
    (
        np.record,
        [
            ("entry", "<i8"),
            ("a", "<u8"),
            ("b", "<u8"),
            ("page", "<u8"),
            ("cluster", "<u8"),
            ("member", "<u8"),
            ("newest", "<i8"),
            ("seen", "<i8"),
            ("notes", "<i8"),  # offset of the notes
            ("noted", "<i8"),  # their number
            ("standing", "<i8"),
        ],
    ),
    align=True,
)


# ---- rows ----------------------------------------------------------------------------------------------------------


@lean_kernel
def read_cluster(r, cluster, out):
    """Reads the row of a cluster that must exist -> its entry, MISSING, BROKEN or FULL."""
    e = rows.get_existing(r, CLUSTERS, cluster, ZERO, ZERO)
    if e >= 0:
        decode_cluster(r, e, cluster, out)
    return e


@lean_kernel
def decode_cluster(r, e, cluster, out):
    heap, at, end = r.heap, r.entries[e].row, CLUSTER_BYTES
    out.id, out.entry = cluster, e
    out.founding, out.current, out.content_of = (
        be64(heap, at + FOUNDING),
        be64(heap, at + CURRENT),
        be64(heap, at + CONTENT_OF),
    )
    out.url_a, out.url_b = be64(heap, at + CLUSTER_URL), be64(heap, at + CLUSTER_URL + 8)
    out.pages, out.revision = be32(heap, at + SIZE), be32(heap, at + REVISION)
    out.named_a, out.named_b = be64(heap, at + NAMED), be64(heap, at + NAMED + 8)
    out.promoted = ZERO
    if heap[at] == 2:
        out.promoted = be64(heap, at + end)
        end += 8
    out.canonical, out.canonical_bytes = at + end, r.entries[e].length - end


@lean_kernel
def write_cluster(r, e, row):
    """Writes the row of a cluster -> 0 or FULL."""
    end = CLUSTER_BYTES + (8 if row.promoted != ZERO else 0)
    size = end + row.canonical_bytes
    to = rows.room(r, size)
    if to < 0:
        return to
    heap = r.heap
    heap[to] = 2 if row.promoted != ZERO else 1
    put_be64(heap, to + FOUNDING, row.founding)
    put_be64(heap, to + CLUSTER_URL, row.url_a)
    put_be64(heap, to + CLUSTER_URL + 8, row.url_b)
    put_be64(heap, to + CURRENT, row.current)
    put_be32(heap, to + SIZE, row.pages)
    put_be32(heap, to + REVISION, row.revision)
    put_be64(heap, to + CONTENT_OF, row.content_of)
    put_be64(heap, to + NAMED, row.named_a)
    put_be64(heap, to + NAMED + 8, row.named_b)
    if row.promoted != ZERO:
        put_be64(heap, to + CLUSTER_BYTES, row.promoted)
    rows.copy(heap, to + end, row.canonical, row.canonical_bytes)
    row.canonical = to + end
    return rows.put_at(r, e, to, size)


@lean_kernel
def change_cluster(r, row):
    """Writes a changed row of a cluster, with the next revision if it differs from the present one -> 0 or FULL."""
    heap, at, size = r.heap, r.entries[row.entry].row, r.entries[row.entry].length
    here = r.n[rows.HEAP]
    out = write_cluster(r, row.entry, row)
    if out < 0:
        return out
    if r.entries[row.entry].length == size and rows.same_bytes(heap, at, here, size):
        return out
    row.revision += 1
    put_be32(heap, here + REVISION, row.revision)
    return out


@lean_kernel
def read_url(r, a, b, out):
    """Reads the row of a URL -> its entry, NOBODY if there is none, MISSING or FULL."""
    e = rows.get(r, URLS, a, b, ZERO)
    if e < 0:
        return e
    out.entry, out.a, out.b = e, a, b
    if r.entries[e].length == 0:
        return rows.NOBODY
    heap, at = r.heap, r.entries[e].row
    out.standing = heap[at + URL_STANDING]
    out.page, out.cluster, out.member = (
        be64(heap, at + URL_PAGE),
        be64(heap, at + URL_CLUSTER),
        be64(heap, at + URL_MEMBER),
    )
    out.newest, out.seen = I64(be64(heap, at + URL_NEWEST)), I64(be64(heap, at + URL_SEEN))
    out.notes, out.noted = at + URL_BYTES, (r.entries[e].length - URL_BYTES) // NOTE_BYTES
    return e


@lean_kernel
def need_url(r, a, b, out):
    """`read_url` of a row that must exist."""
    e = read_url(r, a, b, out)
    return rows.broken(r, rows.NO_ROW, out.entry, 0) if e == rows.NOBODY else e


@lean_kernel
def write_url(r, row):
    """Writes the row of a URL, with its notes -> 0 or FULL."""
    size = URL_BYTES + NOTE_BYTES * row.noted
    to = rows.room(r, size)
    if to < 0:
        return to
    heap = r.heap
    heap[to], heap[to + URL_STANDING] = 2 if row.noted else 1, row.standing
    put_be64(heap, to + URL_PAGE, row.page)
    put_be64(heap, to + URL_CLUSTER, row.cluster)
    put_be64(heap, to + URL_MEMBER, row.member)
    put_be64(heap, to + URL_NEWEST, U64(row.newest))
    put_be64(heap, to + URL_SEEN, U64(row.seen))
    rows.copy(heap, to + URL_BYTES, row.notes, NOTE_BYTES * row.noted)
    row.notes = to + URL_BYTES
    return rows.put_at(r, row.entry, to, size)


@lean_kernel
def put_member(r, cluster, member, verified, url_a, url_b):
    """Writes the row of a member -> 0 or FULL."""
    e = rows.enter(r, MEMBERS, cluster, member, ZERO)
    if e < 0:
        return e
    prefix = rows.enter(r, MEMBERS_OF, cluster, ZERO, ZERO)
    if prefix < 0:
        return prefix
    rows.link(r, e, prefix)
    to = rows.room(r, MEMBER_BYTES)
    if to < 0:
        return to
    heap = r.heap
    heap[to] = 1
    put_be64(heap, to + VERIFIED, verified)
    put_be64(heap, to + MEMBER_URL, url_a)
    put_be64(heap, to + MEMBER_URL + 8, url_b)
    return rows.put_at(r, e, to, MEMBER_BYTES)


@lean_kernel
def verified_of(r, url, cluster):
    """The founding sketch that a live page was verified against -> (entry of its member row or 0, page id).

    The entry is below 0 if it was not read.
    """
    if url.member == ZERO:
        return I64(0), cluster.founding
    e = rows.get_existing(r, MEMBERS, url.cluster, url.member, ZERO)
    return e, be64(r.heap, r.entries[e].row + VERIFIED) if e >= 0 else ZERO


# ---- canonical URLs ------------------------------------------------------------------------------------------------


@lean_kernel
def named_of_store(r, page_id, at):
    """The entry with the hash of the URL that a page of the store names as canonical, or MISSING or FULL.

    Its `since` and `last` are the hash: zeros without one, or if it is the page's own URL.
    """
    e = rows.enter(r, CANONICAL, U64(page_id), ZERO, ZERO)
    if e < 0 or r.entries[e].state == rows.KNOWN:
        return e
    _, size = canonical_text(r.heap, at)
    if size == 0:
        r.entries[e].state = rows.KNOWN
        return e
    return rows.need(r, e, at)  # Python hashes the text


@lean_kernel
def set_canonical(r, row, named_a, named_b, at, scratch):
    """Sets the canonical URL of a cluster whose representative's record is at `at` -> 0, MISSING or FULL."""
    row.named_a, row.named_b, row.canonical_bytes = named_a, named_b, 0
    if (named_a | named_b) == ZERO:
        return I64(0)
    e = read_url(r, named_a, named_b, scratch)
    if e >= 0 and scratch.standing != GONE and scratch.cluster == row.id:
        row.canonical, row.canonical_bytes = canonical_text(r.heap, at)
    return I64(0) if e == rows.NOBODY else min(e, 0)


# ---- a page enters -------------------------------------------------------------------------------------------------


@lean_kernel
def found(r, k, logs, turned, page, content_of, row, url):
    """Makes a page of the batch the representative of a new cluster -> 0, MISSING or FULL.

    content_of: founding page id of the representative with the same main content, or NO_CONTENT. row, url: scratch.
    """
    out = lists.post(r, k, page.i, page.id, page.at, logs, turned)
    if out == 0:
        out = digests.arrive(r, page)
    if out < 0:
        return out
    number = U64(page.id)
    e = rows.enter(r, CLUSTERS, number, ZERO, ZERO)
    if e < 0:
        return e
    row.id, row.entry, row.founding, row.current = number, e, number, number
    row.url_a, row.url_b, row.named_a, row.named_b = page.url_a, page.url_b, page.canonical_a, page.canonical_b
    row.pages, row.revision, row.content_of, row.promoted, row.canonical_bytes = 1, 1, content_of, ZERO, 0
    out = write_cluster(r, e, row)
    if out < 0:
        return out
    prefix = rows.enter(r, MEMBERS_OF, number, ZERO, ZERO)
    if prefix < 0:
        return prefix
    r.entries[prefix].complete = 1  # a new cluster has no members in the store
    return put_page_url(r, page, number, ZERO, SAME_CONTENT if content_of != NO_CONTENT else UNIQUE, url)


@lean_kernel
def put_page_url(r, page, cluster, member, standing, url):
    """Writes the row of the URL of a page of the batch, without notes -> 0 or FULL."""
    e = rows.enter(r, URLS, page.url_a, page.url_b, ZERO)
    if e < 0:
        return e
    url.entry, url.a, url.b, url.page, url.cluster, url.member = (
        e,
        page.url_a,
        page.url_b,
        U64(page.id),
        cluster,
        member,
    )
    url.newest, url.seen, url.standing, url.noted = page.newest, page.log_time, standing, 0
    return write_url(r, url)


@lean_kernel
def target(r, at, url, row):
    """The cluster of the live page with the record at `at` -> its founding record's offset, MISSING, BROKEN or FULL.

    url, row out: rows of its URL and cluster. All rows that a join reads are read together.
    """
    a, b = url_hash_of(r.heap, at)
    e = need_url(r, a, b, url)
    if e < 0:
        return e
    out = read_cluster(r, url.cluster, row)
    member, _ = verified_of(r, url, row)
    if min(out, member) < 0:
        return min(out, member)
    return record(r, I64(row.founding))


@lean_kernel
def join(r, page, row, verified, standing, url):
    """Makes a page of the batch a member of a cluster -> 0, MISSING or FULL. row: row of the cluster; url: scratch."""
    out = digests.arrive(r, page)
    if out == 0:
        out = put_member(r, row.id, U64(page.id), verified, page.url_a, page.url_b)
    if out == 0:
        out = put_page_url(r, page, row.id, U64(page.id), standing, url)
    if out < 0:
        return out
    if page.url_a == row.named_a and page.url_b == row.named_b:
        row.canonical, row.canonical_bytes = url_text(r.heap, page.at)
    row.pages += 1
    row.revision += 1
    return write_cluster(r, row.entry, row)


@lean_kernel
def standing_of(r, url, row):
    """The verdict on a live URL that holds now -> its code, MISSING, BROKEN or FULL. row: row of its cluster.

    A member is an exact duplicate while another page that stands before it, its representative or an older one, has its
    very content. Others change their content without a word to it, so what its row says is what held when it was last
    verified.
    """
    if url.member == ZERO:
        return I64(url.standing)
    at, current = record(r, I64(url.page)), record(r, I64(row.current))
    if min(at, current) < 0:
        return min(at, current)
    if not has_digest(r.heap, at):
        return I64(NEAR)
    if has_digest(r.heap, current) and same_digest(r.heap, at, current):
        return I64(EXACT)
    holder = digests.holder(r, at)
    if holder < 0 and holder != rows.NOBODY:
        return holder
    return I64(NEAR if holder == I64(url.page) else EXACT)


# ---- a page leaves -------------------------------------------------------------------------------------------------


@lean_kernel
def retire(r, k, logs, turned, url, row, heir, scratch, leaving):
    """Removes a live URL's fetch from the index -> 1 if another page is promoted, else 0; MISSING, BROKEN or FULL.

    url: row of the URL, which is deleted. row out: its cluster. heir, scratch: scratch. leaving: how many pages of the
    cluster the batch may remove.
    """
    out = read_cluster(r, url.cluster, row)
    at = record(r, I64(url.page))
    if min(out, at) < 0:
        return min(out, at)
    if url.member == ZERO:
        founding = record(r, I64(row.founding))
        if founding < 0:
            return founding
        lacking = lists.lists_of(r, k, founding)
        for one in (at, founding):
            if has_digest(r.heap, one):
                lacking = min(lacking, digests.entry_of(r, one))
        if lacking < 0:
            return lacking
    out = rows.put_at(r, url.entry, 0, 0)
    if out == 0:
        out = digests.leave(r, I64(url.page), at)
    if out < 0:
        return out
    if url.member != ZERO:
        e = rows.get_existing(r, MEMBERS, url.cluster, url.member, ZERO)
        if e < 0:
            return e
        out = rows.put_at(r, e, 0, 0)
        if out < 0:
            return out
        row.pages -= 1
        if url.a == row.named_a and url.b == row.named_b:
            row.canonical_bytes = 0
        out = change_cluster(r, row)
        return digests.forget(r, I64(url.page)) if out == 0 else out
    out = lists.unpost(r, k, I64(row.founding), founding)
    if out == 0 and url.page != row.founding:
        out = digests.forget(r, I64(url.page))
    if out == 0:
        out = digests.forget(r, I64(row.founding))
    if out < 0:
        return out
    if row.pages == 1:
        return rows.put_at(r, row.entry, 0, 0)
    out = _promote(r, k, logs, turned, row, heir, scratch, leaving)
    return I64(1) if out == 0 else out


@lean_kernel
def _read_heir(r, k, row, e, heir):
    """Reads the URL of a member and what its promotion needs -> its record's offset, MISSING, BROKEN or FULL."""
    at = r.entries[e].row
    out = need_url(r, be64(r.heap, at + MEMBER_URL), be64(r.heap, at + MEMBER_URL + 8), heir)
    if out < 0:
        return out
    if heir.cluster != row.id or heir.member != r.entries[e].b:
        return rows.broken(r, rows.OTHER_CLUSTER, heir.cluster, e)
    held = record(r, I64(heir.page))
    if held < 0:
        return held
    out = min(lists.lists_of(r, k, held), named_of_store(r, I64(heir.page), held))
    return out if out < 0 else held


@lean_kernel
def _promote(r, k, logs, turned, row, heir, scratch, leaving):
    """Promotes the earliest member of a cluster -> 0, MISSING, BROKEN or FULL. heir out: its URL's row."""
    prefix = rows.enter(r, MEMBERS_OF, row.id, ZERO, ZERO)
    if prefix < 0:
        return prefix
    e = rows.first_under(r, prefix, False, row.promoted, max(FIRST_MIN, 1 + leaving))
    if e == rows.NOBODY:
        return rows.broken(r, rows.NO_MEMBERS, I64(row.id), row.pages)
    if e < 0:
        return e
    at = _read_heir(r, k, row, e, heir)
    if at < 0:
        # Where a mirror goes page by page, each heir goes next: what they need is read together.
        other = e
        for _ in range(leaving):
            other = rows.first_under(r, prefix, False, r.entries[other].b, 1)
            if other < 0:
                break
            _read_heir(r, k, row, other, heir)
        return at
    named = named_of_store(r, I64(heir.page), at)
    if named < 0:
        return named
    member = heir.member
    out = set_canonical(r, row, r.entries[named].since, r.entries[named].last, at, scratch)
    if out == 0:
        out = rows.put_at(r, e, 0, 0)
    if out < 0:
        return out
    heir.member, heir.standing = ZERO, UNIQUE
    out = write_url(r, heir)
    if out == 0:
        out = lists.post(r, k, I64(-1), I64(heir.page), at, logs, turned)
    if out < 0:
        return out
    row.founding, row.current, row.url_a, row.url_b = heir.page, heir.page, heir.a, heir.b
    row.pages, row.content_of, row.promoted = row.pages - 1, NO_CONTENT, member
    return change_cluster(r, row)
