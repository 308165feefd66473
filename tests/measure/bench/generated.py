"""Sketch records without pages: a log of any length in seconds, and a store as folding it would leave it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.decider import Decider
from neardup.index import naming_rows, posting_rows, sketch_rows
from neardup.index.column_families import Family, Store
from neardup.index.rows import encode_founder_urls, encode_new_clusters, encode_new_digests, rows_of_array
from neardup.rules.posted_keys import keys_of_columns, similarity_columns
from neardup.search.batch_records import Pages
from neardup.sharded.judge_rows import slim_all, slim_headers
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, SKETCH_VERSION
from neardup.urls import url_hash

TAPE, CONTENT, TITLE_NAMES, HEAD_NAMES, BLOOM = 350, 240, 6, 16, 512
_COMPUTED = TAPE + CONTENT + 8 * (TITLE_NAMES + HEAD_NAMES) + BLOOM
_TIME = 1_700_000_000_000
#: Records that are made at once, from random numbers of their own: a record depends on its number alone.
_BLOCK_PAGES = 100
#: Pages that a fill writes at once.
FILL_PAGES = 5_000


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


def fill(store: Store, log: Log, first: int, count: int, decider: Decider) -> None:
    """Writes what folding these pages of the log writes, row by row the same, without folding."""
    for start in range(first, first + count, FILL_PAGES):
        many = min(FILL_PAGES, first + count - start)
        store.write(rows(log.records(start, many), range(start + 1, start + 1 + many), decider))


Rows = dict[Family, dict[bytes, bytes | None]]


def rows(records: Sequence[bytes], page_ids: Sequence[int], decider: Decider) -> Rows:
    """The rows that one matcher writes for pages that have nothing in common with others."""
    pages = Pages(list(zip(page_ids, records, strict=True)))
    out = _life(pages, pages.headers, records)
    out[Family.KEYS].update(_lists(pages, decider))
    return out


def judge_rows(records: Sequence[bytes], page_ids: Sequence[int], decider: Decider) -> Rows:
    """The rows that a judge writes for such pages."""
    pages = Pages(list(zip(page_ids, records, strict=True)))
    kept = slim_all(pages, slim_headers(pages))
    return _life(Pages(list(zip(page_ids, kept, strict=True))), pages.headers, kept)


def shard_rows(records: Sequence[bytes], page_ids: Sequence[int], decider: Decider) -> Rows:
    """The rows that a shard writes for such pages of its own."""
    pages = Pages(list(zip(page_ids, records, strict=True)))
    followed = [b"\x01" + key for key in pages.id_keys]
    return {
        Family.KEYS: _lists(pages, decider),
        Family.SKETCHES: _pairs(pages.id_keys, map(sketch_rows.whole_row, records)),
        Family.URLS: _pairs(pages.url_hashes, followed),
    }


def _pairs(keys: Iterable[bytes], values: Iterable[bytes]) -> dict[bytes, bytes | None]:
    return dict(zip(keys, values, strict=True))


def _lists(pages: Pages, decider: Decider) -> dict[bytes, bytes | None]:
    posted, columns = similarity_columns(pages.headers, decider)
    tape, content = pages.tape_logs()
    postings = np.zeros(columns.shape, _ONE_POSTING)
    postings["format"] = 1
    postings["word"] = (pages.ids << 16 | tape << 8 | content)[posted, None]
    salts = np.array([posting_rows.salt_of(first) for first in range(256)], dtype=np.uint64)
    sites = pages.headers["site"][posted, None] * salts[columns >> np.uint64(48) & np.uint64(255)]
    postings["tag"] = sites >> np.uint64(56)
    return _pairs(keys_of_columns(columns.reshape(-1)), rows_of_array(postings.reshape(-1)))


_ONE_POSTING = np.dtype([("format", "u1"), ("word", ">u8"), ("tag", "u1")])


def _life(pages: Pages, headers: np.ndarray, kept: Sequence[bytes]) -> Rows:
    """Rows of URLs, clusters, digests and namings, and of what is kept of the records. headers: before slimming."""
    checks = sketch_rows.checks_of(pages.headers, kept, pages.middles)
    clusters = encode_new_clusters(pages.ids, headers["url_hash"], [bytes(16)] * len(pages))
    newest = np.minimum(headers["fetched_at"], headers["log_time"])
    return {
        Family.KEYS: {
            **_pairs(pages.naming_keys, naming_rows.encode_firsts(headers)),
            **_pairs(pages.digest_keys, encode_new_digests(pages.ids, checks)),
        },
        Family.SKETCHES: _pairs(pages.id_keys, map(sketch_rows.whole_row, kept)),
        Family.URLS: _pairs(pages.url_hashes, encode_founder_urls(pages.ids, newest, headers["log_time"])),
        Family.CLUSTERS: _pairs(pages.id_keys, clusters),
    }


def mixed(log: Log, first: int, count: int) -> Iterator[bytes]:
    """`count` records for a store that holds pages 0 to first - 1: 7 of 10 new, 2 near and 1 exact duplicate of old."""
    random = np.random.default_rng((log.seed, first, 2))
    fresh = iter(log.records(first, count))
    for number in range(first, first + count):
        kind = number % 10
        if kind < 7:
            yield next(fresh)
            continue
        (old,) = log.records(int(random.integers(0, first)), 1)
        if kind == 9:
            yield changed(old, number)
        else:
            yield changed(old, number, digest=np.frombuffer(random.bytes(16), "V16")[0])


#: Of the new pages of a stream one in so many is kept, to be repeated later.
_KEPT_EVERY = 10


def stream(log: Log, count: int) -> Iterator[bytes]:
    """`count` records one after another: 7 of 10 new, 2 near and 1 exact duplicate of earlier ones, from anywhere."""
    random = np.random.default_rng((log.seed, 3))
    kept: list[bytes] = []
    fresh: Iterator[bytes] = iter(())
    new = 0
    for number in range(count):
        kind = number % 10
        if kind >= 7 and kept:
            old = kept[int(random.integers(len(kept)))]
            digest = {} if kind == 9 else {"digest": np.frombuffer(random.bytes(16), "V16")[0]}
            yield changed(old, number, **digest)
            continue
        record = next(fresh, None)
        if record is None:
            fresh = iter(log.records(new, _BLOCK_PAGES))
            record = next(fresh)
        if new % _KEPT_EVERY == 0:
            kept.append(record)
        new += 1
        yield record
