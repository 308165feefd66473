"""Sketch records written by hand, for tests of what is done with them: quick, and independent of how pages are read.

The keys are made like the real ones (minvalues of shingles, signs of projections), but by short numpy code and for
short texts: shingles of 3 words, tapes that keep every word. The pair kernel reads them like any other record.
"""

import hashlib

import numpy as np
import xxhash

from neardup.sketch.layout import HEADER, NAME, NameFlag, RecordFlag, RecordKind, field_at
from neardup.urls import url_hash

_RNG = np.random.default_rng(20)
_A = _RNG.integers(0, 1 << 63, 84, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_B = _RNG.integers(0, 1 << 63, 84, dtype=np.uint64)
_G = _RNG.integers(0, 1 << 63, 384, dtype=np.uint64)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mixed(x):
    x = (x ^ (x >> np.uint64(30))) * _M1
    x = (x ^ (x >> np.uint64(27))) * _M2
    return x ^ (x >> np.uint64(31))


def _hash(values):
    return xxhash.xxh64_intdigest(np.ascontiguousarray(values, dtype="<u8").tobytes(), 5)


def _words(text):
    return np.array([xxhash.xxh64_intdigest(word.encode(), 7) for word in text.split()], dtype=np.uint64)


def site_of(url):
    return ".".join(url.split("/")[2].split(".")[-2:]) if "/" in url else ""


def record(
    url,
    text="",
    *,
    at=0,
    log_time=None,
    title="",
    canonical="",
    lang="en",
    kind=RecordKind.PAGE,
    body=None,
    reason="",
    truncated=False,
    offset=0,
    content=None,
):
    """A record: of a page with this text (and title, whose words come first), of an opaque `body`, or of another kind.

    at: fetched_at, ms; log_time: `at` if None. content: so many tokens are the main content, all of them if None.
    """
    fp = _words(f"{title} {text}")
    h = np.zeros(1, HEADER)
    h["version"], h["kind"] = 1, kind
    h["fetched_at"], h["log_time"] = at, at if log_time is None else log_time
    h["offset"], h["url_hash"] = offset, np.void(url_hash(url))
    site = site_of(url)
    # What tells apart pages of one name is tested on records made of pages; here it stays out of the way.
    h["tail"], h["place"] = 1, int.from_bytes(url_hash(url)[:8])
    h["titling"] = h["naming"] = _hash(_words(title)) if title else 0
    h["site"] = h["hen_site"] = xxhash.xxh64_intdigest(site.encode())
    flags = RecordFlag.TRUNCATED if truncated else RecordFlag(0)
    tape = bloom = b""
    heads = []
    if body is not None:
        flags |= RecordFlag.OPAQUE
        if body:
            h["digest"] = np.void(hashlib.blake2b(body, digest_size=16, person=b"opaque").digest())
    elif len(fp):
        tape, bloom, heads = _fill(h, fp)
    h["flags"] = flags
    names = _names(_words(title), fp, NameFlag.IN_TITLE)
    main = tape if content is None else tape[:content]
    sections = [tape, main, b"".join(names), b"".join(heads), bloom]
    texts = [part.encode() for part in (url, site, title, canonical, lang, reason)]
    h["tape_bytes"], h["content_bytes"], h["bloom_bytes"] = len(tape), len(main), len(bloom)
    h["title_names"], h["head_names"] = len(names), len(heads)
    fields = ("url_bytes", "site_bytes", "title_bytes", "canonical_bytes", "lang_bytes", "reason_bytes")
    for field, part in zip(fields, texts, strict=True):
        h[field] = len(part)
    h["size"] = HEADER.itemsize + sum(map(len, sections)) + sum(map(len, texts))
    return b"".join((h.tobytes(), *sections, *texts))


def _names(chosen, fp, flags=0):
    out = []
    for token in dict.fromkeys(chosen.tolist()):
        entry = np.zeros(1, NAME)
        entry["fingerprint"] = np.frombuffer(int(token).to_bytes(8, "little"), "u1")[:6]
        entry["flags"] = flags
        entry["count"] = min(255, int((fp == np.uint64(token)).sum()))
        out.append(entry.tobytes())
    return out


def _fill(h, fp):
    h["digest"] = np.void(hashlib.blake2b(fp.tobytes(), digest_size=16).digest())
    h["tokens"] = h["content_tokens"] = len(fp)
    h["distinct"] = len(np.unique(fp))
    h["head"] = _hash(fp[:8])
    shingles = np.array([_hash(fp[i : i + 3]) for i in range(max(1, len(fp) - 2))], dtype=np.uint64)
    low = _mixed(shingles[:, None] * _A + _B).min(axis=0)
    h["supershingles"] = [_hash(low[i : i + 14]) for i in range(0, 84, 14)]
    h["wide"] = [_hash(low[i : i + 2]) for i in range(0, 14, 2)]
    h["content_start"] = _hash(fp[len(fp) // 2 :][:8])  # as if the second half were the main content
    bits = (_mixed(fp[:, None] + _G) >> np.uint64(63)).astype(np.int64)
    votes = (2 * bits - 1).sum(axis=0) > 0
    packed = np.packbits(votes, bitorder="little")
    h["simhash"] = packed.view("<u8")
    h["logtf"] = packed.view("<u4")[:6]
    bloom = np.zeros(512, np.uint8)
    for token in fp:
        bloom[[int(token) >> shift & 511 for shift in (0, 9, 18, 27)]] = 1
    tape = (_mixed(fp) >> np.uint64(56) | np.uint64(0x40)).astype(np.uint8).tobytes()[:500]
    heads = _names(fp[:16], fp)
    return tape, np.packbits(bloom, bitorder="little").tobytes(), heads


def shell_of(page):
    """The record of a page as one whose words come from a script."""
    at = field_at("flags")
    return page[:at] + bytes([page[at] | RecordFlag.SHELL]) + page[at + 1 :]


def tombstone(url, *, at=0, log_time=None):
    return record(url, at=at, log_time=log_time, kind=RecordKind.TOMBSTONE)


def rejected(url, *, at=0, reason="cannot be read"):
    return record(url, at=at, kind=RecordKind.REJECTED, reason=reason)
