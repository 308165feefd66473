"""Live pages by digest, and the sketch rows that share their parts. Rows: `neardup.index.rows.DigestRow`."""

from neardup.index.rows import DIGEST_PAGES_MAX
from neardup.kernels import lean_kernel
from neardup.matching.kernels import rows
from neardup.matching.kernels.records import (
    NO_REST,
    digest_kind,
    digest_of,
    has_digest,
    put_own_part,
    put_scrubbed,
    record,
    size_of,
)
from neardup.matching.kernels.rows import I64, MORE_OF, SKETCHES, U64, be32, be48, be64, put_be32, put_be48, put_be64
from neardup.rules.key_families import KeyFamily

_LIVE, _REST, _REFS, _CHECK, PAGES_AT, ID_BYTES = 1, 5, 13, 17, 25, 6
_MORE = int(KeyFamily.DIGEST_MORE) - int(KeyFamily.DIGEST)
_ZERO = U64(0)
#: Offset in the heap of the row of a further page, one byte: 1.
MORE_ROW = 0


@lean_kernel
def entry_of(r, at):
    """The entry of the digest of the record at `at`, or MISSING or FULL."""
    a, b = digest_of(r.heap, at)
    return rows.get(r, digest_kind(r.heap, at), a, b, _ZERO)


@lean_kernel
def holder(r, at):
    """The oldest live page of the digest of the record at `at`; NOBODY without one; MISSING, FULL."""
    if not has_digest(r.heap, at):
        return rows.NOBODY
    e = entry_of(r, at)
    if e < 0:
        return e
    one = r.entries[e]
    return be48(r.heap, one.row + PAGES_AT) if one.length > PAGES_AT else rows.NOBODY


@lean_kernel
def _put_row(r, e, live, rest, refs, check, pages, many, last):
    """Writes a digest's row -> 0 or FULL. pages: offset of `many` page ids. last: another id behind them, or -1."""
    if live == 0 and refs == 0:
        return rows.put_at(r, e, r.entries[e].row, 0)
    size = PAGES_AT + ID_BYTES * (many + (last >= 0))
    to = rows.room(r, size)
    if to < 0:
        return to
    heap = r.heap
    heap[to] = 1
    put_be32(heap, to + _LIVE, live)
    put_be64(heap, to + _REST, rest)
    put_be32(heap, to + _REFS, refs)
    put_be64(heap, to + _CHECK, check)
    rows.copy(heap, to + PAGES_AT, pages, ID_BYTES * many)
    if last >= 0:
        put_be48(heap, to + PAGES_AT + ID_BYTES * many, last)
    return rows.put_at(r, e, to, size)


@lean_kernel
def _more_prefix(r, at):
    a, b = digest_of(r.heap, at)
    return rows.enter(r, MORE_OF | (digest_kind(r.heap, at) & 255) + _MORE, a, b, _ZERO)


@lean_kernel
def _put_more(r, at, page_id, size):
    """Lists a page under its digest's prefix, or removes it (size 0) -> 0 or FULL."""
    a, b = digest_of(r.heap, at)
    e = rows.enter(r, digest_kind(r.heap, at) + _MORE, a, b, U64(page_id))
    if e < 0:
        return e
    prefix = _more_prefix(r, at)
    if prefix < 0:
        return prefix
    rows.link(r, e, prefix)
    return rows.put_at(r, e, MORE_ROW, size)


@lean_kernel
def arrive(r, page):
    """Makes a page of the batch live and stores its sketch -> 0, MISSING or FULL.

    The first sketch of a digest is stored whole, the others without the shared part.
    """
    at, page_id = page.at, U64(page.id)
    stored, stored_size = at - 1, 1 + size_of(r.heap, at)
    if not has_digest(r.heap, at):
        return rows.put(r, SKETCHES, page_id, _ZERO, _ZERO, stored, stored_size)
    e = entry_of(r, at)
    if e < 0:
        return e
    one, heap = r.entries[e], r.heap
    if one.length == 0:
        out = _put_row(r, e, 1, page_id, 1, page.check, 0, 0, page.id)
    else:
        row, many = one.row, (one.length - PAGES_AT) // ID_BYTES
        live, refs = be32(heap, row + _LIVE), be32(heap, row + _REFS)
        rest, check = be64(heap, row + _REST), be64(heap, row + _CHECK)
        if rest == NO_REST:
            rest, refs, check = page_id, I64(1), page.check
        elif check == page.check:
            stored, stored_size = put_own_part(r, at, rest)
            if stored < 0:
                return stored
            refs += 1
        if live == many and many < DIGEST_PAGES_MAX:
            out = _put_row(r, e, live + 1, rest, refs, check, row + PAGES_AT, many, page.id)
        else:
            out = _put_more(r, at, page.id, 1)
            if out == 0:
                out = _put_row(r, e, live + 1, rest, refs, check, row + PAGES_AT, many, -1)
    if out < 0:
        return out
    return rows.put(r, SKETCHES, page_id, _ZERO, _ZERO, stored, stored_size)


@lean_kernel
def leave(r, page_id, at):
    """Removes a page from the live pages of its digest -> 0, MISSING, BROKEN or FULL. Its sketch stays: `forget`."""
    if not has_digest(r.heap, at):
        return I64(0)
    a, b = digest_of(r.heap, at)
    e = rows.get_existing(r, digest_kind(r.heap, at), a, b, _ZERO)
    if e < 0:
        return e
    heap, row = r.heap, r.entries[e].row
    many = (r.entries[e].length - PAGES_AT) // ID_BYTES
    live, refs = be32(heap, row + _LIVE) - 1, be32(heap, row + _REFS)
    rest, check = be64(heap, row + _REST), be64(heap, row + _CHECK)
    found = 0
    while found < many and be48(heap, row + PAGES_AT + ID_BYTES * found) != page_id:
        found += 1
    if found == many:
        if live + 1 == many:
            return rows.broken(r, rows.NOT_LIVE, page_id, e)
        out = _put_more(r, at, page_id, 0)
        return _put_row(r, e, live, rest, refs, check, row + PAGES_AT, many, -1) if out == 0 else out
    left = rows.room(r, ID_BYTES * DIGEST_PAGES_MAX)
    if left < 0:
        return left
    rows.copy(heap, left, row + PAGES_AT, ID_BYTES * found)
    rows.copy(heap, left + ID_BYTES * found, row + PAGES_AT + ID_BYTES * (found + 1), ID_BYTES * (many - found - 1))
    many -= 1
    if many == 0 and live > 0:
        many = min(live, DIGEST_PAGES_MAX)
        out = _take_more(r, at, left, many, page_id)
        if out < 0:
            return out
    return _put_row(r, e, live, rest, refs, check, left, many, -1)


@lean_kernel
def _take_more(r, at, left, many, last):
    """Moves the oldest pages that a digest's row does not list to heap[left:] -> 0, MISSING, BROKEN or FULL.

    last: the last page that the row listed.
    """
    prefix = _more_prefix(r, at)
    if prefix < 0:
        return prefix
    after = U64(last)
    for number in range(many):
        e = rows.first_under(r, prefix, True, after, many)
        if e == rows.NOBODY:
            return rows.broken(r, rows.TOO_FEW, many, number)
        if e < 0:
            return e
        after = r.entries[e].c
        put_be48(r.heap, left + ID_BYTES * number, I64(after))
        out = rows.put_at(r, e, MORE_ROW, 0)
        if out < 0:
            return out
    return I64(0)


@lean_kernel
def forget(r, page_id):
    """Deletes the stored sketch of a page that is neither live nor a founding one -> 0, MISSING, BROKEN or FULL.

    A part that other sketches share is kept until no sketch uses it.
    """
    at = record(r, page_id)
    if at < 0:
        return at
    number = U64(page_id)
    sketch = rows.get_existing(r, SKETCHES, number, _ZERO, _ZERO)
    if sketch < 0:
        return sketch
    if not has_digest(r.heap, at):
        return rows.put_at(r, sketch, at, 0)
    a, b = digest_of(r.heap, at)
    e = rows.get_existing(r, digest_kind(r.heap, at), a, b, _ZERO)
    if e < 0:
        return e
    heap, row, stored = r.heap, r.entries[e].row, r.entries[sketch].row
    many = (r.entries[e].length - PAGES_AT) // ID_BYTES
    live, refs = be32(heap, row + _LIVE), be32(heap, row + _REFS)
    rest, check = be64(heap, row + _REST), be64(heap, row + _CHECK)
    whole = heap[stored] == 1
    if whole and rest != number:  # a record of its own: it shared nothing
        return rows.put_at(r, sketch, at, 0)
    if not whole and be64(heap, stored + 1) != rest:
        return rows.broken(r, rows.LEANS, page_id, e)
    refs -= 1
    out = I64(0)
    if not whole:
        out = rows.put_at(r, sketch, at, 0)
    if out == 0 and refs == 0:
        out = rows.put(r, SKETCHES, rest, _ZERO, _ZERO, at, 0)
        rest, check = NO_REST, _ZERO
    elif out == 0 and whole:
        scrubbed, size = put_scrubbed(r, at)
        out = rows.put_at(r, sketch, scrubbed, size) if scrubbed >= 0 else scrubbed
    if out < 0:
        return out
    return _put_row(r, e, live, rest, refs, check, row + PAGES_AT, many, -1)
