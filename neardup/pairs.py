"""The numbers of pairs of sketch records, as the rules want them."""

import struct
from collections.abc import Sequence
from typing import get_type_hints

import numpy as np

from neardup.kernels import pairs as kernels
from neardup.layout import HEADER
from neardup.pair import Pair
from neardup.parallel import spread

_AT = np.array([HEADER.fields[name][1] for name in kernels.FIELDS], dtype=np.int64)  # type: ignore[index]
#: tape_bytes and content_bytes of a header, side by side.
_TAPES, _TAPES_AT = struct.Struct("<HH"), HEADER.fields["tape_bytes"][1]  # type: ignore[index]
assert HEADER.fields["content_bytes"][1] == _TAPES_AT + 2  # type: ignore[index]
#: Places of a Pair's fields that are no whole numbers.
_SHARES = tuple(place for place, kind in enumerate(get_type_hints(Pair).values()) if kind is float)
_TRUTHS = tuple(place for place, kind in enumerate(get_type_hints(Pair).values()) if kind is bool)
#: Records that one call of the kernel gets, in bytes, about; what is more goes in further calls.
_BUFFER_BYTES_MAX = 16 << 20
#: Fewer pairs are not worth another thread.
_PART_PAIRS_MIN = 32


def compare_records(a: bytes, others: Sequence[bytes]) -> list[Pair]:
    """The numbers of `a` with each of the other records, in their order; see `Pairs`."""
    wanted = Pairs()
    # Named by identity: equal records may as well lie there twice.
    wanted.add((id(a), a), [(id(other), other) for other in others])
    return list(map(pair_of, wanted.numbers()))


def pair_of(numbers: np.ndarray) -> Pair:
    """The Pair of one row of `Pairs.numbers`."""
    values: list[float] = numbers.astype(np.int64).tolist()
    for place in _SHARES:
        values[place] = numbers.item(place)
    for place in _TRUTHS:
        values[place] = values[place] != 0
    return Pair._make(values)


class Pairs:
    """Pairs of records whose numbers are wanted. A record of several pairs is copied once.

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
        self._places: dict[int, int] = {}
        self._size = 0
        self._a: list[int] = []
        self._b: list[int] = []

    def add(self, one: tuple[int, bytes], others: Sequence[tuple[int, bytes]]) -> None:
        """A record, by a name of its own, with each of others."""
        self._a += [self._place(*one)] * len(others)
        places = self._places
        self._b += [places[other[0]] if other[0] in places else self._place(*other) for other in others]
        if self._size > _BUFFER_BYTES_MAX:
            self._score()

    def _place(self, name: int, record: bytes) -> int:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._size
            self._records.append(record)
            self._size += len(record)
        return place

    def numbers(self) -> np.ndarray:
        """The numbers of all pairs in the order in which they were added, float64[pairs, fields of a Pair]."""
        self._score()
        return np.concatenate(self._out) if self._out else np.zeros((0, kernels.COLUMNS))

    def _score(self) -> None:
        if not self._a:
            return
        buffer = np.frombuffer(b"".join(self._records), dtype=np.uint8)
        tape = max(max(_TAPES.unpack_from(record, _TAPES_AT)) for record in self._records)
        a, b = np.array(self._a, dtype=np.int64), np.array(self._b, dtype=np.int64)
        out = np.zeros((len(a), kernels.COLUMNS))

        def score(first: int, last: int) -> None:
            scratch = tape_scratch(tape)
            kernels.score_pairs(buffer, a[first:last], b[first:last], _AT, HEADER.itemsize, scratch, out[first:last])

        spread(score, len(a), self._threads, _PART_PAIRS_MIN)
        self._out.append(out)
        self._clear()


def tape_scratch(tape: int) -> tuple[np.ndarray, ...]:
    """Arrays for tapes of up to `tape` bytes."""
    table = 1 << (4 * tape).bit_length()
    words = tape // 64 + 1
    return (
        np.empty(tape, np.uint8),
        np.empty(tape, np.uint8),
        np.empty(tape, np.uint8),
        np.empty(tape, np.uint8),
        np.empty(table, np.uint32),
        np.empty(tape, np.uint32),
        np.empty(256 * words, np.uint64),
        np.empty(words, np.uint64),
    )
