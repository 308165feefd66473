"""A URL that returns reclaims its cluster. Otherwise a copier could take the cluster over by waiting for an outage.

A URL that ceases to represent a cluster, because it is gone or shows other content, keeps a note of the cluster
(`neardup.index.rows.Note`). If it returns within the decider's grace period with content of that cluster, it becomes
the representative again, and the page that had replaced it becomes a member. The same applies if another page has
founded a new cluster with the URL's former content meanwhile. Former content means: the same digest; or the same naming
and a simhash that agrees as the combined algorithm requires, because the sketch itself is deleted. The rule decides
whether the page belongs to the cluster. If two URLs may reclaim a cluster, the earlier representative wins, in
whichever order they return.
"""

from neardup.index.rows import NOTE_BYTES, NOTES_MAX
from neardup.kernels import lean_kernel
from neardup.kernels.bits import ones, word_at
from neardup.matching.kernels import clusters, digests, lists, rows, search, verdicts
from neardup.matching.kernels.clusters import GONE, NO_CONTENT, PROMOTED, UNIQUE, ZERO
from neardup.matching.kernels.judge import COMBINED_C_MIN, COUNTS, EMIT, NOBODY, RECLAIM_MS, TRACE, holder
from neardup.matching.kernels.records import (
    SIMHASH_WORDS,
    digest_of,
    flags_opaque,
    has_digest,
    log_time_of,
    naming_of,
    record,
    simhash_at,
    url_hash_of,
)
from neardup.matching.kernels.rows import CLUSTERS, I64, LEAVING, U64, be64, put_be64
from neardup.rules.records import NEAR_DUPLICATE

# Offsets in a note.
_CLUSTER, _SINCE, _LEFT, _SHOWN, _DIGEST, _NAMING, _SIMHASH = 0, 8, 16, 24, 32, 48, 56


@lean_kernel
def leaving(r, cluster, more):
    """The entry whose `known` is the number of pages of a cluster that the batch may remove, or FULL. more: added."""
    e = rows.enter(r, LEAVING, cluster, ZERO, ZERO)
    if e >= 0:
        r.entries[e].known += more
    return e


@lean_kernel
def _clusters_digest(heap, note):
    return be64(heap, note + _DIGEST), be64(heap, note + _DIGEST + 8)


@lean_kernel
def notes_of(r, j, i, url):
    """The notes of a URL whose fetch is replaced by page i, before the fetch retires -> (offset, number).

    The offset is below 0 if a row was not read.
    """
    grace = j.numbers[RECLAIM_MS]
    if grace == 0:
        return I64(0), I64(0)
    at = rows.room(r, NOTE_BYTES * (NOTES_MAX + 1))
    if at < 0:
        return at, I64(0)
    heap, now, many = r.heap, j.pages[i].log_time, I64(0)
    for number in range(url.noted):
        note = url.notes + NOTE_BYTES * number
        if now - I64(be64(heap, note + _LEFT)) <= grace:
            rows.copy(heap, at + NOTE_BYTES * many, note, NOTE_BYTES)
            many += 1
    if url.standing != GONE and url.member == ZERO:
        row = j.clusters[3]
        out = clusters.read_cluster(r, url.cluster, row)
        held = record(r, I64(url.page))
        if min(out, held) < 0:
            return min(out, held), I64(0)
        founding = record(r, I64(row.founding))
        if founding < 0:
            return founding, I64(0)
        a, b = digest_of(heap, held)
        kept = I64(0)
        for number in range(many):
            note = at + NOTE_BYTES * number
            c, d = _clusters_digest(heap, note)
            if a == c and b == d:  # by what right it stood for the cluster, it may again
                put_be64(heap, note + _LEFT, U64(now))
            if be64(heap, note) != url.cluster:
                if kept != number:
                    rows.copy(heap, at + NOTE_BYTES * kept, note, NOTE_BYTES)
                kept += 1
        note = at + NOTE_BYTES * kept
        many = kept + 1
        put_be64(heap, note + _CLUSTER, url.cluster)
        put_be64(heap, note + _SINCE, row.promoted)
        put_be64(heap, note + _LEFT, U64(now))
        put_be64(heap, note + _SHOWN, U64(now - log_time_of(heap, founding)))
        put_be64(heap, note + _DIGEST, a)
        put_be64(heap, note + _DIGEST + 8, b)
        put_be64(heap, note + _NAMING, naming_of(heap, held))
        rows.copy(heap, note + _SIMHASH, simhash_at(held), 8 * SIMHASH_WORDS)
    while many > NOTES_MAX:
        least = _least(r, url, at, many)
        if least < 0:
            return least, I64(0)
        for number in range(least, many - 1):
            rows.copy(heap, at + NOTE_BYTES * number, at + NOTE_BYTES * (number + 1), NOTE_BYTES)
        many -= 1
    return at, many


@lean_kernel
def _least(r, url, at, many):
    """The number of the note to drop, MISSING or FULL: first of a cluster without another representative, then the one
    with the shortest time shown; of equal ones the last.

    During an outage a URL may show many texts, each a cluster of its own for a short time. The page itself was shown
    longer.
    """
    lacking, best, best_worth, best_shown = I64(0), I64(0), I64(2), I64(0)
    for number in range(many - 1, -1, -1):
        note = at + NOTE_BYTES * number
        cluster = be64(r.heap, note)
        e = rows.get(r, CLUSTERS, cluster, ZERO, ZERO)
        if e < 0:
            lacking = min(lacking, e)
            continue
        worth = I64(0)
        if r.entries[e].length > 0:
            size = rows.be32(r.heap, r.entries[e].row + clusters.SIZE)
            worth = I64(cluster != url.cluster or size > 1)
        shown = I64(be64(r.heap, note + _SHOWN))
        if worth < best_worth or (worth == best_worth and shown < best_shown):
            best, best_worth, best_shown = number, worth, shown
    return lacking if lacking < 0 else best


@lean_kernel
def claim(r, j, i, notes_at, noted):
    """Finds the cluster that page i, with an unknown URL, may take over -> 1, NOBODY, MISSING, BROKEN or FULL.

    j.claims[0] and j.pairs.ruled[1] out: the claim and its ruling.
    """
    page = j.pages[i]
    for number in range(noted):
        note = notes_at + NOTE_BYTES * number
        cluster = be64(r.heap, note)
        e = rows.get(r, CLUSTERS, cluster, ZERO, ZERO)
        if e < 0:
            return e
        if r.entries[e].length > 0:
            out = _verified(r, j, page, note, cluster)
            if out != NOBODY:
                return out
    former = I64(-1)
    for number in range(noted):
        note = notes_at + NOTE_BYTES * number
        if _is_former(r.heap, j, note, page.at) and (former < 0 or _before(r.heap, note, former)):
            former = note
    if former < 0:
        return NOBODY
    joined = _would_join(r, j, i)
    return _verified(r, j, page, former, U64(joined)) if joined >= 0 else joined


@lean_kernel
def _before(heap, note, other):
    """Whether a note comes before another one, by all fields in turn."""
    for at in range(0, 32, 8):
        a, b = be64(heap, note + at), be64(heap, other + at)
        if a != b:
            return a < b
    return False


@lean_kernel
def _verified(r, j, page, note, cluster):
    """Whether a page may take a cluster over by a note -> 1, NOBODY, MISSING, BROKEN or FULL; see `claim`."""
    row = j.clusters[3]
    out = clusters.read_cluster(r, cluster, row)
    if out < 0:
        return out
    founding = record(r, I64(row.founding))
    if founding < 0:
        return founding
    right, since = _right(r, j, row, founding)
    if right < 0:
        return right
    noted, noted_since = be64(r.heap, note), be64(r.heap, note + _SINCE)
    if U64(right) < noted or (U64(right) == noted and since <= noted_since):
        return NOBODY
    held, pair = search.verify(r, j.pairs, page.id, page.at, I64(row.founding), founding)
    if held <= 0:
        return NOBODY if held == 0 else held
    one = j.claims[0]
    one.cluster, one.since, one.pair = cluster, noted_since if cluster == noted else ZERO, pair
    one.founding, one.founding_at = I64(row.founding), founding
    j.pairs.ruled[1] = j.pairs.ruled[0]
    return I64(1)


@lean_kernel
def _right(r, j, row, founding):
    """The rank of a cluster's representative for this content: a cluster and its `promoted`. The least rank wins.

    The first is MISSING, BROKEN or FULL if a row is not at hand.
    """
    url = j.urls[4]
    out = clusters.need_url(r, row.url_a, row.url_b, url)
    if out < 0:
        return out, ZERO
    best, since = row.id, row.promoted
    for number in range(url.noted):
        note = url.notes + NOTE_BYTES * number
        if _is_former(r.heap, j, note, founding):
            a, b = be64(r.heap, note), be64(r.heap, note + _SINCE)
            if a < best or (a == best and b < since):
                best, since = a, b
    return I64(best), since


@lean_kernel
def _is_former(heap, j, note, at):
    """Whether the page with the record at `at` has, exactly or nearly, the content of which a note was made."""
    a, b = _clusters_digest(heap, note)
    if not has_digest(heap, at) or (a | b) == ZERO:
        return False
    c, d = digest_of(heap, at)
    if a == c and b == d:
        return True
    if flags_opaque(heap, at) or be64(heap, note + _NAMING) != naming_of(heap, at):
        return False
    agreeing = I64(0)
    for word in range(SIMHASH_WORDS):
        agreeing += 64 - ones(word_at(heap, note + _SIMHASH + 8 * word) ^ word_at(heap, simhash_at(at) + 8 * word))
    return agreeing >= j.numbers[COMBINED_C_MIN]


@lean_kernel
def _would_join(r, j, i):
    """The cluster that page i would join if it had no notes; NOBODY, MISSING, BROKEN or FULL."""
    page, p = j.pages[i], j.pairs
    held = holder(r, j, page)
    if held < 0 and held != NOBODY:
        return held
    if held < 0:
        place = search.choose(
            r, j.keys, p, page, i, j.numbers[COUNTS] != 0, j.numbers[TRACE] != 0, j.began[0], j.began[1]
        )
        if place < 0:
            return place
        best = p.searches[place].best
        if best < 0 or p.rulings[best].kind != NEAR_DUPLICATE:
            return NOBODY
        held = p.candidates[best].page
    at = record(r, held)
    if at < 0:
        return at
    a, b = url_hash_of(r.heap, at)
    url = j.urls[4]
    out = clusters.need_url(r, a, b, url)
    return I64(url.cluster) if out >= 0 else out


@lean_kernel
def reclaim(r, j, i, notes_at, noted):
    """Makes the URL of page i represent the cluster of j.claims[0] again -> 0, MISSING, BROKEN or FULL.

    The former representative becomes a member, and gets a verdict, too.
    """
    page, claimed, row, former, p = j.pages[i], j.claims[0], j.clusters[0], j.urls[2], j.pairs
    out = clusters.read_cluster(r, claimed.cluster, row)
    if out < 0:
        return out
    out = clusters.need_url(r, row.url_a, row.url_b, former)
    if out < 0:
        return out
    founding, founding_at = I64(row.founding), claimed.founding_at
    place = r.n[rows.CHECKS]
    if place >= len(p.checks):
        return rows.full(r, rows.OF_CHECKS, place + 1)
    out = lists.unpost(r, j.keys, founding, founding_at)
    if out == 0 and row.founding != former.page:
        out = digests.forget(r, founding)
    if out == 0:
        out = lists.post(r, j.keys, page.i, page.id, page.at, p.logs, j.turned)
    if out == 0:
        out = digests.arrive(r, page)
    if out < 0:
        return out
    url = j.urls[1]
    url.entry = rows.enter(r, rows.URLS, page.url_a, page.url_b, ZERO)
    if url.entry < 0:
        return url.entry
    url.a, url.b, url.page, url.cluster, url.member = page.url_a, page.url_b, U64(page.id), claimed.cluster, ZERO
    url.newest, url.seen, url.standing, url.notes, url.noted = page.newest, page.log_time, UNIQUE, notes_at, noted
    out = clusters.write_url(r, url)
    if out < 0:
        return out
    # The place among members that it had before it was promoted, or since it has stood for the cluster: a page id of
    # its own, either way. It is verified again at its next fetch, as the other members are.
    member = row.promoted if row.promoted != ZERO else row.founding
    out = clusters.set_canonical(r, row, page.canonical_a, page.canonical_b, page.at, j.urls[3])
    if out < 0:
        return out
    row.founding, row.current, row.url_a, row.url_b = U64(page.id), U64(page.id), page.url_a, page.url_b
    row.pages, row.content_of, row.promoted = row.pages + 1, NO_CONTENT, claimed.since
    out = clusters.change_cluster(r, row)
    if out == 0:
        out = clusters.put_member(r, claimed.cluster, member, U64(founding), former.a, former.b)
    if out < 0:
        return out
    former.member = member
    standing = clusters.standing_of(r, former, row)
    if standing < 0:
        return standing
    former.standing = standing
    out = clusters.write_url(r, former)
    if out < 0 or not j.numbers[EMIT]:
        return out
    r.n[rows.CHECKS] = place + 1
    one = p.checks[place]
    one.i, one.page, one.at, one.pair, one.of_founding, one.held = i, founding, founding_at, claimed.pair, 1, 1
    p.check_rulings[place] = p.ruled[1]
    return _tell(r, j, i, row, former)


@lean_kernel
def _tell(r, j, i, row, former):
    """The three verdicts of a page that reclaimed a cluster -> 0, MISSING, BROKEN or FULL."""
    page, claimed, ruling = j.pages[i], j.claims[0], j.pairs.ruled[1]
    held = record(r, I64(former.page))
    if held < 0:
        return held
    for n in range(3):
        if n == 0:
            place = verdicts.begin(r, j, i, n, UNIQUE, page.at)
        else:
            at = page.at if n == 1 else held
            place = verdicts.begin(r, j, i, n, PROMOTED if n == 1 else former.standing, at)
        if place < 0:
            return place
        out = verdicts.set_cluster(r, j, place, row, I64(n > 0))
        if out < 0:
            return out
        if n != 1:
            form = verdicts.CLAIM if n == 0 else verdicts.CHECK
            langs = page.at, claimed.founding_at
            verdicts.set_pair(j, place, form, claimed.pair, ruling, I64(former.page), held, langs[0], langs[1])
    return I64(0)
