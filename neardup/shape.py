"""A scheme as the arrays that kernels take, and their scratch space."""

from functools import lru_cache

import numpy as np

from neardup.errors import BadInput
from neardup.kernels.html import text_bytes_needed
from neardup.kernels.lanes import LANES
from neardup.kernels.occurrences import FIRST_SLOTS
from neardup.kernels.simhash import COUNTERS
from neardup.kernels.sketch import PageSpace, Shape, Workspace
from neardup.layout import NAME
from neardup.scheme import Scheme
from neardup.simhash import LOG_WEIGHTS


@lru_cache(maxsize=8)
def shape_of(scheme: Scheme) -> Shape:
    """Seeds, multipliers and limits of a scheme. Raises BadInput if its sketches do not fit the record's layout."""
    _check(scheme)
    products = -(-scheme.minvalues // (4 * LANES)) * LANES
    one = np.uint64(1)
    limits = (
        scheme.minvalues // scheme.supershingles,
        scheme.wide_minvalues,
        scheme.tape_bytes_max,
        scheme.content_tape_bytes_max,
        scheme.tape_occurrences_max,
        scheme.head_tokens,
        scheme.head_key_tokens,
        scheme.title_names_max,
        scheme.bloom_bits_min,
        scheme.bloom_bits_max,
    )
    return Shape(
        seed=np.array([scheme.seed], dtype=np.uint64),
        digest=scheme.constants("digest", 2),
        opaque=scheme.constants("opaque", 2),
        shingle=scheme.constants("shingle", scheme.shingle_tokens) | one,
        multiplier=scheme.constants("minvalue multiplier", products) | one,
        chains=scheme.constants("chain", 3),
        offsets=scheme.constants("simhash", 8),
        weights=np.array(LOG_WEIGHTS, dtype=np.uint64),
        limits=np.array(limits, dtype=np.int64),
    )


def _check(scheme: Scheme) -> None:
    fixed = {"supershingles": 6, "simhash_bits": 384, "wide_supershingles": 8, "logtf_bits": 192}
    for name, value in fixed.items():
        if getattr(scheme, name) != value:
            raise BadInput(f"scheme: {name} must be {value}, as in the record's layout")
    bits = (scheme.bloom_bits_min, scheme.bloom_bits_max)
    ranges = {
        "minvalues": scheme.minvalues % 6 == 0 and scheme.minvalues >= 8 * scheme.wide_minvalues,
        "shingle_tokens": scheme.shingle_tokens >= 1,
        "wide_minvalues": scheme.wide_minvalues >= 1,
        "tape_bytes_max": 0 <= scheme.tape_bytes_max < 1 << 16,
        "content_tape_bytes_max": 0 <= scheme.content_tape_bytes_max < 1 << 16,
        "tape_occurrences_max": 1 <= scheme.tape_occurrences_max <= 255,
        "head_tokens": 0 <= scheme.head_tokens <= 255,
        "head_key_tokens": scheme.head_key_tokens >= 1,
        "title_names_max": 0 <= scheme.title_names_max <= 127,
        "bloom_bits_min, bloom_bits_max": all(64 <= b <= 1 << 18 and b & (b - 1) == 0 for b in bits),
    }
    for name, good in ranges.items():
        if not good:
            raise BadInput(f"scheme: {name} is out of range")


def sections_bytes_max(scheme: Scheme) -> int:
    """Most bytes that tapes, names and filter of one record take."""
    tapes = scheme.tape_bytes_max + scheme.content_tape_bytes_max
    names = (2 * scheme.title_names_max + scheme.head_tokens) * NAME.itemsize
    return tapes + names + max(scheme.bloom_bits_min, scheme.bloom_bits_max) // 8


class Space:
    """Scratch of one thread for pages of up to `tokens` tokens; a context that gives it back."""

    def __init__(self, tokens: int, functions: int) -> None:
        self.tokens = tokens
        self.functions = functions
        self.work = _workspace(tokens, functions)
        self.page = _page_space(tokens)

    def __enter__(self) -> "Space":
        return self

    def __exit__(self, *_: object) -> None:
        if self.tokens <= _KEPT_TOKENS_MAX:
            _spaces.append(self)


#: Tokens beside one for each byte of a page: the least that text and tokens of a page need.
_SPARE_TOKENS = 33_000
#: Larger scratch is let go after use: a giant page must not cost memory for ever.
_KEPT_TOKENS_MAX = 1 << 20
#: Scratch that no thread uses now; append and pop are atomic.
_spaces: list[Space] = []


def space_for(page_bytes: int, scheme: Scheme) -> Space:
    """Scratch for pages of up to page_bytes bytes, or as many tokens: used scratch if it is large enough."""
    functions = scheme.minvalues
    while _spaces:
        try:
            space = _spaces.pop()
        except IndexError:  # another thread was faster
            break
        if space.tokens >= page_bytes + _SPARE_TOKENS and space.functions == functions:
            return space
    return Space(1 << (page_bytes + _SPARE_TOKENS - 1).bit_length(), functions)


def _workspace(tokens: int, functions: int) -> Workspace:
    """Some 90 bytes a token; memory that a page does not touch is never taken from the system."""
    padded = -(-functions // (4 * LANES)) * 4 * LANES
    return Workspace(
        ids=np.empty(tokens, dtype=np.uint32),
        slots=np.empty(max(FIRST_SLOTS, 8 * tokens), dtype=np.uint32),
        distinct=np.empty(tokens, dtype=np.uint64),
        counts=np.empty(tokens, dtype=np.uint32),
        mixed=np.empty(tokens, dtype=np.uint64),
        shingle=np.empty(tokens, dtype=np.uint64),
        fronts=np.empty(padded, dtype=np.uint64),
        leading=np.empty(padded, dtype=np.uint16),
        pieces=np.empty(tokens, dtype=np.uint16),
        low=np.empty(functions, dtype=np.uint64),
        left=np.empty(tokens, dtype=np.uint8),
        byte=np.empty(tokens, dtype=np.uint8),
        starts=np.empty(tokens, dtype=np.uint32),
        ends=np.empty(tokens, dtype=np.uint32),
        linked=np.empty(tokens, dtype=np.uint32),
        widths=np.empty(tokens, dtype=np.uint32),
        chosen=np.empty(tokens, dtype=np.uint8),
        content_counts=np.empty(tokens, dtype=np.uint32),
        histogram=np.empty(64, dtype=np.int64),
        place=np.empty(len(LOG_WEIGHTS) + 1, dtype=np.int64),
        order=np.empty(tokens, dtype=np.uint32),
        counters=np.empty(COUNTERS, dtype=np.uint64),
    )


def _page_space(tokens: int) -> PageSpace:
    host = 1024
    return PageSpace(
        text=np.empty(text_bytes_needed(tokens), dtype=np.uint8),
        fp=np.empty(tokens, dtype=np.uint64),
        flags=np.empty(tokens, dtype=np.uint8),
        block=np.empty(tokens, dtype=np.int32),
        span_start=np.empty(tokens, dtype=np.uint32),
        span_end=np.empty(tokens, dtype=np.uint32),
        host_text=np.empty(2 * host, dtype=np.uint8),
        host_fp=np.empty(host, dtype=np.uint64),
        host_flags=np.empty(host, dtype=np.uint8),
        host_block=np.empty(host, dtype=np.int32),
        host_start=np.empty(host, dtype=np.uint32),
        host_end=np.empty(host, dtype=np.uint32),
    )
