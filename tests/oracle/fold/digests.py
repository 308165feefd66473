"""Live pages by digest, and the sketch rows that share their parts."""

import xxhash

from neardup.errors import InvariantBroken
from neardup.index import sketch_rows
from neardup.index.rows import (
    DIGEST_PAGES_MAX,
    MORE,
    NO_PAGE,
    DigestRow,
    digest_key,
    id_key,
    more_prefix,
)
from neardup.sketch.header import Header
from tests.oracle import rulings
from tests.oracle.fold.overlay import Overlay


def check_of(shared: bytes) -> int:
    """Returns a 64-bit checksum, which shows whether two records of one digest really share this part."""
    return xxhash.xxh3_64_intdigest(shared)


def whole_row(record: bytes) -> bytes:
    return b"\x01" + record


def own_row(record: bytes, rest: int, middle: tuple[int, int, int] | None = None) -> bytes:
    """rest: page id of the row with the shared part. middle: as for `own_part`, if known."""
    return b"\x02" + id_key(rest) + sketch_rows.own_part(record, middle)


def holder(overlay: Overlay, key: bytes) -> int | None:
    """Returns the oldest live page of a digest; None without one, or for the key b""."""
    row = overlay.digests.get(key) if key else None
    return row.pages[0] if row is not None and row.pages else None


def one_page(overlay: Overlay, i: int) -> int | None:
    """Returns the oldest live page with the digest of a page of the batch that the rule considers the same page, if
    any.
    """
    header = overlay.pages[overlay.pages.page_ids[i]]
    key = digest_key(header)
    row = overlay.digests.get(key) if key else None
    if row is None:
        return None
    for page_id in row.pages:
        if rulings.one_page(header, overlay.header(page_id), overlay.decider):
            return page_id
    return None


def arrive(overlay: Overlay, i: int) -> None:
    """Makes a page of the batch live and stores its sketch.

    The first sketch of a digest is stored whole, the others without the shared part.
    """
    pages = overlay.pages
    page_id = pages.page_ids[i]
    own_key, key = id_key(page_id), digest_key(pages[page_id])
    record, middle = pages.records[i], pages.middles[i]
    stored = whole_row(record)
    if not key:
        overlay.sketches.put(own_key, stored)
        return
    row, check = overlay.digests.get(key), check_of(sketch_rows.shared_part(record, middle))
    if row is None:
        overlay.sketches.put(own_key, stored)
        overlay.digests.put(key, DigestRow(1, page_id, 1, check, (page_id,)))
        return
    live, rest, refs, shared, listed = row
    if rest == NO_PAGE:
        rest, refs, shared = page_id, 1, check
    elif shared == check:
        stored = own_row(record, rest, middle)
        refs += 1
    overlay.sketches.put(own_key, stored)
    if live == len(listed) < DIGEST_PAGES_MAX:
        listed = (*listed, page_id)
    else:
        overlay.more.put(more_prefix(key) + own_key, MORE)
    overlay.digests.put(key, DigestRow(live + 1, rest, refs, shared, listed))


def leave(overlay: Overlay, page_id: int, header: Header) -> None:
    """Removes a page from the live pages of its digest. Its sketch stays stored: see `forget`."""
    key = digest_key(header)
    if not key:
        return
    row = overlay.digests.need(key)
    pages = tuple(page for page in row.pages if page != page_id)
    live = row.live - 1
    if len(pages) == len(row.pages):
        if row.live == len(pages):
            raise InvariantBroken(f"page {page_id} is not among the live pages of its digest {key.hex()}")
        overlay.more.put(more_prefix(key) + id_key(page_id), None)
    elif not pages and live:
        pages = _next_pages(overlay, key, min(live, DIGEST_PAGES_MAX), page_id)
    _put(overlay, key, row._replace(live=live, pages=pages))


def _next_pages(overlay: Overlay, key: bytes, number: int, last: int) -> tuple[int, ...]:
    """Moves the oldest pages that the digest's row does not list into the row. last: the last page that it listed."""
    prefix = more_prefix(key)
    found = overlay.more.first(prefix, number, prefix + id_key(last))
    if len(found) != number:
        raise InvariantBroken(f"digest {key.hex()} counts {number} more live pages, but {len(found)} are there")
    for more in found:
        overlay.more.put(more, None)
    return tuple(int.from_bytes(more[-8:], "big") for more in found)


def forget(overlay: Overlay, page_id: int) -> None:
    """Deletes the stored sketch of a page that is neither live nor a founding one.

    A part that other sketches share is kept until no sketch uses it.
    """
    header = overlay.header(page_id)
    key = digest_key(header)
    row_key = id_key(page_id)
    if not key:
        overlay.sketches.put(row_key, None)
        return
    digest = overlay.digests.need(key)
    rest = sketch_rows.rest_of_row(overlay.sketches.need(row_key))
    if rest is None and digest.rest != page_id:  # a record of its own: it shared nothing
        overlay.sketches.put(row_key, None)
        return
    if rest not in (None, digest.rest):
        raise InvariantBroken(f"sketch {page_id} leans on {rest}, its digest's row on {digest.rest}")
    digest = digest._replace(refs=digest.refs - 1)
    if rest is not None:
        overlay.sketches.put(row_key, None)
    if not digest.refs:
        overlay.sketches.put(id_key(digest.rest), None)
        digest = digest._replace(rest=NO_PAGE, check=0)
    elif rest is None:
        overlay.sketches.put(row_key, whole_row(sketch_rows.scrubbed(header.record)))
    _put(overlay, key, digest)


def _put(overlay: Overlay, key: bytes, row: DigestRow) -> None:
    overlay.digests.put(key, row if row.live or row.refs else None)
