"""What one batch has read for its search, and what was computed of it."""

from collections.abc import Iterable

import numpy as np

from neardup.decider import Decider
from neardup.index import sketch_rows
from neardup.index.column_families import Family, Reader
from neardup.index.reads import Needs, ReadSet
from neardup.search.batch_records import Pages
from neardup.search.posting_lists import Posted
from neardup.search.scores import Numbers, Scores
from neardup.sketch.header import Header


class BatchReads(ReadSet):
    """The pages of a batch, and rows that were read for them.

    Args:
        threads: number of threads that read and score.
        alone: pages whose keys have no lists, see `Posted`.
        posted: made of these pages and decider, if it is known; no row was read.
    """

    def __init__(
        self,
        pages: Pages,
        decider: Decider,
        threads: int = 1,
        alone: frozenset[int] = frozenset(),
        posted: Posted | None = None,
    ) -> None:
        super().__init__(threads)
        self.pages = pages
        #: The batch's similarity keys, with the rows of those that were read.
        self.posted = posted or Posted(pages, decider, alone)
        #: Decoded sketches by page id.
        self.headers: dict[int, Header] = {}
        #: Similarity keys of pages that are not of the batch, by page id.
        self.keys: dict[int, list[bytes]] = {}
        #: Of these keys the slots in `posted`, and the keys that no page of the batch has.
        self.slots: dict[int, tuple[np.ndarray, list[bytes]]] = {}
        #: Numbers of all pairs, and the pairs of each page of the batch.
        self.numbers = Numbers(decider)
        self.scores: dict[int, Scores] = {}
        #: Pages of the batch that will likely be posted: a guess.
        self.likely_posted: set[int] = set()

    def read(self, store: Reader, needs: Needs) -> int:
        read = super().read(store, needs)
        self.posted.learn(needs.rows.get(Family.KEYS, ()), self.rows[Family.KEYS])
        return read

    def read_lists(self, store: Reader, page_ids: Iterable[int]) -> None:
        """Reads the posting lists of pages of the batch."""
        slots = self.posted.unread_of(page_ids)
        if slots:
            keys = [self.posted.keys[slot] for slot in slots]
            self.posted.put(slots, self._get(store, {Family.KEYS: keys})[Family.KEYS])

    def read_sketches(self, store: Reader, page_ids: Iterable[int]) -> None:
        """Reads sketches rows, and the rows that hold their shared parts."""
        needs = Needs()
        needs.sketches(page_id for page_id in page_ids if page_id not in self.headers and page_id not in self.pages)
        self.read(store, needs)
        held = self.rows[Family.SKETCHES]
        shared = Needs()
        for key in needs.rows[Family.SKETCHES]:
            row = held[key]
            rest = None if row is None else sketch_rows.rest_of_row(row)
            if rest is not None:
                shared.sketches((rest,))
        self.read(store, shared)
