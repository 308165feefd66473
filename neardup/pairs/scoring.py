"""Computes the numbers of pairs of sketch records, for the rules."""

import struct
from collections.abc import Sequence
from typing import Any, get_type_hints

import numpy as np

from neardup.errors import BadInput
from neardup.kernels import pairs as kernels
from neardup.kernels.likeness import SLOTS
from neardup.kernels.tape_windows import AT_ONCE, BEHIND
from neardup.pairs.pair import Pair
from neardup.sketch.layout import HEADER, field_at
from neardup.sketch.sketch_record import Sketch

RECORD_AT = np.array([field_at(name) for name in kernels.FIELDS], dtype=np.int64)
#: tape_bytes and content_bytes of a header, which are adjacent.
_TAPES, _TAPES_AT = struct.Struct("<HH"), field_at("tape_bytes")
assert field_at("content_bytes") == _TAPES_AT + 2
#: reason_bytes: in the record of a page, the bytes of the article's section.
_ARTICLE, _ARTICLE_AT = struct.Struct("<H"), field_at("reason_bytes")
#: Columns of the fields of a Pair that are floats, and that are booleans.
_SHARES = tuple(at for at, kind in enumerate(get_type_hints(Pair).values()) if kind is float)
_TRUTHS = tuple(at for at, kind in enumerate(get_type_hints(Pair).values()) if kind is bool)
Arrays = tuple[np.ndarray, ...]


def compare(a: Sketch, b: Sketch) -> Pair:
    """Compute the numbers of a pair of pages.

    The numbers decide nothing: `neardup.rules.rule_of(decider).decide(pair, decider)` makes a ruling of them.

    Args:
        a: sketch of the new page.
        b: sketch of the candidate, an earlier page.

    Raises:
        TypeError: if an argument is not a `Sketch`.
        BadInput: if the sketches belong to two schemes, that is if `Sketch.scheme` differs, or if `site_fingerprint`
            differs between two pages of one site. Two sketches without scheme, of two sites, are not checked: the
            numbers are meaningless if the schemes differ.

    Example:
        >>> from neardup import Page, Scheme, Sketch, compare, sketch_pages
        >>> text = b" ".join(b"word%d" % i for i in range(300))
        >>> pages = [Page("https://a.example/", text), Page("https://b.example/", text + b" 9:41")]
        >>> scheme = Scheme(seed=7)
        >>> a, b = (Sketch(record, scheme) for record in sketch_pages(pages, scheme))
        >>> pair = compare(a, b)
        >>> pair.b_similarity, round(pair.tape_score, 4)  # equal supershingles of six, and the tape score
        (6, 0.9934)
    """
    for sketch in (a, b):
        if not isinstance(sketch, Sketch):
            raise TypeError(f"compare takes two neardup.Sketch, not {type(sketch).__name__}: Sketch(record, scheme)")
    known = a.scheme or b.scheme
    one = all(sketch.is_of(known) for sketch in (a, b)) if known else True
    if a.scheme and b.scheme:
        one = one and a.scheme.digest == b.scheme.digest
    if not one or (a.site == b.site and a.site_fingerprint != b.site_fingerprint):
        raise BadInput(f"{a.url}, {b.url}: sketches of two schemes cannot be compared; make both by one `Scheme`")
    return compare_records(a.record, [b.record])[0]


def compare_records(a: bytes, others: Sequence[bytes]) -> list[Pair]:
    """Compute the numbers of the record `a` with each record of `others`, in the order of `others`."""
    return pairs_of(numbers_of(a, others))


def numbers_of(a: bytes, others: Sequence[bytes]) -> np.ndarray:
    """Compute the numbers of the record `a` with each of `others`, float64[others, fields of a Pair].

    Records must be valid and of one scheme: their lengths are not checked. B-, C- and 64-bit similarity are 0 if a page
    has no tokens. In vetoes, a filter with more than half of its bits set proves no token absent; the names of the
    other page prove tokens present.
    """
    records = [a, *others]
    starts = np.cumsum([0, *map(len, records)])[:-1]
    tape = max(
        max(*_TAPES.unpack_from(record, _TAPES_AT), *_ARTICLE.unpack_from(record, _ARTICLE_AT)) for record in records
    )
    out = np.zeros((len(others), kernels.COLUMNS))
    buffer = np.frombuffer(b"".join(records), dtype=np.uint8)
    first = np.zeros(len(others), dtype=np.int64)
    kernels.score_pairs(buffer, first, starts[1:], RECORD_AT, HEADER.itemsize, pair_scratch(tape), out)
    return out


def pairs_of(numbers: np.ndarray) -> list[Pair]:
    """Return the Pair of each row of `numbers_of`."""
    columns: list[list[Any]] = numbers.T.astype(np.int64).tolist()
    for at in _SHARES:
        columns[at] = numbers[:, at].tolist()
    for at in _TRUTHS:
        columns[at] = (numbers[:, at] != 0).tolist()
    return list(map(Pair._make, zip(*columns, strict=True)))


def numbers_of_pairs(pairs: Sequence[Pair]) -> np.ndarray:
    """Return the numbers of each Pair as a row: the inverse of `pairs_of`, float64[pairs, fields of a Pair]."""
    return np.array(pairs, np.float64).reshape(len(pairs), len(Pair._fields))


def pair_scratch(tape: int) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Scratch for pairs in one buffer, with tapes of up to `tape` bytes.

    One array set each for tapes of pages, main contents and articles, and one that all three share.
    """
    first, room = tape_room(tape)
    return first, tape_room(tape)[0], tape_room(tape)[0], room


def tape_room(tape: int) -> tuple[Arrays, Arrays]:
    """Scratch to compare tapes of up to `tape` bytes: (state of the first tape of a pair, other arrays)."""
    table = max(AT_ONCE, 1 << (SLOTS * tape).bit_length())
    words = tape // 64 + 1
    known = np.full(6, -1, np.int64)
    first = (
        np.zeros(tape + BEHIND, np.uint8),
        np.zeros(tape + AT_ONCE, np.uint32),
        np.empty(table, np.uint32),
        np.zeros(table, np.uint32),
        np.empty(words, np.uint64),
        known,
    )
    known[4] = 0
    return first, (
        *(np.zeros(tape + BEHIND, np.uint8) for _ in range(3)),
        *(np.empty(words, np.uint64) for _ in range(3)),
        np.empty(256 * words, np.uint64),
        np.empty(words, np.uint64),
    )
