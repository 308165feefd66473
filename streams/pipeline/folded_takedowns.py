"""Folded takedowns, kept in the index's META family: one row for each control record. A row names no page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from neardup.errors import BadPage
from neardup.index.column_families import Family, Reader
from neardup.sketch.takedown_hashes import Named, Takedown
from neardup.urls import host_of, normalise_url, site_of
from neardup.verdict import TAKEN_DOWN, Kind

_PREFIX = b"takedown:"
_READ_ROWS = 1024
#: Fields that hold URLs; fields that describe a page; and those that locate the page that a verdict refers to.
_URL_FIELDS = ("url", "canonical", "rel_canonical")
_DESCRIPTION = ("title", "lang", "rel_canonical")
_LOCATION = ("fetched_at", "coordinates")


@dataclass(frozen=True, slots=True)
class FoldedTakedown:
    """A takedown that was folded, and its effect.

    offset: offset of the control record. log_time: log time of the record, ms since 1970. pages: number of removed
    URLs. promoted: number of clusters that another page took over.
    """

    offset: int
    log_time: int
    takedown: Takedown
    pages: int
    promoted: int

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


def without(takedowns: Sequence[Takedown], verdict: dict[str, Any]) -> dict[str, Any] | None:
    """Return a verdict (as JSON) without the URLs of pages that were taken down after it; None for one of such a page.

    Verdicts `gone` stay, with the URL alone: by them, consumers delete the page. In a verdict on another page, a
    reference to the page keeps its page id and the numbers of the pair, and has TAKEN_DOWN for a URL.
    """
    named = {url for url in _urls(verdict) if is_named(takedowns, url)}
    if verdict["url"] not in named:
        return _redacted(verdict, named) if named else verdict
    if verdict["verdict"] != Kind.GONE.value:
        return None
    return {name: value for name, value in verdict.items() if name not in _DESCRIPTION}


def is_named(takedowns: Sequence[Takedown], url: str) -> bool:
    """Return whether one of the takedowns applies to a URL."""
    return any(takedown.names(url, _site(url)) for takedown in takedowns)


def _redacted(value: Any, named: set[str]) -> Any:
    if not isinstance(value, Mapping):
        return value
    if value.get("url") in named:
        left = {name: each for name, each in value.items() if name not in (*_DESCRIPTION, *_LOCATION)}
        value = left | {"url": TAKEN_DOWN}
    return {
        name: _redacted(each, named)
        for name, each in value.items()
        if not (name in _URL_FIELDS and isinstance(each, str) and each in named)
    }


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name in _URL_FIELDS and isinstance(each, str):
                yield each
            else:
                yield from _urls(each)


def _site(url: str) -> str:
    try:
        return site_of(host_of(normalise_url(url)))
    except BadPage:  # a rejected page keeps its URL unchanged
        return ""
