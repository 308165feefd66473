"""Which field of a table is the id of its documents, and which rows have an id that another text of the file has.

An id belongs to its file: two files of one corpus may both count from 0. A file is read once before its pages, for the
ids alone, so that the answer is a function of the file, and is the same for each reader from any row on.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from neardup.errors import BadPage
from neardup.page import Page
from neardup.urls import has_anchor, is_document, normalise_url
from streams.formats.json import IDS, ROW, Fields, no_id

#: Field of markup, which makes a file with URLs a crawl: the anchors of one page are fetches of that page.
_MARKUP = "html"
#: Rows of a file that have the id of another text, and keep their ids. In a file with more of them the field is no id.
REPEATS_MAX = 1000

_PAGE, _ANCHOR, _DOCUMENT = range(3)

U64s = NDArray[np.uint64]
#: Reads all pages of the file by these fields.
Reader = Callable[[Fields], Iterator[Page]]
#: A row, and the first row with its id, which has another text.
Repeat = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RowIds:
    """The ids of a file's rows.

    id: name of the field; ROW for the number of the row, None for `url`.
    repeats: rows with the id of an earlier row and with another text, at most REPEATS_MAX.
    refused: sentence about the fields that are no ids, with the reason.
    problem: whether ids of the file are refused because their texts differ.
    """

    id: str | None
    repeats: list[Repeat]
    refused: str = ""
    problem: bool = False


@dataclass(slots=True)
class _Field:
    """What the file says of a field.

    missing: rows without an id in it. repeats: up to REPEATS_MAX + 1. anchored: whether URLs that differ in their
    anchors alone have different texts.
    """

    name: str
    rows: int
    missing: int
    repeats: list[Repeat]
    anchored: bool = False

    @property
    def refused(self) -> str:
        if self.missing:
            return f"{self.name} is no id: {self.missing:,} of {self.rows:,} rows lack it"
        (row, first), *more = self.repeats
        return f"{self.name} is no id: rows {first} and {row}{', and others,' if more else ''} share one, not the text"


def ids_of_rows(fields: Fields, names: Sequence[str], read: Reader) -> RowIds:
    """Finds the field of the ids of a file's rows.

    With a field that the user named, or that alone has a usual name of an id, the ids are that field's. Of several the
    first one is taken that each row has, and never with two texts. A file of `url` alone is a crawl, where a URL may
    be fetched twice; of texts without markup, whose anchors have texts of their own, `url` is the field of ids.

    Args:
        fields: required fields; None for a field to be guessed.
        names: names of the file's fields.
        read: function that reads the file.
    """
    if fields.id is not None:
        candidates = [fields.id]
    else:
        candidates = [name for name in ("url", *IDS) if name in names]
    if not names or (candidates == ["url"] and fields == Fields()):
        return RowIds(fields.id, [])
    if candidates == ["url"]:
        found = _looked_up("url", fields, read, alone=True)
        if found.anchored:
            fields = Fields(fields.text, "url")
            found = _looked_up("url", fields, read, alone=True)
        many = len(found.repeats) > REPEATS_MAX
        return RowIds(ROW, [], found.refused, True) if many else RowIds(fields.id, found.repeats)
    refused: list[_Field] = []
    for name in candidates:
        if name == ROW:
            break
        found = _looked_up(name, fields, read)
        if not (found.missing or found.repeats):
            return RowIds(_id(name), [], "; ".join(one.refused for one in refused))
        refused.append(found)
    own = [one for one in refused if one.name != "url"]
    usable = [one for one in own if len(one.repeats) <= REPEATS_MAX and (fields.id or 2 * one.missing <= one.rows)]
    if usable:  # its repeats are kept apart, and rows without an id are rejected
        best = min(usable, key=lambda one: one.missing + len(one.repeats))
        others = "; ".join(one.refused for one in refused if one is not best)
        return RowIds(_id(best.name), best.repeats, others)
    return RowIds(ROW, [], "; ".join(one.refused for one in refused), any(one.repeats for one in own))


def _id(name: str) -> str | None:
    return None if name == "url" else name


def _looked_up(name: str, fields: Fields, read: Reader, *, alone: bool = False) -> _Field:
    as_url = name == "url" and fields.id is None
    identity = None if as_url else name
    hashes, kinds = array("Q"), bytearray()
    rows, missing, reasons = 0, 0, no_id(name)
    for page in read(Fields(name, identity)):  # the text is not needed yet
        rows += 1
        if page.url:
            hashes.append(_key(page.url))
            kinds.append(_DOCUMENT if is_document(page.url) else _ANCHOR if has_anchor(page.url) else _PAGE)
        else:
            missing += page.problem in reasons
    keys = np.array(hashes, np.uint64)
    ordered = np.sort(keys)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])

    def repeats(*those: int) -> list[Repeat]:
        required = np.intersect1d(twice, keys[np.isin(np.frombuffer(kinds, np.uint8), those)])
        return _with_other_texts(required, read(Fields(fields.text, identity))) if required.size else []

    # Of a URL beside other ids it is not known whether it is one; any other URL is that of a page, fetched again.
    found = repeats(_PAGE, _ANCHOR, _DOCUMENT) if as_url and not alone else repeats(_DOCUMENT)
    anchored = as_url and alone and fields.text != _MARKUP and bool(repeats(_ANCHOR))
    return _Field(name, rows, missing, found, anchored)


def _key(url: str) -> int:
    if not is_document(url):
        with suppress(BadPage):
            url = normalise_url(url)
    return _hash(url.encode("utf-8", "replace"))


def _with_other_texts(twice: U64s, pages: Iterator[Page]) -> list[Repeat]:
    """Rows whose text differs from that of the first row with their id. twice: hashes of ids that repeat, sorted."""
    ids, texts, rows = array("Q"), array("Q"), array("Q")
    for row, page in enumerate(pages):
        if not page.url:
            continue
        hashed = _key(page.url)
        at = int(np.searchsorted(twice, np.uint64(hashed)))
        if at < twice.size and int(twice[at]) == hashed:
            ids.append(hashed)
            texts.append(_hash(page.body or b""))
            rows.append(row)
    if not ids:
        return []
    order = np.argsort(np.frombuffer(ids, np.uint64), kind="stable")
    by_id, by_text, by_row = (np.frombuffer(each, np.uint64)[order] for each in (ids, texts, rows))
    starts = np.concatenate(([True], by_id[1:] != by_id[:-1]))
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    other = np.flatnonzero(by_text != by_text[first])
    found = sorted(zip(by_row[other].tolist(), by_row[first[other]].tolist(), strict=True))
    return found[: REPEATS_MAX + 1]


def _hash(value: bytes) -> int:
    return int.from_bytes(blake2b(value, digest_size=8).digest(), "big")
