"""Computes the numbers of pairs of sketch records, for the rules."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import numpy as np

from neardup.errors import BadInput
from neardup.kernels import pairs as kernels
from neardup.pairs.pair import Pair
from neardup.parallel import spread
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
#: Bytes of records per call of the kernel, about.
_BUFFER_BYTES_MAX = 16 << 20
#: Least number of pairs that is worth another thread.
_PART_PAIRS_MIN = 32
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
    scorer, records = PairScorer(), [*others, a]
    scorer.add(len(others), range(len(others)), records.__getitem__)
    return list(map(pair_of, scorer.numbers()))


def pair_of(numbers: np.ndarray) -> Pair:
    """Return the Pair of one row of `PairScorer.numbers`."""
    values: list[float] = numbers.astype(np.int64).tolist()
    for at in _SHARES:
        values[at] = numbers.item(at)
    for at in _TRUTHS:
        values[at] = values[at] != 0
    return Pair._make(values)


def pairs_of(numbers: np.ndarray) -> list[Pair]:
    """`pair_of` of each row, in a third of the time for ten rows or more."""
    columns: list[list[Any]] = numbers.T.astype(np.int64).tolist()
    for at in _SHARES:
        columns[at] = numbers[:, at].tolist()
    for at in _TRUTHS:
        columns[at] = (numbers[:, at] != 0).tolist()
    return list(map(Pair._make, zip(*columns, strict=True)))


class PairScorer:
    """Computes the numbers of many pairs of records together. A record in several pairs is copied once.

    Records must be valid and of one scheme: their lengths are not checked. B-, C- and 64-bit similarity are 0 if a page
    has no tokens. In vetoes, a filter with more than half of its bits set proves no token absent; the names of the
    other
    page prove tokens present. threads: number of threads.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._out: list[np.ndarray] = []
        self._clear()

    def _clear(self) -> None:
        self._records: list[bytes] = []
        self._starts: dict[int, int] = {}
        self._size = 0
        self._a: list[int] = []
        self._b: list[int] = []

    def add(self, one: int, others: Sequence[int], record: Callable[[int], bytes]) -> None:
        """Add the pairs of a record with each of `others`.

        Records are given by numbers that the caller chooses; `record` returns the bytes. If it raises, no pair is
        added.
        """
        starts = self._starts
        for name in (one, *others):
            if name not in starts:
                found = record(name)
                starts[name] = self._size
                self._records.append(found)
                self._size += len(found)
        self._a += [starts[one]] * len(others)
        self._b += map(starts.__getitem__, others)
        if self._size > _BUFFER_BYTES_MAX:
            self._score()

    def numbers(self) -> np.ndarray:
        """Return the numbers of all pairs in the order of `add`, float64[pairs, fields of a Pair]."""
        self._score()
        return np.concatenate(self._out) if self._out else np.zeros((0, kernels.COLUMNS))

    def _score(self) -> None:
        if not self._a:
            return
        buffer = np.frombuffer(b"".join(self._records), dtype=np.uint8)
        tape = max(
            max(*_TAPES.unpack_from(record, _TAPES_AT), *_ARTICLE.unpack_from(record, _ARTICLE_AT))
            for record in self._records
        )
        a, b = np.array(self._a, dtype=np.int64), np.array(self._b, dtype=np.int64)
        out = np.zeros((len(a), kernels.COLUMNS))

        def score(first: int, last: int) -> None:
            scratch = pair_scratch(tape)
            kernels.score_pairs(
                buffer, a[first:last], b[first:last], RECORD_AT, HEADER.itemsize, scratch, out[first:last]
            )

        spread(score, len(a), self._threads, _PART_PAIRS_MIN)
        self._out.append(out)
        self._clear()


def pair_scratch(tape: int) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Scratch for pairs in one buffer, with tapes of up to `tape` bytes.

    One array set each for tapes of pages, main contents and articles, and one that all three share.
    """
    first, room = tape_room(tape)
    return first, tape_room(tape)[0], tape_room(tape)[0], room


def tape_room(tape: int) -> tuple[Arrays, Arrays]:
    """Scratch to compare tapes of up to `tape` bytes: (state of the first tape of a pair, other arrays)."""
    table = 1 << (4 * tape).bit_length()
    words = tape // 64 + 1
    known = np.full(5, -1, np.int64)
    first = (
        np.empty(tape, np.uint8),
        np.empty(tape, np.uint32),
        np.empty(table, np.uint32),
        np.zeros(table, np.uint32),
        known,
    )
    known[-1] = 0
    return first, (
        *(np.empty(tape, np.uint8) for _ in range(5)),
        np.empty(256 * words, np.uint64),
        np.empty(words, np.uint64),
    )
