"""Makes sketch records of pages, in batches over threads."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from urllib.parse import urljoin

import numpy as np
import numpy.typing as npt

from neardup.errors import BadPage
from neardup.kernels import batch as batches
from neardup.kernels.facts import BASE_START, CANONICAL_START, FACTS, LANG_START
from neardup.kernels.record import CANONICAL_LEFT, LANG_LEFT
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.addresses import Addresses, addresses_of, utf8_prefix
from neardup.sketch.header import Header
from neardup.sketch.layout import (
    HEADER,
    HEADER_WORDS,
    SKETCH_VERSION,
    RecordFlag,
    RecordKind,
    RecordSection,
    score_code,
)
from neardup.sketch.shape import LANG_BYTES_MAX, record_bytes_max, shape_of, space_for
from neardup.sketch.shells import find_shells, with_shell_digest
from neardup.text.decoding import decode_into
from neardup.text.one_page_html import unescape_value
from neardup.text.tables import tables
from neardup.urls import normalise_url, url_hash
from neardup.verdict import Coordinates

#: Bytes that one call of the kernel takes, and pages: what a core's own cache holds. A larger page goes alone.
_CALL_BYTES_MAX, _CALL_PAGES_MAX = 512 << 10, 512
#: What a page costs beside its bytes, in bytes: for sharing pages among threads.
_PAGE_COST = 4096
#: Parts of a batch for each thread, and pages that make a part worth while.
_PARTS, _PART_PAGES_MIN = 4, 8
_INT64 = (-(1 << 63), (1 << 63) - 1)
_PAGE = int(RecordKind.PAGE)
_OPAQUE, _TRUNCATED = int(RecordFlag.OPAQUE), int(RecordFlag.TRUNCATED)


def sketch_pages(
    pages: Sequence[Page],
    scheme: Scheme,
    *,
    coordinates: Sequence[Coordinates] | None = None,
    log_times: Sequence[int] | None = None,
    threads: int = 1,
) -> list[bytes]:
    """Return one record for each page, in the order of the pages. `Sketch(record, scheme)` reads a record.

    Splitting the pages into several calls changes no byte of a record. No content of a page raises an error:

    * A page whose `problem` is set, whose URL is not absolute, or whose status is neither 404 nor 410 nor 2xx gives a
      REJECTED record with the reason. So does a status of NO_PAGE_STATUSES (206 and others).
    * Status 404 or 410, and a null body with a status of 2xx, give a TOMBSTONE.
    * Of a body over `Scheme.body_bytes_max` only the first part is sketched.

    Args:
        pages: the pages.
        scheme: parameters of the sketches.
        coordinates: where each page was read, one for each page.
        log_times: log time of each page in milliseconds, which replaces a missing `Page.fetched_at`.
        threads: number of threads that share the batch, by bytes.

    Raises:
        TypeError: if an element of `pages` is not a `Page`.
        BadInput: if the scheme does not fit the layout of a record.
    """
    if isinstance(pages, Page):
        raise TypeError("sketch_pages takes pages in a list: sketch_pages([page], scheme)")
    for page in pages:
        if not isinstance(page, Page):
            raise TypeError(f"a page must be a neardup.Page(url, body), not {type(page).__name__}: {page!r:.80}")
    times = log_times or [page.fetched_at or 0 for page in pages]
    if len(coordinates or pages) != len(pages) or len(times) != len(pages):
        raise ValueError(f"{len(pages)} pages with {len(coordinates or ())} coordinates and {len(times)} log times")
    shape_of(scheme)
    parts = _split(pages, threads)
    if len(parts) == 1:
        return _sketch_part(pages, scheme, coordinates, times)
    done: list[list[bytes]] = [[]] * len(parts)
    left = iter(list(enumerate(parts)))

    def take() -> None:
        for part, (i, j) in left:
            done[part] = _sketch_part(pages[i:j], scheme, coordinates and coordinates[i:j], times[i:j])

    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(take) for _ in range(threads - 1)]
        take()
        for other in others:
            other.result()
    return [record for part in done for record in part]


def _calls(bodies: Sequence[bytes | None]) -> Iterator[tuple[int, int]]:
    """Divides pages into ranges, one for each call of the kernel."""
    first = total = 0
    for i, body in enumerate(bodies):
        size = len(body or b"")
        if i > first and (total + size > _CALL_BYTES_MAX or i == first + _CALL_PAGES_MAX):
            yield first, i
            first, total = i, 0
        total += size
    if bodies:
        yield first, len(bodies)


def _sketch_part(
    pages: Sequence[Page], scheme: Scheme, coordinates: Sequence[Coordinates] | None, times: Sequence[int]
) -> list[bytes]:
    named, most = addresses_of(pages, scheme), scheme.body_bytes_max
    bodies = [page.body if kind == _PAGE else None for page, kind in zip(pages, named.kinds, strict=True)]
    content_types = [page.content_type for page in pages]
    headers = _headers(pages, named, coordinates, times)
    for i in [i for i, body in enumerate(bodies) if body and (len(body) > most or pages[i].truncated)]:
        bodies[i] = (bodies[i] or b"")[:most]
        headers["flags"][i] = _TRUNCATED
    whole = _batch(named, headers)
    records: list[bytes] = []
    for i, j in _calls(bodies):
        batch, cut_pages = decode_into(whole, bodies[i:j], content_types[i:j], i, most)
        headers["flags"][cut_pages] = _TRUNCATED
        for page in (np.flatnonzero(batch.modes[i:j] == batches.OPAQUE) + i).tolist():
            headers["flags"][page] |= _OPAQUE
            headers["digest"][page] = np.void(_opaque_digest(bodies[page] or b"", scheme))
        with space_for(int((batch.ends[i:j] - batch.starts[i:j]).max()), scheme) as space:
            out = space.out(named.bytes_of(i, j) + (j - i) * record_bytes_max(scheme))
            batch = batch._replace(out=out)
            batches.sketch_batch(batch, i, j, tables(), shape_of(scheme), space.work, space.page)
            records += _records(batch, i, j)
        for page, by_script in find_shells(batch, i, j):
            records[page] = with_shell_digest(records[page], bodies[page] if by_script else None, scheme)
            headers[page] = np.frombuffer(records[page], HEADER, 1)[0]
        for page in (np.flatnonzero(batch.left[i:j]) + i).tolist():
            records[page] = _completed(records[page], batch, page, scheme)
    return records


def _headers(
    pages: Sequence[Page], named: Addresses, coordinates: Sequence[Coordinates] | None, times: Sequence[int]
) -> npt.NDArray[np.void]:
    """Fills in the header fields that do not depend on the body."""
    h = np.zeros(len(pages), dtype=HEADER)
    h["version"] = SKETCH_VERSION
    h["kind"] = named.kinds
    urls, ends = named.urls[0].tobytes(), named.urls[1].tolist()
    hashes = [url_hash(urls[start:end]) for start, end in pairwise([0, *ends])]
    h["url_hash"] = np.frombuffer(b"".join(hashes), dtype="V16")
    h["score"] = [score_code(page.score) for page in pages]
    h["log_time"] = [min(max(time, 0), _INT64[1]) for time in times]
    h["fetched_at"] = [
        time if page.fetched_at is None else min(max(page.fetched_at, _INT64[0]), _INT64[1])
        for page, time in zip(pages, times, strict=True)
    ]
    if coordinates:
        h["source"] = np.frombuffer(b"".join([bytes.fromhex(one.source) for one in coordinates]), dtype="V16")
        h["partition"] = [one.partition for one in coordinates]
        h["offset"] = [one.offset for one in coordinates]
        h["position"] = [one.position for one in coordinates]
    return h


def _opaque_digest(body: bytes, scheme: Scheme) -> bytes:
    """Computes the digest of an opaque body, keyed by the seed; all zero for an empty body, which equals no other."""
    if not body:
        return bytes(16)
    key = scheme.constants("opaque", 2).tobytes()
    return hashlib.blake2b(body, digest_size=16, key=key, person=b"neardup-body").digest()


def _batch(named: Addresses, headers: npt.NDArray[np.void]) -> batches.Batch:
    """Collects the kernel's arguments except bodies, and allocates the records."""
    n = len(headers)
    nothing = np.empty(0, np.uint8)
    return batches.Batch(
        buffer=nothing,
        starts=np.zeros(n, np.int64),
        ends=np.zeros(n, np.int64),
        modes=np.full(n, batches.NOTHING, np.int64),
        hosts=named.hosts[0],
        host_ends=named.hosts[1],
        urls=named.urls[0],
        url_ends=named.urls[1],
        reasons=named.reasons[0],
        reason_ends=named.reasons[1],
        headers=headers.view(HEADER_WORDS),
        header_bytes=headers.view(np.uint8),
        facts=np.full((n, FACTS), -1, np.int64),
        left=np.zeros(n, np.uint8),
        record_ends=np.empty(n, np.int64),
        out=nothing,
    )


def _records(batch: batches.Batch, first: int, last: int) -> list[bytes]:
    ends = batch.record_ends[first:last].tolist()
    whole = batch.out[: ends[-1]].tobytes()
    return [whole[start:end] for start, end in pairwise([0, *ends])]


def _split(pages: Sequence[Page], threads: int) -> list[tuple[int, int]]:
    """Divides pages into ranges of about equal numbers of bytes, several a thread, so that threads end at the same
    time.
    """
    parts = min(_PARTS * threads, len(pages) // _PART_PAGES_MIN) if threads > 1 else 1
    if parts <= 1:
        return [(0, len(pages))]
    work = np.cumsum([len(page.body or b"") + _PAGE_COST for page in pages])
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts)
    return list(pairwise(sorted({0, len(pages), *cuts.tolist()})))


def _completed(record: bytes, batch: batches.Batch, page: int, scheme: Scheme) -> bytes:
    """Adds the canonical URL and the language, each cut to its length, which the kernel does not write."""
    row = batch.facts[page].tolist()

    def value(fact: int) -> str:
        start, end = row[fact], row[fact + 1]
        return unescape_value(batch.buffer[start:end].tobytes()) if start >= 0 else ""

    header, known = batch.headers[page : page + 1], Header(record)
    keep, lang_at, end = known.starts[RecordSection.CANONICAL : RecordSection.REASON + 1]
    last = record[end:]
    canonical, lang = record[keep:lang_at], record[lang_at:end]
    if batch.left[page] & CANONICAL_LEFT and (named := value(CANONICAL_START)):
        canonical = _resolve(known.url, value(BASE_START), named, scheme.url_bytes_max).encode()
    if batch.left[page] & LANG_LEFT:
        lang = utf8_prefix(value(LANG_START), LANG_BYTES_MAX)
    header["canonical_bytes"], header["lang_bytes"] = len(canonical), len(lang)
    header["size"] = keep + len(canonical) + len(lang) + len(last)
    completed: bytes = header.tobytes()
    return completed + record[HEADER.itemsize : keep] + canonical + lang + last


def _resolve(url: str, base: str, reference: str, bytes_max: int) -> str:
    try:
        return normalise_url(urljoin(urljoin(url, base), reference), bytes_max)
    except (BadPage, ValueError):
        return ""
