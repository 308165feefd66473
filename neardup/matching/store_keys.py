"""Keys of rows as the store has them, and the errors of rows that are malformed or contradict each other."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index import naming_rows, posting_rows, sketch_rows
from neardup.index import rows as row_formats
from neardup.index.column_families import Family
from neardup.matching.kernels import rows
from neardup.rules.key_families import SIMILARITY_BYTES, KeyFamily


def in_order(kinds: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """The places of entries or needs by kind, then by the beginning of their keys, int64.

    Keys that begin alike may stand in any order: neighbours in a file are still read together.
    kinds, firsts: `kind` and `a` of the entries.
    """
    order: np.ndarray = np.argsort(kinds.astype(np.uint64) << _KIND_AT | firsts >> _KIND_BITS)
    return order


def keys_of(entries: np.ndarray) -> list[bytes]:
    """The keys in the store of entries or needs, ordered by kind."""
    kinds = entries["kind"]
    words = np.empty((len(entries), 4), ">u8")
    words[:, 0] = kinds & 255
    for column, name in enumerate(("a", "b", "c"), 1):
        words[:, column] = entries[name]
    raw = words.view(np.uint8).reshape(-1, 32)
    forms = _KEY_FORMS[kinds]
    bounds = [0, *(np.flatnonzero(np.diff(forms)) + 1).tolist(), len(entries)] if len(entries) else []
    out: list[bytes] = []
    for first, last in pairwise(bounds):
        start, size = _FORMS[forms[first]]
        if size == SIMILARITY_BYTES:
            part = np.concatenate([raw[first:last, 7:8], raw[first:last, 10:16]], axis=1)
        else:
            part = np.ascontiguousarray(raw[first:last, start : start + size])
        out += part.view(f"V{size}")[:, 0].tolist()
    return out


#: Bits of a kind, and the least bit that it has in the number by which `in_order` sorts.
_KIND_BITS, _KIND_AT = np.uint64(16), np.uint64(48)
#: Forms of keys: first byte and number of bytes of a key among the words of an entry.
_FORMS = ((10, SIMILARITY_BYTES), (8, 16), (8, 8), (7, 17), (7, 25))


def _key_forms() -> np.ndarray:
    """By kind: the form of its keys, uint8[kinds]."""
    out = np.zeros(rows.RECORD, np.uint8)
    for kind, form in ((rows.URLS, 1), (rows.MEMBERS, 1), (rows.CLUSTERS, 2), (rows.SKETCHES, 2)):
        out[kind] = form
    for family in (KeyFamily.DIGEST, KeyFamily.OPAQUE, KeyFamily.NAMING):
        out[rows.KEYS | family] = 3
    for family in (KeyFamily.DIGEST_MORE, KeyFamily.OPAQUE_MORE):
        out[rows.KEYS | family] = 4
    return out


_KEY_FORMS = _key_forms()


def corrupt(kind: int, key: bytes, row: bytes) -> CorruptRecord:
    """The error of the reader of such rows."""
    first = kind & 255
    decode = _DECODERS.get(kind) or _DECODERS_OF_KEYS.get(first, posting_rows.postings)
    try:
        decode(row)
    except CorruptRecord as error:
        return error
    return CorruptRecord(f"not a row of a known format under {key.hex()}: {row[:64].hex()}")


_DECODERS: dict[int, Callable[[bytes], object]] = {
    rows.URLS: row_formats.decode_url,
    rows.CLUSTERS: row_formats.decode_cluster,
    rows.MEMBERS: row_formats.decode_member,
    rows.SKETCHES: sketch_rows.rest_of_row,
}
_DECODERS_OF_KEYS: dict[int, Callable[[bytes], object]] = {
    KeyFamily.DIGEST: row_formats.decode_digest,
    KeyFamily.OPAQUE: row_formats.decode_digest,
    KeyFamily.NAMING: naming_rows.decode,
}


def fault(r: rows.Rows) -> InvariantBroken | CorruptRecord:
    """The error that the last walk has found, by its reason and the two numbers with it."""
    why, a, b = (int(number) for number in r.n[rows.WHY : rows.WHY + 3])
    if why == rows.NO_ROW:
        return InvariantBroken(f"{_family(r, a)}: no row under {_key(r, a)}")
    if why == rows.MISPLACED:
        return InvariantBroken(f"the posting of page {a} is not where it was put: key {b} of the page")
    if why == rows.NOT_LIVE:
        return InvariantBroken(f"page {a} is not among the live pages of its digest {_key(r, b)}")
    if why == rows.TOO_FEW:
        return InvariantBroken(f"a digest counts {a} more live pages, but {b} are there")
    if why == rows.LEANS:
        return InvariantBroken(f"sketch {a} leans on another sketch than the row of its digest {_key(r, b)}")
    if why == rows.NO_MEMBERS:
        return InvariantBroken(f"cluster {a} counts {b} pages, but has no members")
    if why == rows.DAMAGED:
        row, length = int(r.entries["row"][a]), int(r.entries["length"][a])
        found = r.heap[row : row + min(length, 9)].tobytes().hex()
        return CorruptRecord(f"{_family(r, a)}: not a sketch under {_key(r, a)}: {found}..., {length} bytes")
    return InvariantBroken(f"{_family(r, b)}: the member {_key(r, b)} is held as one of cluster {a}")


def _key(r: rows.Rows, entry: int) -> str:
    return keys_of(r.entries[entry : entry + 1])[0].hex()


def _family(r: rows.Rows, entry: int) -> str:
    return Family(int(r.entries["kind"][entry]) >> 8).name.lower()
