"""Sketch records in the heap: those of the batch, and those of the store, whole or joined from two rows."""

import numpy as np

from neardup.index.rows import NO_PAGE
from neardup.kernels import lean_kernel
from neardup.kernels.bits import quad_at, word_at
from neardup.kernels.pairs import half_at
from neardup.kernels.record import ARTICLE_HEADER_BYTES
from neardup.kernels.sketch import HASHES_BYTES
from neardup.kernels.tape import LEVELS
from neardup.matching.kernels import rows
from neardup.matching.kernels.rows import I64, KNOWN, RECORD, SKETCHES, U64, be64
from neardup.sketch.layout import HEADER, NAME, SKETCH_VERSION, RecordFlag, field_at

_KIND, _FLAGS, _SIZE, _LOG_TIME = field_at("kind"), field_at("flags"), field_at("size"), field_at("log_time")
_URL_HASH, _SITE, _NAMING, _DIGEST = field_at("url_hash"), field_at("site"), field_at("naming"), field_at("digest")
_SIMHASH, _TITLE_NAMES, _HEAD_NAMES = field_at("simhash"), field_at("title_names"), field_at("head_names")
_TAPE_LEVEL, _CONTENT_LEVEL = field_at("tape_level"), field_at("content_level")
_TAPE, _CONTENT, _BLOOM, _URL = (field_at(f"{name}_bytes") for name in ("tape", "content", "bloom", "url"))
_SITE_TEXT, _TITLE, _CANONICAL = (field_at(f"{name}_bytes") for name in ("site", "title", "canonical"))
_LANG, _ARTICLE = field_at("lang_bytes"), field_at("reason_bytes")
_TOKENS, _CONTENT_TOKENS, _HEAD = field_at("tokens"), field_at("content_tokens"), field_at("head")
HEADER_SIZE, _NAME_BYTES = HEADER.itemsize, NAME.itemsize
_OPAQUE, _FORMS, _SHELL = int(RecordFlag.OPAQUE), int(RecordFlag.FORMS), int(RecordFlag.SHELL)
SIMHASH_WORDS = HEADER["simhash"].shape[0]
NO_REST = U64(NO_PAGE)

# The parts of a header that all records of a digest share: (first byte, bytes). See `neardup.index.sketch_rows`.
_SHARED = (
    (_TOKENS, _CONTENT_TOKENS - _TOKENS),
    (_HEAD, _CONTENT_LEVEL - _HEAD),
    (_TAPE, _CONTENT - _TAPE),
    (_BLOOM, _URL - _BLOOM),
)
_SHARED_BYTES = sum(size for _, size in _SHARED)
_OWN_BYTES = HEADER_SIZE - _SHARED_BYTES

PAGE = np.dtype(
    (
        np.record,
        [
            ("id", "<i8"),
            ("i", "<i8"),  # number in the batch
            ("at", "<i8"),  # offset of the record
            ("log_time", "<i8"),
            ("newest", "<i8"),
            ("url_a", "<u8"),
            ("url_b", "<u8"),
            ("naming_a", "<u8"),  # key of owner and naming, behind its first byte
            ("naming_b", "<u8"),
            ("canonical_a", "<u8"),  # hash of the URL that it names as canonical; zeros: none, or its own
            ("canonical_b", "<u8"),
            ("check", "<u8"),  # XXH3 of the part that all records of its digest share
            ("kind", "u1"),
            ("named", "u1"),
            ("posts", "u1"),  # whether it has similarity keys
            ("ready", "u1"),  # whether it was judged once with the rows at hand
            ("counted", "u1"),  # whether its cluster knows that the page may leave it (`notes.leaving`)
        ],
    ),
    align=True,
)


@lean_kernel
def flags_opaque(heap, at):
    return (heap[at + _FLAGS] & _OPAQUE) != 0


@lean_kernel
def has_only_copies(heap, at):
    """Whether the page is opaque or a shell: it has exact duplicates alone."""
    return (heap[at + _FLAGS] & (_OPAQUE | _SHELL)) != 0


@lean_kernel
def tokens_of(heap, at):
    return quad_at(heap, at + _TOKENS)


@lean_kernel
def size_of(heap, at):
    return quad_at(heap, at + _SIZE)


@lean_kernel
def log_time_of(heap, at):
    return I64(word_at(heap, at + _LOG_TIME))


@lean_kernel
def url_hash_of(heap, at):
    return be64(heap, at + _URL_HASH), be64(heap, at + _URL_HASH + 8)


@lean_kernel
def site_of(heap, at):
    return word_at(heap, at + _SITE)


@lean_kernel
def naming_of(heap, at):
    return word_at(heap, at + _NAMING)


@lean_kernel
def digest_of(heap, at):
    """The words of the digest; zeros without one."""
    return be64(heap, at + _DIGEST), be64(heap, at + _DIGEST + 8)


@lean_kernel
def digest_kind(heap, at):
    """The kind of the row of a record's digest: `rows.KEYS` and the first byte of the key."""
    return rows.KEYS | (2 if flags_opaque(heap, at) else 1)


@lean_kernel
def has_digest(heap, at):
    a, b = digest_of(heap, at)
    return (a | b) != U64(0)


@lean_kernel
def same_digest(heap, one, other):
    """Whether two records have one digest, or both none, and are both opaque or both not."""
    a, b = digest_of(heap, one)
    c, d = digest_of(heap, other)
    return a == c and b == d and flags_opaque(heap, one) == flags_opaque(heap, other)


@lean_kernel
def simhash_at(at):
    return at + _SIMHASH


@lean_kernel
def tape_most(heap, at):
    """The bytes of the longest tape of a record."""
    return max(half_at(heap, at + _TAPE), max(half_at(heap, at + _CONTENT), half_at(heap, at + _ARTICLE)))


@lean_kernel
def url_text(heap, at):
    """Start and bytes of the URL."""
    start = at + HEADER_SIZE + half_at(heap, at + _TAPE) + half_at(heap, at + _CONTENT)
    start += _NAME_BYTES * (I64(heap[at + _TITLE_NAMES]) + I64(heap[at + _HEAD_NAMES])) + half_at(heap, at + _BLOOM)
    return start, half_at(heap, at + _URL)


@lean_kernel
def site_text(heap, at):
    start, size = url_text(heap, at)
    return start + size, half_at(heap, at + _SITE_TEXT)


@lean_kernel
def canonical_text(heap, at):
    start, size = site_text(heap, at)
    return start + size + half_at(heap, at + _TITLE), half_at(heap, at + _CANONICAL)


@lean_kernel
def log_of(logs, tokens):
    """`neardup.sketch.header.log_length`. logs: int64[256], the least number of tokens of each result."""
    low, high = 0, len(logs) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if logs[middle] <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


@lean_kernel
def tape_log(heap, logs, at):
    """The log-length of a record's tape."""
    return log_of(logs, half_at(heap, at + _TAPE) << I64(heap[at + _TAPE_LEVEL]))


@lean_kernel
def content_log(heap, logs, at):
    return log_of(logs, half_at(heap, at + _CONTENT) << I64(heap[at + _CONTENT_LEVEL]))


@lean_kernel
def posting_word(heap, logs, page_id, at):
    """The posting of a page without the site's tag: `neardup.index.posting_rows.word_of`."""
    lengths = tape_log(heap, logs, at) << 8 | content_log(heap, logs, at)
    return U64(page_id) << U64(16) | U64(lengths)


# ---- records of the store ------------------------------------------------------------------------------------------


@lean_kernel
def _shared_bounds(heap, at):
    """End of the tape, start and end of the filter, as offsets in the record at `at`."""
    tape = HEADER_SIZE + half_at(heap, at + _TAPE)
    bloom = tape + half_at(heap, at + _CONTENT)
    bloom += _NAME_BYTES * (I64(heap[at + _TITLE_NAMES]) + I64(heap[at + _HEAD_NAMES]))
    return tape, bloom, bloom + half_at(heap, at + _BLOOM)


@lean_kernel
def _is_record(heap, at, size):
    """Whether the bytes at `at` are a whole record of which kernels may read every section.

    The checks are those of `neardup.sketch.header.Header` and its `problem`, as far as offsets depend on them.
    """
    if size < HEADER_SIZE or heap[at] != SKETCH_VERSION or size_of(heap, at) != size:
        return False
    start, _ = canonical_text(heap, at)
    article = half_at(heap, at + _ARTICLE)
    end = start + half_at(heap, at + _CANONICAL) + half_at(heap, at + _LANG) + article
    if end != at + size or max(heap[at + _TAPE_LEVEL], heap[at + _CONTENT_LEVEL]) >= LEVELS:
        return False
    bloom = half_at(heap, at + _BLOOM)
    if bloom & (bloom - 1) != 0 or (0 < article <= ARTICLE_HEADER_BYTES):
        return False
    if heap[at + _FLAGS] & _FORMS and half_at(heap, at + _TAPE) < HASHES_BYTES:
        return False
    return article == 0 or heap[end - article + ARTICLE_HEADER_BYTES - 1] < LEVELS


@lean_kernel
def _join(r, held, own, own_size, whole):
    """Writes the record of an own part and the record that holds the shared part -> its offset, BROKEN or FULL.

    held: the entry of the own part, for an error.
    """
    heap = r.heap
    if own_size < _OWN_BYTES:
        return rows.broken(r, rows.DAMAGED, held, 0)
    tape_size = half_at(heap, whole + _TAPE)
    bloom_size = half_at(heap, whole + _BLOOM)
    size = own_size + _SHARED_BYTES + tape_size + bloom_size
    to = rows.room(r, size)
    if to < 0:
        return to
    # The header: own and shared bytes in turn.
    at, here = own, I64(0)
    for part in range(len(_SHARED)):
        start, many = _SHARED[part]
        rows.copy(heap, to + here, at, start - here)
        at += start - here
        rows.copy(heap, to + start, whole + start, many)
        here = start + many
    rows.copy(heap, to + here, at, HEADER_SIZE - here)
    at += HEADER_SIZE - here
    tape, bloom, end = _shared_bounds(heap, to)
    _, whole_bloom, _ = _shared_bounds(heap, whole)
    if end > size:
        return rows.broken(r, rows.DAMAGED, held, 0)
    rows.copy(heap, to + HEADER_SIZE, whole + HEADER_SIZE, tape_size)
    rows.copy(heap, to + tape, at, bloom - tape)
    at += bloom - tape
    rows.copy(heap, to + bloom, whole + whole_bloom, bloom_size)
    rows.copy(heap, to + end, at, size - end)
    return to if _is_record(heap, to, size) else rows.broken(r, rows.DAMAGED, held, 0)


@lean_kernel
def _whole(r, held):
    """The record of a sketch row that is whole -> its offset, or BROKEN. held: the entry of the row."""
    at, size = r.entries[held].row, I64(r.entries[held].length)
    if r.heap[at] != 1 or not _is_record(r.heap, at + 1, size - 1):
        return rows.broken(r, rows.DAMAGED, held, 0)
    return at + 1


@lean_kernel
def record(r, page_id):
    """The record of a page of the batch or of the store -> its offset in the heap, MISSING, BROKEN or FULL."""
    e = rows.enter(r, RECORD, U64(page_id), U64(0), U64(0))
    if e < 0:
        return e
    if r.entries[e].state == KNOWN:
        return r.entries[e].row
    held = rows.get_existing(r, SKETCHES, U64(page_id), U64(0), U64(0))
    if held < 0:
        return held
    at, size = r.entries[held].row, I64(r.entries[held].length)
    if r.heap[at] == 1:
        found = _whole(r, held)
    else:
        rest = rows.get_existing(r, SKETCHES, be64(r.heap, at + 1), U64(0), U64(0))
        if rest < 0:
            return rest
        shared = _whole(r, rest)
        found = _join(r, held, at + 9, size - 9, shared) if shared >= 0 else shared
    if found < 0:
        return found
    # Not undone: the record of a page never changes.
    one = r.entries[e]
    one.row, one.length, one.state = found, size_of(r.heap, found), KNOWN
    return found


@lean_kernel
def put_own_part(r, at, rest):
    """Writes a sketch row without the shared part -> (offset or FULL, bytes). rest: page id of the row that has it."""
    heap = r.heap
    tape, bloom, end = _shared_bounds(heap, at)
    whole = size_of(heap, at)
    size = 9 + _OWN_BYTES + (bloom - tape) + (whole - end)
    to = rows.room(r, size)
    if to < 0:
        return to, I64(0)
    heap[to] = 2
    rows.put_be64(heap, to + 1, rest)
    here, start = to + 9, I64(0)
    for part in range(len(_SHARED)):
        first, many = _SHARED[part]
        rows.copy(heap, here, at + start, first - start)
        here += first - start
        start = first + many
    rows.copy(heap, here, at + start, HEADER_SIZE - start)
    here += HEADER_SIZE - start
    rows.copy(heap, here, at + tape, bloom - tape)
    here += bloom - tape
    rows.copy(heap, here, at + end, whole - end)
    return to, size


@lean_kernel
def put_scrubbed(r, at):
    """Writes the sketch row of a record without its page's own data -> (offset or FULL, bytes).

    `neardup.index.sketch_rows.scrubbed` says what stays.
    """
    heap = r.heap
    tape_size, bloom_size = half_at(heap, at + _TAPE), half_at(heap, at + _BLOOM)
    size = 1 + HEADER_SIZE + tape_size + bloom_size
    to = rows.room(r, size)
    if to < 0:
        return to, I64(0)
    for k in range(size):
        heap[to + k] = 0
    heap[to] = 1
    new = to + 1
    heap[new], heap[new + _KIND], heap[new + _FLAGS] = heap[at], heap[at + _KIND], heap[at + _FLAGS]
    rows.copy(heap, new + _DIGEST, at + _DIGEST, 16)
    for part in range(len(_SHARED)):
        first, many = _SHARED[part]
        rows.copy(heap, new + first, at + first, many)
    _, bloom, _ = _shared_bounds(heap, at)
    rows.copy(heap, new + HEADER_SIZE, at + HEADER_SIZE, tape_size)
    rows.copy(heap, new + HEADER_SIZE + tape_size, at + bloom, bloom_size)
    whole = size - 1
    for k in range(4):
        heap[new + _SIZE + k] = np.uint8(whole >> (8 * k) & 255)
    return to, size
