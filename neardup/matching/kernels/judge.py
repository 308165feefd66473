"""What judging takes beside the rows, and the page that a page repeats word for word."""

from typing import NamedTuple

import numpy as np

from neardup.kernels import lean_kernel
from neardup.matching.kernels import digests, lists
from neardup.matching.kernels.records import HEADER_SIZE, has_digest, record
from neardup.matching.kernels.rows import I64, NOBODY, be48
from neardup.matching.kernels.search import Pairs
from neardup.rules.rulings import one_page

# Places in `Judge.numbers`.
RECLAIM_MS, COMBINED_C_MIN, COUNTS, EMIT, TRACE = range(5)

CLAIM = np.dtype(
    (
        np.record,
        [("cluster", "<u8"), ("since", "<u8"), ("pair", "<i8"), ("founding", "<i8"), ("founding_at", "<i8")],
    ),
    align=True,
)


class Judge(NamedTuple):
    """What judging takes beside the rows.

    pages: PAGE[]. keys, pairs: for the search. numbers: int64[], of the decider and of the call. verdicts: VERDICT[],
    what is emitted. blank: VERDICT[1] without fields. turned: uint64[], keys that turned hot. clusters: CLUSTER[],
    urls: URL[] and claims: CLAIM[], scratch. began: int64[5], places of searches, candidates, checks, verdicts and
    turned keys when the page began.
    """

    pages: np.ndarray
    keys: lists.Keys
    pairs: Pairs
    numbers: np.ndarray
    verdicts: np.ndarray
    blank: np.ndarray
    turned: np.ndarray
    clusters: np.ndarray
    urls: np.ndarray
    claims: np.ndarray
    began: np.ndarray


@lean_kernel
def holder(r, j, page):
    """The oldest live page with the digest of a page that the rule considers the same page; NOBODY; MISSING or FULL."""
    if not has_digest(r.heap, page.at):
        return NOBODY
    e = digests.entry_of(r, page.at)
    if e < 0:
        return e
    row, size = r.entries[e].row, I64(r.entries[e].length)
    for at in range(row + digests.PAGES_AT, row + size, digests.ID_BYTES):
        held = be48(r.heap, at)
        other = record(r, held)
        if other < 0:
            return other
        if one_page(j.pairs.tables, r.heap, page.at, other, j.pairs.at, HEADER_SIZE):
            return held
    return NOBODY
