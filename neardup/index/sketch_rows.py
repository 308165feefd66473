"""Rows of the `sketches` family: a whole record, or the own part of a record whose content is stored already.

Fields that follow from the token sequence are equal in all sketches of one digest: counts, both algorithms' sketches,
tape and Bloom filter. The row of the first page of a digest has them; the rows of the others refer to it.

    +---+-----------------------------+
    | 1 | record                      |    whole
    +---+-----------------------------+
    +---+-------------+---------------+
    | 2 | page id (8) | own part      |    the shared part is in that page's row
    +---+-------------+---------------+
"""

import struct
from collections.abc import Sequence

import numpy as np
import xxhash

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index.column_families import Family, Reader
from neardup.index.rows import id_key
from neardup.sketch.layout import HEADER, RecordSection, field_at, section_starts

_WHOLE, _OWN = b"\x01", b"\x02"

# The shared fields of HEADER, as byte ranges; tape and Bloom filter follow from their lengths.
_COUNTS = slice(field_at("tokens"), field_at("content_tokens"))
_SKETCHES = slice(field_at("head"), field_at("content_level"))
_TAPE = slice(field_at("tape_bytes"), field_at("content_bytes"))
_BLOOM = slice(field_at("bloom_bytes"), field_at("url_bytes"))
_TITLE_NAMES, _HEAD_NAMES, _CONTENT = field_at("title_names"), field_at("head_names"), field_at("content_bytes")
#: title_names, head_names, tape_bytes, content_bytes, bloom_bytes lie side by side.
_LENGTHS = struct.Struct("<BBHHH")
_HEADER_BYTES = HEADER.itemsize
_COUNTS_BYTES = _COUNTS.stop - _COUNTS.start
_SKETCHES_BYTES = _SKETCHES.stop - _SKETCHES.start
_FIXED = _COUNTS_BYTES + _SKETCHES_BYTES + 4
assert (_HEAD_NAMES, _TAPE.start, _CONTENT, _BLOOM.start, _BLOOM.stop) == tuple(
    _TITLE_NAMES + at for at in (1, 2, 4, 6, _LENGTHS.size)
)
_GAPS = (
    slice(0, _COUNTS.start),
    slice(_COUNTS.stop, _SKETCHES.start),
    slice(_SKETCHES.stop, _TAPE.start),
    slice(_TAPE.stop, _BLOOM.start),
    slice(_BLOOM.stop, HEADER.itemsize),
)


def _middle(header: bytes) -> tuple[int, int, int]:
    """Returns the end of the tape, and start and end of the Bloom filter, of a record with this header."""
    title, head, tape, content, bloom = _LENGTHS.unpack_from(header, _TITLE_NAMES)
    starts = section_starts((tape, content, title, head, bloom))
    return starts[RecordSection.CONTENT_TAPE], starts[RecordSection.BLOOM], starts[RecordSection.URL]


def shared_part(record: bytes, middle: tuple[int, int, int] | None = None) -> bytes:
    """Returns the part that all sketches of this record's digest have in common.

    middle: the result of `_middle`, if known.
    """
    tape, bloom, end = middle or _middle(record)
    return b"".join(
        (
            *(record[_COUNTS], record[_SKETCHES], record[_TAPE], record[_BLOOM]),
            *(record[_HEADER_BYTES:tape], record[bloom:end]),
        )
    )


def own_part(record: bytes, middle: tuple[int, int, int] | None = None) -> bytes:
    """Returns the record without its shared part. middle: the result of `_middle`, if known."""
    tape, bloom, end = middle or _middle(record)
    return b"".join([record[gap] for gap in _GAPS]) + record[tape:bloom] + record[end:]


def join(own: bytes, shared: bytes) -> bytes:
    """Returns the record from which `own_part` and `shared_part` were cut, byte for byte."""
    at = 0
    parts = []
    fixed = (
        shared[:_COUNTS_BYTES],
        shared[_COUNTS_BYTES : _FIXED - 4],
        shared[_FIXED - 4 : _FIXED - 2],
        shared[_FIXED - 2 : _FIXED],
        b"",
    )
    for gap, piece in zip(_GAPS, fixed, strict=True):
        size = gap.stop - gap.start
        parts += [own[at : at + size], piece]
        at += size
    header = b"".join(parts)
    tape_end, bloom, _ = _middle(header)
    tape, between = shared[_FIXED : _FIXED + tape_end - _HEADER_BYTES], own[at : at + bloom - tape_end]
    return b"".join((header, tape, between, shared[_FIXED + len(tape) :], own[at + len(between) :]))


def scrubbed(record: bytes) -> bytes:
    """Returns a record with the same shared part and digest, and no other data of its page: no URL, title or names.

    It replaces the record of a removed page whose shared part other rows still use.
    """
    kept = bytearray(_HEADER_BYTES)
    for name in ("version", "kind", "flags", "digest"):
        at = slice(field_at(name), field_at(name) + HEADER[name].itemsize)
        kept[at] = record[at]
    own = b"".join(bytes(kept[gap]) for gap in _GAPS)
    out = bytearray(join(own, shared_part(record)))
    size = field_at("size")
    out[size : size + 4] = len(out).to_bytes(4, "little")
    return bytes(out)


def checks_of(headers: np.ndarray, records: Sequence[bytes], middles: Sequence[tuple[int, int, int]]) -> list[int]:
    """Returns 64-bit checksums of the shared parts of records: they show whether records of one digest really share it.

    headers: HEADER[records]. middles: results of `_middle`.
    """
    raw = headers.view(np.uint8).reshape(-1, _HEADER_BYTES)
    fixed = np.concatenate([raw[:, shared] for shared in (_COUNTS, _SKETCHES, _TAPE, _BLOOM)], axis=1)
    starts: list[bytes] = fixed.view(f"V{_FIXED}")[:, 0].tolist()
    checksum = xxhash.xxh3_64_intdigest
    return [
        checksum(start + record[_HEADER_BYTES:tape] + record[bloom:end])
        for start, record, (tape, bloom, end) in zip(starts, records, middles, strict=True)
    ]


def rest_of_row(row: bytes) -> int | None:
    """Returns the page id of the row that holds the shared part; None if this row is whole."""
    if row[:1] == _WHOLE:
        return None
    if row[:1] != _OWN or len(row) < 9:
        raise CorruptRecord(f"not a sketch row of a known format: {row[:9].hex()}")
    return int.from_bytes(row[1:9], "big")


def record_of_rows(row: bytes, rest_row: bytes | None) -> bytes:
    """Returns the record of a row. rest_row: the row that `rest_of_row` names, if any."""
    if rest_row is None:
        return row[1:]
    return join(row[9:], shared_part(rest_row[1:]))


def records_of(index: Reader, page_ids: Sequence[int]) -> list[bytes]:
    """Returns the records of pages. Raises InvariantBroken if the index lacks one."""
    held = index.get_many(Family.SKETCHES, [id_key(page_id) for page_id in page_ids])
    rows = [row for row in held if row is not None]
    if len(rows) < len(held):
        raise InvariantBroken(f"sketches: no row of page {page_ids[held.index(None)]}")
    rests = [rest_of_row(row) for row in rows]
    required = [id_key(rest) for rest in rests if rest is not None]
    shared = iter(index.get_many(Family.SKETCHES, required))
    return [record_of_rows(row, None if rest is None else next(shared)) for row, rest in zip(rows, rests, strict=True)]
