"""The walk over a batch: judges its records in order, and undoes the page whose rows are not all at hand."""

from neardup.kernels import kernel, lean_kernel
from neardup.matching.kernels import digests, lists, rows, search, url_life
from neardup.matching.kernels.clusters import ZERO
from neardup.matching.kernels.judge import COUNTS
from neardup.matching.kernels.records import has_digest
from neardup.matching.kernels.rows import FULL, I64, MISSING, U64
from neardup.sketch.layout import RecordKind

PAGE_KIND = int(RecordKind.PAGE)


@lean_kernel
def begin_page(r, j):
    """Notes what is undone if the page cannot be judged yet."""
    j.began[0], j.began[1] = r.n[rows.SEARCHES], r.n[rows.CANDIDATES]
    j.began[2], j.began[3] = r.n[rows.CHECKS], r.n[rows.VERDICTS]
    j.began[4] = r.n[rows.TURNED]
    r.n[rows.UNDONE] = 0


@lean_kernel
def undo_page(r, j):
    rows.undo(r, 0)
    r.n[rows.SEARCHES], r.n[rows.CANDIDATES] = j.began[0], j.began[1]
    r.n[rows.CHECKS], r.n[rows.VERDICTS] = j.began[2], j.began[3]
    r.n[rows.TURNED] = j.began[4]


@lean_kernel
def _end(r, j, i):
    """Names the keys that the page turned hot in its own verdict."""
    first, last = j.began[4], r.n[rows.TURNED]
    for one in range(first + 1, last):
        key, here = j.turned[one], one
        while here > first and j.turned[here - 1] > key:
            j.turned[here] = j.turned[here - 1]
            here -= 1
        j.turned[here] = key
    if last > first and r.n[rows.VERDICTS] > j.began[3]:
        own = j.verdicts[j.began[3]]
        own.turned, own.turned_many = first, last - first


@kernel
def walk(r, j, first, last):
    """Judges the records first to last - 1 of the batch, in order -> (the first that was not judged, why).

    Why: 0 if all were judged; MISSING, if its rows are not at hand: then r.needs has them and, by a trial of each that
    is later undone, the rows that the following pages need; BROKEN; FULL, if an array is too small.
    """
    for i in range(first, last):
        begin_page(r, j)
        out = url_life.apply(r, j, i)
        if out < 0:
            undo_page(r, j)
            if out == MISSING:
                j.pages[i].ready = 0
                out = _look_ahead(r, j, i + 1, last)
            return i, out
        _end(r, j, i)
    return last, I64(0)


@lean_kernel
def _look_ahead(r, j, first, last):
    """Collects the needs of pages that were never judged with all their rows at hand -> MISSING or FULL."""
    for i in range(first, last):
        if j.pages[i].ready:
            continue
        if r.n[rows.NEEDED] == len(r.needs):
            break
        begin_page(r, j)
        out = url_life.apply(r, j, i)
        undo_page(r, j)
        if out == FULL:
            break
        j.pages[i].ready = out != MISSING
    return I64(MISSING)


@lean_kernel
def need_named(r, j):
    """Notes the rows that the records of a batch name themselves -> 0 or FULL: URLs, digests, names and lists."""
    for i in range(len(j.pages)):
        page = j.pages[i]
        out = I64(0)
        if page.named:
            out = rows.get(r, rows.URLS, page.url_a, page.url_b, ZERO)
        if out != FULL and page.kind == PAGE_KIND and has_digest(r.heap, page.at):
            out = digests.entry_of(r, page.at)
        if out != FULL and page.posts:
            out = lists.own_lists(r, j.keys, page.i)
            if out != FULL and j.numbers[COUNTS]:
                out = search.naming_entry(r, page)
        if out == FULL:
            return out
    return I64(0)


@lean_kernel
def enter_records(r, pages, sizes):
    """Makes the records of a batch those of their pages -> 0 or FULL. sizes int64: their bytes."""
    for i in range(len(pages)):
        e = rows.enter(r, rows.RECORD, U64(pages[i].id), ZERO, ZERO)
        if e < 0:
            return e
        one = r.entries[e]
        one.row, one.length, one.state = pages[i].at, sizes[i], rows.KNOWN
    return I64(0)
