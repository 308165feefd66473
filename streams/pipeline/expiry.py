"""Dropping what nobody has seen for long: a few URLs are looked at again and again, at places that the log sets.

A sweep comes behind the message with which so many pages were judged since the last one, and looks at a few URLs for
each of them, in the order of their hashes, from where the last one ended. So it costs a bounded share of the work, and
is a function of the log: of log time alone, which no crawler can set, and of no clock. On Kafka log time is the
broker's, of archives what `streams.files.archive_time` makes of their dates: no few wrong ones move it. A URL goes at
the first sweep that meets it after the horizon; one round takes as many pages as there are URLs, divided by
URLS_A_PAGE. Looking costs about 5% of judging; a URL that goes about as much as one or two pages that are judged.
"""

import struct
from typing import NamedTuple

from neardup.errors import CorruptRecord

#: Pages between two sweeps; and URLs that are looked at for each. Every fold of a log must have the same: they never
#: change within a generation.
PAGES_BETWEEN = 4096
URLS_A_PAGE = 2
#: Verdicts of a sweep have the last place of their message, and numbers that no page's own verdicts reach.
FIRST_VERDICT = 16

_ROW = struct.Struct(">I")


class Sweep(NamedTuple):
    """Where sweeping stands. pages: judged since the last sweep; after: hash of the last URL looked at, or b""."""

    pages: int = 0
    after: bytes = b""

    def encode(self) -> bytes:
        return _ROW.pack(self.pages) + self.after


def decode(row: bytes | None) -> Sweep:
    """The row that `Sweep.encode` gives; where there is none, nothing was swept yet. Raises CorruptRecord."""
    if row is None:
        return Sweep()
    if len(row) not in (_ROW.size, _ROW.size + 16):
        raise CorruptRecord(f"not where sweeping stands: {row.hex()}")
    (pages,) = _ROW.unpack_from(row)
    return Sweep(pages, row[_ROW.size :])
