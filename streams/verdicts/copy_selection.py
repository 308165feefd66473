"""Which pages of a scan a copy holds: decided by columns of all verdicts, a URL by its digest.

Takes up to 200 bytes of memory for each verdict. What a policy compares goes to a table on disk: see
`CopySelection.choose`.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.canonical import CRITERIA, Criterion, Member, choose
from neardup.standing import DUPLICATES, SHOWN, VerdictFields, url_of
from neardup.urls import site_named
from neardup.verdict import Kind
from streams.verdicts.shared_rows import scratch_table

_SCHEMA = """
CREATE TABLE members (key BLOB PRIMARY KEY, page INT, cluster INT, source TEXT, "offset" INT, url TEXT, first INT,
    site TEXT, rel_canonical TEXT, score REAL, fetched_at INT, length INT) WITHOUT ROWID;
CREATE TABLE written (key BLOB PRIMARY KEY, url TEXT, digest TEXT, date TEXT) WITHOUT ROWID;
"""
_PUT_LATEST = "UPDATE members SET site = ?, fetched_at = ? WHERE key = ?"
_PUT_FETCH = """
UPDATE members SET url = ?1, first = min(coalesce(first, ?2), ?2), rel_canonical = ?3, score = ?4 WHERE key = ?5
"""
_PUT_LENGTH = 'UPDATE members SET length = ? WHERE source = ? AND "offset" = ?'
#: The criterion that `CRITERIA` lacks: the length of a page is in its source, not in its verdict.
LONGEST = "longest"
KEPT_BY = (*CRITERIA, LONGEST)
#: Yields (source, offset, bytes of the body) of pages.
Lengths = Callable[[], Iterable[tuple[str, int, int]]]
#: Reads all verdicts of a scan, in the log's order.
Verdicts = Callable[[], Iterable[VerdictFields]]
#: Verdicts that are decoded at a time.
_ROWS = 10_000
#: Bits of what a verdict in force means for the copy.
_SHOWN, _EXACT, _CLUSTERED = 1, 2, 4
_MEANS = {
    **dict.fromkeys(SHOWN, _SHOWN),
    **dict.fromkeys(DUPLICATES, _CLUSTERED),
    Kind.UNIQUE.value: _SHOWN | _CLUSTERED,
    Kind.PROMOTED.value: _SHOWN | _CLUSTERED,
    Kind.EXACT_DUPLICATE.value: _EXACT | _CLUSTERED,
}
#: 16 bytes, so that no site can make two URLs that are one here.
_KEY_BYTES = 16
_NOTHING = bytes(_KEY_BYTES)
_KEY = np.dtype([("high", "<u8"), ("low", "<u8")])
#: A verdict. key: digest of its URL. source: number of its source. cluster: -1 without one. means: bits, see _MEANS.
_VERDICT = np.dtype([("key", _KEY), ("offset", "<i8"), ("cluster", "<i8"), ("source", "<i4"), ("means", "u1")])

_Rows = npt.NDArray[np.void]


class Written(NamedTuple):
    """A page that a copy contains. url: normalised. digest: digest of its payload. date: its WARC-Date."""

    url: str
    digest: str
    date: str


def key_of(url: str) -> bytes:
    """Returns the digest by which a selection knows a URL."""
    return hashlib.blake2b(url.encode(), digest_size=_KEY_BYTES).digest()


class CopySelection:
    """The pages of the verdicts in force, in the order of sources and offsets, and those that the copy holds so far."""

    def __init__(self, table: sqlite3.Connection, verdicts: Verdicts, progress: Callable[[int], None]) -> None:
        self._table, self._verdicts = table, verdicts
        self._sources: dict[str, int] = {}
        rows, shown = self._columns(progress)
        pages = self._pages = _in_force(rows)
        #: First page of each source, and the end: a search in all pages for each of many sources would be quadratic.
        self._starts = np.searchsorted(pages["source"], np.arange(len(self._sources) + 1))
        self._kept = (pages["means"] & _SHOWN).astype(np.bool_)
        #: Keys of the URLs that pages may copy exactly; zeros: none.
        self._copied = np.zeros(len(pages), _KEY)
        exact = np.flatnonzero(pages["means"] & _EXACT)
        self._copied[exact] = _latest(rows["cluster"], shown, pages["cluster"][exact])

    def _columns(self, progress: Callable[[int], None]) -> tuple[_Rows, _Rows]:
        """All verdicts, and the key of the URL that the cluster of each shows (zeros: the verdict does not say it)."""
        parts, shown, read = [np.empty(0, _VERDICT)], [np.empty(0, _KEY)], 0
        given = iter(self._verdicts())
        while some := list(islice(given, _ROWS)):
            part = np.empty(len(some), _VERDICT)
            keys = [key_of(verdict.url) for verdict in some]
            part["key"] = np.frombuffer(b"".join(keys), _KEY)
            part["means"] = [_MEANS.get((verdict.standing or verdict).verdict, 0) for verdict in some]
            part["cluster"] = [_cluster(verdict) for verdict in some]
            places = [verdict.coordinates for verdict in some]
            part["offset"] = [place.offset for place in places]
            part["source"] = [self._sources.setdefault(place.source, len(self._sources)) for place in places]
            parts.append(part)
            shown.append(np.frombuffer(b"".join(map(_shown, some, keys)), _KEY))
            read += len(some)
            progress(read)
        return np.concatenate(parts), np.concatenate(shown)

    def drop_clusters(self) -> None:
        """Keeps no page of a cluster of two or more pages."""
        dropped = self._in_clusters()
        self._kept[dropped], self._copied[dropped] = False, 0

    def _in_clusters(self) -> npt.NDArray[np.intp]:
        """Indices of the pages of clusters of two or more pages."""
        clustered = np.flatnonzero(self._pages["means"] & _CLUSTERED)
        _, place, size = np.unique(self._pages["cluster"][clustered], return_inverse=True, return_counts=True)
        return clustered[size[place] > 1]

    def choose(self, policy: Sequence[str], lengths: Lengths) -> None:
        """Keeps the page of each cluster that a policy prefers. policy: names of KEPT_BY."""
        self._table.execute("BEGIN")
        self._fill_members()
        if LONGEST in policy:
            self._table.execute('CREATE INDEX places ON members (source, "offset")')
            put = ((length, source, offset) for source, offset, length in lengths())
            self._table.executemany(_PUT_LENGTH, put)
        self._table.execute("COMMIT")
        found = self._table.execute(
            "SELECT cluster, page, url, first, site, rel_canonical, score, fetched_at, length FROM members"
            " WHERE url NOT NULL ORDER BY cluster"
        )
        for _, some in groupby(found, key=lambda row: int(row[0])):
            members: list[Member] = []
            pages: dict[str, int] = {}
            sizes: dict[str, int] = {}
            for _, page, url, first, site, rel, score, fetched_at, length in some:
                members.append(Member(url, first, site or "", rel, score, fetched_at))
                pages[url], sizes[url] = page, length or 0
            choice = choose(members, policy, {**CRITERIA, LONGEST: _longest(sizes)})
            if choice is not None and len(members) > 1:
                self._keep_of(list(pages.values()), pages[choice.url])

    def _keep_of(self, cluster: list[int], chosen: int) -> None:
        """Keeps one page of a cluster. Where their bytes are read it is seen which others are exact copies of it."""
        self._kept[cluster], self._copied[cluster] = False, self._pages["key"][chosen]
        self._kept[chosen], self._copied[chosen] = True, 0

    def _fill_members(self) -> None:
        """Reads all verdicts again for what a policy compares, of the pages of clusters of two or more."""
        names = list(self._sources)
        inside = self._in_clusters()
        pages = self._pages[inside]
        columns = (pages["cluster"].tolist(), (names[at] for at in pages["source"]), pages["offset"].tolist())
        put = 'INSERT INTO members (key, page, cluster, source, "offset") VALUES (?, ?, ?, ?, ?)'
        self._table.executemany(put, zip(map(bytes, pages["key"]), inside.tolist(), *columns, strict=True))
        given = iter(self._verdicts())
        while some := list(islice(given, _ROWS)):
            rows = [(verdict, key_of(verdict.url)) for verdict in some]
            self._table.executemany(
                _PUT_LATEST, ((site_named(each.url, each.site), each.fetched_at, key) for each, key in rows)
            )
            fetches = (
                (each.url, each.page_id, each.rel_canonical, each.score, key) for each, key in rows if not each.n
            )
            self._table.executemany(_PUT_FETCH, fetches)

    def kept(self, source: str) -> npt.NDArray[np.int64]:
        """Returns the offsets of the kept pages of a source -> int64[pages], ascending."""
        mine = self._pages_of(source)
        offsets: npt.NDArray[np.int64] = self._pages["offset"][mine][self._kept[mine]]
        return offsets

    def _pages_of(self, source: str) -> slice:
        at = self._sources.get(source)
        return slice(0, 0) if at is None else slice(self._starts[at], self._starts[at + 1])

    def of(self, source: str) -> Iterator[tuple[int, bool, bytes | None]]:
        """Yields (offset, whether it is kept, key of the URL of the page that it may copy exactly), by offset.

        Pages that are neither, such as former fetches, are left out.
        """
        inside = self._pages_of(source)
        copies = self._copied[inside] != np.zeros((), _KEY)
        mine = np.flatnonzero(self._kept[inside] | copies) + inside.start
        for at in range(0, len(mine), _ROWS):
            some = mine[at : at + _ROWS]
            offsets, kept = self._pages["offset"][some].tolist(), self._kept[some].tolist()
            for offset, shown, key in zip(offsets, kept, map(bytes, self._copied[some]), strict=True):
                yield offset, shown, None if key == _NOTHING else key

    def add_written(self, page: Written) -> None:
        """Records that the copy holds a page."""
        self._table.execute("REPLACE INTO written VALUES (?, ?, ?, ?)", (key_of(page.url), *page))

    def written(self, key: bytes) -> Written | None:
        """Returns the page of a URL that the copy holds so far. key: key by `key_of`."""
        found = self._table.execute("SELECT url, digest, date FROM written WHERE key = ?", (key,)).fetchone()
        return Written(*found) if found else None


@contextmanager
def copy_selection(verdicts: Verdicts, progress: Callable[[int], None]) -> Iterator[CopySelection]:
    """Reads all verdicts.

    Args:
        verdicts: reads the verdicts of a scan; called again for a policy.
        progress: receives the number of verdicts that were read.
    """
    with scratch_table(_SCHEMA) as table:
        yield CopySelection(table, verdicts, progress)


def _cluster(verdict: VerdictFields) -> int:
    cluster, held = verdict.cluster, verdict.standing
    if cluster is None and held is not None:
        cluster = held.cluster
    return -1 if cluster is None else cluster


def _shown(verdict: VerdictFields, key: bytes) -> bytes:
    """The key of the URL that the verdict's cluster shows. key: key of the verdict's own URL."""
    if verdict.canonical is None:
        return _NOTHING
    held = verdict.standing or verdict
    if _MEANS.get(held.verdict, 0) & _SHOWN:
        return key
    url = url_of(held.representative)
    return _NOTHING if url is None else key_of(url)


def _in_force(rows: _Rows) -> _Rows:
    """The latest of the verdicts on each URL, in the order of sources and offsets.

    rows: rows in the log's order. Of two URLs that one page had, one after the other, the one that came later counts.
    """
    order = np.lexsort((rows["key"]["low"], rows["key"]["high"]))
    keys = rows["key"][order]
    new = np.append(True, keys[1:] != keys[:-1])[: len(rows)]
    first, pages = order[new], rows[order[np.append(new[1:], True)[: len(rows)]]]
    order = np.lexsort((first, pages["offset"], pages["source"]))
    pages = pages[order]
    places = pages[["source", "offset"]]
    in_force: _Rows = pages[np.append(places[1:] != places[:-1], True)[: len(pages)]]
    return in_force


def _latest(clusters: npt.NDArray[np.int64], shown: _Rows, required: npt.NDArray[np.int64]) -> _Rows:
    """The last URL that each required cluster showed, as its key.

    clusters, shown: columns of all verdicts in their order.
    """
    said = np.flatnonzero(shown != np.zeros((), _KEY))
    said = said[np.argsort(clusters[said], kind="stable")]
    known = np.append(clusters[said], -1)
    place = np.searchsorted(known[:-1], required, side="right") - 1
    found: _Rows = np.append(shown[said], np.zeros(1, _KEY))[place]
    found[known[place] != required] = 0
    return found


def _longest(bytes_of: Mapping[str, int]) -> Criterion:
    return Criterion("it is the longest", lambda members: [-bytes_of[member.url] for member in members])
