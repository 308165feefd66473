"""Computes the similarity keys that a page posts and probes under the decider's rule."""

from collections.abc import Callable
from functools import cache
from operator import itemgetter

import numpy as np

from neardup.decider import Decider, Shapes, shaping
from neardup.rules import rule_of
from neardup.rules.base import Posts
from neardup.rules.key_families import INDEX_OF, NOWHERE, PLACES, SIMILARITY_BYTES, KeyFamily, Places, family_of
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, RecordFlag

#: `length_gap` without a limit.
ANY_LENGTH = -1
#: The weight of the place key in the order of candidates; the other keys have 1. It exceeds the sum of the others: of
#: many pages made from one template, those with the page's name and URL ending come first. Otherwise an earlier release
#: of a page is not among the candidates if enough pages of its own release share more keys with it.
PLACE_WEIGHT = 16


def fewest_tokens(decider: Decider) -> int:
    """The fewest tokens of a page that posts keys. Rules that read tapes merge shorter pages by digests alone."""
    return max(1, decider.thin_tokens) if rule_of(decider).reads_tapes else 1


def length_gap(decider: Decider) -> int:
    """Greatest difference in log-length of a candidate; ANY_LENGTH for rules that do not read tapes."""
    return decider.length_gap_max if rule_of(decider).reads_tapes else ANY_LENGTH


def counts_siblings(decider: Decider) -> bool:
    """Whether the rule needs siblings, so that the index has rows of names."""
    return rule_of(decider).counts_siblings


def keeps_the_same(one: Decider, other: Decider) -> bool:
    """Whether two deciders keep the same rows and keys, so that one can continue the other's index."""
    if counts_siblings(one) != counts_siblings(other) or rule_of(one).posts(one) != rule_of(other).posts(other):
        return False
    if rule_of(one).reads_tapes != rule_of(other).reads_tapes:
        return False  # they exclude different thin pages
    return all(getattr(one, name) == getattr(other, name) for name in shaping(Shapes.INDEX) if name != "rule")


def similarity_keys(header: Header, decider: Decider) -> list[bytes]:
    """The 7-byte keys that a page posts and probes, in a fixed order; none for a shell or a page of too few tokens."""
    if header.opaque or header.shell or header.tokens < fewest_tokens(decider):
        return []
    source = header.record[: HEADER.itemsize] + b"\0"  # NOWHERE is its last byte
    return [first + bytes(take(source)) for first, take in _takers(rule_of(decider).posts(decider))]


def similarity_columns(headers: np.ndarray, decider: Decider) -> tuple[np.ndarray, np.ndarray]:
    """`similarity_keys` of many pages. headers: HEADER[pages].

    Returns bool[pages]: whether a page has keys; and uint64[pages with keys, keys]: each key as a number.
    Numbers have the order of the keys.
    """
    posted = (headers["flags"] & (RecordFlag.OPAQUE | RecordFlag.SHELL) == 0) & (
        headers["tokens"] >= fewest_tokens(decider)
    )
    first, places = _columns(rule_of(decider).posts(decider))
    raw = headers.view(np.uint8).reshape(-1, HEADER.itemsize)[posted]
    out = np.zeros((len(raw), *places.shape[:1], 8), dtype=np.uint8)
    out[:, :, 1] = first
    out[:, :, 2:] = raw[:, places.reshape(-1)].reshape(-1, *places.shape)
    out[:, :, 2:][:, places == NOWHERE] = 0
    return posted, out.view(">u8")[:, :, 0].astype(np.uint64)


def keys_of_columns(columns: np.ndarray) -> list[bytes]:
    """Keys as bytes, from a one-dimensional array of numbers of `similarity_columns`."""
    raw = columns.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 1:]
    out: list[bytes] = np.ascontiguousarray(raw).view(f"V{SIMILARITY_BYTES}")[:, 0].tolist()
    return out


def key_weights(decider: Decider) -> np.ndarray:
    """int64[keys]: the weight of each of a page's similarity keys in the order of candidates."""
    kinds = [family_of(first) for first, _ in _keys(rule_of(decider).posts(decider))]
    return np.array([PLACE_WEIGHT if kind is KeyFamily.PLACE else 1 for kind in kinds], dtype=np.int64)


def key_indexes(decider: Decider) -> np.ndarray:
    """int64[keys]: for each of a page's similarity keys the bit of its index, `SUPERSHINGLES`, `BLOCKS` or 0."""
    kinds = [family_of(first) for first, _ in _keys(rule_of(decider).posts(decider))]
    return np.array([INDEX_OF.get(kind, 0) for kind in kinds], dtype=np.int64)


def key_places(decider: Decider) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a page's keys: the first of each, uint8[keys], and places of the others in a record, int64[keys, 6].

    A place is NOWHERE for a byte that is zero.
    """
    return _columns(rule_of(decider).posts(decider))


def families_of(decider: Decider) -> list[str]:
    """Names of the families of a page's similarity keys, in their order."""
    return [family_of(first).name.lower() for first, _ in _keys(rule_of(decider).posts(decider))]


def _keys(posts: Posts) -> list[tuple[bytes, Places]]:
    """For each key its first byte, and the places of its other bytes in a record."""
    return [
        (bytes([family + place]), places)
        for family, many in posts
        for place, places in enumerate(PLACES[family][:many])
    ]


@cache
def _takers(posts: Posts) -> list[tuple[bytes, Callable[[bytes], tuple[int, ...]]]]:
    return [(first, itemgetter(*places)) for first, places in _keys(posts)]


@cache
def _columns(posts: Posts) -> tuple[np.ndarray, np.ndarray]:
    """uint8[keys]: first bytes of the keys; int64[keys, 6]: places of their other bytes in a record."""
    every = _keys(posts)
    first = [one[0] for one, _ in every]
    return np.array(first, dtype=np.uint8), np.array([places for _, places in every], dtype=np.int64).reshape(-1, 6)
