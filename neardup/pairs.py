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
#: Types of a Pair's fields, in their order.
_KINDS = tuple(get_type_hints(Pair).values())
#: Records that one call of the kernel gets, in bytes; of the pairs of a longer list some go in further calls.
_BUFFER_BYTES_MAX = 16 << 20
#: Fewer pairs are not worth another thread.
_PART_PAIRS_MIN = 32


def compare_records(a: bytes, others: Sequence[bytes]) -> list[Pair]:
    """The numbers of `a` with each of the other records, in their order; see `compare_pairs`."""
    return compare_pairs([(a, other) for other in others])


def compare_pairs(pairs: Sequence[tuple[bytes, bytes]]) -> list[Pair]:
    """The numbers of pairs of records, in their order; see `numbers_of`."""
    return list(map(pair_of, numbers_of(pairs)))


def pair_of(numbers: np.ndarray) -> Pair:
    """The Pair of one row of `numbers_of`."""
    return Pair._make(kind(value) for kind, value in zip(_KINDS, numbers.tolist(), strict=True))


def numbers_of(pairs: Sequence[tuple[bytes, bytes]], threads: int = 1) -> np.ndarray:
    """The numbers of pairs of records, float64[pairs, fields of a Pair], by few calls of the kernel.

    A record of several pairs is copied once. All are valid records of one scheme: lengths are trusted. B-, C- and
    64-bit similarity are 0 where a page has no tokens. In vetoes, a filter with more than half of its bits set proves
    nothing, but a name of the other page is known to be there. threads: how many share the pairs.
    """
    out = np.zeros((len(pairs), kernels.COLUMNS))
    parts: list[bytes] = []
    places: dict[int, int] = {}  # by identity: equal records may as well lie there twice
    starts: list[int] = []
    size = done = 0
    for a, b in pairs:
        for record in (a, b):
            place = places.get(id(record), -1)
            if place < 0:
                place = places[id(record)] = size
                parts.append(record)
                size += len(record)
            starts.append(place)
        if size > _BUFFER_BYTES_MAX:
            _score(parts, starts, out[done:], threads)
            done += len(starts) // 2
            parts, places, starts, size = [], {}, [], 0
    if starts:
        _score(parts, starts, out[done:], threads)
    return out


def _score(parts: Sequence[bytes], starts: Sequence[int], out: np.ndarray, threads: int) -> None:
    """The numbers of the pairs at starts[0] and [1], [2] and [3], ... of the records, joined, into the rows of out."""
    buffer = np.frombuffer(b"".join(parts), dtype=np.uint8)
    tape = max(max(_TAPES.unpack_from(record, _TAPES_AT)) for record in parts)
    a, b = np.array(starts, dtype=np.int64).reshape(-1, 2).T.copy()

    def score(first: int, last: int) -> None:
        scratch = tape_scratch(tape)
        kernels.score_pairs(buffer, a[first:last], b[first:last], _AT, HEADER.itemsize, scratch, out[first:last])

    spread(score, len(a), threads, _PART_PAIRS_MIN)


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
