"""The numbers of pairs of sketch records, as the rules want them."""

import struct
from collections.abc import Callable, Sequence
from typing import get_type_hints

import numpy as np

from neardup.errors import BadInput
from neardup.kernels import pairs as kernels
from neardup.pairs.pair import Pair
from neardup.pairs.tapes import Arrays, tape_room
from neardup.parallel import spread
from neardup.sketch.layout import HEADER, field_at
from neardup.sketch.view import Sketch

_AT = np.array([field_at(name) for name in kernels.FIELDS], dtype=np.int64)
#: tape_bytes and content_bytes of a header, side by side.
_TAPES, _TAPES_AT = struct.Struct("<HH"), field_at("tape_bytes")
assert field_at("content_bytes") == _TAPES_AT + 2
#: reason_bytes: of a page's record those of its article.
_ARTICLE, _ARTICLE_AT = struct.Struct("<H"), field_at("reason_bytes")
#: Columns of a Pair's fields that are no whole numbers.
_SHARES = tuple(at for at, kind in enumerate(get_type_hints(Pair).values()) if kind is float)
_TRUTHS = tuple(at for at, kind in enumerate(get_type_hints(Pair).values()) if kind is bool)
#: Records that one call of the kernel gets, in bytes, about; what is more goes in further calls.
_BUFFER_BYTES_MAX = 16 << 20
#: Fewer pairs are not worth another thread.
_PART_PAIRS_MIN = 32


def compare(a: Sketch, b: Sketch) -> Pair:
    """The numbers of a pair, a the new page, b the candidate.

    Raises BadInput for sketches of two schemes, as far as they tell: what they were opened with (`Sketch`), or two
    fingerprints of one site. Without either nothing is known of them, and of two schemes the numbers mean nothing.
    """
    known = a.scheme or b.scheme
    one = all(sketch.is_of(known) for sketch in (a, b)) if known else True
    if a.scheme and b.scheme:
        one = one and a.scheme.digest == b.scheme.digest
    if not one or (a.site == b.site and a.site_fingerprint != b.site_fingerprint):
        raise BadInput(f"{a.url}, {b.url}: sketches of two schemes cannot be compared; make both by one `Scheme`")
    return compare_records(a.record, [b.record])[0]


def compare_records(a: bytes, others: Sequence[bytes]) -> list[Pair]:
    """The numbers of `a` with each of the other records, in their order; see `PairScorer`."""
    wanted, records = PairScorer(), [*others, a]
    wanted.add(len(others), range(len(others)), records.__getitem__)
    return list(map(pair_of, wanted.numbers()))


def pair_of(numbers: np.ndarray) -> Pair:
    """The Pair of one row of `PairScorer.numbers`."""
    values: list[float] = numbers.astype(np.int64).tolist()
    for at in _SHARES:
        values[at] = numbers.item(at)
    for at in _TRUTHS:
        values[at] = values[at] != 0
    return Pair._make(values)


class PairScorer:
    """Works out the numbers of pairs of records, all together. A record of several pairs is copied once.

    All are valid records of one scheme: lengths are trusted. B-, C- and 64-bit similarity are 0 where a page has no
    tokens. In vetoes, a filter with more than half of its bits set proves nothing, but a name of the other page is
    known to be there. threads: how many share the pairs.
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
        """A record with each of others, all by names of their own; record: by its name. What that raises, adds none."""
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
        """The numbers of all pairs in the order in which they were added, float64[pairs, fields of a Pair]."""
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
            kernels.score_pairs(buffer, a[first:last], b[first:last], _AT, HEADER.itemsize, scratch, out[first:last])

        spread(score, len(a), self._threads, _PART_PAIRS_MIN)
        self._out.append(out)
        self._clear()


def pair_scratch(tape: int) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Arrays for pairs of one buffer with tapes of up to `tape` bytes: of pages, main contents, articles, of all."""
    first, room = tape_room(tape)
    return first, tape_room(tape)[0], tape_room(tape)[0], room
