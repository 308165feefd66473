"""Applies effects to posting lists, sketches and followed URLs.

A shard has rows in three families of an index:

* KEYS: posting lists.
* SKETCHES: whole records.
* URLS: by URL hash, the page ids of the sketches that follow the URL, `| 1 | page id (8) | ...`.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import sketch_rows
from neardup.index.column_families import Family, Reader, Writes
from neardup.index.reads import Missing, Needs, for_each
from neardup.index.row_overlay import Table
from neardup.index.rows import id_key
from neardup.search.batch_records import Pages
from neardup.search.search_overlay import SearchOverlay
from neardup.search.search_reads import BatchReads
from neardup.sharded.messages import EffectKind

#: One effect: kind, page id, URL hash.
Item = tuple[int, int, bytes]

_FORMAT = b"\x01"
_KEEP, _DROP, _POST, _UNPOST, _FOLLOW, _LEAVE = map(int, EffectKind)


def followed_of(row: bytes | None) -> tuple[int, ...]:
    """Decodes the page ids of a row of URLS; none for None. Raises CorruptRecord."""
    if row is None:
        return ()
    if row[:1] != _FORMAT or len(row) % 8 != 1:
        raise CorruptRecord(f"not a row of the sketches that follow a URL: {row.hex()}")
    return struct.unpack_from(f">{len(row) // 8}Q", row, 1)


def _encode_followed(page_ids: tuple[int, ...]) -> bytes:
    return _FORMAT + struct.pack(f">{len(page_ids)}Q", *page_ids)


def changes(
    items: Sequence[Item],
    records: Mapping[int, bytes],
    store: Reader,
    decider: Decider,
    is_own: Callable[[int], bool],
) -> Writes:
    """Return the changes of one shard's rows that effects require. Pure.

    Args:
        items: effects in the order of the log. Effects on pages of other shards are ignored.
        records: records of all pages of the shard that the items keep, by page id. The store has the records of older
            pages that the items post.
        store: rows of the shard.
        decider: the rule with its numbers.
        is_own: function that tells whether a page id belongs to the shard.

    Raises:
        InvariantBroken: if an effect contradicts the rows.
        CorruptRecord: if a row cannot be decoded.
    """
    own = [item for item in items if item[0] == _LEAVE or is_own(item[1])]
    fresh = sorted({page_id for kind, page_id, _ in own if kind in (_KEEP, _POST) and page_id in records})
    reads = BatchReads(Pages([(page_id, records[page_id]) for page_id in fresh]), decider)
    needs = Needs()
    needs.rows[Family.URLS] = {url for kind, _, url in own if kind == _FOLLOW}
    reads.read(store, needs)
    posted = [page_id for kind, page_id, _ in own if kind in (_POST, _UNPOST)]
    reads.read_lists(store, [page_id for page_id in posted if page_id in reads.pages])
    reads.read_sketches(store, posted)
    while True:
        try:
            return _applied(own, reads, decider)
        except Missing as missing:
            if not reads.read(store, missing.needs):
                raise InvariantBroken("applying effects misses rows that were read") from missing


def _applied(items: Sequence[Item], reads: BatchReads, decider: Decider) -> Writes:
    overlay = SearchOverlay(reads, decider)
    followed = Table(Family.URLS, reads, followed_of, _encode_followed)
    for_each(items, lambda item: _apply(item, overlay, followed))
    return {
        Family.KEYS: {**overlay.lists.writes(), **overlay.postings.writes()},
        Family.SKETCHES: overlay.sketches.writes(),
        Family.URLS: followed.writes(),
    }


def _apply(item: Item, overlay: SearchOverlay, followed: Table[tuple[int, ...]]) -> None:
    kind, page_id, url = item
    if kind == _KEEP:
        record = overlay.pages.records[overlay.pages.position(page_id)]
        overlay.sketches.put_encoded(id_key(page_id), sketch_rows.whole_row(record))
    elif kind == _DROP:
        overlay.sketches.put(id_key(page_id), None)
    elif kind == _POST:
        overlay.post(page_id)
    elif kind == _UNPOST:
        overlay.unpost(page_id)
    elif kind == _FOLLOW:
        followed.put(url, (*(followed.get(url) or ()), page_id))
    elif kind == _LEAVE:
        followed.put(url, None)
    else:
        raise CorruptRecord(f"an effect of unknown kind {kind}")
