"""A scheme as the arrays that kernels take, and their scratch space."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neardup import installed
from neardup.errors import BadInput
from neardup.kernels.composition import CLUSTER_POINTS
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.html import text_bytes_needed
from neardup.kernels.lanes import LANES
from neardup.kernels.occurrences import FIRST_SLOTS
from neardup.kernels.record import ARTICLE_HEADER_BYTES
from neardup.kernels.shingling import SEEN
from neardup.kernels.simhash import COUNTERS
from neardup.kernels.sketch import HASHES_BYTES, NUMBERS, WORDS, PageSpace, Shape, Workspace
from neardup.scheme import VERSION, Scheme
from neardup.sketch.layout import HEADER, NAME
from neardup.sketch.one_page_simhash import LOG_WEIGHTS
from neardup.text import unicode
from neardup.text.one_page_html import FACT_BYTES_MAX

#: Most bits of a filter.
_FILTER_BITS_MAX = 1 << 18
#: Longest tape of an article that a scheme may ask for; 15 bits of a section's length.
_ARTICLE_BYTES_MAX = 1 << 15
#: Longest language tag that is kept.
LANG_BYTES_MAX = 64


@lru_cache(maxsize=8)
def shape_of(scheme: Scheme) -> Shape:
    """Computes a scheme's seeds, multipliers and limits as arrays.

    Raises BadInput if its sketches do not fit the record's layout, or were made with other tables than the installed
    ones.
    """
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
        scheme.title_bytes_max,
        min(scheme.url_bytes_max, FACT_BYTES_MAX),
        LANG_BYTES_MAX,
        scheme.own_url_words_max,
        scheme.tokens_max,
        scheme.article_tape_bytes_max,
    )
    return Shape(
        token=scheme.constants("token", KEY_WORDS),
        digest=scheme.constants("digest", 2),
        shingle=scheme.constants("shingle", scheme.shingle_tokens) | one,
        multiplier=scheme.constants("minvalue multiplier", products) | one,
        chains=scheme.constants("chain", 4),
        offsets=scheme.constants("simhash", 8),
        weights=np.array(LOG_WEIGHTS, dtype=np.uint64),
        names=scheme.constants("names", KEY_WORDS),
        limits=np.array(limits, dtype=np.int64),
        points=unicode.table(),
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
        "article_tape_bytes_max": 0 <= scheme.article_tape_bytes_max < _ARTICLE_BYTES_MAX,
        "tape_occurrences_max": 1 <= scheme.tape_occurrences_max <= 255,
        "head_tokens": 0 <= scheme.head_tokens <= 255,
        "head_key_tokens": scheme.head_key_tokens >= 1,
        "title_names_max": 0 <= scheme.title_names_max <= 85,
        "own_url_words_max": 0 <= scheme.own_url_words_max < 1 << 16,
        "tokens_max": 1 <= scheme.tokens_max < 1 << 31,
        "bloom_bits_min, bloom_bits_max": all(64 <= b <= _FILTER_BITS_MAX and b & (b - 1) == 0 for b in bits),
    }
    if scheme.version != VERSION:
        raise BadInput(
            f"scheme: version is {scheme.version}, this program sketches pages by version {VERSION}: pages would be "
            "read in another way than before; go on with the version of neardup that made the scheme, or begin anew "
            "with another state directory or generation, which leaves this one as it is"
        )
    for name, held in installed.NAMES.items():
        if getattr(scheme, name) != held():
            raise BadInput(
                f"scheme: {name} is {getattr(scheme, name)!r}, installed is {held()!r}: pages would be read in another "
                "way than before; install what was there when the scheme was made (requirements.lock of that version "
                "of neardup names it), or begin anew with another state directory or generation"
            )
    for name, good in ranges.items():
        if not good:
            raise BadInput(f"scheme: {name} is out of range")


def record_bytes_max(scheme: Scheme) -> int:
    """Returns the maximum bytes of one record without URL, site and reason."""
    tapes = scheme.tape_bytes_max + scheme.content_tape_bytes_max + ARTICLE_HEADER_BYTES + scheme.article_tape_bytes_max
    tapes += HASHES_BYTES
    names = (3 * scheme.title_names_max + scheme.head_tokens) * NAME.itemsize
    texts = scheme.title_bytes_max + min(scheme.url_bytes_max, FACT_BYTES_MAX) + LANG_BYTES_MAX
    return HEADER.itemsize + tapes + names + max(scheme.bloom_bits_min, scheme.bloom_bits_max) // 8 + texts


class Space:
    """Scratch memory of one thread for pages of up to so many bytes. A context manager that returns it to the pool."""

    def __init__(self, page_bytes: int, tokens_max: int, functions: int, title_bytes: int) -> None:
        self.page_bytes = page_bytes
        self.fits = (tokens_max, functions, title_bytes)
        tokens = min(page_bytes, tokens_max + _SPARE_BYTES)
        self.work = _workspace(tokens, functions)
        self.page = _page_space(page_bytes, tokens, title_bytes)
        self._out = np.empty(0, dtype=np.uint8)

    def __enter__(self) -> "Space":
        return self

    def __exit__(self, *_: object) -> None:
        if self.page_bytes <= _KEPT_BYTES_MAX:
            _spaces.append(self)

    def out(self, size: int) -> npt.NDArray[np.uint8]:
        """Returns a buffer of so many bytes for records, the same each time."""
        if len(self._out) < size:
            self._out = np.empty(size, dtype=np.uint8)
        return self._out


#: Beside those of a page: the least that its text needs, and its tokens, one for each byte.
_SPARE_BYTES = 33_000
#: Larger scratch is let go after use: a giant page must not cost memory for ever. A page of 4 MB touches some 40 bytes
#: for each of a million tokens; to take them from the system anew costs such pages a third more.
_KEPT_BYTES_MAX = 1 << 22
#: Tokens of a host that are kept; bytes of a line that holds a title, or a site and the end of a URL, all of
#: which the record's layout keeps below 2**16.
_HOST_TOKENS_MAX, _LINE_BYTES = 1024, 1 << 18
#: Scratch that no thread uses now; append and pop are atomic.
_spaces: list[Space] = []


def space_for(page_bytes: int, scheme: Scheme) -> Space:
    """Returns scratch memory for pages of up to page_bytes bytes, or as many tokens. Reuses a pooled one of sufficient
    size.
    """
    fits = (scheme.tokens_max, scheme.minvalues, scheme.title_bytes_max)
    size = 1 << (page_bytes + _SPARE_BYTES - 1).bit_length()
    while _spaces:
        try:
            space = _spaces.pop()
        except IndexError:  # another thread was faster
            break
        if space.page_bytes >= size and space.fits == fits:
            return space
        if size > _KEPT_BYTES_MAX:  # what is made now will not take its place
            _spaces.append(space)
            break
    return Space(size, *fits)


def _workspace(tokens: int, functions: int) -> Workspace:
    """Allocates some 90 bytes a token. The system commits only memory that a page touches."""
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
        seen=np.empty(SEEN, dtype=np.uint64),
        low=np.empty(functions, dtype=np.uint64),
        left=np.empty(max(tokens, _FILTER_BITS_MAX), dtype=np.uint8),
        byte=np.empty(tokens, dtype=np.uint8),
        starts=np.empty(tokens, dtype=np.uint32),
        ends=np.empty(tokens, dtype=np.uint32),
        linked=np.empty(tokens, dtype=np.uint32),
        widths=np.empty(tokens, dtype=np.uint32),
        chosen=np.empty(tokens, dtype=np.uint8),
        content_counts=np.empty(tokens, dtype=np.uint32),
        place=np.empty(len(LOG_WEIGHTS) + 1, dtype=np.int64),
        order=np.empty(tokens, dtype=np.uint32),
        counters=np.empty(COUNTERS, dtype=np.uint64),
        article=np.empty(_ARTICLE_BYTES_MAX, dtype=np.uint8),
    )


def _page_space(page_bytes: int, tokens: int, title_bytes: int) -> PageSpace:
    return PageSpace(
        text=np.empty(text_bytes_needed(page_bytes), dtype=np.uint8),
        fp=np.empty(tokens, dtype=np.uint64),
        flags=np.empty(tokens, dtype=np.uint8),
        block=np.empty(tokens, dtype=np.int32),
        span_start=np.empty(tokens, dtype=np.uint32),
        span_end=np.empty(tokens, dtype=np.uint32),
        host=np.empty(_HOST_TOKENS_MAX, dtype=np.uint64),
        title=np.empty(title_bytes, dtype=np.uint8),
        line=np.empty(_LINE_BYTES, dtype=np.uint8),
        cluster=np.empty(CLUSTER_POINTS, dtype=np.uint64),
        words=np.empty(WORDS, dtype=np.uint64),
        numbers=np.empty(NUMBERS, dtype=np.int64),
    )
