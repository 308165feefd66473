"""Keys of rows as the store has them, and the errors of rows that are malformed."""

from collections.abc import Callable

import numpy as np

from neardup.errors import CorruptRecord
from neardup.index import naming_rows, posting_rows, sketch_rows
from neardup.index import rows as row_formats
from neardup.matching.kernels import rows
from neardup.rules.key_families import SIMILARITY_BYTES, KeyFamily


def keys_of(entries: np.ndarray) -> list[bytes]:
    """The keys in the store of entries or needs, ordered by kind."""
    kinds = entries["kind"]
    words = np.empty((len(entries), 4), ">u8")
    words[:, 0] = kinds & 255
    for column, name in enumerate(("a", "b", "c"), 1):
        words[:, column] = entries[name]
    raw = words.view(np.uint8).reshape(-1, 32)
    out: list[bytes] = []
    first = 0
    bounds = np.flatnonzero(np.diff(kinds)) + 1
    for last in [*bounds.tolist(), len(entries)] if len(entries) else []:
        start, size = _KEY_FORMS[int(kinds[first])]
        if size == SIMILARITY_BYTES:
            part = np.concatenate([raw[first:last, 7:8], raw[first:last, 10:16]], axis=1)
        else:
            part = np.ascontiguousarray(raw[first:last, start : start + size])
        out += part.view(f"V{size}")[:, 0].tolist()
        first = last
    return out


def _key_forms() -> dict[int, tuple[int, int]]:
    """By kind: first byte and number of bytes of its key among the words of an entry."""
    out = {rows.URLS: (8, 16), rows.CLUSTERS: (8, 8), rows.SKETCHES: (8, 8), rows.MEMBERS: (8, 16)}
    for first in range(256):
        out[rows.KEYS | first] = (10, SIMILARITY_BYTES)
    for family in (KeyFamily.DIGEST, KeyFamily.OPAQUE, KeyFamily.NAMING):
        out[rows.KEYS | family] = (7, 17)
    for family in (KeyFamily.DIGEST_MORE, KeyFamily.OPAQUE_MORE):
        out[rows.KEYS | family] = (7, 25)
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
