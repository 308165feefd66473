"""Families of index keys: for each its first byte, the bytes of a record that make its keys, and its name for users.

Among them are the keys of supershingles (Broder) and of simhash blocks (Charikar, Manku). A similarity key has 7 bytes:
one for family and place, and the six low bytes of a fingerprint in the record. One of 2**48 pairs with different
fingerprints shares these bytes; verification then separates the pages.
"""

from collections.abc import Iterable
from enum import IntEnum
from itertools import combinations
from typing import NamedTuple

from neardup.sketch.layout import field_at
from neardup.verdict import FOUND_BY


class KeyFamily(IntEnum):
    """First byte of a key, for place 0. Persisted: values never change."""

    DIGEST = 0x01  # of a token sequence
    OPAQUE = 0x02  # of an opaque body
    DIGEST_MORE = 0x03  # live pages of a digest that do not fit into its row
    OPAQUE_MORE = 0x04
    NAMING = 0x05  # pages of a site by title and heading: neardup.index.naming_rows
    HEAD = 0x10  # the first 8 tokens
    PLACE = 0x60  # site, words of title and heading, end of the URL
    SUPERSHINGLE = 0x20  # 6 places: algorithm B's, of 14 minvalues
    WIDE = 0x30  # 8 places: supershingles of few minvalues; of sketches since version 4 of the scheme 7
    LOGTF = 0x40  # 6 places: 32-bit blocks of the log-tf simhash
    BLOCK = 0x50  # 12 places: 32-bit blocks of algorithm C's vector
    CONTENT_START = 0x70  # the first 8 tokens of the main content's longest block
    MANKU = 0x80  # 56 places: 3 of the 8 bytes of C's first 64 bits


#: Bytes of a key behind its first one.
KEY_BYTES = 6
#: Bytes of a similarity key, its first one included.
SIMILARITY_BYTES = 1 + KEY_BYTES
#: Positions in a record of the KEY_BYTES bytes of a key. NOWHERE: the byte is zero.
Places = tuple[int, ...]
NOWHERE = -1


class Words(NamedTuple):
    """The name of a family's keys for users, singular and plural. several: empty if a page has one such key."""

    one: str
    several: str = ""


WORDS: dict[KeyFamily, Words] = {
    KeyFamily.DIGEST: Words("the content digest"),
    KeyFamily.OPAQUE: Words("the digest of the body"),
    KeyFamily.HEAD: Words("the first 8 words"),
    KeyFamily.CONTENT_START: Words("the first 8 words of the main content"),
    KeyFamily.PLACE: Words("the same name at the same place of the site"),
    KeyFamily.SUPERSHINGLE: Words("supershingle", "supershingles"),
    KeyFamily.WIDE: Words("small supershingle", "small supershingles"),
    KeyFamily.LOGTF: Words("simhash block", "simhash blocks"),
    KeyFamily.BLOCK: Words("simhash block", "simhash blocks"),
    KeyFamily.MANKU: Words("simhash table", "simhash tables"),
}


def _each(field: str, many: int, step: int) -> tuple[Places, ...]:
    """The places of `many` fingerprints in a field of a record, one every `step` bytes."""
    size, first = min(step, KEY_BYTES), field_at(field)
    padding = (NOWHERE,) * (KEY_BYTES - size)
    return tuple((*range(at, at + size), *padding) for at in range(first, first + many * step, step))


def _manku() -> tuple[Places, ...]:
    """The tables of Manku 2007, section 3: 64 bits in 8 blocks, and one table for every choice of 3 blocks.

    Two vectors that differ in at most 5 bits agree in at least 3 whole blocks, so they share a key. With 24 bits a key,
    the lists stay short for 10**7 pages.
    """
    first, padding = field_at("simhash"), (NOWHERE,) * (KEY_BYTES - 3)
    return tuple((*(first + block for block in blocks), *padding) for blocks in combinations(range(8), 3))


#: The similarity keys of a page: for each family the bytes of each of its keys.
PLACES: dict[KeyFamily, tuple[Places, ...]] = {
    KeyFamily.HEAD: _each("head", 1, 8),
    KeyFamily.CONTENT_START: _each("content_start", 1, 8),
    KeyFamily.PLACE: _each("place", 1, 8),
    KeyFamily.SUPERSHINGLE: _each("supershingles", 6, 8),
    # deciders of earlier versions of the scheme post the eighth supershingle, which content_start has replaced
    KeyFamily.WIDE: (*_each("wide", 7, 8), *_each("content_start", 1, 8)),
    KeyFamily.LOGTF: _each("logtf", 6, 4),
    KeyFamily.BLOCK: _each("simhash", 12, 4),
    KeyFamily.MANKU: _manku(),
}


#: The two indexes of the papers as bits: that of supershingles, and that of simhash blocks.
SUPERSHINGLES, BLOCKS = 1, 2
#: The index of a family's keys. Other families are in neither.
INDEX_OF: dict[KeyFamily, int] = {
    KeyFamily.SUPERSHINGLE: SUPERSHINGLES,
    KeyFamily.WIDE: SUPERSHINGLES,
    KeyFamily.LOGTF: BLOCKS,
    KeyFamily.BLOCK: BLOCKS,
    KeyFamily.MANKU: BLOCKS,
}
_INDEXES = {family.name.lower(): INDEX_OF.get(family, 0) for family in KeyFamily}


def found_by(families: Iterable[str]) -> str:
    """The name in FOUND_BY of pages that share keys of these families, as verdicts name them."""
    indexes = 0
    for family in families:
        indexes |= _INDEXES.get(family, 0)
    return FOUND_BY[indexes]


#: The family of each first byte.
_FAMILIES = {family + place: family for family in KeyFamily for place in range(len(PLACES.get(family, (0,))))}
assert len(_FAMILIES) == sum(len(PLACES.get(family, (0,))) for family in KeyFamily), "no byte is of two families"
assert max(_FAMILIES) < 256


def family_of(key: bytes) -> KeyFamily:
    """The family that a key of the `keys` family belongs to."""
    return _FAMILIES[key[0]]


def key_name(key: bytes) -> str:
    """The name of a key in verdicts: its family, a colon, its bytes in hex."""
    return f"{family_of(key).name.lower()}:{key.hex()}"
