"""Tapes: samples of a page's tokens that keep their order."""

from typing import NamedTuple


class Tape(NamedTuple):
    """level s: the low s bits of mix(token) are 0 for each token kept; data: one byte a token, in text order."""

    level: int
    data: bytes
