"""Removes pages from the rows without a fetch: for a takedown, or because they expired."""

import numpy as np

from neardup.index.naming_rows import FORMAT
from neardup.kernels import kernel, lean_kernel
from neardup.matching.kernels import clusters, lists, notes, rows, verdicts
from neardup.matching.kernels.clusters import GONE, PROMOTED, ZERO
from neardup.matching.kernels.judge import COUNTS, EMIT
from neardup.matching.kernels.records import record
from neardup.matching.kernels.rows import FULL, I64, KEYS, KNOWN, MISSING, NAMING_OF, U64
from neardup.matching.kernels.walk import begin_page, undo_page
from neardup.rules.key_families import KeyFamily

_NAMING = KEYS | int(KeyFamily.NAMING)

#: A URL that is removed. at: out, the record of its page; 0 if the URL was gone before. promoted: out, whether its
#: cluster has a new representative.
REMOVED = np.dtype(
    (
        np.record,
        [
            ("url_a", "<u8"),
            ("url_b", "<u8"),
            ("cluster", "<u8"),
            ("at", "<i8"),
            ("promoted", "u1"),
            ("ready", "u1"),
        ],
    ),
    align=True,
)


@lean_kernel
def _remove(r, j, one):
    """Removes a URL -> 0, MISSING, BROKEN or FULL."""
    url = j.urls[0]
    out = clusters.need_url(r, one.url_a, one.url_b, url)
    if out < 0:
        return out
    one.at, one.promoted, one.cluster = 0, 0, url.cluster
    if url.standing == GONE:
        return rows.put_at(r, url.entry, 0, 0)
    at = record(r, I64(url.page))
    if at < 0:
        return at
    if one.ready == 0:
        one.ready = 1
        out = notes.leaving(r, url.cluster, 1)
        if out < 0:
            return out
    out = _forget_name(r, j, I64(url.page), at)
    if out < 0:
        return out
    leaving = notes.leaving(r, url.cluster, 0)
    if leaving < 0:
        return leaving
    out = clusters.retire(
        r, j.keys, j.pairs.logs, j.turned, url, j.clusters[2], j.urls[2], j.urls[3], r.entries[leaving].known
    )
    if out >= 0:
        one.at, one.promoted = at, out
    return min(out, 0)


@lean_kernel
def _forget_name(r, j, page_id, at):
    """Deletes the row of a naming that only this page has -> 0, MISSING or FULL. A row of more pages is a count, and
    stays.
    """
    if not j.numbers[COUNTS] or not lists.posts(r.heap, j.keys, at):
        return I64(0)
    key = rows.enter(r, NAMING_OF, U64(page_id), ZERO, ZERO)
    if key < 0:
        return key
    if r.entries[key].state != KNOWN:
        return rows.need(r, key, at)  # Python hashes the owner
    e = rows.get(r, _NAMING, r.entries[key].since, r.entries[key].last, ZERO)
    if e < 0 or r.entries[e].length == 0:
        return min(e, 0)
    heap, row, p = r.heap, r.entries[e].row, j.pairs
    only = (
        heap[row] == FORMAT and heap[row + 1] == 0 and heap[row + 2] == 1 and heap[row + 3] == 0 and heap[row + 4] == 0
    )
    for trait in range(3):
        only = only and rows.same_bytes(heap, row + 5 + 8 * trait, at + p.traits[trait], 8)
    return rows.put_at(r, e, 0, 0) if only else I64(0)


@kernel
def remove(r, j, removed, first, last):
    """Removes the URLs first to last - 1 -> (the first that was not removed, why), as `walk.walk` does."""
    for i in range(first, last):
        begin_page(r, j)
        out = _remove(r, j, removed[i])
        if out < 0:
            undo_page(r, j)
            if out == MISSING:
                for other in range(i + 1, last):
                    if r.n[rows.NEEDED] == len(r.needs):
                        break
                    begin_page(r, j)
                    ahead = _remove(r, j, removed[other])
                    undo_page(r, j)
                    if ahead == FULL:
                        break
            return i, out
    return last, I64(0)


@kernel
def promotions(r, j, removed, first):
    """Emits `promoted` for each cluster with a new representative -> 0, MISSING, BROKEN or FULL. first: number of the
    first verdict.
    """
    begin_page(r, j)
    n = first
    if not j.numbers[EMIT]:
        return I64(0)
    for i in range(len(removed)):
        if removed[i].promoted:
            out = verdicts.other_page(r, j, 0, n, PROMOTED, -1, removed[i].cluster, j.clusters[1])
            if out < 0:
                undo_page(r, j)
                return out
            n += 1
    return I64(0)
