"""The life of a URL: the effects of one record of the sketch log on the index, and its verdicts.

The first row of this table that fits applies:

    any      unreadable                                      rejected; nothing changes
    any      tombstone                                       gone: retires, leaves a row without cluster
    known    fetched earlier than the held fetch             stale; nothing changes
    known    same digest, still verified                     unchanged: last seen only
    known    still its cluster's content                     edited: keeps its cluster
    known    otherwise                                       retires, then as unknown, with `replaces`
    unknown                                                  unique, exact_duplicate, near_duplicate, same_content

The row of a URL that is `gone` keeps its fetch time, and notes of the clusters that it represented. A later fetch is
treated as unknown, unless it reclaims one of these clusters (`neardup.matching.kernels.notes`).
"""

from neardup.kernels import lean_kernel
from neardup.matching.kernels import clusters, digests, lists, notes, rows, search, verdicts
from neardup.matching.kernels.clusters import (
    EDITED,
    EXACT,
    GONE,
    NEAR,
    NO_CONTENT,
    PROMOTED,
    REJECTED,
    SAME_CONTENT,
    STALE,
    UNCHANGED,
    UNIQUE,
    ZERO,
)
from neardup.matching.kernels.judge import COUNTS, EMIT, NOBODY, TRACE, holder
from neardup.matching.kernels.records import record, same_digest
from neardup.matching.kernels.rows import I64, U64
from neardup.matching.kernels.search import choose, verify
from neardup.rules.records import NEAR_DUPLICATE
from neardup.sketch.layout import RecordKind

_PAGE, _REJECTED = int(RecordKind.PAGE), int(RecordKind.REJECTED)


@lean_kernel
def apply(r, j, i):
    """Applies record i of the batch -> 0, MISSING, BROKEN or FULL."""
    page, url = j.pages[i], j.urls[0]
    known = NOBODY
    if page.named:
        known = clusters.read_url(r, page.url_a, page.url_b, url)
        if known < 0 and known != NOBODY:
            return known
    if page.kind == _REJECTED:
        return _stands(r, j, i, REJECTED, known >= 0, url)
    if page.kind != _PAGE:
        return _gone(r, j, i, known >= 0, url)
    if known < 0:
        return _unknown(r, j, i, NOBODY, I64(0), I64(0), True)
    if page.newest < url.newest:
        return _stands(r, j, i, STALE, True, url)
    if url.standing == GONE:
        at, many = notes.notes_of(r, j, i, url)
        return _unknown(r, j, i, NOBODY, at, many, False) if at >= 0 else at
    return _known(r, j, i, url)


@lean_kernel
def _stands(r, j, i, kind, known, url):
    if not j.numbers[EMIT]:
        return I64(0)
    return min(verdicts.stands(r, j, i, kind, j.pages[i], known, url, j.clusters[1]), 0)


@lean_kernel
def _gone(r, j, i, known, url):
    page, newest, at, many, promoted = j.pages[i], j.pages[i].newest, I64(0), I64(0), I64(0)
    cluster = ZERO
    if known:
        newest = max(newest, url.newest)
        at, many = notes.notes_of(r, j, i, url)
        if at < 0:
            return at
        if url.standing != GONE:
            cluster = url.cluster
            promoted = _retire(r, j, url)
            if promoted < 0:
                return promoted
    else:
        url.entry = rows.enter(r, rows.URLS, page.url_a, page.url_b, ZERO)
        if url.entry < 0:
            return url.entry
    url.page, url.cluster, url.member, url.standing = U64(page.id), ZERO, ZERO, GONE
    url.newest, url.seen, url.notes, url.noted = newest, page.log_time, at, many
    out = clusters.write_url(r, url)
    if out < 0 or not j.numbers[EMIT]:
        return out
    out = verdicts.begin(r, j, i, 0, GONE, page.at)
    if out >= 0 and promoted == 1:
        out = verdicts.other_page(r, j, i, 1, PROMOTED, -1, cluster, j.clusters[1])
    return min(out, 0)


@lean_kernel
def _retire(r, j, url):
    leaving = notes.leaving(r, url.cluster, 0)
    if leaving < 0:
        return leaving
    return clusters.retire(
        r, j.keys, j.pairs.logs, j.turned, url, j.clusters[2], j.urls[2], j.urls[3], r.entries[leaving].known
    )


# ---- a known URL ---------------------------------------------------------------------------------------------------


@lean_kernel
def _known(r, j, i, url):
    page, row = j.pages[i], j.clusters[0]
    if page.counted == 0:
        page.counted = 1
        out = notes.leaving(r, url.cluster, 1)
        if out < 0:
            return out
    held = record(r, I64(url.page))
    out = clusters.read_cluster(r, url.cluster, row)
    if min(held, out) < 0:
        return min(held, out)
    if same_digest(r.heap, page.at, held):
        out = _unchanged(r, j, i, url, row, held)
    else:
        out = _edited(r, j, i, url, row, held)
    if out != NOBODY:
        return out
    at, many = notes.notes_of(r, j, i, url)
    if at < 0:
        return at
    replaces, cluster = I64(url.page), url.cluster
    promoted = _retire(r, j, url)
    if promoted < 0:
        return promoted
    out = _unknown(r, j, i, replaces, at, many, False)
    if out == 0 and promoted == 1 and j.numbers[EMIT]:
        n = r.n[rows.VERDICTS] - j.began[3]
        out = min(verdicts.other_page(r, j, i, n, PROMOTED, -1, cluster, j.clusters[1]), 0)
    return out


@lean_kernel
def _check(r, j, i, of_founding, page_id, at, other_id):
    """Verifies a page against a sketch of its cluster, and notes the check -> 1, 0, MISSING, BROKEN or FULL."""
    other = record(r, other_id)
    if other < 0:
        return other
    place = r.n[rows.CHECKS]
    if place >= len(j.pairs.checks):
        return rows.full(r, rows.OF_CHECKS, place + 1)
    held, pair = verify(r, j.pairs, page_id, at, other_id, other)
    if held < 0:
        return held
    r.n[rows.CHECKS] = place + 1
    one = j.pairs.checks[place]
    one.i, one.page, one.at, one.pair, one.of_founding, one.held = i, other_id, other, pair, of_founding, held
    j.pairs.check_rulings[place] = j.pairs.ruled[0]
    return held


@lean_kernel
def _unchanged(r, j, i, url, row, held):
    """An unchanged page -> NOBODY if the held content does not verify against a founding sketch that has changed."""
    page, standing, checks = j.pages[i], I64(url.standing), r.n[rows.CHECKS]
    if url.member != ZERO:
        e, verified = clusters.verified_of(r, url, row)
        if e < 0:
            return e
        if verified != row.founding:
            out = _check(r, j, i, 1, I64(url.page), held, I64(row.founding))
            if out <= 0:
                return NOBODY if out == 0 else out
            standing = _verified_now(r, url, row)
            if standing < 0:
                return standing
    url.standing, url.newest, url.seen = standing, page.newest, page.log_time
    out = clusters.write_url(r, url)
    return _kept(r, j, i, UNCHANGED, url, held, checks) if out == 0 else out


@lean_kernel
def _verified_now(r, url, row):
    """Notes that a member is verified against the founding sketch of its cluster -> its standing, or below 0."""
    out = clusters.put_member(r, url.cluster, url.member, row.founding, url.a, url.b)
    return out if out < 0 else clusters.standing_of(r, url, row)


@lean_kernel
def _edited(r, j, i, url, row, held):
    """New content of a known URL -> NOBODY if it no longer belongs to the cluster."""
    page, held_id, checks = j.pages[i], I64(url.page), r.n[rows.CHECKS]
    if url.member != ZERO:
        out = _check(r, j, i, 0, page.id, page.at, held_id)
        if out <= 0:
            return NOBODY if out == 0 else out
    out = _check(r, j, i, 1, page.id, page.at, I64(row.founding))
    if out <= 0:
        return NOBODY if out == 0 else out
    out = digests.leave(r, held_id, held)
    if out == 0:
        out = digests.arrive(r, page)
    if out < 0:
        return out
    url.page, url.newest, url.seen = U64(page.id), page.newest, page.log_time
    if url.member != ZERO:
        e, _ = clusters.verified_of(r, url, row)
        if e < 0:
            return e
        standing = _verified_now(r, url, row)
        if standing < 0:
            return standing
        url.standing = standing
    else:
        row.current = U64(page.id)
        out = clusters.set_canonical(r, row, page.canonical_a, page.canonical_b, page.at, j.urls[3])
        if out == 0:
            out = clusters.change_cluster(r, row)
    if out == 0 and U64(held_id) != row.founding:
        out = digests.forget(r, held_id)
    if out == 0:
        out = clusters.write_url(r, url)
    return _kept(r, j, i, EDITED, url, page.at, checks) if out == 0 else out


@lean_kernel
def _kept(r, j, i, kind, url, at, checks):
    """The verdict on a URL that stays in its cluster, with the numbers of its last check, if any -> 0 or below.

    at: record of its page. checks: number of checks before.
    """
    if not j.numbers[EMIT]:
        return I64(0)
    place = verdicts.stands(r, j, i, kind, j.pages[i], True, url, j.clusters[1])
    if place < 0:
        return place
    last = r.n[rows.CHECKS] - 1
    if last >= checks:
        check = j.pairs.checks[last]
        ruling = j.pairs.check_rulings[last]
        verdicts.set_pair(j, place, verdicts.CHECK, check.pair, ruling, check.page, check.at, at, check.at)
    return I64(0)


# ---- an unknown one ------------------------------------------------------------------------------------------------


@lean_kernel
def _unknown(r, j, i, replaces, notes_at, noted, is_new):
    """A page whose URL is not in the index, or gone, or whose fetch was retired -> 0, MISSING, BROKEN or FULL.

    replaces: the fetch that this one retired, or NOBODY. notes_at, noted: the URL's notes. is_new: whether the page is
    counted under its naming.
    """
    page, first = j.pages[i], r.n[rows.VERDICTS]
    claimed = I64(0)
    if noted > 0:
        claimed = notes.claim(r, j, i, notes_at, noted)
        r.n[rows.SEARCHES], r.n[rows.CANDIDATES] = j.began[0], j.began[1]
        if claimed < 0 and claimed != NOBODY:
            return claimed
    if noted > 0 and claimed != NOBODY:
        out = notes.reclaim(r, j, i, notes_at, noted)
    else:
        held = holder(r, j, page)
        if held < 0 and held != NOBODY:
            return held
        out = _exact(r, j, i, held) if held >= 0 else _alone_or_near(r, j, i)
        if out == 0 and is_new and held < 0 and j.numbers[COUNTS] and page.posts:
            out = search.count_sibling(r, j.pairs, page)
        if out == 0 and noted > 0:
            url = j.urls[1]
            out = clusters.need_url(r, page.url_a, page.url_b, url)
            if out >= 0:
                url.notes, url.noted = notes_at, noted
                out = clusters.write_url(r, url)
    if out == 0 and replaces >= 0 and r.n[rows.VERDICTS] > first:
        j.verdicts[first].replaces = replaces
    return min(out, 0)


@lean_kernel
def _exact(r, j, i, held):
    """Joins the cluster of a live page with the same content, verified as that page is."""
    page, url, row = j.pages[i], j.urls[1], j.clusters[0]
    at = record(r, held)
    founding = clusters.target(r, at, url, row) if at >= 0 else at
    if founding < 0:
        return founding
    _, verified = clusters.verified_of(r, url, row)
    out = clusters.join(r, page, row, verified, EXACT, url)
    if out < 0 or not j.numbers[EMIT]:
        return out
    place = verdicts.begin(r, j, i, 0, EXACT, page.at)
    if place < 0:
        return place
    one = j.verdicts[place]
    one.form, one.other, one.other_at, one.a_at, one.b_at = verdicts.BY_DIGEST, held, at, page.at, founding
    return verdicts.set_cluster(r, j, place, row, 1)


@lean_kernel
def _alone_or_near(r, j, i):
    page, p = j.pages[i], j.pairs
    place = choose(r, j.keys, p, page, i, j.numbers[COUNTS] != 0, j.numbers[TRACE] != 0, j.began[0], j.began[1])
    if place < 0:
        return place
    found = p.searches[place]
    if found.best >= 0:
        return _near(r, j, i, found)
    out = clusters.found(r, j.keys, p.logs, j.turned, page, NO_CONTENT, j.clusters[0], j.urls[1])
    if out < 0 or not j.numbers[EMIT]:
        return out
    place = verdicts.begin(r, j, i, 0, UNIQUE, page.at)
    if place < 0:
        return place
    verdicts.set_founder(j, place, page)
    one = j.verdicts[place]
    one.cut, one.form, one.candidates = found.cut, verdicts.ALONE, found.many
    if found.many > 0:
        near = search.nearest(p, found)
        other = p.candidates[near]
        verdicts.set_pair(
            j, place, verdicts.NEAREST, other.pair, p.rulings[near], other.page, other.at, page.at, other.at
        )
        one.kept_apart, one.others, one.alike = p.rulings[near].kept_apart, found.others, found.alike
    return I64(0)


@lean_kernel
def _near(r, j, i, found):
    """A page that repeats a candidate, or shares only its main content."""
    page, p, row, url = j.pages[i], j.pairs, j.clusters[0], j.urls[1]
    best, ruling = p.candidates[found.best], p.rulings[found.best]
    keys = lists.shared(r, j.keys, i, best.page)  # before the page is posted itself
    if keys < 0:
        return keys
    is_near = ruling.kind == NEAR_DUPLICATE
    if is_near:
        founding = clusters.target(r, best.at, url, row)
        if founding < 0:
            return founding
        _, verified = clusters.verified_of(r, url, row)
        out = clusters.join(r, page, row, verified, NEAR, url)
    else:
        out = clusters.found(r, j.keys, p.logs, j.turned, page, U64(best.page), row, url)
    if out < 0 or not j.numbers[EMIT]:
        return out
    place = verdicts.begin(r, j, i, 0, NEAR if is_near else SAME_CONTENT, page.at)
    if place < 0:
        return place
    verdicts.set_pair(j, place, verdicts.BEST, best.pair, ruling, best.page, best.at, page.at, best.at)
    one = j.verdicts[place]
    one.cut, one.candidates, one.keys = found.cut, found.many, U64(keys)
    one.others, one.alike = found.others, found.alike
    if is_near:
        return verdicts.set_cluster(r, j, place, row, 1)
    verdicts.set_founder(j, place, page)
    one.content_of, one.content_of_at = best.page, best.at
    return I64(0)
