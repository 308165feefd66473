"""Candidates to which only hot keys lead: a hot key keeps its oldest pages, for the sake of pages of other sites.

Whoever repeats a stranger's text in many pages turns its keys hot, and later copies of it would meet nobody. Pages of
the same site do not meet them, as a site's template turns keys hot all by itself; nor do pages whose simhashes tell
that they have little in common, as many sites begin alike. So hot keys stay as cheap as they are.
"""

from collections.abc import Mapping

import numpy as np

from neardup.search.lists import Gathered
from neardup.search.overlay import Overlay
from neardup.sketch.layout import HEADER


def elsewhere(overlay: Overlay, gathered: Mapping[int, Gathered]) -> dict[int, Gathered]:
    """What the lists of pages of the batch give, without the candidates that share none but hot keys and are not meant.

    Raises Missing.
    """
    # They share 0 keys that are not hot, and come last.
    pages = [page_id for page_id, (_, shared, _) in gathered.items() if shared and not shared[-1]]
    if not pages:
        return dict(gathered)
    pairs = [
        (page_id, candidate)
        for page_id in pages
        for candidate, times in zip(*gathered[page_id][:2], strict=True)
        if not times
    ]
    meant = set(pairs)
    for pair, good in zip(pairs, _are_meant(overlay, pairs).tolist(), strict=True):
        if not good:
            meant.discard(pair)
    out = dict(gathered)
    for page_id in pages:
        candidates, shared, cut = gathered[page_id]
        left = [
            (candidate, times)
            for candidate, times in zip(candidates, shared, strict=True)
            if times or (page_id, candidate) in meant
        ]
        out[page_id] = [candidate for candidate, _ in left], [times for _, times in left], cut
    return out


def _are_meant(overlay: Overlay, pairs: list[tuple[int, int]]) -> np.ndarray:
    """bool[pairs] of a page of the batch and another: of two sites, and alike enough to be worth a look."""
    batch = overlay.reads.batch
    numbers = {candidate: number for number, candidate in enumerate(dict.fromkeys(other for _, other in pairs))}
    size = HEADER.itemsize
    starts = b"".join(overlay.header(candidate).record[:size] for candidate in numbers)
    others = np.frombuffer(starts, dtype=HEADER)[[numbers[candidate] for _, candidate in pairs]]
    pages = batch.headers[[batch.at(page_id) for page_id, _ in pairs]]
    differing = np.bitwise_count(pages["simhash"] ^ others["simhash"]).sum(axis=1, dtype=np.int64)
    bits = 8 * HEADER["simhash"].itemsize
    meant: np.ndarray = (bits - differing >= overlay.decider.hot_c_min) & (pages["site"] != others["site"])
    return meant
