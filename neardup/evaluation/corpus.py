"""Holds the pages of an evaluation as columns, with identity sets set aside (Henzinger 2006, sections 3.1 to 3.4)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neardup.errors import BadInput, BadPage
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, RecordKind
from neardup.urls import hen_site, host_of, normalise_url, site_named
from neardup.verdict import Coordinates

#: Most fetches of a corpus. Records are held in memory at some 2 kB a page: half a gigabyte.
PAGES_MAX = 250_000


@dataclass
class CorpusCounts:
    """Counts of the records. repeats: pages set aside because an equal page is kept."""

    fetches: int = 0
    rejected: int = 0
    gone: int = 0
    fetched_again: int = 0  # fetches that a later fetch of the same URL replaced
    opaque: int = 0
    empty: int = 0  # pages without a token
    identity_sets: int = 0  # sets of two pages or more
    repeats: int = 0
    pages: int = 0  # kept


@dataclass(frozen=True)
class Corpus:
    """One page of each identity set, in the given order: page i is row i of every column.

    urls: normalised. sites: Henzinger's; "" for a document with an id. site: int32[n], equal numbers for equal sites;
    each document has a number of its own. supershingles, simhash:
    uint64[n, 6]. tokens: int64[n]. twins: URL of each page set aside -> the page kept of its identity set.
    """

    records: list[bytes]
    urls: list[str]
    sites: list[str]
    site: npt.NDArray[np.int32]
    supershingles: npt.NDArray[np.uint64]
    simhash: npt.NDArray[np.uint64]
    tokens: npt.NDArray[np.int64]
    counts: CorpusCounts
    twins: dict[str, int]
    places: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)

    def find(self, url: str) -> int | None:
        """Returns the page of a URL, or the kept page of its identity set; None for an unknown URL."""
        try:
            url = normalise_url(url)
        except BadPage:
            return None
        found = self.places.get(url)
        return self.twins.get(url) if found is None else found

    def coordinates(self, page: int) -> Coordinates:
        """Returns the page's coordinates in its source."""
        return Header(self.records[page]).coordinates


def corpus_of(records: Iterable[bytes], *, pages_max: int = PAGES_MAX) -> Corpus:
    """Builds the corpus from sketch records of one scheme; the last fetch of each URL counts.

    Leaves out pages without text (rejected, gone, neither HTML nor text, no token), and all but the first page of each
    identity set (equal token sequences). Raises BadInput for more than pages_max fetches, CorruptRecord for invalid
    bytes.
    """
    counts = CorpusCounts()
    latest: dict[bytes, Header] = {}
    for record in records:
        header = Header(record)
        counts.fetches += 1
        if counts.fetches > pages_max:
            raise BadInput(f"more than {pages_max:,} pages; an evaluation holds all sketches in memory: name fewer")
        if header.kind is RecordKind.REJECTED:
            counts.rejected += 1
            continue
        counts.fetched_again += latest.pop(header.url_hash, None) is not None
        latest[header.url_hash] = header  # `pop` first, so the URL takes the position of its last fetch
    kept: list[Header] = []
    sizes: dict[bytes, int] = {}
    first: dict[bytes, int] = {}
    twins: dict[str, int] = {}
    for header in latest.values():
        if header.kind is RecordKind.TOMBSTONE:
            counts.gone += 1
        elif header.opaque:
            counts.opaque += 1
        elif not header.digest:
            counts.empty += 1
        elif header.digest in first:
            sizes[header.digest] += 1
            twins[header.url] = first[header.digest]
        else:
            first[header.digest], sizes[header.digest] = len(kept), 1
            kept.append(header)
    counts.pages = len(kept)
    counts.repeats = len(twins)
    counts.identity_sets = sum(size > 1 for size in sizes.values())
    headers = np.frombuffer(b"".join(header.record[: HEADER.itemsize] for header in kept), dtype=HEADER)
    urls = [header.url for header in kept]
    sites = [hen_site(host_of(url)) for url in urls]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(sites))}
    return Corpus(
        records=[header.record for header in kept],
        urls=urls,
        sites=[site_named(url, name) for url, name in zip(urls, sites, strict=True)],
        site=np.array([numbers[name] for name in sites], dtype=np.int32),
        supershingles=np.ascontiguousarray(headers["supershingles"], dtype=np.uint64),
        simhash=np.ascontiguousarray(headers["simhash"], dtype=np.uint64),
        tokens=headers["tokens"].astype(np.int64),
        counts=counts,
        twins=twins,
        places={url: page for page, url in enumerate(urls)},
    )
