"""Addresses of a batch of pages, in the form that kernels take: normalised URLs, hosts, sites, and record kinds."""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neardup.errors import BadPage
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.html import PADDING_BYTES
from neardup.kernels.spans import hash_spans
from neardup.kernels.tokens import tokenise
from neardup.kernels.urls import find_hosts
from neardup.limits import GONE_STATUSES, NO_PAGE_STATUSES
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.layout import RecordKind
from neardup.text.tables import tables
from neardup.urls import hen_site, host_of, normalise_url, site_of

#: Longest reason of a rejection that is kept.
_REASON_BYTES_MAX = 512
_PADDING = bytes(PADDING_BYTES)
#: Hosts that are remembered, for each scheme; and how much of a host's name makes tokens.
_HOSTS_MAX, _HOST_BYTES_MAX = 1 << 16, 1024
_PLAIN_HOST, _PLAIN_TOKEN = re.compile(rb"[a-z0-9._:\[\]-]*"), re.compile(rb"[a-z0-9]+")
_PAGE, _TOMBSTONE, _REJECTED = int(RecordKind.PAGE), int(RecordKind.TOMBSTONE), int(RecordKind.REJECTED)

#: uint8 texts one after another, with 256 zero bytes at the end, and int64 where each of them ends.
Texts = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(slots=True)
class Addresses:
    """Addresses of a batch of pages.

    kinds: kinds of the records, values of RecordKind.
    hosts: for each page, five words (fingerprints of its site and of Henzinger's site, lengths of host and site, number
    of the host's tokens), then tokens, host and site.
    """

    kinds: list[int]
    urls: Texts
    hosts: Texts
    reasons: Texts

    def bytes_of(self, first: int, last: int) -> int:
        """Returns an upper bound of the bytes that the texts of pages first to last - 1 take in records."""
        starts = [int(ends[first - 1]) if first else 0 for _, ends in (self.urls, self.hosts, self.reasons)]
        return sum(int(ends[last - 1]) for _, ends in (self.urls, self.hosts, self.reasons)) - sum(starts)


def addresses_of(pages: Sequence[Page], scheme: Scheme) -> Addresses:
    """Computes the addresses of pages from their URLs, statuses and problems. Raises nothing, whatever they contain."""
    urls = [page.url for page in pages]
    joined = texts_of([url if url.isascii() else "" for url in urls])
    first, last = np.empty(len(urls), np.int64), np.empty(len(urls), np.int64)
    find_hosts(*joined, first, last)
    hosts, known = [], _known_hosts(scheme)
    kinds, reasons = [_PAGE] * len(urls), [b""] * len(urls)
    changed = False
    for i, (page, start, end) in enumerate(zip(pages, first.tolist(), last.tolist(), strict=True)):
        reason = page.problem
        if end and len(urls[i]) <= scheme.url_bytes_max:
            hosts.append(known[urls[i][start:end]])
        else:
            changed = True
            try:
                urls[i] = normalise_url(urls[i], scheme.url_bytes_max)
                hosts.append(known[host_of(urls[i])])
            except BadPage as error:
                urls[i] = utf8_prefix(urls[i], scheme.url_bytes_max).decode()
                hosts.append(known[""])
                reason = reason or str(error)
        if reason or page.body is None or not 200 <= page.status <= 299 or page.status in NO_PAGE_STATUSES:
            success = 200 <= page.status <= 299 and (page.body is None or page.status not in NO_PAGE_STATUSES)
            if not reason and page.status not in GONE_STATUSES and not success:
                reason = f"HTTP status {page.status}"
            kinds[i] = _REJECTED if reason else _TOMBSTONE
            reasons[i] = utf8_prefix(reason, _REASON_BYTES_MAX)
    return Addresses(kinds, texts_of(urls) if changed else joined, _joined(hosts), _joined(reasons))


def utf8_prefix(text: str, bytes_max: int) -> bytes:
    """Encodes text as UTF-8, cut between characters to at most so many bytes."""
    data = text[:bytes_max].encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data
    return data[:bytes_max].decode("utf-8", "ignore").encode()


def texts_of(texts: Sequence[str]) -> Texts:
    """Encodes texts as UTF-8 for kernels. Lone surrogates become question marks."""
    whole = "".join(texts)
    if not whole.isascii():
        return _joined([text.encode("utf-8", "replace") for text in texts])
    data = np.frombuffer(whole.encode() + _PADDING, np.uint8)
    return data, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))


def _joined(texts: Sequence[bytes]) -> Texts:
    data = np.frombuffer(b"".join((*texts, _PADDING)), np.uint8)
    return data, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))


def site_digest(site: str, scheme: Scheme) -> bytes:
    """Computes the fingerprint of a site's name, keyed by the seed: uint64 as little-endian bytes."""
    return hashlib.blake2b(site.encode(), digest_size=8, key=scheme.constants("site", 2).tobytes()).digest()


class _Hosts(dict[str, bytes]):
    """Hosts in the form that kernels take. Each is computed when it is first requested."""

    def __init__(self, scheme: Scheme) -> None:
        super().__init__()
        self._token_key = scheme.constants("token", KEY_WORDS)
        self._scheme = scheme

    def __missing__(self, host: str) -> bytes:
        site = site_of(host).encode()
        sites = [site_digest(one, self._scheme) for one in (site_of(host), hen_site(host))]
        tokens = host_tokens(labels(host).encode()[:_HOST_BYTES_MAX], self._token_key)
        name = host.encode()
        found = struct.pack("<8s8s3Q", *sites, len(name), len(site), len(tokens)) + tokens.tobytes() + name + site
        if len(self) >= _HOSTS_MAX:
            self.clear()
        self[host] = found
        return found


def host_tokens(text: bytes, key: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Fingerprints of the tokens of a host in UTF-8: those of `tokenise`, which only other alphabets need.

    So a scan of plain hosts does not wait until that kernel is compiled for calls from Python.
    """
    room = 2 * len(text) + 64
    buffer = np.zeros(room, np.uint8)
    buffer[: len(text)] = np.frombuffer(text, np.uint8)
    fp, start, end = np.empty(room, np.uint64), np.empty(room, np.uint32), np.empty(room, np.uint32)
    if _PLAIN_HOST.fullmatch(text):
        spans = [found.span() for found in _PLAIN_TOKEN.finditer(text)]
        n = len(spans)
        start[:n], end[:n] = np.array(spans, np.uint32).reshape(n, 2).T
        hash_spans(buffer, start, end, n, key, fp)
    else:
        flags, block = np.empty(room, np.uint8), np.empty(room, np.int32)
        n = tokenise(buffer, len(text), 0, 0, key, tables(), fp, flags, block, start, end)
    return fp[:n]


@lru_cache(maxsize=8)
def _known_hosts(scheme: Scheme) -> _Hosts:
    return _Hosts(scheme)


def labels(host: str) -> str:
    """Returns the host and, of an internationalised one, also its Unicode form."""
    if "xn--" not in host:
        return host
    try:
        return f"{host} {host.encode().decode('idna')}"
    except UnicodeError:
        return host
