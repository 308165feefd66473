"""What was taken down, kept in the index's META family: a record a word, which does not tell of which pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from neardup.clusters.removal import Removed
from neardup.errors import BadPage
from neardup.index.base import Family, Reader
from neardup.page import host_of, normalise_url, site_of
from neardup.sketch.takedown import Named, Takedown

_PREFIX = b"forgot:"
_READ_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Done:
    """A takedown that was folded. offset: of its word in the log; log_time: ms since the epoch, there. pages: URLs that
    went; promoted: clusters that other pages took over.
    """

    offset: int
    log_time: int
    takedown: Takedown
    pages: int
    promoted: int

    @classmethod
    def of(cls, offset: int, log_time: int, takedown: Takedown, removed: Removed) -> "Done":
        return cls(offset, log_time, takedown, removed.pages, removed.promoted)

    def row(self) -> tuple[bytes, bytes]:
        """Key and row of the record."""
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


def takedowns_of(index: Reader) -> Iterator[Done]:
    """All takedowns that an index has folded, in the log's order."""
    after = b""
    while rows := index.first(Family.META, _PREFIX, _READ_ROWS, after):
        for key, row in rows:
            said = orjson.loads(row)
            named = Takedown(Named(said["what"]), bytes.fromhex(said["hash"]), said["length"])
            yield Done(said["offset"], said["log_time"], named, said["pages"], said["promoted"])
            after = key


def names_any(takedowns: Sequence[Takedown], verdict: Mapping[str, Any]) -> bool:
    """Whether a verdict, as JSON, is of a page that was taken down, or names one."""
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
    except BadPage:  # of a rejected page, as it was given
        return ""
