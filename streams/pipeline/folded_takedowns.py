"""Folded takedowns, kept in the index's META family: one row for each control record. A row names no page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from neardup.clusters.takedown_and_expiry import Removed
from neardup.errors import BadPage
from neardup.index.base import Family, Reader
from neardup.page import host_of, normalise_url, site_of
from neardup.sketch.takedown_hashes import Named, Takedown

_PREFIX = b"takedown:"
_READ_ROWS = 1024


@dataclass(frozen=True, slots=True)
class FoldedTakedown:
    """A takedown that was folded, and its effect.

    offset: of its control record. log_time: ms since the epoch, there. pages: URLs removed. promoted: clusters that
    another page took over.
    """

    offset: int
    log_time: int
    takedown: Takedown
    pages: int
    promoted: int

    @classmethod
    def of(cls, offset: int, log_time: int, takedown: Takedown, removed: Removed) -> "FoldedTakedown":
        return cls(offset, log_time, takedown, removed.pages, removed.promoted)

    def row(self) -> tuple[bytes, bytes]:
        """Return the row's key and value."""
        return _PREFIX + self.offset.to_bytes(8, "big"), orjson.dumps(self.to_json())

    def to_json(self) -> dict[str, int | str]:
        named = self.takedown
        return {
            "offset": self.offset,
            "log_time": self.log_time,
            "what": named.what.value,
            "hash": named.hash.hex(),
            "length": named.length,
            "pages": self.pages,
            "promoted": self.promoted,
        }


def takedowns_of(index: Reader) -> Iterator[FoldedTakedown]:
    """Yield all takedowns that an index has folded, in the log's order."""
    after = b""
    while rows := index.first(Family.META, _PREFIX, _READ_ROWS, after):
        for key, value in rows:
            row = orjson.loads(value)
            named = Takedown(Named(row["what"]), bytes.fromhex(row["hash"]), row["length"])
            yield FoldedTakedown(row["offset"], row["log_time"], named, row["pages"], row["promoted"])
            after = key


def concerns(takedowns: Sequence[Takedown], verdict: Mapping[str, Any]) -> bool:
    """Return whether a verdict (as JSON) contains the URL of a page that was taken down."""
    urls = set(_urls(verdict))
    return any(takedown.names(url, _site(url)) for takedown in takedowns for url in urls)


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name in ("url", "canonical", "rel_canonical") and isinstance(each, str):
                yield each
            else:
                yield from _urls(each)


def _site(url: str) -> str:
    try:
        return site_of(host_of(normalise_url(url)))
    except BadPage:  # a rejected page keeps its URL unchanged
        return ""
