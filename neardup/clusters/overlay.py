"""All rows that judging reads and changes: those of the search, and URLs, clusters, members, digests and namings."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from neardup.decider import Decider
from neardup.index import naming_rows, rows
from neardup.index.column_families import Family
from neardup.index.row_overlay import Table
from neardup.rules import Pair, Ruling
from neardup.rules.posted_keys import counts_siblings
from neardup.search.batch_records import Pages
from neardup.search.search_overlay import SearchOverlay, same_bytes
from neardup.search.search_reads import BatchReads
from neardup.sketch.layout import HEADER, HEADER_BYTES
from neardup.verdict import Representative

#: An effect for a shard: kind (`neardup.sharded.messages.EffectKind`), page id, URL hash.
Effect = tuple[int, int, bytes]


class Reads(BatchReads):
    """Rows that were read for a batch."""

    def __init__(self, pages: Pages, decider: Decider, threads: int = 1, alone: frozenset[int] = frozenset()) -> None:
        super().__init__(pages, decider, threads, alone)
        self.decider = decider
        #: By page id: `neardup.clusters.best_candidate.Chosen`.
        self.chosen: dict[int, Any] = {}
        #: By position of a page whose URL is unknown: a live page of the index with its content.
        self.holders: dict[int, int] = {}
        #: By cluster: number of its pages that the batch may remove.
        self.leaving: Counter[int] = Counter()
        #: Clusters whose next representatives were read.
        self.heirs: set[int] = set()
        #: `best_candidate.verify` of pairs of pages.
        self.verified: dict[tuple[int, int], tuple[bool, Pair, Ruling]] = {}

    def overlay(self) -> "Overlay":
        """A new overlay of the rows that were read."""
        return Overlay(self, self.decider)


#: Makes `Reads`, of pages, decider and number of threads.
MakeReads = Callable[[Pages, Decider, int], Reads]


class Overlay(SearchOverlay):
    """The tables of one batch, as they were read, under the changes of the batch so far."""

    reads: Reads

    def __init__(self, reads: Reads, decider: Decider) -> None:
        super().__init__(reads, decider)
        self.urls = Table(Family.URLS, reads, rows.decode_url, rows.UrlRow.encode)
        self.clusters = Table(Family.CLUSTERS, reads, rows.decode_cluster, rows.ClusterRow.encode)
        self.members = Table(Family.MEMBERS, reads, rows.decode_member, rows.MemberRow.encode)
        self.digests = Table(Family.KEYS, reads, rows.decode_digest, rows.DigestRow.encode)
        self.more = Table(Family.KEYS, reads, same_bytes, same_bytes)  # further pages of a digest
        self.namings = Table(Family.KEYS, reads, naming_rows.decode, naming_rows.encode)
        self.counts_siblings = counts_siblings(decider)
        self.effects: list[Effect] = []  # stays empty here
        self.representatives: dict[int, Representative] = {}  # as verdicts name them, by founding page

    # ---- what shards and a judge do otherwise (`neardup.sharded`) --------------------------------------------------

    def kept(self, record: bytes) -> bytes:
        """Returns the bytes of a page's record that the index stores."""
        return record

    def kept_of(self, i: int) -> tuple[bytes, tuple[int, int, int]]:
        """Does the same for a page of the batch by position, with the range of its shared part (`Pages.middles`)."""
        return self.pages.records[i], self.pages.middles[i]

    def kept_columns(self, at: np.ndarray) -> tuple[np.ndarray, list[bytes], list[tuple[int, int, int]]]:
        """Does the same for several pages: headers, records, ranges of their shared parts. at: positions, int64[]."""
        pages, positions = self.pages, at.tolist()
        headers = pages.headers.view(HEADER_BYTES)[at].view(HEADER)
        return headers, [pages.records[i] for i in positions], [pages.middles[i] for i in positions]

    def can_score(self, page_id: int, other: int) -> bool:
        """Whether the numbers of a page of the batch and another sketch are known, or can be computed here."""
        return True

    def scored_as(self, page_id: int, held: int) -> int:
        """Returns the sketch used for scoring when a page of the batch has the content of a URL's held fetch."""
        return held

    def found(self, first: int, last: int) -> None:
        """Notes that pages of the batch, by position, each found a cluster: that they are kept, posted and followed."""

    def keep(self, page_id: int) -> None:
        """Notes that a page is live and its sketch is stored."""

    def drop(self, page_id: int) -> None:
        """Notes that a page is neither live nor a founding one, and its sketch is deleted."""

    def follow(self, url_hash: bytes, *page_ids: int) -> None:
        """Notes the sketches, and the only ones, with which later fetches of a URL will be compared."""

    def leave(self, url_hash: bytes) -> None:
        """Notes that later fetches of a URL will be compared with no sketch."""

    def writes(self) -> dict[Family, dict[bytes, bytes | None]]:
        """Returns the changes of this batch, ready for `Store.write`."""
        posted: dict[bytes, bytes | None] = {}
        # In the order of their families' bytes, since nearly sorted keys are sorted fast.
        for part in (self.digests, self.more, self.namings, self.lists, self.postings):
            posted.update(part.writes())
        out = {
            Family.KEYS: posted,
            Family.SKETCHES: self.sketches.writes(),
            Family.URLS: self.urls.writes(),
            Family.CLUSTERS: self.clusters.writes(),
            Family.MEMBERS: self.members.writes(),
        }
        return {family: changes for family, changes in out.items() if changes}
