"""Candidates of the pages of a batch, and the numbers of their pairs.

A hot key keeps its oldest pages, for pages of other sites: a site that copies a page many times makes the page's keys
hot, and later copies would have no candidates. A page has no candidates of its own site through hot keys, since a
site's template makes keys hot without an attack; and none whose simhash differs in most bits, since pages of many sites
begin alike. So hot keys stay as cheap as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice

import numpy as np

from neardup.index.column_families import Reader
from neardup.index.reads import Missing, Needs
from neardup.pairs.scoring import PairScorer
from neardup.search.posting_lists import Gathered
from neardup.search.scores import Scores
from neardup.search.search_overlay import SearchOverlay
from neardup.sketch.layout import HEADER


def find(overlay: SearchOverlay, page_id: int) -> Gathered:
    """Candidates of a page of the batch, as the lists are now. Raises Missing."""
    gathered = overlay.lists.gather(page_id)
    if gathered is None:
        raise overlay.lacking(page_id)
    return overlay.with_others(without_unlikely(overlay, {page_id: gathered}), [page_id])[page_id]


def read_many(overlay: SearchOverlay, store: Reader, page_ids: Sequence[int]) -> dict[int, Gathered]:
    """Reads lists and candidates of pages of the batch, and scores them; returns those of pages with candidates."""
    reads = overlay.reads
    reads.read_lists(store, page_ids)
    gathered = overlay.lists.gather_many(page_ids, [False] * len(page_ids))
    reads.read_sketches(store, {candidate for candidates, _, _ in gathered.values() for candidate in candidates})
    gathered = without_unlikely(overlay, gathered)
    overlay.lists.mark_lonely([page_id for page_id, (left, _, _) in gathered.items() if not left])
    gathered = overlay.with_others(gathered, page_ids)
    gathered = {page_id: found for page_id, found in gathered.items() if found[0]}
    score(overlay, ((page_id, candidates) for page_id, (candidates, _, _) in gathered.items()))
    return gathered


def without_unlikely(overlay: SearchOverlay, gathered: Mapping[int, Gathered]) -> dict[int, Gathered]:
    """Removes candidates that share only hot keys with a page, and are of its site or unlike it. Raises Missing."""
    # They have weight 0, and come last.
    firsts = {page_id: weights.index(0) for page_id, (_, weights, _) in gathered.items() if weights and not weights[-1]}
    if not firsts:
        return dict(gathered)
    others = {page_id: gathered[page_id][0][first:] for page_id, first in firsts.items()}
    likely = iter(_are_likely(overlay, others).tolist())
    out = dict(gathered)
    for page_id, first in firsts.items():
        candidates, weights, cut = gathered[page_id]
        kept = list(compress(others[page_id], islice(likely, len(candidates) - first)))
        out[page_id] = candidates[:first] + kept, weights[:first] + [0] * len(kept), cut
    return out


def _are_likely(overlay: SearchOverlay, others: Mapping[int, list[int]]) -> np.ndarray:
    """bool for each of the candidates of pages of the batch: of two sites, and simhashes with enough equal bits."""
    unique, numbers = np.unique(np.concatenate(list(others.values())), return_inverse=True)
    size = HEADER.itemsize
    starts = b"".join(overlay.header(candidate).record[:size] for candidate in unique.tolist())
    candidates = np.frombuffer(starts, dtype=HEADER)[["site", "simhash"]][numbers]
    positions = np.array([overlay.pages.position(page_id) for page_id in others])
    pages = overlay.pages.headers[["site", "simhash"]][positions.repeat(list(map(len, others.values())))]
    differing = np.bitwise_count(pages["simhash"] ^ candidates["simhash"]).sum(axis=1, dtype=np.int64)
    bits = 8 * HEADER["simhash"].itemsize
    likely: np.ndarray = (bits - differing >= overlay.decider.hot_c_min) & (pages["site"] != candidates["site"])
    return likely


def scores_of(overlay: SearchOverlay, page_id: int, others: Sequence[int]) -> Scores:
    """The numbers of a page's pairs, with `others` among them. Raises Missing."""
    known = overlay.reads.scores.get(page_id)
    if known is None or known.lacking(others):
        score(overlay, [(page_id, others)])
    return overlay.reads.scores[page_id]


def score(overlay: SearchOverlay, required: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Computes and keeps the numbers of pages with others, in one call of the kernel. Raises Missing with all needs."""
    known, pages = overlay.reads.scores, overlay.pages
    needs = Needs()
    scored, pairs = [], PairScorer(overlay.reads.threads)

    def record(page_id: int) -> bytes:
        return pages.records[pages.position(page_id)] if page_id in pages else overlay.header(page_id).record

    for page_id, others in required:
        scores = known.get(page_id)
        fresh = others if scores is None else scores.lacking(others)
        if not fresh:
            continue
        try:
            pairs.add(page_id, fresh, record)
        except Missing:
            for other in fresh:
                needs.add(_missing_of(overlay, other))
            continue
        scored.append((page_id, fresh))
    if needs:
        raise Missing(needs)
    if not scored:
        return
    numbers = overlay.reads.numbers
    first = len(numbers)
    numbers.add(pairs.numbers())
    for page_id, others in scored:
        if page_id not in known:
            known[page_id] = Scores(numbers)
        known[page_id].add(others, first)
        first += len(others)


def _missing_of(overlay: SearchOverlay, page_id: int) -> Needs:
    try:
        overlay.header(page_id)
    except Missing as missing:
        return missing.needs
    return Needs()


def score_among(overlay: SearchOverlay, page_ids: Sequence[int]) -> None:
    """Computes, together, the numbers that pages of the batch will need among themselves. Changes no verdict.

    Which pages will be posted is a guess. A wrong guess costs pairs that are not used, or a call of the kernel more.
    """
    likely = overlay.reads.likely_posted
    if (overlay.lists.is_untouched and likely.isdisjoint(page_ids)) or not overlay.lists.meet(page_ids):
        return
    gathered = overlay.lists.gather_many(page_ids, [page_id in likely for page_id in page_ids])
    first, last = int(overlay.pages.ids[0]), int(overlay.pages.ids[-1])
    among = {
        page_id: [other for other, weight in zip(candidates, weights, strict=True) if weight and first <= other <= last]
        for page_id, (candidates, weights, _) in gathered.items()
    }
    score(overlay, [(page_id, candidates) for page_id, candidates in among.items() if candidates])
