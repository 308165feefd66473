"""The header of a sketch record as plain Python values, for the matcher.

`neardup.sketch.sketch_record.Sketch` decodes any field through numpy. This module decodes the fields that matching
needs by one `struct` call, in a tenth of the time. Its format is derived from HEADER, so both readers agree.
"""

import re
import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from neardup.errors import CorruptRecord
from neardup.kernels.record import ARTICLE_HEADER_BYTES
from neardup.kernels.sketch import HASHES_BYTES
from neardup.kernels.tape import LEVELS
from neardup.sketch.layout import (
    HEADER,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    RecordFlag,
    RecordKind,
    RecordSection,
    field_at,
    section_starts,
)
from neardup.verdict import Coordinates

# Members of an enumeration cost a tenth of a microsecond each time they are asked for by name.
_URL, _TITLE, _CANONICAL = RecordSection.URL, RecordSection.TITLE, RecordSection.CANONICAL
_LANG, _REASON = RecordSection.LANG, RecordSection.REASON
#: Fields that `Header` takes, in HEADER's order; the others are skipped.
_WANTED = (
    *("version", "kind", "flags", "size", "fetched_at", "log_time", "source", "partition", "offset", "position"),
    *("url_hash", "site", "tail", "titling", "naming", "place", "digest", "tokens", "tape_level", "content_level"),
    *SECTION_LENGTHS,
)
_CODES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i8": "q"}
_NO_DIGEST = bytes(16)
_SIMHASH_AT, _SIMHASH_BYTES = field_at("simhash"), HEADER["simhash"].itemsize
# Enumerations cost a microsecond each time they are asked; a batch has thousands of records.
_KINDS = tuple(RecordKind)
_OPAQUE, _TRUNCATED, _FORMS = int(RecordFlag.OPAQUE), int(RecordFlag.TRUNCATED), int(RecordFlag.FORMS)
_SHELL = int(RecordFlag.SHELL)
#: All flags that a record may have.
FLAGS = int(sum(RecordFlag))
#: What matching takes for granted of the URL of a page (see `neardup.urls.normalise_url`).
_NORMAL = re.compile(rb"[a-z][a-z0-9+.-]*+://[^/?]*+/")


class RecordTexts:
    """Text fields of a record, decoded on access by the reader's `_text`; `Header` and `Sketch` have them."""

    __slots__ = ()

    def _is(self, kind: RecordKind) -> bool:
        raise NotImplementedError

    def _text(self, section: RecordSection) -> str:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The normalised URL; of a rejected page the URL as received, cut."""
        return self._text(_URL)

    @property
    def title(self) -> str:
        """The title, white space collapsed, at most title_bytes_max bytes."""
        return self._text(_TITLE)

    @property
    def canonical(self) -> str:
        """The normalised URL of rel=canonical, or empty."""
        return self._text(_CANONICAL)

    @property
    def lang(self) -> str:
        return self._text(_LANG)

    @property
    def reason(self) -> str:
        """The reason for which a page was rejected."""
        return self._text(_REASON) if self._is(RecordKind.REJECTED) else ""


def _format() -> struct.Struct:
    fields = HEADER.fields
    assert fields is not None
    assert HEADER.itemsize == sum(fields[name][0].itemsize for name in fields)
    codes = ["<"]
    for name in HEADER.names or ():
        dtype: np.dtype[np.void] = fields[name][0]
        if name not in _WANTED:
            codes.append(f"{dtype.itemsize}x")
        elif dtype.kind == "V":
            codes.append(f"{dtype.itemsize}s")
        else:
            codes.append(_CODES[dtype.kind + str(dtype.itemsize)])
    return struct.Struct("".join(codes))


_FORMAT = _format()


class Header(RecordTexts):
    """The fields of one record that matching reads. Texts are decoded on access.

    digest is b"" for a page that cannot be a duplicate: one without tokens, or an empty opaque body. tape_logs:
    log-lengths of the tape and of the main content's tape, see `log_length`. Raises CorruptRecord for bytes that are
    not a record.
    """

    __slots__ = (
        *("_lengths", "_starts", "digest", "fetched_at", "kind", "log_time", "naming", "offset", "opaque", "partition"),
        *("place", "position", "record", "shell", "site", "source", "tail", "tape_logs", "titling", "tokens"),
        *("truncated", "url_hash"),
    )

    def __init__(self, record: bytes) -> None:
        if len(record) < HEADER.itemsize or record[0] != SKETCH_VERSION:
            raise CorruptRecord(f"not a sketch record of version {SKETCH_VERSION}: {len(record)} bytes")
        fields = _FORMAT.unpack_from(record)
        (_, kind, flags, size, self.fetched_at, self.log_time, self.source, self.partition) = fields[:8]
        (self.offset, self.position, self.url_hash, self.site) = fields[8:12]
        (self.tail, self.titling, self.naming, self.place, digest, self.tokens) = fields[12:18]
        tape_level, content_level, title_names, head_names, tape, content, *others = fields[18:]
        if size != len(record):
            raise CorruptRecord(f"a sketch record of {len(record)} bytes says it has {size}")
        self.record = record
        self.kind = _KINDS[kind] if kind < len(_KINDS) else RecordKind(kind)
        self.opaque = bool(flags & _OPAQUE)
        self.truncated = bool(flags & _TRUNCATED)
        self.shell = bool(flags & _SHELL)
        self.digest: bytes = b"" if digest == _NO_DIGEST else digest
        self.tape_logs = (log_length(tape << tape_level), log_length(content << content_level))
        self._lengths = (tape, content, title_names, head_names, *others)
        self._starts: list[int] | None = None

    @property
    def simhash(self) -> bytes:
        """Algorithm C's vector."""
        return self.record[_SIMHASH_AT : _SIMHASH_AT + _SIMHASH_BYTES]

    @property
    def named(self) -> bool:
        """Whether the record has a valid URL. An unnamed record is rejected, and the index keeps no row for it."""
        return self.kind is not RecordKind.REJECTED or self._lengths[RecordSection.URL] > 0

    def problem(self) -> str:
        """Describes a header field that no valid page has; empty if the record can be judged. Called once for each
        record.
        """
        if self.starts[-1] != len(self.record):
            return "its sections do not add up to its length"
        fields = _FORMAT.unpack_from(self.record)
        flags, (tape_level, content_level), bloom = fields[2], fields[18:20], fields[24]
        if max(tape_level, content_level) >= LEVELS:
            return f"its tapes are of levels {tape_level} and {content_level}, and the last is {LEVELS - 1}"
        if flags & ~FLAGS:
            return f"it has flags {flags:#x}, and there are {FLAGS:#x}"
        if flags & _FORMS and self._lengths[RecordSection.TAPE] < HASHES_BYTES:
            return "its tape is too short for the hashes behind it"
        if self.kind is RecordKind.PAGE and (
            wrong := article_problem(self.record[self.starts[RecordSection.ARTICLE] :])
        ):
            return wrong
        if bloom & (bloom - 1):
            return f"its filter has {bloom} bytes, which is no power of two"
        if min(self.offset, self.position, self.log_time) < 0:
            return "its place or its time is negative"
        url = self.record[self.starts[RecordSection.URL] : self.starts[RecordSection.SITE]]
        if self.kind is RecordKind.PAGE and not is_normal(url):
            return f"its URL is not in normal form: {url[:200]!r}"
        return ""

    @property
    def starts(self) -> list[int]:
        """Returns the starts of the sections, see `neardup.sketch.layout.section_starts`."""
        if self._starts is None:
            self._starts = section_starts(self._lengths)
        return self._starts

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates(self.source.hex(), self.partition, self.offset, self.position)

    @property
    def site_name(self) -> str:
        return self._text(RecordSection.SITE)

    def _is(self, kind: RecordKind) -> bool:
        return self.kind is kind

    def _text(self, section: RecordSection) -> str:
        if not self._lengths[section]:
            return ""
        starts = self.starts
        return self.record[starts[section] : starts[section + 1]].decode("utf-8", "replace")

    def same_digest(self, other: "Header") -> bool:
        """Whether both have the same tokens in the same order, or the same opaque body. Two empty pages are equal."""
        return self.digest == other.digest and self.opaque == other.opaque


def is_normal(url: bytes) -> bool:
    """Returns whether a page's URL has the form that matching takes for granted."""
    return url.isascii() and _NORMAL.match(url) is not None


def article_problem(section: bytes) -> str:
    """Describes the fault in the article's section of a page's record; empty if the section is valid."""
    if not section:
        return ""
    if len(section) <= ARTICLE_HEADER_BYTES:
        return f"its article has {len(section)} bytes, and the least is {ARTICLE_HEADER_BYTES + 1}"
    if (level := section[ARTICLE_HEADER_BYTES - 1]) >= LEVELS:
        return f"its article's tape is of level {level}, and the last is {LEVELS - 1}"
    return ""


@lru_cache(maxsize=4096)
def log_length(tokens: int) -> int:
    """round(8 * log2(tokens + 1)), at most 255, in integers alone: all machines agree.

    With x = tokens + 1: round(8 log2 x) = floor((16 log2 x + 1) / 2), and floor(16 log2 x) is the number of bits of
    x ** 16 less one. A half never occurs: x would be an odd power of the 16th root of 2.
    """
    return min(255, ((tokens + 1) ** 16).bit_length() // 2)


def headers_of_valid(records: Sequence[bytes]) -> np.ndarray | None:
    """Returns the headers, HEADER[records]; None if `Header` refuses one of the records or finds a problem in it."""
    joined = b"".join([record[: HEADER.itemsize] for record in records])
    if len(joined) != HEADER.itemsize * len(records):
        return None
    headers = np.frombuffer(joined, dtype=HEADER)
    starts = section_starts([headers[name].astype(np.int64) for name in SECTION_LENGTHS])
    sizes = np.array([len(record) for record in records], dtype=np.int64)
    bloom = headers["bloom_bytes"].astype(np.int64)
    good = (headers["version"] == SKETCH_VERSION) & (headers["kind"] <= max(RecordKind))
    good &= (headers["size"] == sizes) & (starts[-1] == sizes)
    good &= (headers["tape_level"] < LEVELS) & (headers["content_level"] < LEVELS)
    good &= (headers["flags"] & ~np.uint8(FLAGS) == 0) & (bloom & (bloom - 1) == 0)
    good &= (headers["flags"] & np.uint8(_FORMS) == 0) | (headers["tape_bytes"] >= HASHES_BYTES)
    good &= (headers["offset"] >= 0) & (headers["position"] >= 0) & (headers["log_time"] >= 0)
    if not good.all():
        return None
    pages = headers["kind"] == RecordKind.PAGE
    columns = pages.tolist(), starts[RecordSection.URL].tolist(), starts[RecordSection.SITE].tolist()
    urls = [record[start:end] for record, is_page, start, end in zip(records, *columns, strict=True) if is_page]
    if not all(map(bytes.isascii, urls)) or None in map(_NORMAL.match, urls):  # `is_normal` of each
        return None
    with_article = np.flatnonzero(pages & (starts[RecordSection.ARTICLE] < sizes))
    level_at = starts[RecordSection.ARTICLE][with_article] + ARTICLE_HEADER_BYTES - 1
    if (level_at + 1 >= sizes[with_article]).any():
        return None
    levels = [records[i][at] for i, at in zip(with_article.tolist(), level_at.tolist(), strict=True)]
    return headers if max(levels, default=0) < LEVELS else None  # `article_problem` of each
