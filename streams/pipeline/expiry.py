"""Expiry: when a sweep runs, and which URLs it checks. `neardup.clusters.removal.expire` drops those that are due.

A sweep follows every message with which PAGES_BETWEEN pages were judged since the last sweep. It checks URLS_A_PAGE
URLs for each of these pages, in the order of their hashes, and starts where the last sweep ended. So its cost is a
bounded share of judging. Its result is a function of the log: it reads log time, no clock and no crawler's dates. A
round over all URLs takes (number of URLs / URLS_A_PAGE) pages. Checking costs about 5% of judging; dropping a URL costs
about as much as judging one or two pages.
"""

import struct
from typing import NamedTuple

from neardup.errors import CorruptRecord

#: Constant within a generation: every fold of a log must use the same numbers.
PAGES_BETWEEN = 4096
URLS_A_PAGE = 2
#: `n` of a sweep's first verdict: above those of the page verdicts that have the same page id.
FIRST_VERDICT = 16

_ROW = struct.Struct(">I")


class Sweep(NamedTuple):
    """State between sweeps. pages: judged since the last sweep; after: hash of the last URL checked, or b""."""

    pages: int = 0
    after: bytes = b""

    def encode(self) -> bytes:
        return _ROW.pack(self.pages) + self.after


def decode(row: bytes | None) -> Sweep:
    """Decode `Sweep.encode`; None: no sweep yet. Raises CorruptRecord."""
    if row is None:
        return Sweep()
    if len(row) not in (_ROW.size, _ROW.size + 16):
        raise CorruptRecord(f"not the state of a sweep: {row.hex()}")
    (pages,) = _ROW.unpack_from(row)
    return Sweep(pages, row[_ROW.size :])
