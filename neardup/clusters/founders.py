"""The commonest pages of a batch: those that found a cluster of their own, decided and encoded together.

A page is *plain* if neither its URL nor its digest is in the index or on another page of the batch, and no list leads
to candidates. Its rows and its verdict then depend on the page alone. They are made as columns, and each run of plain
pages is put at its turn. `neardup.clusters.lifecycle` does the same page by page, and with all other pages.
"""

from collections import Counter

import numpy as np

from neardup.clusters import best_candidate
from neardup.clusters.membership import NO_URL
from neardup.clusters.overlay import Overlay
from neardup.index import namings, rows, sharing
from neardup.index.base import Family
from neardup.search.pages import Pages
from neardup.sketch.header import url_hash
from neardup.sketch.layout import RecordKind, RecordSection

_UNREAD = b"unread"
_PAGE = int(RecordKind.PAGE)


class Founders:
    """The plain pages of a batch. plain: for each page, by position, whether it is one."""

    def __init__(self, overlay: Overlay) -> None:
        """overlay: without any effect of the batch."""
        self._overlay = overlay
        self.plain = _are_plain(overlay)
        at = np.nonzero(np.array(self.plain, dtype=np.bool_))[0]
        if not len(at):
            return
        pages = overlay.pages
        headers, records, middles = overlay.kept_columns(at)
        ids = pages.ids[at]
        #: The number of a page, by position, among the plain ones: the place of its rows in the following lists.
        self._numbers = (np.cumsum(self.plain) - 1).tolist()
        self._sketches = [sharing.whole_row(record) for record in records]
        self._digests = rows.encode_new_digests(ids, sharing.checks_of(headers, records, middles))
        self._clusters = rows.encode_new_clusters(ids, headers["url_hash"], _named_canonical(pages, at.tolist()))
        newest = np.minimum(headers["fetched_at"], headers["log_time"])
        self._urls = rows.encode_founder_urls(ids, newest, headers["log_time"])
        posted = overlay.reads.posted.number_of
        self._posted = [posted.get(page_id) for page_id in ids.tolist()]
        self._namings = namings.encode_firsts(headers) if overlay.counts_siblings else []
        self._first_named = _are_first_named(overlay, at.tolist()) if overlay.counts_siblings else []

    def put(self, first: int, last: int) -> bool:
        """Puts the rows of a run of plain pages, by position. False, and nothing is put, if they may have candidates
        now. Raises Missing.
        """
        overlay, pages = self._overlay, self._overlay.pages
        if overlay.lists.is_disturbed:
            return False
        start, stop = self._numbers[first], self._numbers[last - 1] + 1
        id_keys = pages.id_keys[first:last]
        overlay.found(first, last)
        overlay.lists.post_lonely([number for number in self._posted[start:stop] if number is not None])
        overlay.sketches.put_new(id_keys, self._sketches[start:stop])
        overlay.digests.put_new(pages.digest_keys[first:last], self._digests[start:stop])
        overlay.clusters.put_new(id_keys, self._clusters[start:stop])
        overlay.urls.put_new(pages.url_hashes[first:last], self._urls[start:stop])
        if overlay.counts_siblings:
            self._count_siblings(first, last)
        return True

    def _count_siblings(self, first: int, last: int) -> None:
        overlay, keys = self._overlay, self._overlay.pages.naming_keys
        for i in range(first, last):
            number = self._numbers[i]
            if self._first_named[number]:
                overlay.namings.put_encoded(keys[i], self._namings[number])
            else:
                best_candidate.count_sibling(overlay, i)


def _are_plain(overlay: Overlay) -> list[bool]:
    pages, rows_read = overlay.pages, overlay.reads.rows
    urls, keys = rows_read[Family.URLS], rows_read[Family.KEYS]
    pages_of_url, pages_of_digest = Counter(pages.url_hashes), Counter(pages.digest_keys)
    columns = pages.kinds, pages.url_hashes, pages.digest_keys, pages.page_ids
    return [
        kind == _PAGE
        and urls.get(url, _UNREAD) is None
        and keys.get(digest, _UNREAD) is None
        and pages_of_url[url] == pages_of_digest[digest] == 1
        and overlay.is_lonely(page_id)
        for kind, url, digest, page_id in zip(*columns, strict=True)
    ]


def _are_first_named(overlay: Overlay, positions: list[int]) -> list[bool]:
    """Whether pages are counted, and neither the index nor another page of the batch has their naming."""
    pages, keys, counted = overlay.pages, overlay.reads.rows[Family.KEYS], overlay.reads.posted.with_keys
    pages_of_naming = Counter(pages.naming_keys)
    return [
        pages.page_ids[i] in counted
        and pages_of_naming[pages.naming_keys[i]] == 1
        and keys.get(pages.naming_keys[i], _UNREAD) is None
        for i in positions
    ]


def _named_canonical(pages: Pages, positions: list[int]) -> list[bytes]:
    """`ClusterRow.named_canonical` of pages that each found a cluster."""
    starts, ends = pages.starts[RecordSection.CANONICAL].tolist(), pages.starts[RecordSection.LANG].tolist()
    out = [NO_URL] * len(positions)
    for number, i in enumerate(positions):
        if pages.names_canonical[i]:
            named = url_hash(pages.records[i][starts[i] : ends[i]].decode("utf-8", "replace"))
            out[number] = NO_URL if named == pages.url_hashes[i] else named
    return out
