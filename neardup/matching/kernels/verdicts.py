"""The verdicts of a walk as columns: `neardup.matching.verdict_columns` turns them into lines and objects."""

from neardup.kernels import lean_kernel
from neardup.matching.kernels import clusters, rows
from neardup.matching.kernels.clusters import GONE, NO_CONTENT, SAME_CONTENT
from neardup.matching.kernels.records import record
from neardup.matching.kernels.rows import I64
from neardup.matching.verdict_columns import NONE, Form

ALONE, NEAREST, BEST, BY_DIGEST, CHECK, CLAIM = map(
    int, (Form.ALONE, Form.NEAREST, Form.BEST, Form.DIGEST, Form.CHECK, Form.CLAIM)
)


@lean_kernel
def begin(r, v, i, n, kind, at):
    """Appends a verdict on the page with the record at `at` -> its place, or FULL."""
    place = r.n[rows.VERDICTS]
    if place >= len(v.verdicts):
        return rows.full(r, rows.OF_VERDICTS, place + 1)
    r.n[rows.VERDICTS] = place + 1
    v.verdicts[place] = v.blank[0]
    out = v.verdicts[place]
    out.i, out.n, out.kind, out.at = i, n, kind, at
    return place


@lean_kernel
def set_founder(v, place, page):
    """Makes the page the only one of its cluster."""
    out = v.verdicts[place]
    out.cluster, out.pages, out.revision, out.founding, out.founding_at = page.id, 1, 1, page.id, page.at


@lean_kernel
def set_cluster(r, v, place, row, named):
    """Sets the cluster of a verdict -> 0, MISSING, BROKEN or FULL. named: whether it names a representative."""
    at = record(r, I64(row.founding))
    if at < 0:
        return at
    out = v.verdicts[place]
    out.cluster, out.pages, out.revision = I64(row.id), row.pages, row.revision
    out.canonical_at, out.canonical_bytes = row.canonical, row.canonical_bytes
    out.founding, out.founding_at, out.named = I64(row.founding), at, named
    return I64(0)


@lean_kernel
def set_pair(v, place, form, pair, ruling, other, other_at, a_at, b_at):
    """Sets the evidence of a pair. other, other_at: page id and record of the page that the evidence names.

    a_at, b_at: records of the two pages of the pair.
    """
    out = v.verdicts[place]
    out.form, out.pair, out.other, out.other_at, out.a_at, out.b_at = form, pair, other, other_at, a_at, b_at
    out.by, out.whole, out.score, out.demand = ruling.by, ruling.whole, ruling.score, ruling.demand
    out.added = ruling.added


@lean_kernel
def stands(r, v, i, kind, page, known, url, row):
    """The verdict on a record after which its URL keeps its cluster -> its place, MISSING, BROKEN or FULL.

    known: whether the index has the URL. row: scratch.
    """
    if not known:
        return begin(r, v, i, 0, kind, page.at)
    if url.standing == GONE:
        place = begin(r, v, i, 0, kind, page.at)
        if place >= 0:
            v.verdicts[place].standing = GONE
        return place
    out = clusters.read_cluster(r, url.cluster, row)
    if out < 0:
        return out
    standing = clusters.standing_of(r, url, row)
    if standing < 0:
        return standing
    place = begin(r, v, i, 0, kind, page.at)
    if place < 0:
        return place
    v.verdicts[place].standing = standing
    if url.standing == SAME_CONTENT:
        content_of = I64(row.content_of) if row.content_of != NO_CONTENT else I64(NONE)
        v.verdicts[place].standing_content_of = content_of
    out = set_cluster(r, v, place, row, 0)
    return out if out < 0 else place


@lean_kernel
def other_page(r, v, i, n, kind, page_id, cluster, row):
    """A verdict on another page because of page i -> its place, MISSING, BROKEN or FULL. row: scratch."""
    out = clusters.read_cluster(r, cluster, row)
    if out < 0:
        return out
    at = record(r, I64(row.founding) if page_id < 0 else page_id)
    if at < 0:
        return at
    place = begin(r, v, i, n, kind, at)
    if place < 0:
        return place
    out = set_cluster(r, v, place, row, 1)
    return out if out < 0 else place
