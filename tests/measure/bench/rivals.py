"""Two other ways from HTML to a sketch, in this process: what people write first, and the fastest HTML library."""

import html
import re

import numpy as np
import xxhash

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages

_DROPPED = re.compile(rb"<!--.*?-->|<(script|style|template)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(rb"<[^>]*>")
_WORD = re.compile(r"[^\W_]+")

_random = np.random.default_rng(1)
_A = _random.integers(1, 1 << 63, size=(84, 1), dtype=np.uint64) | np.uint64(1)
_B = _random.integers(0, 1 << 63, size=(84, 1), dtype=np.uint64)
_G = _random.integers(0, 1 << 63, size=(1, 6), dtype=np.uint64)
_FACTORS = _random.integers(1, 1 << 63, size=8, dtype=np.uint64) | np.uint64(1)


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def regex_and_numpy(body: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Minvalues and simhash of a page, no more: algorithms B and C with regular expressions and numpy."""
    text = html.unescape(_TAG.sub(b" ", _DROPPED.sub(b" ", body)).decode("utf-8", "replace")).lower()
    digest = xxhash.xxh64_intdigest
    tokens = np.array([digest(word.encode()) for word in _WORD.findall(text)], dtype=np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, 8)
    shingles = np.unique(_mix((windows * _FACTORS).sum(axis=1, dtype=np.uint64)))
    minvalues = (shingles * _A + _B).min(axis=1)
    distinct, counts = np.unique(tokens, return_counts=True)
    projections = np.unpackbits(_mix(distinct[:, None] + _G).view(np.uint8), axis=1)
    votes = counts @ (2 * projections.astype(np.int32) - 1)
    return minvalues, votes > 0


def lexbor_and_kernels(pages: list[Page], scheme: Scheme) -> list[bytes]:
    """Text by selectolax, everything after it by our kernels."""
    from selectolax.lexbor import LexborHTMLParser

    out = []
    for page in pages:
        tree = LexborHTMLParser(page.body or b"")
        tree.strip_tags(["script", "style", "template"])
        text = tree.root.text(separator=" ") if tree.root else ""
        out.append(Page(page.url, text.encode("utf-8", "replace"), "text/plain; charset=utf-8", page.fetched_at))
    return sketch_pages(out, scheme)
