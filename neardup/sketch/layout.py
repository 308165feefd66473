"""The bytes of a sketch record, version 1, little-endian.

HEADER, then these sections without padding, lengths in the header: tape, content tape, title names, head names (NAME
entries), Bloom filter, URL, site, title, canonical, lang, reason (the last six UTF-8). The pair kernel
(`neardup.kernels.pairs`) reads the same bytes by the offsets of HEADER.
"""

from enum import IntEnum, IntFlag

import numpy as np

SKETCH_VERSION = 1


class RecordKind(IntEnum):
    """What a record of the sketch log says of its `pages` record. Persisted: values never change."""

    PAGE = 0
    TOMBSTONE = 1
    REJECTED = 2


class RecordFlag(IntFlag):
    """Persisted: values never change."""

    OPAQUE = 1  # neither HTML nor text: digest is that of the body
    TRUNCATED = 2  # only the first body_bytes_max bytes were sketched
    OWN_URL = 4  # the text has the page's own URL, which the tape leaves out


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),  # RecordKind
        ("flags", "<u2"),  # RecordFlag
        ("size", "<u4"),  # bytes of the whole record
        ("fetched_at", "<i8"),  # ms since the epoch, as the crawler said
        ("log_time", "<i8"),  # ms since the epoch: the log's own clock
        ("source", "V16"),
        ("partition", "<u4"),
        ("offset", "<i8"),
        ("position", "<i8"),
        ("url_hash", "V16"),  # of the normalised URL
        ("site", "<u8"),  # fingerprint of the registrable domain
        ("hen_site", "<u8"),  # fingerprint of Henzinger's site
        ("tail", "<u8"),  # fingerprint of the end of the URL and its query
        ("titling", "<u8"),  # fingerprint of the title as people read it, ASCII letters folded; 0: none
        ("naming", "<u8"),  # fingerprint of the words of title and heading, those of digits alone left out; 0: none
        ("place", "<u8"),  # fingerprint of site, naming and the end of the URL without its query: an index key
        ("digest", "V16"),
        ("tokens", "<u4"),
        ("distinct", "<u4"),
        ("content_tokens", "<u4"),
        ("head", "<u8"),  # fingerprint of the first 8 tokens
        ("supershingles", "<u8", 6),  # algorithm B
        ("simhash", "<u8", 6),  # algorithm C, bit 0 = lowest bit of word 0
        ("wide", "<u8", 8),  # supershingles of few minvalues (scheme): index keys
        ("logtf", "<u4", 6),  # log-tf simhash in blocks of 32 bits: index keys
        ("tape_level", "u1"),
        ("content_level", "u1"),
        ("title_names", "u1"),  # entries, those of the heading among them
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

#: One name: low 48 bits of mix(token fingerprint), occurrences in its page (at most 255), NameFlag.
NAME = np.dtype([("fingerprint", "u1", 6), ("count", "u1"), ("flags", "u1")])


class NameFlag(IntFlag):
    """Persisted: values never change."""

    ALL_DIGITS = 1
    ANY_DIGIT = 2
    OWN_HOST = 4  # also a token of a label of the page's own host: never vetoes
    # of the names of title and heading alone:
    IN_TITLE = 8
    IN_HEADING = 16


#: Sections in their order: name, header field with its length, bytes per unit of that length.
SECTIONS = (
    ("tape", "tape_bytes", 1),
    ("content_tape", "content_bytes", 1),
    ("title_names", "title_names", NAME.itemsize),
    ("head_names", "head_names", NAME.itemsize),
    ("bloom", "bloom_bytes", 1),
    ("url", "url_bytes", 1),
    ("site", "site_bytes", 1),
    ("title", "title_bytes", 1),
    ("canonical", "canonical_bytes", 1),
    ("lang", "lang_bytes", 1),
    ("reason", "reason_bytes", 1),
)
