"""The rows of the search: sketches and posting lists, as they were read, under the changes of the batch so far."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import posting_rows, rows, sketch_rows
from neardup.index.column_families import Family
from neardup.index.reads import Missing, Needs
from neardup.index.row_overlay import Table
from neardup.rules.posted_keys import similarity_keys
from neardup.search.posting_lists import Gathered, Lists
from neardup.search.search_reads import BatchReads
from neardup.sketch.header import Header


def same_bytes(row: bytes) -> bytes:
    """Codec of rows that are kept as bytes."""
    return row


class SearchOverlay:
    """Sketches and posting lists of one batch. `keep`, `post` and their opposites are the only changes."""

    def __init__(self, reads: BatchReads, decider: Decider) -> None:
        self.reads = reads
        self.pages = reads.pages
        self.decider = decider
        self.sketches = Table(Family.SKETCHES, reads, same_bytes, same_bytes)
        self.postings = Table(Family.KEYS, reads, same_bytes, same_bytes)  # of keys that no page of the batch has
        self._turned: list[bytes] = []  # of these the ones that turned hot
        self._reported: set[bytes] = set()  # keys that `turned_keys` has returned

    @cached_property
    def lists(self) -> Lists:
        """The batch's posting lists; rows that are read after the first use are not seen."""
        return self.reads.posted.lists(self.decider)

    def header(self, page_id: int) -> Header:
        """The sketch of a page of this batch or of the store. Raises Missing, InvariantBroken."""
        headers = self.reads.headers
        header = headers.get(page_id)
        if header is None and page_id in self.pages:
            header = headers[page_id] = self.pages[page_id]
        elif header is None:
            row = self.sketches.need(rows.id_key(page_id))
            rest = sketch_rows.rest_of_row(row)
            rest_row = None if rest is None else self.sketches.need(rows.id_key(rest))
            header = headers[page_id] = Header(sketch_rows.record_of_rows(row, rest_row))
        return header

    def header_if_read(self, page_id: int) -> Header | None:
        """`header`; None if its rows were not read, or there are none."""
        try:
            return self.header(page_id)
        except (Missing, InvariantBroken):
            return None

    def posted_keys(self, page_id: int) -> list[bytes]:
        """The similarity keys of a page."""
        if page_id in self.pages:
            return self.reads.posted.of_page(page_id)
        known = self.reads.keys
        if page_id not in known:
            known[page_id] = similarity_keys(self.header(page_id), self.decider)
        return known[page_id]

    def with_others(self, gathered: dict[int, Gathered], page_ids: Sequence[int]) -> dict[int, Gathered]:
        """Add the candidates of pages that the lists of the batch do not contain: none here.

        Args:
            gathered: candidates by the lists of the batch.
            page_ids: ids of the pages.
        """
        return gathered

    def is_as_read(self, page_id: int) -> bool:
        """Whether the candidates of a page of the batch are those before the batch."""
        return self.lists.is_as_read(page_id)

    def families(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], dict[str, int]]:
        """Number of shared keys that are not hot, by key family; of pairs of a page of the batch and a candidate."""
        return self.lists.families_many(pairs)

    def is_lonely(self, page_id: int) -> bool:
        """Whether the page of the batch that is judged next surely has no candidates."""
        number = self.reads.posted.number_of.get(page_id)
        return number is None or self.lists.is_lonely(number)

    def post(self, page_id: int) -> None:
        """Posts a founding sketch under its similarity keys. Raises Missing with every unread list."""
        number = self.reads.posted.number_of.get(page_id)
        if number is None and page_id in self.pages:
            return
        if number is not None and self.lists.is_lonely(number):
            self.lists.post_lonely([number])
            return
        header = self.header(page_id)
        slots, others = self._slots(page_id)
        word = posting_rows.word_of(page_id, header)
        if not self.lists.post(slots, word, header.site, foreign=page_id not in self.pages):
            raise self.lacking(page_id)
        for key, row in others:
            entry = posting_rows.posting(page_id, header, key)
            after = posting_rows.with_posting(row, entry, self.decider.postings_max, self.decider.hot_postings_kept)
            if posting_rows.is_hot(after) and not posting_rows.is_hot(row):
                self._turned.append(key)
            self.postings.put(key, after)

    def unpost(self, page_id: int) -> None:
        """Removes a founding sketch from its lists; hot ones may lack it. Raises Missing, InvariantBroken."""
        header = self.header(page_id)
        slots, others = self._slots(page_id)
        if not self.lists.unpost(slots, posting_rows.word_of(page_id, header)):
            raise self.lacking(page_id)
        for key, row in others:
            self.postings.put(key, posting_rows.without_posting(row, posting_rows.posting(page_id, header, key)))

    def require_lists(self, page_id: int) -> None:
        """Raises Missing if `post` would."""
        if not self.lists.are_read(self._slots(page_id)[0]):
            raise self.lacking(page_id)

    def _slots(self, page_id: int) -> tuple[np.ndarray, list[tuple[bytes, bytes | None]]]:
        """Keys of a page: slots of those that pages of the batch have, and the others with rows. Raises Missing."""
        posted = self.reads.posted
        number = posted.number_of.get(page_id)
        if number is not None:
            return posted.slots[number], []
        if page_id not in self.reads.slots:
            every = [(key, posted.slot_of(key)) for key in self.posted_keys(page_id)]
            slots = np.array([slot for _, slot in every if slot is not None], dtype=np.int64)
            self.reads.slots[page_id] = slots, [key for key, slot in every if slot is None]
        slots, others = self.reads.slots[page_id]
        try:
            return slots, [(key, self.postings.get(key)) for key in others]
        except Missing:
            raise self.lacking(page_id) from None

    @property
    def hot_turned(self) -> int:
        return len(self._turned) + len(self.lists.turned)

    def turned_keys(self) -> list[bytes]:
        """The similarity keys that turned hot since the last call, in byte order."""
        posted, lists = self.reads.posted.keys, self.lists
        if len(self._turned) + len(lists.turned) == len(self._reported):
            return []
        fresh = sorted({*self._turned, *(posted[slot] for slot in lists.turned)} - self._reported)
        self._reported.update(fresh)
        return fresh

    def lacking(self, page_id: int) -> Missing:
        """All lists of a page, some of which were not read."""
        needs = Needs()
        needs.rows[Family.KEYS] = set(self.posted_keys(page_id))
        return Missing(needs)
