"""Taking pages out of the index that no fetch has retired: for a takedown, or because nobody has seen them for long.

What goes: the URL's row, its place in its cluster, its sketch, postings and digest, and the row of its name if it bore
it alone. A cluster whose representative goes is taken over by its earliest member that stays, with one verdict
`promoted`. A later fetch of the page's URL is judged as that of an unknown one. A takedown has one verdict `gone` for
each live page that goes, so that indexes drop it; a page that goes for its age has none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from neardup.clusters import membership
from neardup.clusters.overlay import Overlay, Reads
from neardup.clusters.verdicts import promoted, taken_down
from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import namings, sharing
from neardup.index.base import Family, Reader, Writes
from neardup.index.layered import Layered
from neardup.index.reads import Missing, Needs, for_each
from neardup.index.rows import UrlRow, decode_url, id_key, seen_of
from neardup.rules.siblings import NO_SIBLINGS
from neardup.search.pages import Pages
from neardup.sketch.header import Header
from neardup.sketch.takedown import Named, Takedown
from neardup.verdict import Verdict

#: Pages that go together: their rows, and those of who takes over from them, are held in memory.
_TOGETHER = 512
_SCAN_ROWS = 1024


@dataclass(slots=True)
class Removed:
    """What was taken out. pages: URLs; live: those of them that were not gone before. promoted: clusters that another
    page took over. told: how many verdicts that has. verdicts: these, where they are asked for.
    """

    pages: int = 0
    live: int = 0
    promoted: int = 0
    told: int = 0
    verdicts: list[Verdict] = field(default_factory=list)


#: URLs by their hashes, each with whether it represents a cluster.
_Leaving = list[tuple[bytes, bool]]


def take_down(
    takedown: Takedown,
    index: Layered,
    decider: Decider,
    *,
    cause: int,
    tell: bool = True,
    beat: Callable[[], None] = lambda: None,
) -> Removed:
    """Takes out all pages that `takedown` names; what is to be written is added to `index`.

    A URL is looked up. For a site or a prefix the sketches of all live pages are read: some 10 us a page. Rows of URLs
    that are gone hold no text, and stay where their URL is not named itself. cause: page id of the verdicts. beat: is
    called all the time. Raises InvariantBroken, CorruptRecord.
    """
    leaving: _Leaving = []
    if takedown.what is Named.URL:
        (row,) = index.get_many(Family.URLS, [takedown.hash])
        leaving = [] if row is None else [(takedown.hash, not decode_url(row).member)]
    else:
        for hashed, url, header in _live(index):
            beat()
            if takedown.names(header.url, header.site_name):
                leaving.append((hashed, not url.member))
    return _remove(leaving, index, decider, cause, 1, tell, beat, says_gone=True)


def expire(
    index: Layered,
    decider: Decider,
    *,
    after: bytes,
    rows: int,
    before: int,
    cause: int,
    first: int,
    tell: bool = True,
) -> tuple[Removed, bytes]:
    """Takes out what was seen last before a log time, among the next `rows` URLs; also where to go on.

    after: hash of a URL behind which to begin; behind the last one it goes on with the first. before: ms since the
    epoch. cause, first: id of the first verdict. Raises InvariantBroken, CorruptRecord.
    """
    looked = index.first(Family.URLS, b"", rows, after)
    leaving = [(key, not decode_url(row).member) for key, row in looked if seen_of(row) < before]
    removed = _remove(leaving, index, decider, cause, first, tell, lambda: None)
    return removed, looked[-1][0] if len(looked) == rows else b""


def _live(index: Reader) -> Iterator[tuple[bytes, UrlRow, Header]]:
    """All live URLs with their rows and sketches, in the order of their hashes."""
    rows = index.scan(Family.URLS)
    while some := list(islice(rows, _SCAN_ROWS)):
        live = [(key, url) for key, row in some if (url := decode_url(row)).live]
        held = index.get_many(Family.SKETCHES, [id_key(url.page_id) for _, url in live])
        if None in held:
            raise InvariantBroken(f"sketches: no row of page {live[held.index(None)][1].page_id}")
        rests = [None if row is None else sharing.rest_of_row(row) for row in held]
        wanted = [id_key(rest) for rest in rests if rest is not None]
        shared = dict(zip(wanted, index.get_many(Family.SKETCHES, wanted), strict=True))
        for (key, url), row, rest in zip(live, held, rests, strict=True):
            yield key, url, Header(sharing.record_of_rows(row or b"", None if rest is None else shared[id_key(rest)]))


def _remove(
    leaving: _Leaving,
    index: Layered,
    decider: Decider,
    cause: int,
    first: int,
    tell: bool,
    beat: Callable[[], None],
    says_gone: bool = False,
) -> Removed:
    """Members go before representatives: so nobody takes a cluster over who is about to leave it.

    says_gone: whether each live page that goes has a verdict. They come last: an index shows the page that takes over
    before it hides the one that goes.
    """
    done, gone = Removed(len(leaving)), list[Verdict]()
    for representing in (False, True):
        hashes = [hashed for hashed, represents in leaving if represents is representing]
        for at in range(0, len(hashes), _TOGETHER):
            beat()
            some = hashes[at : at + _TOGETHER]
            writes, left, removed = _removed(some, index, decider, cause, first + done.promoted, tell)
            index.add(writes)
            done.promoted += removed.promoted
            done.told += removed.promoted + (removed.live if says_gone else 0)
            done.live += removed.live
            done.verdicts += removed.verdicts
            gone += left if says_gone else []
    for n, verdict in enumerate(gone, first + done.promoted):
        verdict.n = n
    done.verdicts += gone
    return done


def _removed(
    hashes: Sequence[bytes], index: Reader, decider: Decider, cause: int, first: int, tell: bool
) -> tuple[Writes, list[Verdict], Removed]:
    """What is to be written, verdicts `gone` that are not numbered yet, and the rest."""
    reads = Reads(Pages([]), decider)
    needs = Needs()
    needs.rows[Family.URLS] = set(hashes)
    reads.read(index, needs)
    reads.in_rounds(index, hashes, lambda: partial(_retire, Overlay(reads, decider)))
    while True:
        overlay = Overlay(reads, decider)
        try:
            retired = for_each(hashes, partial(_retire, overlay))
        except Missing as missing:
            if not reads.read(index, missing.needs):
                raise InvariantBroken("removing pages misses rows that were read") from missing
            continue
        live = [header for header, _ in retired if header is not None]
        taken_over = [cluster for _, cluster in retired if cluster is not None]
        done, gone = Removed(len(hashes), len(live), len(taken_over)), list[Verdict]()
        if tell:
            done.verdicts = [promoted(overlay, one, cause, n) for n, one in enumerate(taken_over, first)]
            gone = [taken_down(header, decider, cause) for header in live]
        return overlay.writes(), gone, done


def _retire(overlay: Overlay, hashed: bytes) -> tuple[Header | None, int | None]:
    """Removes a URL: the sketch of its page if that was live, and the cluster that another page took over, if any."""
    row = overlay.urls.need(hashed)
    if not row.live:
        overlay.urls.put(hashed, None)
        return None, None
    header = overlay.header(row.page_id)
    _forget_name(overlay, row)
    return header, membership.retire(overlay, hashed, row)


def _forget_name(overlay: Overlay, row: UrlRow) -> None:
    """The row of a name that this page alone bears goes; where others bear it, it is a count of them."""
    header = overlay.header(row.page_id)
    if not overlay.counts_siblings or not overlay.posted_keys(row.page_id):
        return
    key = namings.key_of(header)
    if overlay.namings.get(key) == NO_SIBLINGS.with_one(header):
        overlay.namings.put(key, None)
