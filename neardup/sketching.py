"""Pages to sketch records, in batches over threads."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urljoin

import numpy as np
import numpy.typing as npt
import xxhash

from neardup.decoding import decode
from neardup.errors import BadPage
from neardup.html import unescape_value
from neardup.kernels import batch as batches
from neardup.kernels import sketch as kernels
from neardup.kernels.facts import BASE_START, CANONICAL_START, FACTS, LANG_START
from neardup.kernels.html import PADDING_BYTES
from neardup.layout import HEADER, NAME, SECTIONS, SKETCH_VERSION, RecordFlag, RecordKind
from neardup.page import Page, hen_site, host_of, normalise_url, site_of
from neardup.record import url_hash
from neardup.scheme import Scheme
from neardup.shape import sections_bytes_max, shape_of, space_for
from neardup.tables import tables
from neardup.verdict import Coordinates

#: Bodies that are copied into one buffer; a larger page goes alone.
_GROUP_BYTES_MAX = 32 << 20
#: Longest reason of a rejection and longest language tag that are kept.
_REASON_BYTES_MAX, _LANG_BYTES_MAX = 512, 64
#: What a page costs beside its bytes, in bytes: for sharing pages among threads.
_PAGE_COST = 4096
#: Parts of a batch for each thread, and pages that make a part worth while.
_PARTS, _PART_PAGES_MIN = 4, 8
_GONE = (404, 410)
_INT64 = (-(1 << 63), (1 << 63) - 1)
_NOWHERE = Coordinates()
#: Title, canonical URL, language.
_Facts = tuple[bytes, bytes, bytes]


@dataclass(slots=True)
class _Identity:
    """What a sketch says of a page besides its text."""

    kind: RecordKind
    url: bytes
    host: str = ""
    site: bytes = b""
    hen_site: bytes = b""
    reason: bytes = b""


def sketch_pages(
    pages: Sequence[Page],
    scheme: Scheme,
    *,
    coordinates: Sequence[Coordinates] | None = None,
    log_times: Sequence[int] | None = None,
    threads: int = 1,
) -> list[bytes]:
    """One record a page, in their order; how pages are grouped into calls changes no byte of them.

    A page whose `problem` is set, whose URL is none, or whose status is neither 2xx, 404 nor 410 gives a REJECTED
    record with the reason; 404, 410, and a null body with a status of 2xx give a TOMBSTONE. Of a body over the scheme's
    body_bytes_max only the first part is sketched. coordinates and log_times (ms): one a page; a page without
    `fetched_at` takes its log time. threads: how many share the batch, by bytes. Never raises for what a page holds;
    raises BadInput for a scheme that does not fit the record's layout.
    """
    places = coordinates or [_NOWHERE] * len(pages)
    times = log_times or [page.fetched_at or 0 for page in pages]
    if len(places) != len(pages) or len(times) != len(pages):
        raise ValueError(f"{len(pages)} pages with {len(places)} coordinates and {len(times)} log times")
    records: list[bytes] = []
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for first, last in _groups(pages, scheme.body_bytes_max):
            parts = _split([len(page.body or b"") for page in pages[first:last]], threads)
            jobs = [slice(first + start, first + end) for start, end in parts]
            if len(jobs) == 1:
                records += _sketch_part(pages[first:last], scheme, places[first:last], times[first:last])
                continue
            running = [pool.submit(_sketch_part, pages[j], scheme, places[j], times[j]) for j in jobs]
            for part in running:
                records += part.result()
    return records


def sketch_words(
    words: Sequence[str],
    scheme: Scheme,
    *,
    url: str = "http://example.org/",
    title_words: int = 0,
    links: Sequence[int] = (),
    blocks: Sequence[int] | None = None,
) -> bytes:
    """Record of a page that consists of these tokens (lower-case words), one space apart: for tests and experiments.

    The first title_words are its title; links: indices of words in links; blocks: the block number of each word.
    Raises BadPage for a bad URL.
    """
    identity = _identify(Page(url, b""), scheme)
    if identity.kind is RecordKind.REJECTED:
        raise BadPage(identity.reason.decode())
    n = len(words)
    encoded = [word.encode() for word in words]
    text = np.frombuffer(b" ".join(encoded) + bytes(PADDING_BYTES), dtype=np.uint8)
    ends = np.cumsum([len(word) + 1 for word in encoded], dtype=np.int64) - 1
    flags = np.array([4 * w.isdigit() + 8 * any(c.isdigit() for c in w) for w in words], dtype=np.uint8)
    flags[:title_words] |= 1
    flags[list(links)] |= 2
    tokens = (
        np.array([xxhash.xxh64_intdigest(word, scheme.seed) for word in encoded], dtype=np.uint64),
        flags,
        np.array(blocks if blocks is not None else [0] * n, dtype=np.int32),
        (ends - [len(word) for word in encoded]).astype(np.uint32),
        ends.astype(np.uint32),
    )
    labels = re.findall(r"[^\W_]+", _labels(identity.host))
    host = np.array([xxhash.xxh64_intdigest(label.encode(), scheme.seed) for label in labels], dtype=np.uint64)
    shape, out = shape_of(scheme), _Rows.empty(1, scheme)
    with space_for(n, scheme) as space:
        kernels.sketch_tokens(
            *(tokens, n, (np.int64(0), np.int64(0)), text, host, len(host), shape, space.work),
            *(out.words[0], out.numbers[0], out.sections[0]),
        )
    title = " ".join(words[:title_words]).encode()[: scheme.title_bytes_max]
    return _pack([Page(url, b"")], [identity], [_NOWHERE], [0], [0], out, [(title, b"", b"")], scheme)[0]


def _groups(pages: Sequence[Page], body_bytes_max: int) -> Iterator[tuple[int, int]]:
    first = total = 0
    for i, page in enumerate(pages):
        size = min(len(page.body or b""), body_bytes_max)
        if i > first and total + size > _GROUP_BYTES_MAX:
            yield first, i
            first, total = i, 0
        total += size
    if first < len(pages):
        yield first, len(pages)


def _identify(page: Page, scheme: Scheme) -> _Identity:
    """What its URL, status and problem make of a page."""
    reason = page.problem
    try:
        url = normalise_url(page.url, scheme.url_bytes_max)
        host = host_of(url)
        site, hen = site_of(host).encode(), hen_site(host).encode()
    except BadPage as error:
        return _Identity(RecordKind.REJECTED, _cut(page.url, scheme.url_bytes_max), reason=_cut(reason or str(error)))
    if not reason and page.status not in _GONE and not 200 <= page.status <= 299:
        reason = f"HTTP status {page.status}"
    if reason:
        kind = RecordKind.REJECTED
    elif page.body is None or page.status in _GONE:
        kind = RecordKind.TOMBSTONE
    else:
        kind = RecordKind.PAGE
    return _Identity(kind, url.encode(), host, site, hen, _cut(reason))


def _cut(text: str, bytes_max: int = _REASON_BYTES_MAX) -> bytes:
    """UTF-8 of at most so many bytes, cut between characters."""
    data = text[:bytes_max].encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data
    return data[:bytes_max].decode("utf-8", "ignore").encode()


def _labels(host: str) -> str:
    """The host and, where it is an internationalised one, also what people read and write for it."""
    if "xn--" not in host:
        return host
    try:
        return f"{host} {host.encode().decode('idna')}"
    except UnicodeError:
        return host


@dataclass(slots=True)
class _Rows:
    """What kernels say of a batch, one row a page."""

    words: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int64]
    sections: npt.NDArray[np.uint8]

    @classmethod
    def empty(cls, pages: int, scheme: Scheme) -> "_Rows":
        return cls(
            np.zeros((pages, kernels.WORDS), np.uint64),
            np.zeros((pages, kernels.NUMBERS), np.int64),
            np.empty((pages, sections_bytes_max(scheme)), np.uint8),
        )


def _sketch_part(
    pages: Sequence[Page], scheme: Scheme, places: Sequence[Coordinates], times: Sequence[int]
) -> list[bytes]:
    identities = [_identify(page, scheme) for page in pages]
    modes, flags, bodies = [], [], []
    for page, identity in zip(pages, identities, strict=True):
        mode, flag, body = batches.NOTHING, 0, b""
        if identity.kind is RecordKind.PAGE:
            body = page.body or b""
            if len(body) > scheme.body_bytes_max:
                body, flag = body[: scheme.body_bytes_max], int(RecordFlag.TRUNCATED)
            decoded = decode(body, page.content_type)
            body, mode = decoded.utf8, decoded.mode
            if decoded.opaque:
                mode, flag = batches.OPAQUE, flag | RecordFlag.OPAQUE
        modes.append(mode)
        flags.append(flag)
        bodies.append(body)
    n = len(pages)
    sizes = np.array([len(body) for body in bodies], dtype=np.int64)
    starts = np.cumsum(sizes + PADDING_BYTES) - (sizes + PADDING_BYTES)
    hosts = [identity.host.encode() for identity in identities]
    labels = [_labels(identity.host).encode() for identity in identities]
    out = _Rows.empty(n, scheme)
    padding = bytes(PADDING_BYTES)
    batch = batches.Batch(
        buffer=np.frombuffer(b"".join([part for body in bodies for part in (body, padding)]), dtype=np.uint8),
        starts=starts,
        ends=starts + sizes,
        modes=np.array(modes, dtype=np.int64),
        hosts=np.frombuffer(b"".join(hosts) + padding, dtype=np.uint8),
        host_starts=np.cumsum([0, *map(len, hosts)]),
        labels=np.frombuffer(b"".join(labels) + padding, dtype=np.uint8),
        label_starts=np.cumsum([0, *map(len, labels)]),
        words=out.words,
        numbers=out.numbers,
        sections=out.sections,
        titles=np.empty((n, scheme.title_bytes_max), dtype=np.uint8),
        title_bytes=np.zeros(n, dtype=np.int64),
        facts=np.empty((n, FACTS), dtype=np.int64),
    )
    with space_for(int(sizes.max()), scheme) as space:
        batches.sketch_batch(batch, 0, n, tables(), shape_of(scheme), space.work, space.page)
    facts = [_facts(batch, i, identities[i], bodies[i], scheme) for i in range(n)]
    return _pack(pages, identities, places, times, flags, out, facts, scheme)


def _split(sizes: Sequence[int], threads: int) -> list[tuple[int, int]]:
    """Ranges of pages of about equal numbers of bytes: several a thread, so that one decodes while another counts."""
    parts = 1 if threads <= 1 else max(1, min(_PARTS * threads, len(sizes) // _PART_PAGES_MIN))
    work = np.cumsum(np.array(sizes) + _PAGE_COST)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts)
    return list(pairwise(sorted({0, len(sizes), *cuts.tolist()})))


def _facts(batch: batches.Batch, page: int, identity: _Identity, body: bytes, scheme: Scheme) -> _Facts:
    """Title, canonical URL and language of a page, each cut to its length."""
    row = batch.facts[page].tolist()
    first = int(batch.starts[page])

    def value(place: int) -> str:
        start, end = row[place], row[place + 1]
        return unescape_value(body[start - first : end - first]) if start >= 0 else ""

    title = batch.titles[page, : batch.title_bytes[page]].tobytes().decode("utf-8", "ignore")
    canonical = value(CANONICAL_START)
    if canonical:
        canonical = _resolve(identity.url.decode(), value(BASE_START), canonical, scheme.url_bytes_max)
    return " ".join(title.split()).encode(), canonical.encode(), _cut(value(LANG_START), _LANG_BYTES_MAX)


def _resolve(url: str, base: str, reference: str, bytes_max: int) -> str:
    try:
        return normalise_url(urljoin(urljoin(url, base), reference), bytes_max)
    except (BadPage, ValueError):
        return ""


def _fill_names(
    h: npt.NDArray[np.void],
    identities: Sequence[_Identity],
    titles: Sequence[bytes],
    namings: npt.NDArray[np.uint64],
    scheme: Scheme,
) -> None:
    """What pages call themselves, in title, heading and URL, as fingerprints in their headers."""
    seed = int(scheme.constants("names", 1)[0])
    ends = [_end_of(identity.url) for identity in identities]
    h["tail"] = [xxhash.xxh64_intdigest(b"?".join(end), seed) for end in ends]
    h["titling"] = [xxhash.xxh64_intdigest(title.lower(), seed) if title else 0 for title in titles]
    h["naming"] = namings
    h["place"] = [
        xxhash.xxh64_intdigest(b"%d %s %s" % (naming, identity.site, end[0]), seed)
        for naming, identity, end in zip(namings.tolist(), identities, ends, strict=True)
    ]


def _end_of(url: bytes) -> tuple[bytes, bytes]:
    """The last segment of a URL's path, and its query. A number or an index page counts with the segment before it."""
    path, _, query = url.partition(b"?")
    before, _, last = path.rstrip(b"/").rpartition(b"/")
    if not _TELLING.match(last):
        last = before.rpartition(b"/")[2] + b"/" + last
    return last, query


#: A segment that may name a page: it has a letter, and is no index.
_TELLING = re.compile(rb"(?!(?:index|default|home)\.)[^A-Za-z%]*[A-Za-z%]")


def _pack(
    pages: Sequence[Page],
    identities: Sequence[_Identity],
    places: Sequence[Coordinates],
    times: Sequence[int],
    flags: Sequence[int],
    out: _Rows,
    facts: Sequence[_Facts],
    scheme: Scheme,
) -> list[bytes]:
    """Records: headers filled by column, then each page's sections."""
    n = len(pages)
    h = np.zeros(n, dtype=HEADER)
    h["version"] = SKETCH_VERSION
    h["kind"] = [identity.kind for identity in identities]
    h["flags"] = flags
    h["log_time"] = times
    h["fetched_at"] = [
        time if page.fetched_at is None else min(max(page.fetched_at, _INT64[0]), _INT64[1])
        for page, time in zip(pages, times, strict=True)
    ]
    h["source"] = np.frombuffer(b"".join([bytes.fromhex(place.source) for place in places]), dtype="V16")
    for name in ("partition", "offset", "position"):
        h[name] = [getattr(place, name) for place in places]
    site_seed = int(scheme.constants("site", 1)[0])
    h["url_hash"] = np.frombuffer(b"".join(url_hash(identity.url) for identity in identities), dtype="V16")
    h["site"] = [xxhash.xxh64_intdigest(identity.site, site_seed) for identity in identities]
    h["hen_site"] = [xxhash.xxh64_intdigest(identity.hen_site, site_seed) for identity in identities]

    words, numbers = out.words, out.numbers
    _fill_names(h, identities, [fact[0] for fact in facts], words[:, kernels.NAMING], scheme)
    h["digest"] = np.ascontiguousarray(words[:, kernels.DIGEST : kernels.DIGEST + 2]).view("V16")[:, 0]
    h["head"] = words[:, kernels.HEAD]
    h["supershingles"] = words[:, kernels.B : kernels.B + 6]
    h["simhash"] = words[:, kernels.C : kernels.C + 6]
    h["wide"] = words[:, kernels.WIDE : kernels.WIDE + 8]
    h["logtf"] = np.ascontiguousarray(words[:, kernels.LOGTF : kernels.LOGTF + 3]).view("<u4")
    for column, name in enumerate(kernels.NUMBER_FIELDS):
        h[name] = numbers[:, column]
    computed = (
        numbers[:, kernels.TAPE_BYTES]
        + numbers[:, kernels.CONTENT_BYTES]
        + NAME.itemsize * (numbers[:, kernels.TITLE_NAMES] + numbers[:, kernels.HEAD_NAMES])
        + numbers[:, kernels.BLOOM_BYTES]
    ).tolist()
    texts = [
        (identity.url, identity.site, *fact, identity.reason) for identity, fact in zip(identities, facts, strict=True)
    ]
    for column, (_, name, _) in enumerate(SECTIONS[5:]):
        h[name] = [len(text[column]) for text in texts]
    h["size"] = [HEADER.itemsize + c + sum(map(len, text)) for c, text in zip(computed, texts, strict=True)]
    headers, step = h.tobytes(), HEADER.itemsize
    return [
        b"".join((headers[i * step : (i + 1) * step], out.sections[i, : computed[i]].tobytes(), *texts[i]))
        for i in range(n)
    ]
