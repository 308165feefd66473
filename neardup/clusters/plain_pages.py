"""The commonest pages of a batch, judged by shortcuts: plain founders and plain members.

`neardup.clusters.lifecycle` does the same page by page, and with all other pages.
"""

from collections import Counter

import numpy as np

from neardup.clusters import best_candidate, evidence, membership
from neardup.clusters.best_candidate import Search
from neardup.clusters.membership import NO_URL, Target
from neardup.clusters.overlay import Overlay
from neardup.clusters.verdict_builder import VerdictBuilder
from neardup.errors import InvariantBroken
from neardup.index import naming_rows, rows, sketch_rows
from neardup.index.column_families import Family
from neardup.index.reads import Missing
from neardup.search.batch_records import Pages
from neardup.sketch.layout import RecordKind, RecordSection
from neardup.urls import url_hash
from neardup.verdict import Kind, Verdict

_UNREAD = b"unread"
_PAGE = int(RecordKind.PAGE)


class Founders:
    """The commonest pages of a batch: they found a cluster of their own, and are decided and encoded together.

    A page is a *plain founder* if neither its URL nor its digest is in the index or on another page of the batch, and
    no list leads to candidates. Its rows and its verdict then depend on the page alone. They are made as columns, and
    each run of plain founders is put at its turn.

    plain: whether each page is a plain founder, bool[pages] by position in the batch.
    """

    def __init__(self, overlay: Overlay) -> None:
        """overlay: the rows before any effect of the batch."""
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
        self._sketches = [sketch_rows.whole_row(record) for record in records]
        self._digests = rows.encode_new_digests(ids, sketch_rows.checks_of(headers, records, middles))
        self._clusters = rows.encode_new_clusters(ids, headers["url_hash"], _named_canonical(pages, at.tolist()))
        newest = np.minimum(headers["fetched_at"], headers["log_time"])
        self._urls = rows.encode_founder_urls(ids, newest, headers["log_time"])
        posted = overlay.reads.posted.number_of
        self._posted = [posted.get(page_id) for page_id in ids.tolist()]
        self._namings = naming_rows.encode_firsts(headers) if overlay.counts_siblings else []
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


#: How a page joins: the page that it repeats, the cluster of that page, and whether that page is a candidate.
_Plan = tuple[int, Target, bool]


class Members:
    """The plain members among the pages that are judged together: they join a cluster, and change nothing else.

    Only pages that found a cluster are commoner. A page is a *plain member* if its URL is unknown, and it repeats a
    page of the index: one with its digest, or the candidate that was chosen before the batch. How it joins is then
    found before the first page of the batch is judged. It is put at its turn, unless an earlier page of the batch has
    changed what its verdict rests on.
    """

    def __init__(self, overlay: Overlay, builder: VerdictBuilder | None, families: best_candidate.Families) -> None:
        """Choose the pages.

        Args:
            overlay: the rows before any effect of the batch.
            builder: makes the verdicts; None: make no verdicts.
            families: result of `families_ahead`.
        """
        self._overlay, self._builder, self._families = overlay, builder, families
        self._plans = _plans(overlay)

    def put(self, i: int) -> tuple[Search | None, Verdict | None] | None:
        """Puts the rows of a plain member, by position. Returns its candidates, and its verdict.

        None, and nothing is put, if the page is no plain member, or no longer one. Raises Missing.
        """
        plan = self._plans.get(i)
        if plan is None:
            return None
        other, target, chosen = plan
        overlay, builder, pages = self._overlay, self._builder, self._overlay.pages
        cluster = overlay.clusters.get(target.key)
        # Whatever changes a member's row puts the row of its URL, too.
        if cluster is None or cluster.founding != target.row.founding or overlay.urls.is_put(target.url_hash):
            return None
        if overlay.urls.get(pages.url_hashes[i]) is not None:
            return None
        digest = overlay.digests.get(pages.digest_keys[i]) if pages.digest_keys[i] else None
        proof: evidence.Evidence = {}
        search = None
        if not chosen:
            if digest is None or digest.pages[:1] != (other,):
                return None
            if builder is not None:
                held = overlay.header(other)
                proof = evidence.of_digest(pages.sites[i], builder.lang(i), other, held, target.founding)
        else:
            page_id = pages.page_ids[i]
            if digest is not None or not overlay.is_as_read(page_id):
                return None
            search = best_candidate.choose(overlay, page_id)
            best = search.best
            if best is None or best.page_id != other or best.ruling.kind is not Kind.NEAR_DUPLICATE:
                return None
            if builder is not None:
                shared = self._families.get((page_id, other))
                proof = evidence.of_choice(overlay, page_id, builder.lang(i), search, best, shared)
        kind = Kind.NEAR_DUPLICATE if chosen else Kind.EXACT_DUPLICATE
        row = membership.join(overlay, i, target, cluster, kind)
        if chosen:
            best_candidate.count_sibling(overlay, i)
        if builder is None:
            return search, None
        cut = search is not None and search.cut
        return search, builder.member(kind, i, target.cluster_id, row, proof, cut=cut)


def _plans(overlay: Overlay) -> dict[int, _Plan]:
    """The plans of pages, by position."""
    pages, reads = overlay.pages, overlay.reads
    required = [(i, holder, False) for i, holder in reads.holders.items()]
    for page_id, chosen in reads.chosen.items():
        best = chosen.search.best
        if best is not None and best.ruling.kind is Kind.NEAR_DUPLICATE and chosen.as_read:
            required.append((pages.position(page_id), best.page_id, True))
    plans: dict[int, _Plan] = {}
    for i, other, is_chosen in required:
        if pages.kinds[i] == _PAGE and not (is_chosen and overlay.is_lonely(pages.page_ids[i])):
            try:
                plans[i] = other, membership.target(overlay, other), is_chosen
            except (Missing, InvariantBroken):
                continue  # judging the page reads the rows, or finds the fault
    return plans
