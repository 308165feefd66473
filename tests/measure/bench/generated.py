"""Sketch records without pages, of which the worst cases of the matcher are made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, SKETCH_VERSION, field_at
from neardup.urls import url_hash
from streams.formats.message import Message, encode_message
from streams.ports import Range

TAPE, CONTENT, TITLE_NAMES, HEAD_NAMES, BLOOM = 350, 240, 6, 16, 512
_COMPUTED = TAPE + CONTENT + 8 * (TITLE_NAMES + HEAD_NAMES) + BLOOM
_SOURCE = bytes(16)
_TIME = 1_700_000_000_000
#: Records that are made at once, from random numbers of their own: a record depends on its number alone.
_BLOCK_PAGES = 100


@dataclass(frozen=True)
class Log:
    """Records of pages that have nothing in common with each other, by number; the same for the same seed."""

    seed: int = 1

    def records(self, first: int, count: int) -> list[bytes]:
        """Records of pages `first` to first + count - 1, each of some 1.7 kB, of a text of 350 words."""
        out: list[bytes] = []
        while len(out) < count:
            block, place = divmod(first + len(out), _BLOCK_PAGES)
            out += self._block(block)[place : place + count - len(out)]
        return out

    def _block(self, block: int) -> list[bytes]:
        random = np.random.default_rng((self.seed, block))
        first, count = block * _BLOCK_PAGES, _BLOCK_PAGES
        header = self._headers(random, first, count)
        urls = [b"http://s%d.example/%d" % (i % 997, i) for i in range(first, first + count)]
        sites = [b"s%d.example" % (i % 997) for i in range(first, first + count)]
        header["url_hash"] = np.frombuffer(b"".join(url_hash(url.decode()) for url in urls), "V16")
        header["url_bytes"] = [len(url) for url in urls]
        header["site_bytes"] = [len(site) for site in sites]
        header["size"] = HEADER.itemsize + _COMPUTED + header["url_bytes"] + header["site_bytes"]
        sections = random.integers(0, 256, size=(count, _COMPUTED), dtype=np.uint8)
        # A third of a filter's bits are set; names occur once or twice and have no flags.
        sections[:, -BLOOM:] &= random.integers(0, 256, size=(count, BLOOM), dtype=np.uint8)
        names = sections[:, TAPE + CONTENT : -BLOOM].reshape(count, TITLE_NAMES + HEAD_NAMES, 8)
        names[:, :, 6] = 1 + (names[:, :, 6] & 1)
        names[:, :, 7] = 0
        heads, step = header.tobytes(), HEADER.itemsize
        return [
            heads[i * step : (i + 1) * step] + sections[i].tobytes() + url + site
            for i, (url, site) in enumerate(zip(urls, sites, strict=True))
        ]

    def _headers(self, random: np.random.Generator, first: int, count: int) -> np.ndarray:
        header = np.frombuffer(random.bytes(count * HEADER.itemsize), dtype=HEADER).copy()
        number = np.arange(first, first + count, dtype=np.uint64)
        header["version"], header["kind"], header["flags"] = SKETCH_VERSION, 0, 0
        header["fetched_at"] = header["log_time"] = _TIME + number.astype(np.int64)
        header["source"] = np.zeros(count, "V16")
        header["partition"], header["offset"], header["position"] = 0, number, 0
        header["site"] = header["hen_site"] = number % np.uint64(997)
        header["tokens"], header["distinct"], header["content_tokens"] = 350, 250, 300
        # Blocks of 32 bits would meet by chance: a bijection of the number keeps them apart, too.
        odd = np.arange(6, dtype=np.uint32) * np.uint32(2_000_003) + np.uint32(2_654_435_761) | np.uint32(1)
        header["logtf"] = number.astype(np.uint32)[:, None] * odd
        for name, value in (("tape_level", 0), ("content_level", 0), ("tape_bytes", TAPE), ("content_bytes", CONTENT)):
            header[name] = value
        for name, value in (("title_names", TITLE_NAMES), ("head_names", HEAD_NAMES), ("bloom_bytes", BLOOM)):
            header[name] = value
        for name in ("title_bytes", "canonical_bytes", "lang_bytes", "reason_bytes"):
            header[name] = 0
        return header


def changed(record: bytes, number: int, **fields: object) -> bytes:
    """The record with another URL and other header fields."""
    header = np.frombuffer(record[: HEADER.itemsize], dtype=HEADER).copy()
    head = Header(record)
    url = head.url + f"?{number}"
    for name, value in {"url_hash": np.frombuffer(url_hash(url), "V16")[0], "url_bytes": len(url), **fields}.items():
        header[name] = value
    header["size"] = len(record) + len(url) - len(head.url)
    at = HEADER.itemsize + _COMPUTED
    return header.tobytes() + record[HEADER.itemsize : at] + url.encode() + record[at + len(head.url) :]


def messages(scheme: Scheme, records: Iterable[bytes], first: int = 0) -> list[tuple[int, bytes]]:
    """(offset, message) of a log, from an offset on; pages are numbered as they come, to be accounted for."""
    given, made = iter(records), []
    while part := list(islice(given, MESSAGE_PAGES_MAX)):
        offset = first + len(made)
        made.append(message_of(scheme, part, offset, offset * MESSAGE_PAGES_MAX))
    return made


def message_of(scheme: Scheme, records: Sequence[bytes], offset: int, first: int) -> tuple[int, bytes]:
    """(offset, message) of these records. first: number of the first one among all pages of the source."""
    at = field_at("offset")
    numbered = tuple(
        record[:at] + number.to_bytes(8, "little") + record[at + 8 :] for number, record in enumerate(records, first)
    )
    span = Range(_SOURCE, 0, first, first + len(numbered))
    return offset, encode_message(Message(bytes.fromhex(scheme.digest), (span,), numbered))
