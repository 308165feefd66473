"""The layout of a sketch record, version 1, little-endian.

HEADER, then the sections of `RecordSection` without padding; their lengths are in the header. Only this module computes
offsets; it passes those of HEADER's fields to the kernels, which read and write the same bytes.
"""

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, TypeVar

import numpy as np

SKETCH_VERSION = 1


class RecordKind(IntEnum):
    """What a record of the sketch log contains: a page, a tombstone or a rejection. Persisted: values never change."""

    PAGE = 0
    TOMBSTONE = 1
    REJECTED = 2


class RecordFlag(IntFlag):
    """Persisted: values never change."""

    OPAQUE = 1  # neither HTML nor text: digest is that of the body
    TRUNCATED = 2  # only the first body_bytes_max bytes were sketched
    OWN_URL = 4  # the text has the page's own URL, which the tape leaves out
    FORMS = 8  # of a page with tokens since version 3 of the scheme: hashes of its values and its words follow the tape
    SHELL = 16  # a page whose words come from elsewhere: digest is that of owner and body


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),  # RecordKind
        ("flags", "u1"),  # RecordFlag
        ("score", "u1"),  # as the crawler gave it, `score_code`; 0: it gave none
        ("size", "<u4"),  # bytes of the whole record
        ("fetched_at", "<i8"),  # ms since the epoch, from the crawler
        ("log_time", "<i8"),  # ms since the epoch: the log's own clock
        ("source", "V16"),
        ("partition", "<u4"),
        ("offset", "<i8"),
        ("position", "<i8"),
        ("url_hash", "V16"),  # of the normalised URL
        ("site", "<u8"),  # fingerprint of the registrable domain
        ("hen_site", "<u8"),  # fingerprint of Henzinger's site
        ("tail", "<u8"),  # fingerprint of the end of the URL and its query
        ("titling", "<u8"),  # fingerprint of the title, folded as tokens are; 0: none
        ("naming", "<u8"),  # fingerprint of the words of title and heading, those of digits alone left out; else `head`
        ("place", "<u8"),  # fingerprint of site, naming and the end of the URL without its query: an index key
        ("digest", "V16"),
        ("tokens", "<u4"),
        ("distinct", "<u4"),
        ("content_tokens", "<u4"),
        ("head", "<u8"),  # fingerprint of the first 8 tokens
        ("supershingles", "<u8", 6),  # algorithm B
        ("simhash", "<u8", 6),  # algorithm C, bit 0 = lowest bit of word 0
        ("wide", "<u8", 7),  # supershingles of few minvalues (scheme): index keys
        # fingerprint of the first 8 tokens of the main content's longest block, without main content `head`: an index
        # key; in versions of the scheme before 4 the eighth of `wide`
        ("content_start", "<u8"),
        ("logtf", "<u4", 6),  # log-tf simhash in blocks of 32 bits: index keys
        ("tape_level", "u1"),
        ("content_level", "u1"),
        ("title_names", "u1"),  # entries, those of heading and path among them
        ("head_names", "u1"),  # entries
        ("tape_bytes", "<u2"),
        ("content_bytes", "<u2"),
        ("bloom_bytes", "<u2"),
        ("url_bytes", "<u2"),
        ("site_bytes", "<u2"),
        ("title_bytes", "<u2"),
        ("canonical_bytes", "<u2"),
        ("lang_bytes", "<u2"),
        ("reason_bytes", "<u2"),
    ]
)


def _words(name: str) -> tuple[str, Any, int] | tuple[str, Any]:
    kind = HEADER[name]
    return (name, "<u8", kind.itemsize // 8) if kind.itemsize > 8 else (name, kind)


#: The same bytes as kernels see them: each field of more than 8 bytes is an array of 64-bit words, and elements have
#: attributes. `flags` and `size` must be read by name: as attributes, with the JIT off, they are numpy's own.
HEADER_WORDS = np.dtype((np.record, [_words(name) for name in HEADER.names or ()]))
assert HEADER_WORDS.itemsize == HEADER.itemsize

#: One HEADER as bytes. An array is copied and indexed some 30 times faster in this form than field by field.
HEADER_BYTES = np.dtype(f"V{HEADER.itemsize}")

#: One name: low 48 bits of mix(token fingerprint), occurrences in its page (at most 255), NameFlag.
NAME = np.dtype([("fingerprint", "u1", 6), ("count", "u1"), ("flags", "u1")])


class NameFlag(IntFlag):
    """Persisted: values never change."""

    ALL_DIGITS = 1
    ANY_DIGIT = 2
    OWN_HOST = 4  # also a token of a label of the page's own host: never vetoes
    # of the names of title, heading and path alone:
    IN_TITLE = 8
    IN_HEADING = 16
    IN_PATH = 32  # of the URL; it may occur 0 times in the page


class RecordSection(IntEnum):
    """The sections of a record, in their order: samples, NAME entries, filter; from URL on, texts in UTF-8."""

    TAPE = 0
    CONTENT_TAPE = 1
    TITLE_NAMES = 2
    HEAD_NAMES = 3
    BLOOM = 4
    URL = 5
    SITE = 6
    TITLE = 7
    CANONICAL = 8
    LANG = 9
    REASON = 10  # of a rejected record; of a page's it is:
    ARTICLE = 10  # tokens (4 bytes), level (1) and the tape of its article; empty without one


#: Fields of HEADER with the lengths of the sections, in their order: bytes; of names, entries.
SECTION_LENGTHS = (
    *("tape_bytes", "content_bytes", "title_names", "head_names", "bloom_bytes"),
    *("url_bytes", "site_bytes", "title_bytes", "canonical_bytes", "lang_bytes", "reason_bytes"),
)
_HEADER_BYTES, _NAME_BYTES = HEADER.itemsize, NAME.itemsize
#: A number, or an int64 array.
_Number = TypeVar("_Number", int, np.ndarray)


def section_starts(lengths: Sequence[_Number]) -> list[_Number]:
    """Computes the start of each section, and the end of the last one, which is the record's length.

    lengths: values of SECTION_LENGTHS, of one record, or int64[records] of several. Trailing text lengths may be left
    out; then the result ends with the last section that is given.
    """
    tape, content, title_names, head_names, bloom, *texts = lengths
    content_at = _HEADER_BYTES + tape
    title_at = content_at + content
    head_at = title_at + _NAME_BYTES * title_names
    bloom_at = head_at + _NAME_BYTES * head_names
    at = bloom_at + bloom
    starts = [_HEADER_BYTES + 0 * tape, content_at, title_at, head_at, bloom_at, at]
    for text in texts:
        at = at + text
        starts.append(at)
    return starts


def score_code(score: float | None) -> int:
    """Encodes a crawler's score from 0 to 1 as a byte of HEADER: 1 to 255, or 0 without a score."""
    return 0 if score is None else 1 + round(254 * score)


def score_of(code: int) -> float | None:
    """Decodes a byte of `score_code` to three decimal places."""
    return _SCORES[code]


_SCORES = (None, *(round(step / 254, 3) for step in range(255)))


def field_at(name: str) -> int:
    """Returns the byte offset of a field of HEADER."""
    fields = HEADER.fields
    assert fields is not None
    return int(fields[name][1])
