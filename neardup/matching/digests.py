"""Who has which content: digest rows with their live pages, sketches rows, similarity postings."""

from neardup.errors import InvariantBroken
from neardup.index import keys, sharing
from neardup.index.rows import DIGEST_PAGES_MAX, NO_DIGEST_ROW, NO_PAGE, DigestRow, id_key
from neardup.matching.overlay import Overlay
from neardup.sketch.header import Header


def holder(overlay: Overlay, header: Header) -> int | None:
    """The oldest live page with the content of `header`, None if there is none or the content duplicates nothing."""
    key = keys.digest_key(header)
    row = overlay.digests.get(key) if key else None
    return row.pages[0] if row and row.pages else None


def arrive(overlay: Overlay, page_id: int, header: Header) -> None:
    """A page with this content is live from now on; its sketch is stored."""
    key = keys.digest_key(header)
    if not key:
        overlay.sketches.put(id_key(page_id), sharing.whole_row(header.record))
        return
    row = _stored(overlay, page_id, header, overlay.digests.get(key) or NO_DIGEST_ROW)
    pages = row.pages
    if row.live == len(pages) < DIGEST_PAGES_MAX:
        pages = (*pages, page_id)
    else:
        overlay.more.put(keys.more_prefix(key) + id_key(page_id), keys.MORE)
    overlay.digests.put(key, row._replace(live=row.live + 1, pages=pages))


def leave(overlay: Overlay, page_id: int, header: Header) -> None:
    """A page with this content is not live any more. Its sketch stays stored: see `forget`."""
    key = keys.digest_key(header)
    if not key:
        return
    row = overlay.digests.need(key)
    pages = tuple(page for page in row.pages if page != page_id)
    live = row.live - 1
    if len(pages) == len(row.pages):
        if row.live == len(pages):
            raise InvariantBroken(f"page {page_id} is not among the live pages of its digest {key.hex()}")
        overlay.more.put(keys.more_prefix(key) + id_key(page_id), None)
    elif not pages and live:
        pages = _next_pages(overlay, key, min(live, DIGEST_PAGES_MAX))
    _put(overlay, key, row._replace(live=live, pages=pages))


def _next_pages(overlay: Overlay, key: bytes, number: int) -> tuple[int, ...]:
    """Takes the oldest pages that the row did not list out of their own keys."""
    found = overlay.more.first(keys.more_prefix(key), number, fresh=False)
    if len(found) != number:
        raise InvariantBroken(f"digest {key.hex()} counts {number} more live pages, but {len(found)} are there")
    for more in found:
        overlay.more.put(more, None)
    return tuple(int.from_bytes(more[-8:], "big") for more in found)


def forget(overlay: Overlay, page_id: int) -> None:
    """Drops the stored sketch of a page that is neither live nor a founding one; its shared part with the last user."""
    header = overlay.header(page_id)
    key = keys.digest_key(header)
    place = id_key(page_id)
    if not key:
        overlay.sketches.put(place, None)
        return
    digest = overlay.digests.need(key)
    rest = sharing.rest_of_row(overlay.sketches.need(place))
    if rest is None and digest.rest != page_id:  # a record of its own: it shared nothing
        overlay.sketches.put(place, None)
        return
    if rest not in (None, digest.rest):
        raise InvariantBroken(f"sketch {page_id} leans on {rest}, its digest's row on {digest.rest}")
    digest = digest._replace(refs=digest.refs - 1)
    if rest is not None:
        overlay.sketches.put(place, None)
    if not digest.refs:
        overlay.sketches.put(id_key(digest.rest), None)
        digest = digest._replace(rest=NO_PAGE, check=0)
    _put(overlay, key, digest)


def _stored(overlay: Overlay, page_id: int, header: Header, digest: DigestRow) -> DigestRow:
    """Stores a sketch: whole for the first of its digest, else its own part. Returns the digest's row."""
    record = header.record
    check = sharing.check_of(sharing.shared_part(record))
    if digest.rest == NO_PAGE:
        overlay.sketches.put(id_key(page_id), sharing.whole_row(record))
        return digest._replace(rest=page_id, refs=1, check=check)
    if digest.check != check:
        overlay.sketches.put(id_key(page_id), sharing.whole_row(record))
        return digest
    overlay.sketches.put(id_key(page_id), sharing.own_row(record, digest.rest))
    return digest._replace(refs=digest.refs + 1)


def _put(overlay: Overlay, key: bytes, row: DigestRow) -> None:
    overlay.digests.put(key, row if row.live or row.refs else None)
