"""Tapes: samples of a page's tokens that keep their order."""

from typing import NamedTuple


class Tape(NamedTuple):
    """A tape. A token is kept if the low `level` bits of mix(token) are 0. data: one byte a token, in text order."""

    level: int
    data: bytes
