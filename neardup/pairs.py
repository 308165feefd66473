"""The numbers of pairs of sketch records, as the rules want them."""

from collections.abc import Sequence

import numpy as np

from neardup.kernels import pairs as kernels
from neardup.layout import HEADER
from neardup.pair import Pair

_AT = np.array([HEADER.fields[name][1] for name in kernels.FIELDS], dtype=np.int64)  # type: ignore[index]
_TAPES = tuple(HEADER.fields[name][1] for name in ("tape_bytes", "content_bytes"))  # type: ignore[index]


def compare_records(a: bytes, others: Sequence[bytes]) -> list[Pair]:
    """The numbers of `a` with each of the other records, in their order.

    All are valid records of one scheme: lengths are trusted. B-, C- and 64-bit similarity are 0 where a page has no
    tokens. In vetoes, a filter with more than half of its bits set proves nothing, but a name of the other page is
    known to be there.
    """
    if not others:
        return []
    buffer = np.frombuffer(b"".join((a, *others)), dtype=np.uint8)
    ends = np.cumsum([len(a), *map(len, others)])
    tape = max(int.from_bytes(r[at : at + 2], "little") for r in (a, *others) for at in _TAPES)
    out = np.zeros((len(others), kernels.COLUMNS))
    starts = np.zeros(len(others), dtype=np.int64)
    kernels.score_pairs(buffer, starts, ends[:-1], _AT, HEADER.itemsize, tape_scratch(tape), out)
    return [_pair(*numbers) for numbers in zip(out.tolist(), out.astype(np.int64).tolist(), strict=True)]


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


def _pair(row: Sequence[float], whole: Sequence[int]) -> Pair:
    """row: the kernel's columns; whole: the same as integers, which all but the two scores are."""
    first, names = map(bool, whole[:3]), map(bool, whole[18:23])
    return Pair._make((*first, *whole[3:10], row[10], *whole[11:15], row[15], *whole[16:18], *names, *whole[23:]))
