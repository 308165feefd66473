"""Removes pages from the index without a fetch: for a takedown, or because they expired.

Removed are the URL's row, its membership, sketch, postings and digest, and the row of its naming if no other page has
it. If the representative of a cluster is removed, the earliest member that stays takes over, with one verdict
`promoted`. A later fetch of the URL is judged like that of an unknown URL. A takedown emits one verdict `gone` for each
live page, so that indexes drop it; an expired page has none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from neardup.decider import Decider
from neardup.index import sketch_rows
from neardup.index.column_families import Family, Reader, Writes
from neardup.index.layered import Layered
from neardup.index.rows import UrlRow, decode_url, seen_of
from neardup.matching.batch import Walk
from neardup.matching.batch_records import Pages
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.verdict_columns import KINDS, VerdictColumns, blank
from neardup.sketch.header import Header
from neardup.sketch.takedown_hashes import Named, Takedown
from neardup.verdict import Kind

#: Number of pages that are removed together: their rows and those of the next representatives are in memory.
_TOGETHER = 512
_SCAN_ROWS = 1024


@dataclass(slots=True)
class Removed:
    """The result of a removal.

    pages: number of URLs. live: those of them that were not gone before. promoted: clusters with a new representative.
    emitted: number of verdicts. verdicts: the verdicts, if `emit`.
    """

    pages: int = 0
    live: int = 0
    promoted: int = 0
    emitted: int = 0
    verdicts: BatchVerdicts = field(default_factory=BatchVerdicts)


#: URLs by their hashes, each with whether it represents a cluster.
_Leaving = list[tuple[bytes, bool]]


def take_down(
    takedown: Takedown,
    index: Layered,
    decider: Decider,
    *,
    cause: int,
    emit: bool = True,
    heartbeat: Callable[[], None] = lambda: None,
) -> Removed:
    """Takes out all pages that `takedown` names; what is to be written is added to `index`.

    A URL is looked up. For a site or a prefix the sketches of all live pages are read: some 10 us a page. Rows of URLs
    that are gone hold no text, and stay unless the takedown names their URL. cause: page id of the verdicts. heartbeat:
    called between steps. Raises InvariantBroken, CorruptRecord.
    """
    leaving: _Leaving = []
    if takedown.what is Named.URL:
        (row,) = index.get_many(Family.URLS, [takedown.hash])
        leaving = [] if row is None else [(takedown.hash, not decode_url(row).member)]
    else:
        for hashed, url, header in _live(index):
            heartbeat()
            if takedown.names(header.url, header.site_name):
                leaving.append((hashed, not url.member))
    return _remove(leaving, index, decider, cause, 1, emit, heartbeat, says_gone=True)


def expire(
    index: Layered,
    decider: Decider,
    *,
    after: bytes,
    rows: int,
    before: int,
    cause: int,
    first: int,
    emit: bool = True,
) -> tuple[Removed, bytes]:
    """Takes out what was seen last before a log time, among the next `rows` URLs; also where to go on.

    after: hash of a URL behind which to begin; behind the last one it goes on with the first. before: ms since the
    epoch. cause, first: id of the first verdict. Raises InvariantBroken, CorruptRecord.
    """
    looked = index.first(Family.URLS, b"", rows, after)
    leaving = [(key, not decode_url(row).member) for key, row in looked if seen_of(row) < before]
    removed = _remove(leaving, index, decider, cause, first, emit, lambda: None)
    return removed, looked[-1][0] if len(looked) == rows else b""


def _live(index: Reader) -> Iterator[tuple[bytes, UrlRow, Header]]:
    """Yields all live URLs with their rows and sketches, in the order of their hashes."""
    rows = index.scan(Family.URLS)
    while some := list(islice(rows, _SCAN_ROWS)):
        live = [(key, url) for key, row in some if (url := decode_url(row)).live]
        records = sketch_rows.records_of(index, [url.page_id for _, url in live])
        yield from ((key, url, Header(record)) for (key, url), record in zip(live, records, strict=True))


def _remove(
    leaving: _Leaving,
    index: Layered,
    decider: Decider,
    cause: int,
    first: int,
    emit: bool,
    heartbeat: Callable[[], None],
    says_gone: bool = False,
) -> Removed:
    """Removes members before representatives, so that no page is promoted in a cluster that it leaves in the same step.

    says_gone: whether each removed live page gets a verdict `gone`. These verdicts come last: an index shows the
    promoted page before it hides the removed one.
    """
    done, gone = Removed(len(leaving)), list[VerdictColumns]()
    for representing in (False, True):
        hashes = [hashed for hashed, represents in leaving if represents is representing]
        for i in range(0, len(hashes), _TOGETHER):
            heartbeat()
            some = hashes[i : i + _TOGETHER]
            writes, left, removed = _removed(some, index, decider, cause, first + done.promoted, emit)
            index.add(writes)
            done.promoted += removed.promoted
            done.emitted += removed.promoted + (removed.live if says_gone else 0)
            done.live += removed.live
            done.verdicts += removed.verdicts
            gone += left if says_gone else []
    number = first + done.promoted
    for columns in gone:
        columns.rows["n"] = np.arange(number, number + len(columns.rows))
        number += len(columns.rows)
        done.verdicts += BatchVerdicts(columns, decider)
    return done


def _removed(
    hashes: Sequence[bytes], index: Reader, decider: Decider, cause: int, first: int, emit: bool
) -> tuple[Writes, list[VerdictColumns], Removed]:
    """Collects the changes, the verdicts `gone` without numbers, and the counts."""
    walk = Walk(Pages([]), index, decider, emit=emit)
    removed = walk.remove(hashes, first)
    live = removed["at"][removed["at"] > 0]
    done = Removed(len(hashes), len(live), int(removed["promoted"].sum()))
    columns = walk.columns(np.array([cause], np.int64))
    done.verdicts = BatchVerdicts(columns, decider)
    return walk.writes(), [columns._replace(rows=_taken_down(live))] if emit else [], done


def _taken_down(at: np.ndarray) -> np.ndarray:
    """The verdicts on pages that a takedown removed, without their numbers, VERDICT[pages].

    They contain the URL, by which consumers find their row, and no other data of the page but its site. at: offsets of
    the records of the pages, int64[pages].
    """
    out = np.repeat(blank(), len(at))
    out["kind"], out["at"], out["down"] = KINDS.index(Kind.GONE), at, 1
    return out
