"""Sketch: all stored data of a page, as one record of bytes (`neardup.sketch.layout`)."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from neardup.errors import BadInput, CorruptRecord
from neardup.kernels.record import ARTICLE_HEADER_BYTES
from neardup.kernels.sketch import HASHES_BYTES
from neardup.scheme import Scheme
from neardup.sketch.addresses import site_digest
from neardup.sketch.header import RecordTexts
from neardup.sketch.layout import (
    HEADER,
    NAME,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    NameFlag,
    RecordFlag,
    RecordKind,
    RecordSection,
    score_of,
    section_starts,
)
from neardup.verdict import Coordinates


class Name(NamedTuple):
    """A token of title or heading: 48-bit fingerprint, occurrences in the page (at most 255), flags."""

    fingerprint: int
    occurrences: int
    flags: NameFlag


_Value = TypeVar("_Value")


class _Decoded(Generic[_Value]):
    """A property of a sketch, decoded by a function."""

    def __init__(self, decode: "Callable[[Sketch], _Value]", doc: str) -> None:
        self._decode, self.__doc__ = decode, doc

    def __get__(self, sketch: "Sketch | None", owner: type) -> _Value:
        return self if sketch is None else self._decode(sketch)  # type: ignore[return-value]


def _number(name: str, doc: str) -> _Decoded[int]:
    return _Decoded(lambda sketch: int(sketch.field(name)), doc)


def _words(name: str, doc: str) -> _Decoded[tuple[int, ...]]:
    return _Decoded(lambda sketch: tuple(sketch.field(name).tolist()), doc)


def _bytes(name: str, doc: str) -> _Decoded[bytes]:
    return _Decoded(lambda sketch: bytes(sketch.field(name)), doc)


def _flag(flag: RecordFlag, doc: str) -> _Decoded[bool]:
    return _Decoded(lambda sketch: flag in sketch.flags, doc)


def _section(section: RecordSection, doc: str) -> _Decoded[bytes]:
    return _Decoded(lambda sketch: sketch.section(section), doc)


def _names(section: RecordSection, doc: str) -> _Decoded[list[Name]]:
    def decode(sketch: "Sketch") -> list[Name]:
        data = sketch.section(section)
        return [
            Name(int.from_bytes(data[i : i + 6], "little"), data[i + 6], NameFlag(data[i + 7]))
            for i in range(0, len(data), NAME.itemsize)
        ]

    return _Decoded(decode, doc)


class Sketch(RecordTexts):
    """The sketch of a page: a read-only view of its record, a result of `sketch_pages`.

    Fields are decoded on access; the record is not copied.
    """

    __slots__ = ("_header", "_starts", "record", "scheme")

    def __init__(self, record: bytes, scheme: Scheme | None = None) -> None:
        """Check and open a record.

        Args:
            record: a record of `sketch_pages`.
            scheme: the scheme that made the record, if it is known. `compare` refuses sketches of two schemes.

        Raises:
            CorruptRecord: if the version of the record is unknown or its length is wrong.
            BadInput: if the record was made with another seed than that of `scheme`.
        """
        self.scheme = scheme
        if len(record) < HEADER.itemsize or record[0] != SKETCH_VERSION:
            version = record[0] if record else "nothing"
            raise CorruptRecord(f"not a sketch record of version {SKETCH_VERSION}: {version}, {len(record)} bytes")
        self.record = record
        self._header = np.frombuffer(record, dtype=HEADER, count=1)[0]
        if int(self._header["size"]) != len(record):
            raise CorruptRecord(f"a sketch record of {len(record)} bytes says it has {self._header['size']}")
        self._starts = section_starts([int(self._header[length]) for length in SECTION_LENGTHS])
        if self._starts[-1] != len(record):
            raise CorruptRecord(f"a sketch record of {len(record)} bytes has sections up to byte {self._starts[-1]}")

        if scheme is not None and not self.is_of(scheme):
            raise BadInput(f"{self.url}: a sketch of another seed than that of the scheme {scheme.digest}")

    def is_of(self, scheme: Scheme) -> bool:
        """Whether the record was made with the scheme's seed, by the fingerprint of its site. Checks no other
        parameter.
        """
        return self.site_fingerprint == int.from_bytes(site_digest(self.site, scheme), "little")

    def section(self, section: RecordSection) -> bytes:
        """The bytes of a section."""
        return self.record[self._starts[section] : self._starts[section + 1]]

    def field(self, name: str) -> Any:
        """A field of `HEADER`, as numpy decodes it."""
        return self._header[name]

    def _is(self, kind: RecordKind) -> bool:
        return self.kind is kind

    def _text(self, section: RecordSection) -> str:
        return self.section(section).decode("utf-8", "replace")

    @property
    def kind(self) -> RecordKind:
        return RecordKind(int(self._header["kind"]))

    @property
    def flags(self) -> RecordFlag:
        return RecordFlag(int(self._header["flags"]))

    @property
    def score(self) -> float | None:
        """The crawler's score, 0 to 1, in 254 steps; None without a score."""
        return score_of(int(self._header["score"]))

    @property
    def coordinates(self) -> Coordinates:
        """The source, partition, offset and position from which the page was read."""
        h = self._header
        return Coordinates(bytes(h["source"]).hex(), int(h["partition"]), int(h["offset"]), int(h["position"]))

    opaque = _flag(RecordFlag.OPAQUE, "Whether the page is neither HTML nor text. The digest is then that of the body.")
    truncated = _flag(RecordFlag.TRUNCATED, "Whether only the first body_bytes_max bytes were sketched.")
    own_url = _flag(RecordFlag.OWN_URL, "Whether the text contains the page's own URL. The tape leaves it out.")
    shell = _flag(
        RecordFlag.SHELL,
        "Whether the words of the page come from a script or another page. The digest is that of its bytes.",
    )
    fetched_at = _number("fetched_at", "Fetch time by the crawler, or log time if it gave none; ms since the epoch.")
    log_time = _number("log_time", "Log time, milliseconds since the epoch.")
    url_hash = _bytes("url_hash", "128-bit hash of the normalised URL.")
    site_fingerprint = _number("site", "Fingerprint of the registrable domain.")
    hen_site_fingerprint = _number("hen_site", "Fingerprint of the site as Henzinger 2006 defines it.")
    tail = _number("tail", "Fingerprint of the end of the URL, with its query.")
    titling = _number("titling", "Fingerprint of the displayed title, ASCII letters folded; 0 without a title.")
    naming = _number("naming", "Fingerprint of the words of title and heading; 0 without any.")
    place = _number("place", "Fingerprint of site, naming and the end of the URL without its query: an index key.")
    digest = _bytes("digest", "128-bit digest of the token sequence, or of an opaque body; all zero without either.")
    tokens = _number("tokens", "Number of tokens.")
    distinct = _number("distinct", "Number of distinct tokens.")
    content_tokens = _number("content_tokens", "Number of tokens of the main content.")
    head = _number("head", "Fingerprint of the first 8 tokens.")
    supershingles = _words("supershingles", "Algorithm B's supershingles: 6 words.")
    simhash = _words("simhash", "Algorithm C's simhash: 6 words; bit 0 is the lowest bit of the first.")
    wide = _words("wide", "7 supershingles of 2 minvalues each.")
    content_start = _number(
        "content_start",
        "Fingerprint of the first 8 tokens of the main content's longest block, or `head` without main content; before "
        "version 4 of the scheme an eighth supershingle of 2 minvalues.",
    )
    logtf = _words("logtf", "Simhash by logarithmic term frequencies: 6 blocks of 32 bits.")
    tape_level = _number("tape_level", "Level of the tape.")
    content_level = _number("content_level", "Level of the main content's tape.")
    tape = _Decoded(lambda sketch: sketch._tape_and_hashes[0], "Tape of the page.")
    hashes = _Decoded(
        lambda sketch: sketch._tape_and_hashes[1],
        "Hashes of the figures in no form and of the words, 4 bytes each; empty before version 3 of the scheme.",
    )
    content_tape = _section(RecordSection.CONTENT_TAPE, "Tape of the main content.")
    bloom = _section(RecordSection.BLOOM, "Bloom filter of the distinct tokens.")
    title_names = _names(RecordSection.TITLE_NAMES, "Names of title, heading and path.")
    head_names = _names(RecordSection.HEAD_NAMES, "Names among the first tokens.")

    @property
    def _tape_and_hashes(self) -> tuple[bytes, bytes]:
        section = self.section(RecordSection.TAPE)
        end = len(section) - (HASHES_BYTES if RecordFlag.FORMS in self.flags else 0)
        return section[:end], section[end:]

    @property
    def _article(self) -> bytes:
        return self.section(RecordSection.ARTICLE) if self.kind is RecordKind.PAGE else b""

    @property
    def article_tokens(self) -> int:
        """Number of tokens of the article; 0 without an article, or if it is too short."""
        return int.from_bytes(self._article[:4], "little")

    @property
    def article_level(self) -> int:
        return self._article[4] if self._article else 0

    @property
    def article_tape(self) -> bytes:
        return self._article[ARTICLE_HEADER_BYTES:]

    @property
    def site(self) -> str:
        """The registrable domain."""
        return self._text(RecordSection.SITE)

    def to_dict(self) -> dict[str, Any]:
        """Converts all fields to JSON values by name: bytes in hex, kind and flags by name."""
        coordinates = self.coordinates
        out: dict[str, Any] = {
            "kind": self.kind.name.lower(),
            "opaque": self.opaque,
            "shell": self.shell,
            "truncated": self.truncated,
            "own_url": self.own_url,
            "source": coordinates.source,
            "partition": coordinates.partition,
            "offset": coordinates.offset,
            "position": coordinates.position,
        }
        for name in _PLAIN:
            value = getattr(self, name)
            out[name] = value.hex() if isinstance(value, bytes) else value
        if self.score is not None:
            out["score"] = self.score
        if self.article_tokens:
            out["article_tokens"], out["article_level"] = self.article_tokens, self.article_level
            out["article_tape"] = self.article_tape.hex()
        for name in ("title_names", "head_names"):
            out[name] = [[f"{n.fingerprint:012x}", n.occurrences, int(n.flags)] for n in getattr(self, name)]
        return out


_PLAIN = (
    *("fetched_at", "log_time", "url_hash", "site_fingerprint", "hen_site_fingerprint", "digest", "tokens"),
    *("tail", "titling", "naming", "place"),
    *("distinct", "content_tokens", "head", "supershingles", "simhash", "wide", "content_start", "logtf", "tape_level"),
    *(
        "content_level",
        "tape",
        "hashes",
        "content_tape",
        "bloom",
        "url",
        "site",
        "title",
        "canonical",
        "lang",
        "reason",
    ),
)
